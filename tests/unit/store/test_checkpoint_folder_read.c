/* Folders that were left half written, mixed up or damaged: found out, each with the file and the tensor,
 * before anything is loaded. */
#include "store/checkpoint_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/seal.h"
#include "base/memory/arena.h"
#include "base/sum/digest.h"
#include "store/tensor_list.h"
#include "support/test_support.h"

enum { ROWS = 6, COLUMNS = 8, CUT = 4 };

#define INDEX "model.safetensors.index.json"

static ph_real numbers[ROWS * COLUMNS], bias[3];

/* The matrix "t" in two runs of rows, and the vector "b". */
static void write_parts(const char *path, ph_real value, size_t num_writers, char *descriptions[])
{
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        numbers[i] = value + (ph_real)i;
    const struct ph_shape whole = {2, {ROWS, COLUMNS}};
    const struct ph_tensor tensors[] = {
        {.name = "t", .shape = {2, {CUT, COLUMNS}}, .data = numbers, .whole = whole},
        {.name = "t",
            .shape = {2, {ROWS - CUT, COLUMNS}},
            .data = numbers + CUT * COLUMNS,
            .first_row = CUT,
            .whole = whole},
        {.name = "b", .shape = {1, {3}}, .data = bias}};
    for (size_t writer = 0; writer < num_writers; writer++)
        assert_ok(ph__folder_write_part(path, writer, num_writers,
            writer == 0   ? 1
            : writer == 1 ? 2
                          : 0,
            &tensors[writer < 2 ? writer : 0], &descriptions[writer]));
}

static void commit(const char *path, size_t num_writers, char *descriptions[])
{
    assert_ok(ph__folder_commit(path, num_writers, (const char *const *)(uintptr_t)descriptions, NULL));
}

static void free_all(size_t count, char *texts[])
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
}

static const char *saved(const char *name, ph_real value, size_t num_writers)
{
    const char *path = test_path(name);
    char *descriptions[8];
    assert_ok(ph__folder_begin(path));
    write_parts(path, value, num_writers, descriptions);
    commit(path, num_writers, descriptions);
    free_all(num_writers, descriptions);
    return path;
}

static ph_status open_and_close(const char *path)
{
    struct ph__folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    ph__folder_close(folder);
    return PH_OK;
}

/* "t" is there, from `value` on. */
static void assert_holds(const char *path, ph_real value)
{
    ph_real read[ROWS * COLUMNS];
    const struct ph_tensor tensor = {.name = "t", .shape = {2, {ROWS, COLUMNS}}, .data = read};
    struct ph__folder *folder;
    assert_ok(ph__folder_open(path, &folder));
    assert_ok(ph__folder_check_seals(folder, 0, 1));
    assert_ok(ph__folder_load(folder, 1, &tensor));
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        assert_true(read[i] == value + (ph_real)i);
    ph__folder_close(folder);
}

static const char *in_folder(const char *path, const char *name)
{
    static char joined[700];
    snprintf(joined, sizeof joined, "%s/%s", path, name);
    return joined;
}

static void the_metadata_are_read_without_the_files(void **state)
{
    (void)state;
    const char *path = test_path("metadata"), *metadata[] = {"model", "LR", NULL};
    char *descriptions[3];
    struct ph__folder *folder = NULL;
    assert_ok(ph__folder_begin(path));
    write_parts(path, 1, 3, descriptions);
    assert_fails(ph__folder_open_metadata(path, &folder), PH_ERROR_CHECKPOINT, "not a checkpoint");
    assert_ok(ph__folder_commit(path, 3, (const char *const *)(uintptr_t)descriptions, metadata));
    free_all(3, descriptions);
    assert_int_equal(unlink(in_folder(path, "part-00001-of-00003.safetensors")), 0);
    assert_ok(ph__folder_open_metadata(path, &folder));
    assert_string_equal(ph__folder_metadata(folder, "model"), "LR");
    assert_int_equal(ph__folder_num_tensors(folder), 0);
    assert_int_equal(ph__folder_find(folder, "t"), 0);
    assert_int_equal(ph__folder_num_files(folder), 0);
    ph__folder_close(folder);
}

/* ---- writers that end ---- */

static void there_is_no_checkpoint_until_the_index_is_written(void **state)
{
    (void)state;
    const char *path = test_path("unfinished");
    char *descriptions[3];
    assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, "cannot open");
    assert_ok(ph__folder_begin(path));
    assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, "not a checkpoint");
    write_parts(path, 1, 3, descriptions);
    assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, "not a checkpoint");
    commit(path, 3, descriptions);
    assert_holds(path, 1);
    free_all(3, descriptions);
}

