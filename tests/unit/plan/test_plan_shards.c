#include <string.h>

#include "unit/plan/plan_fixture.h"

enum { MAX_ROWS = 25, MAX_DIM = 40, TRIALS = 400 };

/* How often each number of the table is held. */
static void count_holders(
    const struct ph__plan *plan, const struct ph__plan_table *table, unsigned char held[MAX_ROWS][MAX_DIM])
{
    memset(held, 0, MAX_ROWS * MAX_DIM);
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph__table_shard *shard = &plan->shards[table->first_shard + i];
        for (uint64_t r = shard->first_row; r < shard->first_row + shard->num_rows; r++)
            for (uint32_t c = shard->first_column; c < shard->first_column + shard->num_columns; c++) {
                assert_true(r < table->num_rows && c < table->dim);
                held[r][c]++;
            }
    }
}

static void expect_each_number_once(const struct ph__plan *plan, size_t index)
{
    unsigned char held[MAX_ROWS][MAX_DIM];
    const struct ph__plan_table *table = &plan->tables[index];
    count_holders(plan, table, held);
    for (uint64_t r = 0; r < table->num_rows; r++)
        for (uint32_t c = 0; c < table->dim; c++)
            assert_int_equal(held[r][c], table->kind == PH_SHARD_DATA_PARALLEL ? 0 : 1);
}

static void expect_fair_shards(const struct ph__plan *plan, size_t index)
{
    const struct ph__plan_table *table = &plan->tables[index];
    uint64_t most_rows = 0, least_rows = UINT64_MAX;
    bool is_seen[MAX_WORLD] = {false};
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph__table_shard *shard = &plan->shards[table->first_shard + i];
        assert_int_equal(shard->table, index);
        assert_true(shard->rank < plan->topology.world_size && !is_seen[shard->rank]);
        is_seen[shard->rank] = true;
        assert_true(shard->num_rows > 0 && shard->num_columns > 0);
        assert_int_equal(shard->first_column % PH_SHARD_COLUMNS, 0);
        if (shard->num_columns < table->dim)
            assert_true(table->dim - shard->first_column - shard->num_columns == 0 ||
                        shard->num_columns % PH_SHARD_COLUMNS == 0);
        most_rows = shard->num_rows > most_rows ? shard->num_rows : most_rows;
        least_rows = shard->num_rows < least_rows ? shard->num_rows : least_rows;
        if (i > 0 && shard->first_column == shard[-1].first_column)
            assert_true(shard->first_row == shard[-1].first_row + shard[-1].num_rows);
        else if (i > 0)
            assert_true(shard->first_row == 0 && shard->first_column > shard[-1].first_column);
    }
    assert_true(table->num_shards == 0 || most_rows - least_rows <= 1);
}

static void every_number_of_every_table_is_held_once(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct ph__plan plan;
        draw_topology(&drawing);
        draw_tables(&drawing, MAX_ROWS);
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        assert_int_equal(plan.num_tables, drawing.num_tables);
        size_t num_shards = 0;
        for (size_t i = 0; i < plan.num_tables; i++) {
            assert_int_equal(plan.tables[i].first_shard, num_shards);
            num_shards += plan.tables[i].num_shards;
            expect_each_number_once(&plan, i);
            expect_fair_shards(&plan, i);
        }
        assert_int_equal(plan.num_shards, num_shards);
        ph__plan_fini(&plan);
    }
}

/* ---- one of each kind, by hand ---- */

static const struct ph__topology four_ranks = {4, 2};
static const struct ph__table_facts ten_by_ten = {"t", 10, 10, 1, 1, 40, 4, 4, 0, NULL, false, NULL, NULL};

