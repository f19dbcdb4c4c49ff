/* Checkpoints that some ranks write and others, with other parts, read. */
#include "store/checkpoint_folder.h"
#include "store/checkpoint_names.h"

#include "store/safetensors.h"
#include "unit/store/shards_fixture.h"

static const struct ph_init normal = {PH_INIT_NORMAL, 1};
static const enum ph_row_format formats[] = {PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};

static struct ph_store *filled_whole(enum ph_row_format format)
{
    struct ph_store *store = shards_whole_store(normal, format);
    shards_fill_slots(store);
    return store;
}

static void save_cut(const char *folder, size_t num_ranks, enum ph_row_format format, uint64_t number)
{
    struct cut_model model;
    cut_model_init(&model, num_ranks, normal, format, number);
    for (size_t rank = 0; rank < num_ranks; rank++)
        shards_fill_slots(model.ranks[rank]);
    assert_ok(ph__folder_begin(folder));
    shards_save(&model, folder);
    cut_model_fini(&model);
}

static void check_whole(const char *path, const struct ph_store *whole, enum ph_row_format format)
{
    struct ph_store *store = shards_whole_store(normal, format);
    struct ph__tensor_list list = shards_list(store);
    shards_clear(&list);
    assert_ok(ph__tensor_list_load(&list, path));
    assert_same_parts(&list, whole);
    ph__tensor_list_fini(&list);
    ph_store_destroy(store);
}

/* Each rank verifies its share of the files and loads its parts. */
static void check_parts(const char *path, const struct ph_store *whole, size_t num_ranks,
    enum ph_row_format format, uint64_t number)
{
    struct cut_model model;
    cut_model_init(&model, num_ranks, normal, format, number);
    for (size_t rank = 0; rank < num_ranks; rank++) {
        struct ph__tensor_list list = shards_list(model.ranks[rank]);
        struct ph__folder *folder;
        shards_clear(&list);
        assert_ok(ph__folder_open(path, &folder));
        assert_ok(ph__folder_check_seals(folder, rank, num_ranks));
        assert_ok(ph__folder_load(folder, list.count, list.tensors));
        assert_same_parts(&list, whole);
        ph__folder_close(folder);
        ph__tensor_list_fini(&list);
    }
    cut_model_fini(&model);
}

static bool is_weight(const char *name)
{
    return !is_slot(name);
}

static ph_status count_call(void *context)
{
    ++*(size_t *)context;
    return PH_OK;
}

static ph_status give_up(void *context)
{
    (void)context;
    return ph_fail(PH_ERROR_PEER, "nobody waits");
}

/* Each way of reading a tensor's bytes calls it, and ends with what it fails with. */
static void check_meanwhile(const char *path, const struct ph_store *whole)
{
    struct ph__tensor_list all = shards_list(whole);
    struct ph__folder *folder;
    char digits[65];
    size_t num_calls = 0;
    const struct ph__meanwhile counting = {count_call, &num_calls}, giving_up = {give_up, NULL};
    assert_ok(ph__folder_open(path, &folder));
    ph__folder_set_meanwhile(folder, &counting);
    assert_ok(ph__folder_check_seals(folder, 0, 1));
    assert_true(num_calls > 0);
    num_calls = 0;
    assert_ok(ph__folder_load(folder, all.count, all.tensors));
    assert_true(num_calls >= all.count);
    num_calls = 0;
    assert_ok(ph__folder_digest(folder, NULL, digits));
    assert_true(num_calls >= all.count);
    ph__folder_set_meanwhile(folder, &giving_up);
    assert_fails(ph__folder_check_seals(folder, 0, 1), PH_ERROR_PEER, "nobody waits");
    assert_fails(ph__checkpoint_check_seals(path, 0, 1, &giving_up), PH_ERROR_PEER, "nobody waits");
    assert_fails(ph__folder_load(folder, all.count, all.tensors), PH_ERROR_PEER, "nobody waits");
    assert_fails(ph__folder_digest(folder, NULL, digits), PH_ERROR_PEER, "nobody waits");
    ph__folder_close(folder);
    ph__tensor_list_fini(&all);
}

static void check_digests(const char *path, const struct ph_store *whole)
{
    struct ph__tensor_list all = shards_list(whole);
    struct ph__folder *folder;
    char weights[65], wanted_weights[65], everything[65], wanted[65];
    assert_ok(ph__folder_open(path, &folder));
    assert_ok(ph__folder_digest(folder, is_weight, weights));
    assert_ok(ph__folder_digest(folder, NULL, everything));
    assert_ok(ph_checkpoint_digest(whole, NULL, wanted_weights));
    assert_ok(ph__tensor_list_digest(&all, wanted));
    assert_string_equal(weights, wanted_weights);
    assert_string_equal(everything, wanted);
    ph__folder_close(folder);
    ph__tensor_list_fini(&all);
}

