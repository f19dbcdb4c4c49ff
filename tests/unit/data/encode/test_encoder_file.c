/* Saving and loading encoders: what comes back encodes the same, and nothing else is taken for one. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/seal.h"
#include "base/sum/digest.h"
#include "data/encode/encoder.h"
#include "support/count_allocations.h"
#include "unit/data/data_fixture.h"

static const char rows[] = "label,w,user,tags,h,r,d,g,skip\n"
                           "1,1,u1,a|b,x,3,2.5,g1,?\n"
                           "0,2,u2,b,y,4,,g2,?\n"
                           "1,1,u1,,x,0,1e2,g1,?\n"
                           "0,1,\"q,\"\"\xc3\xa9\",b|c,z,9,-3,g3,?\n";

static struct ph_encoder *rich_encoder(const char *path)
{
    struct fixture fixture;
    fixture_init(&fixture, path);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "w", PH_FIELD_WEIGHT);
    struct ph__field_settings *tags = fixture_field(&fixture, "tags", PH_FIELD_ID);
    tags->is_list = true;
    tags->max_length = 5;
    struct ph__field_settings *hashed = fixture_field(&fixture, "h", PH_FIELD_ID);
    hashed->encoding = PH_ENCODING_HASH;
    hashed->rows = 1000;
    hashed->hash_seed = 7;
    struct ph__field_settings *raw = fixture_field(&fixture, "r", PH_FIELD_ID);
    raw->encoding = PH_ENCODING_RAW;
    raw->rows = 10;
    raw->is_group = true;
    struct ph__field_settings *dense = fixture_field(&fixture, "d", PH_FIELD_DENSE);
    dense->transform = PH_TRANSFORM_LOG1P;
    dense->missing = 0.1;
    fixture_field(&fixture, "skip", PH_FIELD_IGNORE);
    return fixture_encoder(&fixture);
}

static void assert_same_batch(const struct ph_batch *a, const struct ph_batch *b)
{
    assert_int_equal(a->num_samples, b->num_samples);
    assert_int_equal(a->num_ids, b->num_ids);
    assert_memory_equal(a->dense, b->dense, a->num_samples * a->num_dense * sizeof *a->dense);
    assert_memory_equal(a->labels, b->labels, a->num_samples * sizeof *a->labels);
    assert_memory_equal(a->weights, b->weights, a->num_samples * sizeof *a->weights);
    assert_memory_equal(a->groups, b->groups, a->num_samples * sizeof *a->groups);
    assert_memory_equal(a->lengths, b->lengths, a->num_samples * a->num_sparse * sizeof *a->lengths);
    assert_memory_equal(a->ids, b->ids, a->num_ids * sizeof *a->ids);
}

static void what_could_not_be_loaded_is_not_saved(void **state)
{
    (void)state;
    const char *saved = fixture_file("large.json", "as it was");
    struct ph_encoder *encoder = rich_encoder(fixture_file("rich.csv", rows));
    size_t *text_size = &encoder->columns[2].vocabulary.text_size, size = *text_size;
    *text_size = (size_t)3 << 30;
    assert_fails(
        ph_encoder_save(encoder, saved), PH_ERROR_CONFIG, "hold 3.0 GiB of ids, more than the 2.0 GiB");
    *text_size = size;
    ph_encoder_destroy(encoder);
    FILE *file = fopen(saved, "r");
    char text[16] = "";
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, "as it was");
    fclose(file);
}

static void a_loaded_encoder_encodes_as_the_saved_one(void **state)
{
    (void)state;
    const char *path = fixture_file("rich.csv", rows);
    const char *saved = fixture_file("encoder.json", "");
    struct ph_encoder *encoder = rich_encoder(path), *loaded = NULL;
    assert_ok(ph_encoder_save(encoder, saved));
    assert_ok(ph_encoder_load(saved, &loaded));
    assert_int_equal(ph_encoder_num_training_rows(loaded), 4);
    assert_int_equal(ph_encoder_num_sparse(loaded), ph_encoder_num_sparse(encoder));
    for (size_t f = 0; f < ph_encoder_num_sparse(encoder); f++) {
        assert_string_equal(ph_encoder_sparse(loaded, f)->name, ph_encoder_sparse(encoder, f)->name);
        assert_int_equal(ph_encoder_sparse(loaded, f)->num_rows, ph_encoder_sparse(encoder, f)->num_rows);
    }
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
    struct ph_batches *a = fixture_open(encoder, path, &options);
    struct ph_batches *b = fixture_open(loaded, path, &options);
    assert_same_batch(fixture_next(a), fixture_next(b));
    ph_batches_close(a);
    ph_batches_close(b);
    ph_encoder_destroy(encoder);
    ph_encoder_destroy(loaded);
}

static void saving_twice_writes_the_same_bytes(void **state)
{
    (void)state;
    const char *path = fixture_file("rich.csv", rows);
    const char *names[2] = {fixture_file("first.json", ""), fixture_file("second.json", "")};
    char texts[2][4096] = {{0}};
    struct ph_encoder *encoder = rich_encoder(path), *loaded = NULL;
    assert_ok(ph_encoder_save(encoder, names[0]));
    assert_ok(ph_encoder_load(names[0], &loaded));
    assert_ok(ph_encoder_save(loaded, names[1]));
    for (size_t i = 0; i < 2; i++) {
        FILE *file = fopen(names[i], "rb");
        assert_in_range(fread(texts[i], 1, sizeof texts[i] - 1, file), 100, sizeof texts[i] - 2);
        fclose(file);
    }
    assert_string_equal(texts[0], texts[1]);
    ph_encoder_destroy(encoder);
    ph_encoder_destroy(loaded);
}

#define HEAD "{\"format\":\"phloem-encoder\",\"version\":2,\"data_format\":\"csv\",\"separator\":\",\","
#define TAIL "\"list_separator\":\"|\",\"has_header\":true,\"training_rows\":1,\"columns\":["
#define LABEL "{\"name\":\"label\",\"kind\":\"label\"},"
#define ID \
    "{\"name\":\"a\",\"kind\":\"id\",\"list\":false,\"max_length\":0,\"group\":false,\"part\":\"whole\","

static const char *write_bytes(const char *name, const char *bytes, size_t size)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600); /* over the former bytes */
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, bytes, size, 0), size);
    assert_int_equal(ftruncate(descriptor, (off_t)size), 0);
    close(descriptor);
    return path;
}

