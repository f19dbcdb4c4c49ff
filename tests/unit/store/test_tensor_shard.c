/* Stores that hold shards of tables: the same values as the whole table's, wherever the cuts are. */
#include "store/tensor_shard.h"

#include "store/tensor_list.h"
#include "unit/store/shards_fixture.h"

static const struct ph_init normal = {PH_INIT_NORMAL, 1};

static void check_initial_values(struct ph_init init, enum ph_row_format format, uint64_t number)
{
    struct ph_store *whole = shards_whole_store(init, format);
    struct cut_model model;
    cut_model_init(&model, 1 + number % MAX_RANKS, init, format, number);
    uint64_t count = 0;
    for (size_t rank = 0; rank < model.num_ranks; rank++) {
        const struct ph_store *store = model.ranks[rank];
        count += ph_store_parameter_count(store) - 5 * 7 - 7;
        for (size_t i = 0; i < ph_store_num_tensors(store); i++) {
            struct ph_tensor wanted;
            const struct ph_tensor tensor = ph_store_tensor(store, i);
            const struct ph_shape shape = ph__tensor_whole(&tensor);
            assert_ok(ph_store_find(whole, tensor.name, &wanted));
            assert_true(ph__shape_equal(&shape, &wanted.shape));
            assert_int_equal(tensor.dtype, wanted.dtype);
            assert_same_numbers(&tensor, &wanted);
        }
    }
    assert_int_equal(count, ph_store_parameter_count(whole) - 5 * 7 - 7);
    cut_model_fini(&model);
    ph_store_destroy(whole);
}