static void expect_shards(const struct ph__topology *topology, const struct ph__table_facts *table,
    struct ph__plan_choice choice, const struct ph__table_shard *wanted, size_t num_wanted)
{
    struct ph__plan plan;
    assert_ok(ph__choice_check(topology, table, &choice));
    assert_ok(ph__plan_build(topology, table, 1, &choice, &plan));
    assert_int_equal(plan.num_shards, num_wanted);
    for (size_t i = 0; i < num_wanted; i++)
        assert_memory_equal(&plan.shards[i], &wanted[i], sizeof *wanted);
    ph__plan_fini(&plan);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void each_kind_cuts_as_the_header_says(void **state)
{
    (void)state;
    const struct ph__table_facts *table = &ten_by_ten;
    static const uint32_t ranks[] = {3, 1, 0}, two[] = {2, 0}, one[] = {1}, hosts[] = {1, 0};
    const struct ph__table_shard whole[] = {{0, 1, 0, 10, 0, 10}};
    expect_shards(&four_ranks, table, (struct ph__plan_choice){PH_SHARD_TABLE_WISE, one, 1, NULL}, whole, 1);
    const struct ph__table_shard rows[] = {{0, 3, 0, 4, 0, 10}, {0, 1, 4, 3, 0, 10}, {0, 0, 7, 3, 0, 10}};
    expect_shards(&four_ranks, table, (struct ph__plan_choice){PH_SHARD_ROW_WISE, ranks, 3, NULL}, rows, 3);
    const struct ph__table_shard columns[] = {{0, 2, 0, 10, 0, 8}, {0, 0, 0, 10, 8, 2}};
    expect_shards(
        &four_ranks, table, (struct ph__plan_choice){PH_SHARD_COLUMN_WISE, two, 2, NULL}, columns, 2);
    const struct ph__table_shard host_rows[] = {{0, 2, 0, 5, 0, 10}, {0, 3, 5, 5, 0, 10}};
    expect_shards(
        &four_ranks, table, (struct ph__plan_choice){PH_SHARD_TABLE_ROW_WISE, one, 1, NULL}, host_rows, 2);
    const struct ph__table_shard host_columns[] = {{0, 2, 0, 10, 0, 8}, {0, 3, 0, 10, 8, 2}};
    expect_shards(&four_ranks, table, (struct ph__plan_choice){PH_SHARD_TABLE_COLUMN_WISE, one, 1, NULL},
        host_columns, 2);
    const struct ph__table_shard grid[] = {
        {0, 2, 0, 5, 0, 8}, {0, 3, 5, 5, 0, 8}, {0, 0, 0, 5, 8, 2}, {0, 1, 5, 5, 8, 2}};
    expect_shards(&four_ranks, table, (struct ph__plan_choice){PH_SHARD_GRID, hosts, 2, NULL}, grid, 4);
    expect_shards(
        &four_ranks, table, (struct ph__plan_choice){PH_SHARD_DATA_PARALLEL, NULL, 0, NULL}, NULL, 0);
}

static void ranks_behind_the_last_row_have_no_shard(void **state)
{
    (void)state;
    const struct ph__table_facts table = {"t", 2, 3, 1, 1, 12, 0, 0, 0, NULL, false, NULL, NULL};
    static const uint32_t ranks[] = {0, 1, 2, 3}, host[] = {0};
    const struct ph__table_shard rows[] = {{0, 0, 0, 1, 0, 3}, {0, 1, 1, 1, 0, 3}};
    expect_shards(&four_ranks, &table, (struct ph__plan_choice){PH_SHARD_ROW_WISE, ranks, 4, NULL}, rows, 2);
    const struct ph__table_shard columns[] = {{0, 0, 0, 2, 0, 3}};
    expect_shards(
        &four_ranks, &table, (struct ph__plan_choice){PH_SHARD_TABLE_COLUMN_WISE, host, 1, NULL}, columns, 1);
}

static void bytes_count_a_number_a_row_once_for_each_column_shard(void **state)
{
    (void)state;
    assert_int_equal(ph__table_shard_bytes(&ten_by_ten, 10, 10), 440);
    assert_int_equal(ph__table_shard_bytes(&ten_by_ten, 10, 8), 10 * (32 + 4));
    static const uint32_t two[] = {2, 0};
    struct ph__plan plan;
    const struct ph__plan_choice choice = {PH_SHARD_COLUMN_WISE, two, 2, NULL};
    assert_ok(ph__plan_build(&four_ranks, &ten_by_ten, 1, &choice, &plan));
    assert_int_equal(plan.tables[0].bytes, 400 + 2 * 40);
    ph__plan_fini(&plan);
}

static void choices_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const uint32_t twice[] = {1, 2, 1}, far[] = {4}, three[] = {0, 1, 2};
    assert_fails(ph__choice_check(
                     &four_ranks, &ten_by_ten, &(struct ph__plan_choice){PH_SHARD_ROW_WISE, twice, 3, NULL}),
        PH_ERROR_CONFIG, "rank 1 is named twice");
    assert_fails(ph__choice_check(
                     &four_ranks, &ten_by_ten, &(struct ph__plan_choice){PH_SHARD_TABLE_WISE, far, 1, NULL}),
        PH_ERROR_CONFIG, "rank 4 does not exist: the last is 3");
    assert_fails(ph__choice_check(&four_ranks, &ten_by_ten,
                     &(struct ph__plan_choice){PH_SHARD_TABLE_ROW_WISE, three + 2, 1, NULL}),
        PH_ERROR_CONFIG, "host 2 does not exist: the last is 1");
    assert_fails(ph__choice_check(&four_ranks, &ten_by_ten,
                     &(struct ph__plan_choice){PH_SHARD_COLUMN_WISE, three, 3, NULL}),
        PH_ERROR_CONFIG, "3 ranks are too many for the 10 columns of 't': at most one for every 4 columns");
}

