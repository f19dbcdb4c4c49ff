#include "unit/plan/plan_fixture.h"

#include <string.h>

enum { MAX_ROWS = 25, MAX_DIM = 40, TRIALS = 400 };

/* How often each number of the table is held. */
static void count_holders(
    const struct ph_plan *plan, const struct ph_plan_table *table, unsigned char held[MAX_ROWS][MAX_DIM])
{
    memset(held, 0, MAX_ROWS * MAX_DIM);
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph_table_shard *shard = &plan->shards[table->first_shard + i];
        for (uint64_t r = shard->first_row; r < shard->first_row + shard->num_rows; r++)
            for (uint32_t c = shard->first_column; c < shard->first_column + shard->num_columns; c++) {
                assert_true(r < table->num_rows && c < table->dim);
                held[r][c]++;
            }
    }
}

static void expect_each_number_once(const struct ph_plan *plan, size_t index)
{
    unsigned char held[MAX_ROWS][MAX_DIM];
    const struct ph_plan_table *table = &plan->tables[index];
    count_holders(plan, table, held);
    for (uint64_t r = 0; r < table->num_rows; r++)
        for (uint32_t c = 0; c < table->dim; c++)
            assert_int_equal(held[r][c], table->kind == PH_SHARD_DATA_PARALLEL ? 0 : 1);
}

static void expect_fair_shards(const struct ph_plan *plan, size_t index)
{
    const struct ph_plan_table *table = &plan->tables[index];
    uint64_t most_rows = 0, least_rows = UINT64_MAX;
    bool is_seen[MAX_WORLD] = {false};
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph_table_shard *shard = &plan->shards[table->first_shard + i];
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
        struct ph_plan plan;
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

/* ---- one of each kind, by hand ------------------------------------------------------------------------------ */

static const struct ph_topology four_ranks = {4, 2};
static const struct ph_table_facts ten_by_ten = {"t", 10, 10, 1, 1, 40, 4, 4, 0, NULL, false};

static void expect_shards(const struct ph_topology *topology, const struct ph_table_facts *table,
    struct ph_plan_choice choice, const struct ph_table_shard *wanted, size_t num_wanted)
{
    struct ph_plan plan;
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
    const struct ph_table_facts *table = &ten_by_ten;
    static const uint32_t ranks[] = {3, 1, 0}, two[] = {2, 0}, one[] = {1}, hosts[] = {1, 0};
    const struct ph_table_shard whole[] = {{0, 1, 0, 10, 0, 10}};
    expect_shards(&four_ranks, table, (struct ph_plan_choice){PH_SHARD_TABLE_WISE, one, 1}, whole, 1);
    const struct ph_table_shard rows[] = {{0, 3, 0, 4, 0, 10}, {0, 1, 4, 3, 0, 10}, {0, 0, 7, 3, 0, 10}};
    expect_shards(&four_ranks, table, (struct ph_plan_choice){PH_SHARD_ROW_WISE, ranks, 3}, rows, 3);
    const struct ph_table_shard columns[] = {{0, 2, 0, 10, 0, 8}, {0, 0, 0, 10, 8, 2}};
    expect_shards(&four_ranks, table, (struct ph_plan_choice){PH_SHARD_COLUMN_WISE, two, 2}, columns, 2);
    const struct ph_table_shard host_rows[] = {{0, 2, 0, 5, 0, 10}, {0, 3, 5, 5, 0, 10}};
    expect_shards(&four_ranks, table, (struct ph_plan_choice){PH_SHARD_TABLE_ROW_WISE, one, 1}, host_rows, 2);
    const struct ph_table_shard host_columns[] = {{0, 2, 0, 10, 0, 8}, {0, 3, 0, 10, 8, 2}};
    expect_shards(
        &four_ranks, table, (struct ph_plan_choice){PH_SHARD_TABLE_COLUMN_WISE, one, 1}, host_columns, 2);
    const struct ph_table_shard grid[] = {
        {0, 2, 0, 5, 0, 8}, {0, 3, 5, 5, 0, 8}, {0, 0, 0, 5, 8, 2}, {0, 1, 5, 5, 8, 2}};
    expect_shards(&four_ranks, table, (struct ph_plan_choice){PH_SHARD_GRID, hosts, 2}, grid, 4);
    expect_shards(&four_ranks, table, (struct ph_plan_choice){PH_SHARD_DATA_PARALLEL, NULL, 0}, NULL, 0);
}

static void ranks_behind_the_last_row_have_no_shard(void **state)
{
    (void)state;
    const struct ph_table_facts table = {"t", 2, 3, 1, 1, 12, 0, 0, 0, NULL, false};
    static const uint32_t ranks[] = {0, 1, 2, 3}, host[] = {0};
    const struct ph_table_shard rows[] = {{0, 0, 0, 1, 0, 3}, {0, 1, 1, 1, 0, 3}};
    expect_shards(&four_ranks, &table, (struct ph_plan_choice){PH_SHARD_ROW_WISE, ranks, 4}, rows, 2);
    const struct ph_table_shard columns[] = {{0, 0, 0, 2, 0, 3}};
    expect_shards(
        &four_ranks, &table, (struct ph_plan_choice){PH_SHARD_TABLE_COLUMN_WISE, host, 1}, columns, 1);
}

static void bytes_count_a_number_a_row_once_for_each_column_shard(void **state)
{
    (void)state;
    assert_int_equal(ph__part_bytes(&ten_by_ten, 10, 10), 440);
    assert_int_equal(ph__part_bytes(&ten_by_ten, 10, 8), 10 * (32 + 4));
    static const uint32_t two[] = {2, 0};
    struct ph_plan plan;
    const struct ph_plan_choice choice = {PH_SHARD_COLUMN_WISE, two, 2};
    assert_ok(ph__plan_build(&four_ranks, &ten_by_ten, 1, &choice, &plan));
    assert_int_equal(plan.tables[0].bytes, 400 + 2 * 40);
    ph__plan_fini(&plan);
}

static void choices_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const uint32_t twice[] = {1, 2, 1}, far[] = {4}, three[] = {0, 1, 2};
    assert_fails(
        ph__choice_check(&four_ranks, &ten_by_ten, &(struct ph_plan_choice){PH_SHARD_ROW_WISE, twice, 3}),
        PH_ERROR_CONFIG, "rank 1 is named twice");
    assert_fails(
        ph__choice_check(&four_ranks, &ten_by_ten, &(struct ph_plan_choice){PH_SHARD_TABLE_WISE, far, 1}),
        PH_ERROR_CONFIG, "there is no rank 4: the last is 3");
    assert_fails(ph__choice_check(&four_ranks, &ten_by_ten,
                     &(struct ph_plan_choice){PH_SHARD_TABLE_ROW_WISE, three + 2, 1}),
        PH_ERROR_CONFIG, "there is no host 2: the last is 1");
    assert_fails(
        ph__choice_check(&four_ranks, &ten_by_ten, &(struct ph_plan_choice){PH_SHARD_COLUMN_WISE, three, 3}),
        PH_ERROR_CONFIG, "3 ranks for the 10 columns of 't': one for each 4 of them at most");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_every_table_is_held_once),
        cmocka_unit_test(each_kind_cuts_as_the_header_says),
        cmocka_unit_test(ranks_behind_the_last_row_have_no_shard),
        cmocka_unit_test(bytes_count_a_number_a_row_once_for_each_column_shard),
        cmocka_unit_test(choices_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