/* The JSON object as a file with a fitting seal. */
static const char *sealed_file(const char *object)
{
    char text[2048], digits[PH_SEAL_DIGITS + 1];
    struct ph__digest *digest;
    const int size =
        snprintf(text, sizeof text, "{\n  \"" PH_SEAL_KEY "\": \"%s\",%s", PH_SEAL_BLANK, object + 1);
    assert_ok(ph__digest_create(&digest));
    assert_ok(ph__digest_update(digest, text, (size_t)size));
    assert_ok(ph__digest_finish(digest, digits));
    ph__digest_destroy(digest);
    memcpy(strstr(text, PH_SEAL_BLANK), digits, PH_SEAL_DIGITS);
    return write_bytes("sealed.json", text, (size_t)size);
}

static void files_that_are_no_encoder_are_refused(void **state)
{
    (void)state;
    const char *const cases[][2] = {
        {"{", "not valid JSON"},
        {"{\"format\":\"other\"}", "not an encoder"},
        {"{\"format\":\"phloem-encoder\",\"version\":1}", "version 1"},
        {"{\"format\":\"phloem-encoder\",\"version\":5}",
            "version 5 of the encoder's file is not supported, only versions 2 to 4"},
        {"{\"format\":\"phloem-encoder\",\"version\":2}", "'data_format'"},
        {HEAD "\"list_separator\":\"\"}", "'list_separator'"},
        {HEAD "\"list_separator\":\",\"}", "'list_separator'"},
        {HEAD TAIL "]}", "no column is a label"},
        {HEAD TAIL LABEL "{\"name\":\"\",\"kind\":\"id\"}]}", "'name'"},
        {HEAD TAIL LABEL "{\"name\":\"a\",\"kind\":\"odd\"}]}", "'kind'"},
        {HEAD TAIL LABEL ID "\"encoding\":\"inherit\"}]}", "'encoding'"},
        {HEAD TAIL LABEL ID "\"encoding\":\"raw\",\"rows\":0}]}", "'rows'"},
        {HEAD TAIL LABEL ID "\"encoding\":\"raw\",\"rows\":1e30}]}", "'rows'"},
        {HEAD TAIL LABEL ID "\"shares\":\"b\"}]}", "'a' shares the rows of 'b', which is not an id field"},
        {HEAD TAIL LABEL ID "\"encoding\":\"hash\",\"rows\":10}]}", "'hash_seed'"},
        {HEAD TAIL LABEL ID "\"encoding\":\"vocabulary\",\"min_count\":1}]}", "'words'"},
        {HEAD TAIL LABEL ID "\"encoding\":\"vocabulary\",\"min_count\":1,\"words\":\"x\\ny\\nx\"}]}",
            "'words'"},
        {HEAD TAIL LABEL ID "\"encoding\":\"vocabulary\",\"min_count\":1,\"words\":\"x\\n\\ny\"}]}",
            "'words'"},
        {HEAD TAIL LABEL ID "\"encoding\":\"raw\",\"rows\":5}," ID "\"encoding\":\"raw\",\"rows\":5}]}",
            "two columns"},
        {HEAD TAIL LABEL "{\"name\":\"d\",\"kind\":\"dense\",\"transform\":\"none\",\"missing\":1e300}]}",
            "'missing'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ph_encoder *encoder = NULL;
        assert_fails(ph_encoder_load(sealed_file(cases[i][0]), &encoder), PH_ERROR_CHECKPOINT, cases[i][1]);
        assert_null(encoder);
    }
    struct ph_encoder *encoder = NULL;
    assert_fails(
        ph_encoder_load("/nowhere/encoder.json", &encoder), PH_ERROR_CHECKPOINT, "/nowhere/encoder.json");
    assert_null(encoder);
}

static void a_file_from_before_rows_were_shared_is_loaded(void **state)
{
    (void)state;
    struct ph_encoder *encoder = NULL;
    assert_ok(ph_encoder_load(
        sealed_file(HEAD TAIL LABEL ID "\"encoding\":\"vocabulary\",\"min_count\":1,\"words\":\"x\\ny\"}]}"),
        &encoder));
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 3);
    assert_int_equal(ph_encoder_sparse(encoder, 0)->owner, 0);
    ph_encoder_destroy(encoder);
}