static void what_some_ranks_save_any_others_load(void **state)
{
    (void)state;
    const char *folder = test_path("checkpoint");
    for (uint64_t number = 0; number < 32; number++) {
        const enum ph_row_format format = formats[number / 8];
        const size_t num_writers = 1 + number % MAX_RANKS, num_readers = 1 + number * 5 / 3 % MAX_RANKS;
        struct ph_store *whole = filled_whole(format);
        save_cut(folder, num_writers, format, 2 * number);
        check_whole(folder, whole, format);
        check_parts(folder, whole, num_readers, format, 2 * number + 1);
        check_digests(folder, whole);
        check_meanwhile(folder, whole);
        ph_store_destroy(whole);
    }
}

static void a_single_file_is_loaded_in_parts(void **state)
{
    (void)state;
    const char *path = test_path("single.safetensors");
    for (size_t i = 0; i < 4; i++) {
        struct ph_store *whole = filled_whole(formats[i]);
        struct ph__tensor_list list = shards_list(whole);
        assert_ok(ph__safetensors_write(path, list.count, list.tensors, NULL));
        check_parts(path, whole, 3, formats[i], 100 + i);
        check_digests(path, whole);
        ph__tensor_list_fini(&list);
        ph_store_destroy(whole);
    }
}

/* Rows become what they become out of a single file: also those of a few bytes, whose scale is that of the
 * whole row. */
static void rows_are_converted_as_from_a_single_file(void **state)
{
    (void)state;
    static const enum ph_row_format kinds[] = {
        PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT, PH_ROWS_INT8, PH_ROWS_INT4};
    const char *folder = test_path("converted");
    for (size_t i = 0; i < 24; i++) {
        const char *file = test_path("converted.safetensors");
        struct ph_store *whole = filled_whole(formats[i / 6]);
        struct ph__tensor_list list = shards_list(whole);
        assert_ok(ph__safetensors_write(file, list.count, list.tensors, NULL));
        save_cut(folder, 5, formats[i / 6], i);
        struct ph_store *stores[2];
        for (size_t k = 0; k < 2; k++) {
            assert_ok(ph_store_create(1, &stores[k]));
            ph__store_set_row_format(stores[k], kinds[i % 6]);
            shards_add_dense(stores[k], normal);
            shards_add_table(stores[k], "embedding", normal, 20, 1, &logical_slices[0].slice, NULL);
            struct ph__tensor_list wanted = shards_list(stores[k]);
            struct ph__folder *opened;
            assert_ok(ph__folder_open(k == 0 ? file : folder, &opened));
            assert_ok(ph__folder_load(opened, wanted.count, wanted.tensors));
            ph__folder_close(opened);
            ph__tensor_list_fini(&wanted);
        }
        const struct ph_parameter *a = ph__store_parameter(stores[0], 2),
                                  *b = ph__store_parameter(stores[1], 2);
        assert_int_equal(a->row_format, kinds[i % 6]);
        assert_memory_equal(a->memory, b->memory, a->bytes);
        ph_store_destroy(stores[0]);
        ph_store_destroy(stores[1]);
        ph__tensor_list_fini(&list);
        ph_store_destroy(whole);
    }
}

/* Rows of many pages, of which every one is read in part. */
static void wide_rows_are_read_in_part(void **state)
{
    (void)state;
    enum { ROWS = 7, COLUMNS = 6000, CUT = 2500, FIRST = 1300, COUNT = 4000 };
    ph_real *numbers = calloc((size_t)ROWS * COLUMNS, sizeof *numbers), *left, *right, *read;
    left = calloc((size_t)ROWS * CUT, sizeof *left);
    right = calloc((size_t)ROWS * (COLUMNS - CUT), sizeof *right);
    read = calloc((size_t)ROWS * COUNT, sizeof *read);
    assert_true(numbers != NULL && left != NULL && right != NULL && read != NULL);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        numbers[i] = (ph_real)i;
    for (size_t row = 0; row < ROWS; row++) {
        memcpy(left + row * CUT, numbers + row * COLUMNS, CUT * sizeof *left);
        memcpy(right + row * (COLUMNS - CUT), numbers + row * COLUMNS + CUT, (COLUMNS - CUT) * sizeof *right);
    }
    const struct ph_shape whole = {2, {ROWS, COLUMNS}};
    const struct ph_tensor tensors[] = {
        {.name = "t", .shape = {2, {ROWS, CUT}}, .data = left, .whole = whole},
        {.name = "t",
            .shape = {2, {ROWS, COLUMNS - CUT}},
            .data = right,
            .first_column = CUT,
            .whole = whole},
        {.name = "t",
            .shape = {2, {ROWS - 3, COUNT}},
            .data = read,
            .first_row = 2,
            .first_column = FIRST,
            .whole = whole}};
    const char *path = test_path("wide");
    char *description;
    struct ph__folder *folder;
    assert_ok(ph__folder_begin(path));
    assert_ok(ph__folder_write_part(path, 0, 1, 2, tensors, &description));
    assert_ok(ph__folder_commit(path, 1, (const char *const *)(uintptr_t)&description, NULL));
    assert_ok(ph__folder_open(path, &folder));
    assert_ok(ph__folder_load(folder, 1, &tensors[2]));
    for (size_t row = 0; row < ROWS - 3; row++)
        assert_memory_equal(read + row * COUNT, numbers + (row + 2) * COLUMNS + FIRST, COUNT * sizeof *read);
    ph__folder_close(folder);
    free(description);
    free(numbers);
    free(left);
    free(right);
    free(read);
}