static void parts_begin_with_the_values_of_the_whole(void **state)
{
    (void)state;
    static const enum ph_row_format formats[] = {
        PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    static const struct ph_init inits[] = {{PH_INIT_CONSTANT, 0.3}, {PH_INIT_NORMAL, 0.1},
        {PH_INIT_UNIFORM, 2}, {PH_INIT_XAVIER_NORMAL, 1}, {PH_INIT_XAVIER_UNIFORM, 0.5}};
    for (uint64_t number = 0; number < 200; number++)
        check_initial_values(inits[number % 5], formats[number / 5 % 4], number);
}

static struct ph__declaration table_of(
    const char *name, size_t rows, const struct ph_table_slice *slices, const struct ph__slice_shard *shards)
{
    return (struct ph__declaration){.name = name,
        .is_table = true,
        .shape = {2, {rows, 8}},
        .init = normal,
        .num_slices = 2,
        .slices = slices,
        .shards = shards};
}

static void a_slice_that_is_all_of_it_is_whole(void **state)
{
    (void)state;
    struct ph_store *store = shards_new_store(PH_ROWS_FP32);
    const struct ph_table_slice slices[] = {{"embedding.user", 30}, {"embedding.item", 20}};
    const struct ph__slice_shard shards[] = {{0, 30, 0, 8}, {5, 25, 0, 8}};
    const struct ph__declaration table = table_of("table", 50, slices, shards);
    struct ph_parameter *parameter;
    assert_ok(ph__store_add(store, &table, NULL, &parameter));
    assert_string_equal(parameter->family, "table");
    assert_memory_equal(parameter->shards, shards, sizeof shards);
    const struct ph_tensor user = ph_store_tensor(store, 0), item = ph_store_tensor(store, 1);
    assert_false(ph__tensor_is_shard(&user));
    assert_true(ph__tensor_is_shard(&item));
    assert_int_equal(item.first_row, 5);
    assert_int_equal(item.whole.dims[0], 25);
    ph_store_destroy(store);
}

static void parts_of_one_name_must_not_overlap(void **state)
{
    (void)state;
    struct ph_store *store = shards_new_store(PH_ROWS_FP32);
    struct ph_parameter *parameter;
    const struct ph_table_slice slices[] = {{"embedding.user", 30}, {"embedding.user", 20}};
    const struct ph__slice_shard apart[] = {{0, 50, 0, 16}, {30, 50, 0, 16}};
    const struct ph__slice_shard touching[] = {{0, 50, 0, 16}, {29, 50, 0, 16}};
    const struct ph__slice_shard beside[] = {{0, 50, 8, 16}, {30, 50, 8, 16}};
    const struct ph__slice_shard foreign[] = {{0, 51, 8, 16}, {31, 51, 8, 16}};
    struct ph__declaration table = table_of("table", 50, slices, touching);
    assert_fails(ph__store_add(store, &table, NULL, &parameter), PH_ERROR_CONFIG, "two slices");
    table.shards = apart;
    assert_ok(ph__store_add(store, &table, NULL, &parameter));
    assert_ok(ph__store_add(store, &table, NULL, &parameter));
    table.shards = touching;
    assert_fails(ph__store_add(store, &table, NULL, &parameter), PH_ERROR_CONFIG, "other slices");
    struct ph__declaration second = table_of("second", 50, slices, foreign);
    assert_fails(ph__store_add(store, &second, NULL, &parameter), PH_ERROR_CONFIG, "two tensors");
    second.shards = NULL;
    assert_fails(ph__store_add(store, &second, NULL, &parameter), PH_ERROR_CONFIG, "two tensors");
    second.shards = beside;
    assert_ok(ph__store_add(store, &second, NULL, &parameter));
    ph_store_destroy(store);
}

static void what_is_no_part_of_the_whole_is_a_bug(void **state)
{
    (void)state;
    struct ph_store *store = shards_new_store(PH_ROWS_FP32);
    struct ph_parameter *parameter;
    const struct ph_table_slice slices[] = {{"embedding.user", 30}, {"embedding.item", 20}};
    static const struct ph__slice_shard wrong[] = {
        {21, 40, 0, 8}, {41, 40, 0, 8}, {0, 40, 0, 7}, {0, 40, 2, 12}, {0, 40, 8, 12}, {SIZE_MAX, 40, 0, 8}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct ph__slice_shard shards[] = {{0, 30, 0, 8}, wrong[i]};
        const struct ph__declaration table = table_of("table", 50, slices, shards);
        assert_fails(ph__store_add(store, &table, NULL, &parameter), PH_ERROR_BUG, "'embedding.item'");
    }
    const struct ph__slice_shard large[] = {{0, 30, 0, 8}, {0, (size_t)UINT32_MAX + 1, 0, 8}};
    const struct ph__declaration table = table_of("table", 50, slices, large);
    assert_fails(ph__store_add(store, &table, NULL, &parameter), PH_ERROR_CONFIG, "2^32 - 1 rows");
    ph_store_destroy(store);
}

/* ---- areas ---- */

/* How often each element is there. */
static void count_elements(
    size_t num_areas, const struct ph__area *areas, size_t rows, size_t columns, unsigned counts_out[])
{
    memset(counts_out, 0, rows * columns * sizeof *counts_out);
    for (size_t i = 0; i < num_areas; i++)
        for (size_t row = 0; row < areas[i].num_rows; row++)
            for (size_t column = 0; column < areas[i].num_columns; column++)
                counts_out[(areas[i].first_row + row) * columns + areas[i].first_column + column]++;
}

/* The fault is one: all of it is missing, or all of it is there more than once. */
static void check_fault(const struct ph__area *fault, bool is_missing, const unsigned *counts, size_t columns)
{
    assert_true(fault->num_rows > 0 && fault->num_columns > 0);
    for (size_t row = 0; row < fault->num_rows; row++)
        for (size_t column = 0; column < fault->num_columns; column++) {
            const unsigned count = counts[(fault->first_row + row) * columns + fault->first_column + column];
            assert_true(is_missing ? count == 0 : count > 1);
        }
}

static void draw_run(struct ph__rng_sequence *random, size_t extent, size_t *first_out, size_t *count_out)
{
    const size_t a = ph__rng_below(random, extent + 1), b = ph__rng_below(random, extent + 1);
    *first_out = a < b ? a : b;
    *count_out = a < b ? b - a : a - b;
}

/* Areas of a random cut, of which some are then moved, against counting each element. */
static void areas_cover_when_each_element_is_there_once(void **state)
{
    (void)state;
    enum { MAX_EXTENT = 6, MAX_AREAS = MAX_STRIPS * MAX_RUNS };
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    size_t num_covered = 0;
    for (size_t trial = 0; trial < 20000; trial++) {
        const struct ph__area whole = {.num_rows = ph__rng_below(&random, MAX_EXTENT + 1),
            .num_columns = ph__rng_below(&random, MAX_EXTENT + 1)};
        struct ph__area areas[MAX_AREAS], fault;
        size_t count = 0, columns[MAX_STRIPS + 1], rows[MAX_RUNS + 1];
        const size_t num_strips = shards_cut(&random, whole.num_columns, 1, MAX_STRIPS, columns);
        for (size_t i = 0; i < num_strips; i++) {
            const size_t num_runs = shards_cut(&random, whole.num_rows, 1, MAX_RUNS, rows);
            for (size_t k = 0; k < num_runs; k++)
                areas[count++] = (struct ph__area){
                    rows[k], rows[k + 1] - rows[k], columns[i], columns[i + 1] - columns[i]};
        }
        if (trial % 2 != 0) {
            struct ph__area *moved = &areas[ph__rng_below(&random, count)];
            draw_run(&random, whole.num_rows, &moved->first_row, &moved->num_rows);
            draw_run(&random, whole.num_columns, &moved->first_column, &moved->num_columns);
        }
        unsigned counts[MAX_EXTENT * MAX_EXTENT];
        bool is_once = true, is_missing = false;
        count_elements(count, areas, whole.num_rows, whole.num_columns, counts);
        for (size_t i = 0; i < whole.num_rows * whole.num_columns; i++)
            is_once = is_once && counts[i] == 1;
        num_covered += is_once;
        assert_int_equal(ph__areas_cover(&whole, areas, count, &fault, &is_missing), is_once);
        if (!is_once)
            check_fault(&fault, is_missing, counts, whole.num_columns);
    }
    assert_in_range(num_covered, 10000, 19000);
}

static void an_area_is_within_or_not_whatever_its_numbers(void **state)
{
    (void)state;
    const struct ph__area whole = {.num_rows = 10, .num_columns = 4};
    static const struct {
        struct ph__area area;
        bool is_within;
    } cases[] = {{{0, 10, 0, 4}, true}, {{10, 0, 4, 0}, true}, {{3, 4, 1, 2}, true}, {{3, 8, 0, 4}, false},
        {{0, 10, 1, 4}, false}, {{SIZE_MAX, 2, 0, 4}, false}, {{2, SIZE_MAX, 0, 4}, false},
        {{0, 1, SIZE_MAX, SIZE_MAX}, false}, {{11, 0, 0, 4}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ph__area_is_within(&cases[i].area, &whole), cases[i].is_within);
}

static void a_store_of_parts_is_no_model_to_save(void **state)
{
    (void)state;
    struct ph_store *store = shards_new_store(PH_ROWS_FP32);
    struct ph_parameter *parameter;
    const struct ph_table_slice slices[] = {{"embedding.user", 30}, {"embedding.item", 20}};
    const struct ph__slice_shard shards[] = {{0, 30, 0, 8}, {5, 25, 0, 8}};
    const struct ph__declaration table = table_of("table", 50, slices, shards);
    char digits[65];
    assert_ok(ph__store_add(store, &table, NULL, &parameter));
    assert_fails(
        ph_checkpoint_save("parts.safetensors", store, NULL, NULL), PH_ERROR_USAGE, "'embedding.item'");
    assert_fails(ph_checkpoint_digest(store, NULL, digits), PH_ERROR_USAGE, "'embedding.item'");
    ph_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_begin_with_the_values_of_the_whole),
        cmocka_unit_test(a_slice_that_is_all_of_it_is_whole),
        cmocka_unit_test(parts_of_one_name_must_not_overlap),
        cmocka_unit_test(what_is_no_part_of_the_whole_is_a_bug),
        cmocka_unit_test(areas_cover_when_each_element_is_there_once),
        cmocka_unit_test(an_area_is_within_or_not_whatever_its_numbers),
        cmocka_unit_test(a_store_of_parts_is_no_model_to_save),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