static void beginning_anew_leaves_nothing_of_what_was_there(void **state)
{
    (void)state;
    const char *path = saved("anew", 1, 5);
    test_write_text(in_folder(path, "part-00001-of-00009.safetensors.tmp"), "torn");
    test_write_text(in_folder(path, "notes.txt"), "kept");
    assert_ok(ph__folder_begin(path));
    assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, "not a checkpoint");
    assert_false(ph__file_exists(in_folder(path, "part-00001-of-00005.safetensors")));
    assert_false(ph__file_exists(in_folder(path, "part-00001-of-00009.safetensors.tmp")));
    assert_true(ph__file_exists(in_folder(path, "notes.txt")));
}

static void files_of_an_attempt_with_more_writers_are_not_looked_at(void **state)
{
    (void)state;
    const char *path = test_path("stale");
    char *descriptions[4];
    assert_ok(ph__folder_begin(path));
    write_parts(path, 1, 4, descriptions);
    free_all(4, descriptions);
    write_parts(path, 9, 2, descriptions);
    commit(path, 2, descriptions);
    free_all(2, descriptions);
    assert_holds(path, 9);
}

/* An index that outlived its files. */
static void files_of_another_attempt_are_not_taken_for_those_of_the_index(void **state)
{
    (void)state;
    const char *path = saved("mixed", 1, 2);
    char *descriptions[2];
    write_parts(path, 2, 2, descriptions);
    free_all(2, descriptions);
    assert_fails(
        open_and_close(path), PH_ERROR_CHECKPOINT, "does not have the seal that the folder's index names");
    const char *missing = saved("incomplete", 1, 2);
    assert_int_equal(unlink(in_folder(missing, "part-00002-of-00002.safetensors")), 0);
    assert_fails(open_and_close(missing), PH_ERROR_CHECKPOINT, "part-00002-of-00002.safetensors");
}

/* ---- damage ---- */

static void a_torn_file_is_found_when_the_folder_is_opened(void **state)
{
    (void)state;
    const char *path = saved("torn", 1, 2), *file = in_folder(path, "part-00001-of-00002.safetensors");
    uint64_t bytes;
    assert_ok(ph__file_size(file, &bytes));
    for (uint64_t left = bytes; left-- > 0;) {
        assert_int_equal(truncate(in_folder(path, "part-00001-of-00002.safetensors"), (off_t)left), 0);
        assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, "part-00001-of-00002.safetensors");
    }
}

static void a_torn_or_changed_index_is_none(void **state)
{
    (void)state;
    const char *path = saved("torn_index", 1, 2);
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    assert_ok(ph__file_read(&arena, in_folder(path, INDEX), 1 << 20, &text, &size));
    for (size_t i = 0; i < size; i++) {
        text[i] ^= 1;
        FILE *file = fopen(in_folder(path, INDEX), "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, size, file), size);
        fclose(file);
        text[i] ^= 1;
        assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, INDEX);
    }
    for (size_t left = size; left-- > 0;) {
        assert_int_equal(truncate(in_folder(path, INDEX), (off_t)left), 0);
        assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, INDEX);
    }
    ph__arena_fini(&arena);
}