/* The bytes of a saved encoder, of one of its files at a time. */
static size_t saved_bytes(char bytes[8192])
{
    struct ph_encoder *encoder = rich_encoder(fixture_file("rich.csv", rows));
    const char *path = fixture_file("saved.json", "");
    assert_ok(ph_encoder_save(encoder, path));
    ph_encoder_destroy(encoder);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, 8192, file);
    fclose(file);
    assert_in_range(size, 500, 8191);
    return size;
}

static void assert_damage_is_found(const char *bytes, size_t size)
{
    struct ph_encoder *encoder = NULL;
    const char *path = write_bytes("damaged.json", bytes, size);
    assert_fails(ph_encoder_load(path, &encoder), PH_ERROR_CHECKPOINT, "damaged.json: ");
    assert_null(encoder);
}

static void a_flip_of_any_byte_is_found(void **state)
{
    (void)state;
    char bytes[8192];
    const size_t size = saved_bytes(bytes);
    static const char flips[] = {0x01, 0x20, 0x7f};
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < sizeof flips; j++) {
            bytes[i] = (char)(bytes[i] ^ flips[j]);
            assert_damage_is_found(bytes, size);
            bytes[i] = (char)(bytes[i] ^ flips[j]);
        }
}

static void a_cut_at_any_length_and_a_surplus_byte_are_found(void **state)
{
    (void)state;
    char bytes[8192];
    const size_t size = saved_bytes(bytes);
    for (size_t length = 0; length < size; length++)
        assert_damage_is_found(bytes, length);
    bytes[size] = '\n';
    assert_damage_is_found(bytes, size + 1);
}

static void vocabulary_ids_must_be_text(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("bytes.csv", "label,a\n1,x\n1,\xc3\n"));
    fixture_label_and_ids(&fixture);
    struct ph_encoder *encoder = NULL;
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA,
        "bytes.csv:3: field 'a': the id is not");
}

static void an_encoder_without_memory_is_not_another_one(void **state)
{
    (void)state;
    const char *saved = fixture_file("scarce.json", "");
    struct ph_encoder *encoder = rich_encoder(fixture_file("rich.csv", rows)), *loaded = NULL;
    char wanted[PH_SEAL_DIGITS + 1], digits[PH_SEAL_DIGITS + 1];
    assert_ok(ph_encoder_save(encoder, saved));
    assert_ok(ph__encoder_digest(encoder, wanted));
    bool has_failed = allocations_are_counted();
    for (int number = 1; has_failed; number++) {
        fail_allocation(number);
        const ph_status status = ph_encoder_load(saved, &loaded);
        has_failed = allocation_has_failed();
        fail_allocation(0);
        if (status != PH_OK) {
            assert_true(has_failed);
            continue;
        }
        loaded->digest[0] = '\0'; /* of what it holds, not of the file */
        assert_ok(ph__encoder_digest(loaded, digits));
        assert_string_equal(digits, wanted);
        ph_encoder_destroy(loaded);
    }
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loaded_encoder_encodes_as_the_saved_one),
        cmocka_unit_test(saving_twice_writes_the_same_bytes),
        cmocka_unit_test(files_that_are_no_encoder_are_refused),
        cmocka_unit_test(a_file_from_before_rows_were_shared_is_loaded),
        cmocka_unit_test(a_flip_of_any_byte_is_found),
        cmocka_unit_test(a_cut_at_any_length_and_a_surplus_byte_are_found),
        cmocka_unit_test(vocabulary_ids_must_be_text),
        cmocka_unit_test(an_encoder_without_memory_is_not_another_one),
        cmocka_unit_test(what_could_not_be_loaded_is_not_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
