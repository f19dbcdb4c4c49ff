/* What the index says, and what writers cannot get past it: gaps, overlaps, files that are not theirs. */
#include "store/checkpoint_folder.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "unit/store/shards_fixture.h"

enum { ROWS = 10, COLUMNS = 12 };

static ph_real numbers[ROWS * COLUMNS];

static struct ph_tensor part_of(size_t first_row, size_t num_rows, size_t first_column, size_t num_columns)
{
    return (struct ph_tensor){.name = "t",
        .shape = {2, {num_rows, num_columns}},
        .data = numbers,
        .first_row = first_row,
        .first_column = first_column,
        .whole = {2, {ROWS, COLUMNS}}};
}

/* One tensor a writer. */
static ph_status save(const char *path, size_t num_writers, const struct ph_tensor *tensors)
{
    char *descriptions[8];
    assert_ok(ph__folder_begin(path));
    for (size_t i = 0; i < num_writers; i++)
        assert_ok(ph__folder_write_part(path, i, num_writers, 1, &tensors[i], &descriptions[i]));
    const ph_status status =
        ph__folder_commit(path, num_writers, (const char *const *)(uintptr_t)descriptions, NULL);
    for (size_t i = 0; i < num_writers; i++)
        free(descriptions[i]);
    return status;
}

static void what_is_missing_or_written_twice_is_a_bug(void **state)
{
    (void)state;
    const char *path = test_path("cover");
    const struct ph_tensor whole = {.name = "t", .shape = {2, {ROWS, COLUMNS}}, .data = numbers};
    struct ph_tensor tensors[] = {part_of(0, 6, 0, 8), part_of(0, 6, 8, 4), part_of(6, 4, 0, 12)};
    assert_ok(save(path, 3, tensors));
    assert_fails(save(path, 2, tensors), PH_ERROR_BUG, "t[6:10,0:12] is missing");
    assert_fails(save(path, 2, tensors + 1), PH_ERROR_BUG, "t[0:6,0:8] is missing");
    tensors[1] = part_of(0, 5, 8, 4);
    assert_fails(save(path, 3, tensors), PH_ERROR_BUG, "t[5:6,8:12] is missing");
    tensors[1] = part_of(0, 7, 8, 4);
    assert_fails(save(path, 3, tensors), PH_ERROR_BUG, "t[6:7,8:12] is stored twice");
    tensors[1] = part_of(0, 6, 4, 8);
    assert_fails(save(path, 3, tensors), PH_ERROR_BUG, "t[0:6,4:8] is stored twice");
    tensors[1] = tensors[2] = whole;
    assert_fails(save(path, 2, tensors + 1), PH_ERROR_BUG, "t[0:10,0:12] is stored twice");
    assert_fails(save(path, 2, tensors), PH_ERROR_BUG, "t[0:6,0:8] is stored twice");
    tensors[1] = part_of(0, 6, 8, 4);
    tensors[2] = part_of(6, 4, 0, 12);
    tensors[2].whole.dims[0]++;
    assert_fails(save(path, 3, tensors), PH_ERROR_BUG, "differ in dtype or shape");
    tensors[2].whole.dims[0]--;
    tensors[2].dtype = PH_I32;
    assert_fails(save(path, 3, tensors), PH_ERROR_BUG, "differ in dtype or shape");
    assert_false(ph__file_exists(test_path("cover/model.safetensors.index.json")));
}

static void parts_without_elements_are_left_out(void **state)
{
    (void)state;
    const struct ph_tensor tensors[] = {
        part_of(0, 10, 0, 12), part_of(3, 0, 0, 12), part_of(3, 0, 0, 12), part_of(0, 10, 4, 0)};
    assert_ok(save(test_path("empty"), 4, tensors));
}

static void what_writers_say_is_compared_with_their_files(void **state)
{
    (void)state;
    const char *path = test_path("said");
    const struct ph_tensor tensors[] = {part_of(0, 6, 0, 12), part_of(6, 4, 0, 12)};
    char *texts[2];
    assert_ok(ph__folder_begin(path));
    for (size_t i = 0; i < 2; i++)
        assert_ok(ph__folder_write_part(path, i, 2, 1, &tensors[i], &texts[i]));
    const char *swapped[] = {texts[1], texts[0]}, *garbled[] = {texts[0], "{"}, *empty[] = {texts[0], "{}"};
    const char *first[] = {texts[0]}, *right[] = {texts[0], texts[1]};
    assert_fails(ph__folder_commit(path, 2, swapped, NULL), PH_ERROR_BUG, "writer 1 of 2");
    assert_fails(ph__folder_commit(path, 2, garbled, NULL), PH_ERROR_BUG, "/said");
    assert_fails(ph__folder_commit(path, 2, empty, NULL), PH_ERROR_BUG, "writer 2 of 2");
    assert_fails(ph__folder_commit(path, 1, first, NULL), PH_ERROR_BUG, "writer 1 of 1");
    assert_int_equal(truncate(test_path("said/part-00002-of-00002.safetensors"), 100), 0);
    assert_fails(ph__folder_commit(path, 2, right, NULL), PH_ERROR_DISK, "part-00002-of-00002");
    assert_int_equal(unlink(test_path("said/part-00002-of-00002.safetensors")), 0);
    assert_fails(ph__folder_commit(path, 2, right, NULL), PH_ERROR_DISK, "part-00002-of-00002");
    free(texts[0]);
    free(texts[1]);
}