/* ---- places ---- */

static struct ph__table_facts table_of(const char *name, uint64_t num_rows, size_t dim)
{
    return (struct ph__table_facts){name, num_rows, dim, 1, 1, 4 * dim, 0, 0, 0, NULL, false, NULL, NULL};
}

static void expect_places(const struct ph__plan_choice *choice, const uint32_t *wanted, size_t num_wanted)
{
    assert_int_equal(choice->num_places, num_wanted);
    for (size_t i = 0; i < num_wanted; i++)
        assert_int_equal(choice->places[i], wanted[i]);
}

static void whole_tables_go_where_the_fewest_bytes_are_the_largest_first(void **state)
{
    (void)state;
    const struct ph__topology topology = {3, 3};
    const struct ph__table_facts tables[] = {
        table_of("a", 10, 4), table_of("b", 50, 4), table_of("c", 40, 4), table_of("d", 30, 4)};
    static const uint32_t named[] = {0};
    struct ph__plan_choice choices[4] = {{PH_SHARD_TABLE_WISE, named, 1, NULL}};
    struct ph__arena arena = {0};
    assert_ok(ph__plan_places(&topology, tables, 4, choices, &arena));
    expect_places(&choices[0], (uint32_t[]){0}, 1);
    expect_places(&choices[1], (uint32_t[]){1}, 1); /* rank 0 has 10 rows already */
    expect_places(&choices[2], (uint32_t[]){2}, 1);
    expect_places(&choices[3], (uint32_t[]){0}, 1);
    ph__arena_fini(&arena);
}

static void columns_go_over_as_many_ranks_as_they_are_enough_for(void **state)
{
    (void)state;
    const struct ph__topology topology = {4, 2};
    const struct ph__table_facts tables[] = {table_of("full", 100, 4), table_of("narrow", 10, 8),
        table_of("wide", 10, 64), table_of("grid", 10, 4)};
    static const uint32_t named[] = {1};
    struct ph__plan_choice choices[4] = {{PH_SHARD_TABLE_WISE, named, 1, NULL},
        {.kind = PH_SHARD_COLUMN_WISE}, {.kind = PH_SHARD_COLUMN_WISE}, {.kind = PH_SHARD_GRID}};
    struct ph__arena arena = {0};
    assert_ok(ph__plan_places(&topology, tables, 4, choices, &arena));
    expect_places(&choices[1], (uint32_t[]){0, 2}, 2);
    expect_places(&choices[2], (uint32_t[]){0, 1, 2, 3}, 4);
    expect_places(&choices[3], (uint32_t[]){1}, 1);
    ph__arena_fini(&arena);
}

static void kinds_of_a_host_go_to_the_emptiest_host(void **state)
{
    (void)state;
    const struct ph__topology topology = {6, 2};
    const struct ph__table_facts tables[] = {table_of("a", 10, 4), table_of("b", 9, 4), table_of("c", 8, 4),
        table_of("d", 7, 4), table_of("e", 1, 4)};
    struct ph__plan_choice choices[5] = {{.kind = PH_SHARD_TABLE_ROW_WISE},
        {.kind = PH_SHARD_TABLE_COLUMN_WISE}, {.kind = PH_SHARD_TABLE_ROW_WISE},
        {.kind = PH_SHARD_TABLE_ROW_WISE}, {.kind = PH_SHARD_ROW_WISE}};
    struct ph__arena arena = {0};
    assert_ok(ph__plan_places(&topology, tables, 5, choices, &arena));
    expect_places(&choices[0], (uint32_t[]){1}, 1); /* the only row of "e" is on rank 0 */
    expect_places(&choices[1], (uint32_t[]){2}, 1);
    expect_places(&choices[2], (uint32_t[]){0}, 1);
    expect_places(&choices[3], (uint32_t[]){0}, 1); /* 9 rows are there, as on host 2 */
    expect_places(&choices[4], (uint32_t[]){0, 1, 2, 3, 4, 5}, 6);
    ph__arena_fini(&arena);
}

