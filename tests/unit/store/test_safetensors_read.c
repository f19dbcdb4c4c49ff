#include "store/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

/* A file by hand: header, then `data_bytes` bytes 1, 2, 3 ... */
static const char *write_raw(uint64_t length, const char *header, size_t data_bytes)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/raw.safetensors", test_folder());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < 8; i++)
        fputc((int)(length >> (8 * i) & 255), file);
    fputs(header, file);
    for (size_t i = 0; i < data_bytes; i++)
        fputc((int)(i + 1) & 255, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void assert_refused(const char *header, size_t data_bytes, const char *part)
{
    struct ph__safetensors *file = NULL;
    const char *path = write_raw(strlen(header), header, data_bytes);
    assert_fails(ph__safetensors_open(path, &file), PH_ERROR_CHECKPOINT, part);
    assert_non_null(strstr(ph_error_text(), path));
    assert_null(file);
}

static void a_file_written_by_hand_is_read(void **state)
{
    (void)state;
    const char *header = "{\"b\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[8,12]},"
                         "\"__metadata__\":{\"model\":\"LR\",\"epoch\":\"3\"},"
                         "\"a\":{\"shape\":[2],\"data_offsets\":[0,8],\"dtype\":\"I32\"},"
                         "\"none\":{\"dtype\":\"F64\",\"shape\":[0,5],\"data_offsets\":[12,12]},"
                         "\"number\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[12,13]}}  ";
    struct ph__safetensors *file;
    assert_ok(ph__safetensors_open(write_raw(strlen(header), header, 13), &file));
    assert_int_equal(ph__safetensors_num_tensors(file), 4);

    const size_t a = ph__safetensors_find(file, "a"), b = ph__safetensors_find(file, "b");
    assert_int_equal(a, 0);
    assert_int_equal(ph__safetensors_find(file, "c"), 4);
    const struct ph_tensor tensor = ph__safetensors_tensor(file, b);
    assert_string_equal(tensor.name, "b");
    assert_int_equal(tensor.dtype, PH_U8);
    assert_int_equal(tensor.shape.num_dims, 2);
    assert_int_equal(tensor.shape.dims[1], 2);

    int32_t integers[2];
    uint8_t bytes[4], number;
    assert_ok(ph__safetensors_read(file, a, integers));
    assert_int_equal(integers[0], 0x04030201);
    assert_int_equal(integers[1], 0x08070605);
    assert_ok(ph__safetensors_read(file, b, bytes));
    assert_int_equal(bytes[0], 9);
    assert_int_equal(bytes[3], 12);
    assert_ok(ph__safetensors_read(file, ph__safetensors_find(file, "none"), NULL));
    assert_ok(ph__safetensors_read(file, ph__safetensors_find(file, "number"), &number));
    assert_int_equal(number, 13);

    assert_false(ph__safetensors_is_sealed(file));
    assert_fails(ph__safetensors_check_seal(file, &(struct ph__meanwhile){0}), PH_ERROR_CHECKPOINT,
        "does not begin with a seal");
    assert_string_equal(ph__safetensors_metadata(file, "model"), "LR");
    assert_null(ph__safetensors_metadata(file, "missing"));
    struct ph__json_member member = {0};
    assert_true(ph__safetensors_next_metadata(file, &member));
    assert_true(ph__safetensors_next_metadata(file, &member));
    assert_string_equal(member.key, "epoch");
    assert_false(ph__safetensors_next_metadata(file, &member));
    ph__safetensors_close(file);
}

static void a_file_without_tensors_is_read(void **state)
{
    (void)state;
    struct ph__safetensors *file;
    assert_ok(ph__safetensors_open(write_raw(2, "{}", 0), &file));
    assert_int_equal(ph__safetensors_num_tensors(file), 0);
    assert_int_equal(ph__safetensors_find(file, "a"), 0);
    assert_null(ph__safetensors_metadata(file, "a"));
    assert_false(ph__safetensors_next_metadata(file, &(struct ph__json_member){0}));
    ph__safetensors_close(file);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct ph__safetensors *file = NULL;
    assert_fails(
        ph__safetensors_open("/no/such/file", &file), PH_ERROR_CHECKPOINT, "/no/such/file: cannot open");
    assert_fails(ph__safetensors_open(test_folder(), &file), PH_ERROR_CHECKPOINT, "not a file");
    const char *text = test_write_file("short", "seven77");
    assert_fails(ph__safetensors_open(text, &file), PH_ERROR_CHECKPOINT, "too short");
    text = test_write_file("text", "A file of text is not a checkpoint.");
    assert_fails(ph__safetensors_open(text, &file), PH_ERROR_CHECKPOINT, "not a safetensors file");
}

static void a_header_longer_than_the_file_or_sense_is_refused(void **state)
{
    (void)state;
    struct ph__safetensors *file = NULL;
    const uint64_t lengths[] = {3, 100, (uint64_t)200 << 20, UINT64_MAX, (uint64_t)1 << 63, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        assert_fails(
            ph__safetensors_open(write_raw(lengths[i], "{}", 0), &file), PH_ERROR_CHECKPOINT, "header of");
}

static void a_header_that_is_no_object_of_tensors_is_refused(void **state)
{
    (void)state;
    assert_refused("", 0, "raw.safetensors");
    assert_refused("{\"a\":", 0, "raw.safetensors");
    assert_refused("[1,2,3]", 0, "not a JSON object");
    assert_refused("{\"a\":7}", 0, "'a' is not {");
    assert_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, "'a' is not {");
    assert_refused(
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"more\":1}}", 0, "'a' is not {");
    assert_refused("{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
    assert_refused("{\"__metadata__\":{\"k\":1}}", 0, "'k' is not text");
}

static void a_name_given_twice_is_refused(void **state)
{
    (void)state;
    assert_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                   "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
        2, "raw.safetensors");
}

static void a_tensor_that_contradicts_itself_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *dtype, *shape, *offsets, *part;
    } cases[] = {
        {"\"F8_E4M3\"", "[4]", "[0,4]", "unknown dtype 'F8_E4M3'"},
        {"4", "[4]", "[0,4]", "no dtype"},
        {"\"U8\"", "4", "[0,4]", "no shape"},
        {"\"U8\"", "[1,1,1,2,2]", "[0,4]", "no shape"},
        {"\"U8\"", "[-4]", "[0,4]", "bad dimension"},
        {"\"U8\"", "[4.0]", "[0,4]", "bad dimension"},
        {"\"U8\"", "[\"4\"]", "[0,4]", "bad dimension"},
        {"\"U8\"", "[4]", "[0]", "bad data_offsets"},
        {"\"U8\"", "[4]", "[0,4,8]", "bad data_offsets"},
        {"\"U8\"", "[4]", "[4,0]", "bad data_offsets"},
        {"\"U8\"", "[4]", "[-4,0]", "bad data_offsets"},
        {"\"U8\"", "[4]", "{\"0\":0,\"1\":4}", "bad data_offsets"},
        {"\"U8\"", "[5]", "[0,5]", "cut short"},
        {"\"U8\"", "[4]", "[0,9223372036854775807]", "cut short"},
        {"\"U8\"", "[3]", "[0,4]", "does not fit"},
        {"\"I32\"", "[4]", "[0,4]", "does not fit"},
        {"\"I64\"", "[4611686018427387904,4]", "[0,4]", "does not fit"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[256];
        snprintf(header, sizeof header, "{\"a\":{\"dtype\":%s,\"shape\":%s,\"data_offsets\":%s}}",
            cases[i].dtype, cases[i].shape, cases[i].offsets);
        assert_refused(header, 4, cases[i].part);
    }
}

