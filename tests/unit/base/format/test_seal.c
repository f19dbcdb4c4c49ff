#include "base/format/seal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test_support.h"

/* Its digits were made by sha256sum, of this text with 64 zeros in their place. */
#define DIGITS "13093cab82fc35030b690f78ae87b23769214727cfdda6d1b1226953286d4c0f"
static const char sealed_text[] = "{\n"
                                  "  \"sha256\": \"" DIGITS "\",\n"
                                  "  \"words\": \"a\\nb\",\n"
                                  "  \"rows\": 3\n"
                                  "}\n";

#define MAX_BYTES 4096

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

/* Over the former file: thousands of new ones would take the file system's time. */
static const char *write_bytes(const char *bytes, size_t size)
{
    const char *path = path_of("bytes");
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, bytes, size, 0), size);
    assert_int_equal(ftruncate(descriptor, (off_t)size), 0);
    close(descriptor);
    return path;
}

static void assert_refused(const char *bytes, size_t size, const char *part)
{
    struct ph__json *json = NULL;
    const char *path = write_bytes(bytes, size);
    assert_fails(ph__sealed_json_read(path, PH_ERROR_DATA, MAX_BYTES, &json), PH_ERROR_DATA, part);
    assert_non_null(strstr(ph_error_text(), path));
    assert_null(json);
}

static void a_document_is_written_with_the_sum_of_its_bytes(void **state)
{
    (void)state;
    struct ph__json *json = ph__sealed_json_object();
    ph__json_set_text(json, "words", "a\nb");
    ph__json_set_integer(json, "rows", 3);
    const char *path = path_of("document.json");
    assert_ok(ph__sealed_json_write(json, path));
    assert_ok(ph__sealed_json_write(json, path)); /* again: it still has its blank */
    char digits[PH_SEAL_DIGITS + 1];
    assert_ok(ph__sealed_json_digest(json, digits));
    assert_string_equal(digits, DIGITS);
    ph__json_destroy(json);
    char text[MAX_BYTES] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), sizeof sealed_text - 1);
    fclose(file);
    assert_string_equal(text, sealed_text);
}

static void a_sealed_document_is_read(void **state)
{
    (void)state;
    struct ph__json *json = NULL;
    const char *path = write_bytes(sealed_text, sizeof sealed_text - 1);
    assert_ok(ph__sealed_json_read(path, PH_ERROR_DATA, MAX_BYTES, &json));
    assert_int_equal(ph__json_as_integer(ph__json_get(json, "rows"), 0), 3);
    assert_string_equal(ph__json_as_text(ph__json_get(json, PH_SEAL_KEY), ""), DIGITS);
    ph__json_destroy(json);
}

static void a_flip_of_any_bit_is_found(void **state)
{
    (void)state;
    char text[sizeof sealed_text];
    memcpy(text, sealed_text, sizeof text);
    for (size_t i = 0; i < sizeof text - 1; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            text[i] = (char)(sealed_text[i] ^ 1 << bit);
            assert_refused(text, sizeof text - 1, "seal");
            text[i] = sealed_text[i];
        }
}

static void a_cut_at_any_length_and_a_surplus_byte_are_found(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof sealed_text - 1; size++)
        assert_refused(sealed_text, size, "seal");
    assert_refused(sealed_text, sizeof sealed_text, "seal");
}

static void what_cannot_be_read_has_the_status_that_the_caller_wants(void **state)
{
    (void)state;
    struct ph__json *json = NULL;
    assert_fails(ph__sealed_json_read("/no/such/file", PH_ERROR_CHECKPOINT, MAX_BYTES, &json),
        PH_ERROR_CHECKPOINT, "/no/such/file: cannot open");
    assert_fails(ph__sealed_json_read(test_folder(), PH_ERROR_CHECKPOINT, MAX_BYTES, &json),
        PH_ERROR_CHECKPOINT, "cannot read");
    const char *path = write_bytes(sealed_text, sizeof sealed_text - 1);
    assert_fails(ph__sealed_json_read(path, PH_ERROR_CHECKPOINT, sizeof sealed_text - 2, &json),
        PH_ERROR_CHECKPOINT, "larger than");
    assert_null(json);
}