static const char *text_at(const struct ph__json *json, const char *first, const char *second)
{
    return ph__json_as_text(ph__json_get(ph__json_get(json, first), second), "");
}

/* Names as Hugging Face's tools look for them, and the pieces of what is cut. */
static void the_index_names_every_tensor_and_every_piece(void **state)
{
    (void)state;
    static const char *const metadata[] = {"format", "pt", NULL};
    const char *path = test_path("index");
    const struct ph_tensor tensors[] = {
        part_of(0, 6, 0, 12), part_of(6, 4, 0, 12), {.name = "bias", .shape = {1, {3}}, .data = numbers}};
    char *texts[2];
    assert_ok(ph__folder_begin(path));
    assert_ok(ph__folder_write_part(path, 0, 2, 1, tensors, &texts[0]));
    assert_ok(ph__folder_write_part(path, 1, 2, 2, tensors + 1, &texts[1]));
    assert_ok(ph__folder_commit(path, 2, (const char *const *)(uintptr_t)texts, metadata));
    struct ph__arena arena = {0};
    struct ph__json *index;
    char *text;
    size_t size;
    assert_ok(ph__file_read(&arena, test_path("index/model.safetensors.index.json"), 1 << 20, &text, &size));
    assert_ok(ph__json_parse(text, size, "index", PH_ERROR_CHECKPOINT, &index));
    assert_string_equal(text_at(index, "weight_map", "bias"), "part-00002-of-00002.safetensors");
    assert_string_equal(text_at(index, "weight_map", "t[0:6,0:12]"), "part-00001-of-00002.safetensors");
    assert_string_equal(text_at(index, "weight_map", "t[6:10,0:12]"), "part-00002-of-00002.safetensors");
    assert_int_equal(ph__json_size(ph__json_get(index, "weight_map")), 3);
    assert_string_equal(text_at(index, "metadata", "format"), "pt");
    const struct ph__json *total = ph__json_get(ph__json_get(index, "metadata"), "total_size");
    assert_int_equal(ph__json_as_integer(total, 0), (ROWS * COLUMNS + 3) * sizeof(ph_real));
    const struct ph__json *cut = ph__json_get(ph__json_get(index, "parts"), "t");
    const struct ph__json *piece = ph__json_at(ph__json_get(cut, "pieces"), 1);
    assert_int_equal(ph__json_size(ph__json_get(index, "parts")), 1);
    assert_string_equal(ph__json_as_text(ph__json_get(cut, "dtype"), ""), "F32");
    assert_string_equal(ph__json_as_text(ph__json_get(piece, "name"), ""), "t[6:10,0:12]");
    assert_int_equal(ph__json_as_integer(ph__json_get(piece, "first_row"), 0), 6);
    assert_int_equal(ph__json_as_integer(ph__json_get(piece, "num_columns"), 0), 12);
    ph__json_destroy(index);
    ph__arena_fini(&arena);
    free(texts[0]);
    free(texts[1]);
}

static void what_is_opened_says_its_tensors_and_metadata(void **state)
{
    (void)state;
    const char *path = test_path("opened");
    struct cut_model model;
    struct ph__folder *folder;
    cut_model_init(&model, 4, (struct ph_init){PH_INIT_NORMAL, 1}, PH_ROWS_FP32, 3);
    assert_ok(ph__folder_begin(path));
    shards_save(&model, path);
    assert_ok(ph__folder_open(path, &folder));
    assert_int_equal(ph__folder_num_files(folder), 4);
    assert_int_equal(ph__folder_num_tensors(folder), 3 * (2 + NUM_SLICES));
    assert_string_equal(ph__folder_tensor(folder, 0).name, "deep.bias");
    const struct ph_tensor user = ph__folder_tensor(folder, ph__folder_find(folder, "embedding.user"));
    assert_int_equal(user.shape.dims[0], 67);
    assert_int_equal(user.shape.dims[1], 20);
    const struct ph_tensor rows = ph__folder_tensor(folder, ph__folder_find(folder, "slot.s:embedding.user"));
    assert_int_equal(rows.shape.num_dims, 1);
    assert_int_equal(rows.shape.dims[0], 67);
    assert_int_equal(ph__folder_find(folder, "embedding"), ph__folder_num_tensors(folder));
    assert_string_equal(ph__folder_metadata(folder, "step"), "7");
    assert_null(ph__folder_metadata(folder, "steps"));
    bool has_step = false;
    struct ph__json_member member = {0};
    while (ph__folder_next_metadata(folder, &member))
        has_step = has_step || strcmp(member.key, "step") == 0;
    assert_true(has_step);
    ph__folder_close(folder);
    cut_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_or_written_twice_is_a_bug),
        cmocka_unit_test(parts_without_elements_are_left_out),
        cmocka_unit_test(what_writers_say_is_compared_with_their_files),
        cmocka_unit_test(the_index_names_every_tensor_and_every_piece),
        cmocka_unit_test(what_is_opened_says_its_tensors_and_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
