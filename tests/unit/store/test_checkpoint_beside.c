/* Loading a checkpoint beside a store that has been loaded: unchanged tables are shared, and not read. */
#include "phloem/store.h"

#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "support/test_support.h"

enum { ROWS = 50, DIM = 4, NUM_TABLES = 2 };

static const char *const table_names[NUM_TABLES] = {"embedding.user", "embedding.item"};

/* A store of a dense parameter and of tables of one slice each. */
static struct ph_store *make_store(uint64_t seed, enum ph_row_format format)
{
    static const struct ph_init normal = {PH_INIT_NORMAL, 1};
    struct ph_store *store;
    struct ph_parameter *parameter;
    assert_ok(ph_store_create(seed, &store));
    ph__store_set_row_format(store, format);
    const struct ph__declaration dense = {.name = "deep.weight", .shape = {2, {3, 4}}, .init = normal};
    assert_ok(ph__store_add(store, &dense, NULL, &parameter));
    for (size_t i = 0; i < NUM_TABLES; i++) {
        const struct ph_table_slice slice = {table_names[i], ROWS};
        const struct ph__declaration table = {.name = table_names[i],
            .is_table = true,
            .shape = {2, {ROWS, DIM}},
            .init = normal,
            .num_slices = 1,
            .slices = &slice};
        assert_ok(ph__store_add(store, &table, NULL, &parameter));
    }
    return store;
}

static struct ph_tensor find(const struct ph_store *store, const char *name)
{
    struct ph_tensor tensor;
    assert_ok(ph_store_find(store, name, &tensor));
    return tensor;
}

static const char *path_of(const char *name)
{
    static char paths[2][512];
    static size_t next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s.safetensors", test_folder(), name);
    return path;
}

/* Saves "former", and "latter", of which the dense parameter and the table of items differ. */
static int save_both(void **state)
{
    (void)state;
    struct ph_store *store = make_store(1, PH_ROWS_FP32), *other = make_store(2, PH_ROWS_FP32);
    assert_ok(ph_checkpoint_save(path_of("former"), store, NULL, NULL));
    const struct ph_tensor to = find(other, table_names[0]), from = find(store, table_names[0]);
    memcpy(to.data, from.data, ROWS * DIM * sizeof(ph_real));
    assert_ok(ph_checkpoint_save(path_of("latter"), other, NULL, NULL));
    ph_store_destroy(store);
    ph_store_destroy(other);
    return 0;
}

static struct ph_store *load(const char *name, enum ph_row_format format, const struct ph_store *donor)
{
    struct ph_store *store = make_store(3, format);
    assert_ok(ph__checkpoint_load_beside(path_of(name), store, NULL, donor));
    return store;
}

static bool is_shared(const struct ph_store *left, const struct ph_store *right, size_t table)
{
    return find(left, table_names[table]).data == find(right, table_names[table]).data;
}

static void assert_same_values(const struct ph_store *left, const struct ph_store *right)
{
    char digests[2][65];
    assert_ok(ph_checkpoint_digest(left, NULL, digests[0]));
    assert_ok(ph_checkpoint_digest(right, NULL, digests[1]));
    assert_string_equal(digests[0], digests[1]);
}

static void unchanged_tables_are_shared_and_outlive_their_first_store(void **state)
{
    (void)state;
    struct ph_store *former = load("former", PH_ROWS_FP32, NULL),
                    *wanted = load("latter", PH_ROWS_FP32, NULL);
    struct ph_store *latter = load("latter", PH_ROWS_FP32, former);
    assert_true(is_shared(former, latter, 0));
    assert_false(is_shared(former, latter, 1));
    assert_true(ph__parameter_is_shared(ph__store_parameter(latter, 1)));
    assert_same_values(latter, wanted);
    struct ph_store *third = load("latter", PH_ROWS_FP32, latter);
    assert_true(is_shared(latter, third, 0) && is_shared(latter, third, 1));
    ph_store_destroy(former);
    ph_store_destroy(latter);
    assert_false(ph__parameter_is_shared(ph__store_parameter(third, 1)));
    assert_same_values(third, wanted);
    ph_store_destroy(third);
    ph_store_destroy(wanted);
}

/* Inverts a byte of the file, counted from its end. */
static void damage(const char *path, long from_end)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
    const int byte = getc(file);
    assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
    assert_int_not_equal(putc(~byte & 255, file), EOF);
    assert_int_equal(fclose(file), 0);
}

/* The file has deep.weight, embedding.item, embedding.user. */
static void shared_tables_are_not_read_and_others_are_checked(void **state)
{
    (void)state;
    const long user = ROWS * DIM * sizeof(ph_real), item = 2 * user,
               dense = item + 12 * (long)sizeof(ph_real);
    struct ph_store *former = load("former", PH_ROWS_FP32, NULL), *store = make_store(4, PH_ROWS_FP32);
    damage(path_of("latter"), user);
    assert_fails(
        ph__checkpoint_load_beside(path_of("latter"), store, NULL, NULL), PH_ERROR_CHECKPOINT, "latter");
    struct ph_store *latter = load("latter", PH_ROWS_FP32, former);
    assert_true(is_shared(former, latter, 0));
    ph_store_destroy(latter);
    damage(path_of("latter"), user);
    damage(path_of("latter"), item);
    assert_fails(ph__checkpoint_load_beside(path_of("latter"), store, NULL, former), PH_ERROR_CHECKPOINT,
        "'embedding.item' is damaged");
    damage(path_of("latter"), item);
    ph_store_destroy(store);
    store = make_store(4, PH_ROWS_FP32);
    damage(path_of("latter"), dense);
    assert_fails(ph__checkpoint_load_beside(path_of("latter"), store, NULL, former), PH_ERROR_CHECKPOINT,
        "'deep.weight' is damaged");
    damage(path_of("latter"), dense);
    ph_store_destroy(store);
    ph_store_destroy(former);
}

static void tables_that_have_changed_since_are_not_shared(void **state)
{
    (void)state;
    struct ph_store *former = load("former", PH_ROWS_FP32, NULL),
                    *wanted = load("latter", PH_ROWS_FP32, NULL);
    ((ph_real *)find(former, table_names[0]).data)[0] += 1;
    ph_store_touch(former);
    struct ph_store *latter = load("latter", PH_ROWS_FP32, former);
    assert_false(is_shared(former, latter, 0));
    assert_same_values(latter, wanted);
    ph_store_destroy(former);
    ph_store_destroy(latter);
    ph_store_destroy(wanted);
}

static void tables_in_other_row_formats_are_not_shared(void **state)
{
    (void)state;
    struct ph_store *former = load("former", PH_ROWS_FP32, NULL),
                    *int8 = load("former", PH_ROWS_INT8, former);
    struct ph_store *latter = load("latter", PH_ROWS_INT8, int8);
    assert_false(is_shared(former, int8, 0));
    assert_true(is_shared(int8, latter, 0));
    ph_store_destroy(former);
    ph_store_destroy(int8);
    ph_store_destroy(latter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchanged_tables_are_shared_and_outlive_their_first_store),
        cmocka_unit_test(shared_tables_are_not_read_and_others_are_checked),
        cmocka_unit_test(tables_that_have_changed_since_are_not_shared),
        cmocka_unit_test(tables_in_other_row_formats_are_not_shared),
    };
    return cmocka_run_group_tests(tests, save_both, NULL);
}