/* Each rank verifies some files: the one with the damage is found by whoever has it, and by nobody else. */
static void a_damaged_file_is_found_by_its_share_of_the_seals(void **state)
{
    (void)state;
    const char *path = saved("damaged", 1, 5);
    struct ph__folder *folder;
    FILE *file = fopen(in_folder(path, "part-00002-of-00005.safetensors"), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_equal(fputc(0x7f, file), 0x7f);
    fclose(file);
    assert_ok(ph__folder_open(path, &folder));
    assert_int_equal(ph__folder_num_files(folder), 5);
    for (size_t rank = 0; rank < 3; rank++)
        if (rank == 1)
            assert_fails(ph__folder_check_seals(folder, rank, 3), PH_ERROR_CHECKPOINT, "part-00002-of-00005");
        else
            assert_ok(ph__folder_check_seals(folder, rank, 3));
    assert_ok(ph__folder_check_seals(folder, 7, 8));
    ph__folder_close(folder);
    ph_real read[ROWS * COLUMNS] = {0};
    struct ph_tensor tensors[] = {{.name = "t", .shape = {2, {ROWS, COLUMNS}}, .data = read}};
    struct ph__tensor_list list = {.tensors = tensors, .count = 1};
    assert_fails(ph__tensor_list_load(&list, path), PH_ERROR_CHECKPOINT, "part-00002-of-00005");
    assert_true(read[0] == 0 && read[1] == 0);
}

/* ---- an index that says something else ---- */

/* Replaces the first text and makes the seal fit. */
static void rewrite_index(const char *path, const char *from, const char *to)
{
    struct ph__arena arena = {0};
    char *text, changed[8192];
    size_t size;
    assert_ok(ph__file_read(&arena, in_folder(path, INDEX), sizeof changed / 2, &text, &size));
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    char *digits = strstr(changed, PH_SEAL_KEY "\": \"") + strlen(PH_SEAL_KEY "\": \""), sum[65];
    struct ph__digest *digest;
    memcpy(digits, PH_SEAL_BLANK, PH_SEAL_DIGITS);
    assert_ok(ph__digest_create(&digest));
    assert_ok(ph__digest_update(digest, changed, strlen(changed)));
    assert_ok(ph__digest_finish(digest, sum));
    ph__digest_destroy(digest);
    memcpy(digits, sum, PH_SEAL_DIGITS);
    test_write_text(in_folder(path, INDEX), changed);
    ph__arena_fini(&arena);
}

static void an_index_that_does_not_fit_its_files_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *error;
    } cases[] = {
        {"\"first_row\": 4", "\"first_row\": 3", "t[3:4,0:8] is stored twice"},
        {"\"first_row\": 4", "\"first_row\": 5", "'t[4:6,0:8]' is not a part of 't'"},
        {"\"first_row\": 4", "\"first_row\": -1", "'t[4:6,0:8]' is not a part of 't'"},
        {"\"num_rows\": 2", "\"num_rows\": 1", "'t[4:6,0:8]' is not a part of 't'"},
        {"\"first_column\": 0", "\"first_column\": 1", "'t[0:4,0:8]' is not a part of 't'"},
        {"\"name\": \"t[4:6,0:8]\"", "\"name\": \"t[0:4,0:8]\"", "'t[0:4,0:8]' is not a part of 't'"},
        {"\"name\": \"t[4:6,0:8]\"", "\"name\": \"u\"", "'u' is not a part of 't'"},
        {"\"file\": \"part-00002", "\"file\": \"part-00001", "'t[4:6,0:8]' is not a part of 't'"},
        {"        6,\n", "        7,\n", "t[6:7,0:8] is missing"},
        {"\"dtype\": \"F32\"", "\"dtype\": \"F16\"", "tensor 't' has dtype 'F16', but the files have F32"},
        {"\"pieces\"", "\"places\"", "'t' is not {dtype, shape, pieces}"},
        {"\"bytes\": ", "\"bytes\": 1", "but the folder's index says"},
        {"\"part-00001-of-00002.safetensors\": {", "\"../part\": {",
            "'../part' must be the name of a file in the folder"},
        {"\"part-00001-of-00002.safetensors\": {", "\"\": {", "'' must be the name of a file in the folder"},
        {"\"b\": \"part-00002", "\"b\": \"part-00001", "tensor 'b' is missing"},
        {"\"b\": \"part-00002", "\"b\": \"part-00003",
            "tensor 'b' is in a file that the index does not list"},
        {"\"b\": \"part-00002-of-00002.safetensors\",", "", "names 2 tensors, but the files have 3"},
        {"\"weight_map\"", "\"weights\"", "names 0 tensors, but the files have 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = saved("edited", 1, 2);
        rewrite_index(path, cases[i].from, cases[i].to);
        assert_fails(open_and_close(path), PH_ERROR_CHECKPOINT, cases[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_metadata_are_read_without_the_files),
        cmocka_unit_test(there_is_no_checkpoint_until_the_index_is_written),
        cmocka_unit_test(beginning_anew_leaves_nothing_of_what_was_there),
        cmocka_unit_test(files_of_an_attempt_with_more_writers_are_not_looked_at),
        cmocka_unit_test(files_of_another_attempt_are_not_taken_for_those_of_the_index),
        cmocka_unit_test(a_torn_file_is_found_when_the_folder_is_opened),
        cmocka_unit_test(a_torn_or_changed_index_is_none),
        cmocka_unit_test(a_damaged_file_is_found_by_its_share_of_the_seals),
        cmocka_unit_test(an_index_that_does_not_fit_its_files_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