/* ---- bytes ---- */

enum { NUM_DRAWINGS = 100 };

static bool has_element(const struct ph__table_shard *shard, uint64_t row, uint32_t column)
{
    return row - shard->first_row < shard->num_rows && column - shard->first_column < shard->num_columns;
}

/* What rank has of a table, from where its rows and columns are; slots of one number a row come with each
 * part of it. */
static uint64_t count_bytes(
    const struct drawing *drawing, const struct ph__plan *plan, size_t table, uint32_t rank)
{
    const struct ph__table_facts *facts = &drawing->tables[table];
    const uint64_t number_bytes =
        (facts->weight_bytes + facts->slot_bytes - facts->row_slot_bytes) / facts->dim;
    uint64_t bytes = 0;
    if (plan->tables[table].kind == PH_SHARD_DATA_PARALLEL)
        return facts->num_rows * (facts->weight_bytes + facts->slot_bytes);
    for (size_t s = 0; s < plan->num_shards; s++) {
        const struct ph__table_shard *shard = &plan->shards[s];
        if (shard->table != table || shard->rank != rank)
            continue;
        for (uint64_t row = 0; row < facts->num_rows; row++) {
            uint64_t columns = 0;
            for (uint32_t column = 0; column < facts->dim; column++)
                columns += has_element(shard, row, column);
            bytes += columns > 0 ? columns * number_bytes + facts->row_slot_bytes : 0;
        }
    }
    return bytes;
}

static uint64_t count_most(const struct drawing *drawing, const struct ph__plan *plan)
{
    uint64_t most = 0;
    for (uint32_t rank = 0; rank < drawing->topology.world_size; rank++) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < drawing->num_tables; i++)
            bytes += count_bytes(drawing, plan, i, rank);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void the_fullest_rank_decides(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t i = 0; i < NUM_DRAWINGS; i++) {
        struct ph__plan plan;
        draw_topology(&drawing);
        draw_tables(&drawing, 50);
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        const uint64_t most = count_most(&drawing, &plan);
        assert_ok(ph__plan_check_bytes(&plan, drawing.tables, most));
        assert_ok(ph__plan_check_bytes(&plan, drawing.tables, 0));
        if (most > 1)
            assert_fails(
                ph__plan_check_bytes(&plan, drawing.tables, most - 1), PH_ERROR_MEMORY, "1 B too much");
        ph__plan_fini(&plan);
    }
}

static void rank_and_table_are_named(void **state)
{
    (void)state;
    const struct ph__topology topology = {2, 2};
    const uint32_t second = 1;
    const struct ph__table_facts tables[] = {
        {.name = "embedding.user", .num_rows = 1024, .dim = 8, .weight_bytes = 32, .slot_bytes = 32},
        {.name = "embedding.item", .num_rows = 3072, .dim = 8, .weight_bytes = 32, .slot_bytes = 32},
        {.name = "embedding.day", .num_rows = 16, .dim = 8, .weight_bytes = 32, .slot_bytes = 32}};
    const struct ph__plan_choice choices[] = {
        {.kind = PH_SHARD_TABLE_WISE, .places = &second, .num_places = 1},
        {.kind = PH_SHARD_TABLE_WISE, .places = &second, .num_places = 1}, {.kind = PH_SHARD_DATA_PARALLEL}};
    struct ph__plan plan;
    assert_ok(ph__plan_build(&topology, tables, 3, choices, &plan));
    assert_fails(ph__plan_check_bytes(&plan, tables, 200 * 1024), PH_ERROR_MEMORY,
        "rank 1 of 2 would hold 257.0 KiB of tables with their optimizer's slots, but at most 200.0 KiB are "
        "allowed: 57.0 KiB too much; its largest table is 'embedding.item' with 192.0 KiB");
    ph__plan_fini(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_every_table_is_held_once),
        cmocka_unit_test(each_kind_cuts_as_the_header_says),
        cmocka_unit_test(ranks_behind_the_last_row_have_no_shard),
        cmocka_unit_test(bytes_count_a_number_a_row_once_for_each_column_shard),
        cmocka_unit_test(choices_that_do_not_fit_are_refused),
        cmocka_unit_test(whole_tables_go_where_the_fewest_bytes_are_the_largest_first),
        cmocka_unit_test(columns_go_over_as_many_ranks_as_they_are_enough_for),
        cmocka_unit_test(kinds_of_a_host_go_to_the_emptiest_host),
        cmocka_unit_test(the_fullest_rank_decides),
        cmocka_unit_test(rank_and_table_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