/* More rows than are summed up, converted or read through at once. */
static void long_tables_are_read_in_blocks(void **state)
{
    (void)state;
    static const struct ph_table_slice slice = {"embedding.user", 150000};
    const size_t cut = 8, dim = 12, rows = slice.num_rows;
    const char *path = test_path("long");
    struct ph_store *whole = shards_new_store(PH_ROWS_FP32), *halves = shards_new_store(PH_ROWS_FP32);
    struct ph_store *loaded = shards_new_store(PH_ROWS_BF16_SPLIT);
    shards_add_table(whole, "embedding", normal, dim, 1, &slice, NULL);
    shards_add_table(halves, "left", normal, cut, 1, &slice, &(struct ph__slice_shard){0, rows, 0, dim});
    shards_add_table(
        halves, "right", normal, dim - cut, 1, &slice, &(struct ph__slice_shard){0, rows, cut, dim});
    shards_add_table(loaded, "embedding", (struct ph_init){0}, dim, 1, &slice, NULL);
    shards_fill_slots(whole);
    shards_fill_slots(halves);
    assert_ok(ph__folder_begin(path));
    char *description = shards_write(halves, path, 0, 1);
    assert_ok(ph__folder_commit(path, 1, (const char *const *)(uintptr_t)&description, NULL));
    struct ph__tensor_list list = shards_list(loaded);
    char digest[65], wanted[65];
    check_digests(path, whole);
    assert_ok(ph__tensor_list_load(&list, path));
    assert_ok(ph_checkpoint_digest(loaded, NULL, digest));
    assert_ok(ph_checkpoint_digest(whole, NULL, wanted));
    assert_string_equal(digest, wanted);
    free(description);
    ph__tensor_list_fini(&list);
    ph_store_destroy(whole);
    ph_store_destroy(halves);
    ph_store_destroy(loaded);
}

static void a_model_that_does_not_fit_stays_as_it_was(void **state)
{
    (void)state;
    const char *path = test_path("foreign");
    char before[65], after[65];
    save_cut(path, 3, PH_ROWS_FP32, 1);
    struct ph_store *store = shards_new_store(PH_ROWS_FP32);
    shards_add_dense(store, normal);
    shards_add_table(store, "embedding", normal, 20, 2,
        (const struct ph_table_slice[]){{"embedding.user", 67}, {"embedding.item", 10}}, NULL);
    assert_ok(ph_checkpoint_digest(store, NULL, before));
    assert_fails(ph_checkpoint_load(path, store, NULL), PH_ERROR_CHECKPOINT,
        "tensor 'embedding.item' is F32 (9,20), but the model's is F32 (10,20)");
    shards_add_table(
        store, "other", normal, 8, 1, (const struct ph_table_slice[]){{"embedding.page", 5}}, NULL);
    assert_ok(ph_checkpoint_digest(store, NULL, before));
    assert_fails(ph_checkpoint_load(path, store, NULL), PH_ERROR_CHECKPOINT, "'embedding.item'");
    assert_ok(ph_checkpoint_digest(store, NULL, after));
    assert_string_equal(before, after);
    ph_store_destroy(store);
}

static void missing_and_surplus_tensors_are_named(void **state)
{
    (void)state;
    const char *path = test_path("others");
    save_cut(path, 4, PH_ROWS_FP32, 2);
    struct ph_store *store = shards_new_store(PH_ROWS_FP32);
    shards_add_dense(store, normal);
    assert_fails(ph_checkpoint_load(path, store, NULL), PH_ERROR_CHECKPOINT,
        "the model has no tensor 'embedding.item'");
    shards_add_table(
        store, "other", normal, 8, 1, (const struct ph_table_slice[]){{"embedding.page", 5}}, NULL);
    assert_fails(
        ph_checkpoint_load(path, store, NULL), PH_ERROR_CHECKPOINT, "tensor 'embedding.page' is missing");
    ph_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_some_ranks_save_any_others_load),
        cmocka_unit_test(a_single_file_is_loaded_in_parts),
        cmocka_unit_test(rows_are_converted_as_from_a_single_file),
        cmocka_unit_test(wide_rows_are_read_in_part),
        cmocka_unit_test(long_tables_are_read_in_blocks),
        cmocka_unit_test(a_model_that_does_not_fit_stays_as_it_was),
        cmocka_unit_test(missing_and_surplus_tensors_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