/* The bytes fit their seal and yet are no JSON: the sum alone is not believed. */
static void a_sealed_text_that_is_no_json_is_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\n  \"sha256\": \"39eb3b60ab9efb0a6af61efb565d429bcd65814ef7e6484d96fd54900a03921a\", rest\n";
    assert_refused(text, sizeof text - 1, "not valid JSON");
}

static void an_unwritable_path_is_named(void **state)
{
    (void)state;
    struct ph__json *json = ph__sealed_json_object();
    assert_fails(
        ph__sealed_json_write(json, path_of("no/such/folder.json")), PH_ERROR_DISK, "no/such/folder.json");
    ph__json_destroy(json);
}

/* ---- files in blocks ---- */

enum { FILE_BYTES = 3 * 65536 + 17, OFFSET = 1000 };

static const struct ph__meanwhile nobody = {0};

/* 'x' throughout but for the digits, which sha256sum made of the same file with zeros in their place. */
static int open_large_file(size_t size, size_t flipped)
{
    static const char digits[] = "93e1e6b8f976d634285383a2866b84c6d241a54b922dc32097c81d349d0fac77";
    char *bytes = malloc(FILE_BYTES);
    assert_non_null(bytes);
    memset(bytes, 'x', FILE_BYTES);
    memcpy(bytes + OFFSET, digits, PH_SEAL_DIGITS);
    if (flipped < FILE_BYTES)
        bytes[flipped] ^= 1;
    const int descriptor = open(write_bytes(bytes, size), O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    free(bytes);
    return descriptor;
}

static void a_file_of_many_blocks_is_compared_with_its_seal(void **state)
{
    (void)state;
    int descriptor = open_large_file(FILE_BYTES, SIZE_MAX);
    assert_int_equal(lseek(descriptor, 5, SEEK_SET), 5);
    assert_ok(ph__seal_check_file(descriptor, OFFSET, "large", PH_ERROR_CHECKPOINT, &nobody));
    assert_int_equal(lseek(descriptor, 0, SEEK_CUR), 5);
    close(descriptor);
}

static void damage_in_any_block_is_found(void **state)
{
    (void)state;
    static const size_t flips[] = {
        0, OFFSET - 1, OFFSET, OFFSET + 63, OFFSET + 64, 65535, 65536, 2 * 65536, FILE_BYTES - 1};
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        int descriptor = open_large_file(FILE_BYTES, flips[i]);
        assert_fails(ph__seal_check_file(descriptor, OFFSET, "large", PH_ERROR_CHECKPOINT, &nobody),
            PH_ERROR_CHECKPOINT, "large: the file is damaged");
        close(descriptor);
    }
    static const size_t sizes[] = {0, OFFSET, OFFSET + 63, OFFSET + 64, 65536, 3 * 65536, FILE_BYTES - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int descriptor = open_large_file(sizes[i], SIZE_MAX);
        assert_fails(ph__seal_check_file(descriptor, OFFSET, "large", PH_ERROR_DATA, &nobody), PH_ERROR_DATA,
            "large: ");
        close(descriptor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_written_with_the_sum_of_its_bytes),
        cmocka_unit_test(a_sealed_document_is_read),
        cmocka_unit_test(a_flip_of_any_bit_is_found),
        cmocka_unit_test(a_cut_at_any_length_and_a_surplus_byte_are_found),
        cmocka_unit_test(what_cannot_be_read_has_the_status_that_the_caller_wants),
        cmocka_unit_test(a_sealed_text_that_is_no_json_is_refused),
        cmocka_unit_test(an_unwritable_path_is_named),
        cmocka_unit_test(a_file_of_many_blocks_is_compared_with_its_seal),
        cmocka_unit_test(damage_in_any_block_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