static void holes_overlap_and_rests_are_refused(void **state)
{
    (void)state;
    static const struct {
        int a[2], b[2];
        size_t bytes;
        const char *part;
    } cases[] = {
        {{0, 4}, {2, 6}, 6, "'b' overlaps"},
        {{0, 4}, {0, 4}, 4, "overlaps"},
        {{0, 4}, {5, 8}, 8, "unused bytes before tensor 'b'"},
        {{1, 4}, {4, 8}, 8, "unused bytes before tensor 'a'"},
        {{0, 4}, {4, 8}, 9, "unused bytes after"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[256];
        snprintf(header, sizeof header,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
            cases[i].a[1] - cases[i].a[0], cases[i].a[0], cases[i].a[1], cases[i].b[1] - cases[i].b[0],
            cases[i].b[0], cases[i].b[1]);
        assert_refused(header, cases[i].bytes, cases[i].part);
    }
}

static void a_file_that_shrinks_after_it_was_opened_is_an_error(void **state)
{
    (void)state;
    const char *header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
    struct ph__safetensors *file;
    uint8_t bytes[4];
    assert_ok(ph__safetensors_open(write_raw(strlen(header), header, 4), &file));
    write_raw(strlen(header), header, 2);
    assert_fails(ph__safetensors_read(file, 0, bytes), PH_ERROR_CHECKPOINT, "shrank");
    ph__safetensors_close(file);
}

#define SEALED "{\"__metadata__\":{\"sha256\":\"" PH_SEAL_BLANK "\""

static void the_metadata_of_a_sealed_file_are_read_without_its_tensors(void **state)
{
    (void)state;
    const char *header = SEALED ",\"model\":\"L}\\u00e4\"},\"a\":{\"dtype\":\"U8\",\"shape\":[9";
    const char *path = write_raw(strlen(header), header, 4);
    struct ph__safetensors *file;
    assert_fails(ph__safetensors_open(path, &file), PH_ERROR_CHECKPOINT, "not valid JSON");
    assert_ok(ph__safetensors_open_metadata(path, &file));
    assert_string_equal(ph__safetensors_metadata(file, "model"), "L}\xc3\xa4");
    assert_null(ph__safetensors_metadata(file, "a"));
    assert_true(ph__safetensors_is_sealed(file));
    assert_int_equal(ph__safetensors_num_tensors(file), 0);
    assert_int_equal(ph__safetensors_find(file, "a"), 0);
    ph__safetensors_close(file);
}

static void metadata_without_a_seal_or_an_end_are_not_read_alone(void **state)
{
    (void)state;
    static const struct {
        const char *header, *part;
    } cases[] = {
        {"{\"__metadata__\":{\"model\":\"LR\"}}", "the file has no seal"},
        {SEALED ",\"model\":\"LR", "not valid JSON"},
        {SEALED ",\"model\":3}}", "'model' is not text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ph__safetensors *file = NULL;
        const char *path = write_raw(strlen(cases[i].header), cases[i].header, 0);
        assert_fails(ph__safetensors_open_metadata(path, &file), PH_ERROR_CHECKPOINT, cases[i].part);
        assert_null(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_written_by_hand_is_read),
        cmocka_unit_test(a_file_without_tensors_is_read),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(a_header_longer_than_the_file_or_sense_is_refused),
        cmocka_unit_test(a_header_that_is_no_object_of_tensors_is_refused),
        cmocka_unit_test(a_name_given_twice_is_refused),
        cmocka_unit_test(a_tensor_that_contradicts_itself_is_refused),
        cmocka_unit_test(holes_overlap_and_rests_are_refused),
        cmocka_unit_test(a_file_that_shrinks_after_it_was_opened_is_an_error),
        cmocka_unit_test(the_metadata_of_a_sealed_file_are_read_without_its_tensors),
        cmocka_unit_test(metadata_without_a_seal_or_an_end_are_not_read_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
