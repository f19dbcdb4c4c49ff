#include "unit/plan/plan_fixture.h"

static struct ph_table_facts table_of(const char *name, uint64_t num_rows, size_t dim)
{
    return (struct ph_table_facts){name, num_rows, dim, 1, 1, 4 * dim, 0, 0, 0, NULL, false};
}

static void expect_places(const struct ph_plan_choice *choice, const uint32_t *wanted, size_t num_wanted)
{
    assert_int_equal(choice->num_places, num_wanted);
    for (size_t i = 0; i < num_wanted; i++)
        assert_int_equal(choice->places[i], wanted[i]);
}

static void whole_tables_go_where_the_fewest_bytes_are_the_largest_first(void **state)
{
    (void)state;
    const struct ph_topology topology = {3, 3};
    const struct ph_table_facts tables[] = {
        table_of("a", 10, 4), table_of("b", 50, 4), table_of("c", 40, 4), table_of("d", 30, 4)};
    static const uint32_t named[] = {0};
    struct ph_plan_choice choices[4] = {{PH_SHARD_TABLE_WISE, named, 1}};
    struct ph_arena arena = {0};
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
    const struct ph_topology topology = {4, 2};
    const struct ph_table_facts tables[] = {table_of("full", 100, 4), table_of("narrow", 10, 8),
        table_of("wide", 10, 64), table_of("grid", 10, 4)};
    static const uint32_t named[] = {1};
    struct ph_plan_choice choices[4] = {{PH_SHARD_TABLE_WISE, named, 1}, {.kind = PH_SHARD_COLUMN_WISE},
        {.kind = PH_SHARD_COLUMN_WISE}, {.kind = PH_SHARD_GRID}};
    struct ph_arena arena = {0};
    assert_ok(ph__plan_places(&topology, tables, 4, choices, &arena));
    expect_places(&choices[1], (uint32_t[]){0, 2}, 2);
    expect_places(&choices[2], (uint32_t[]){0, 1, 2, 3}, 4);
    expect_places(&choices[3], (uint32_t[]){1}, 1);
    ph__arena_fini(&arena);
}

static void kinds_of_a_host_go_to_the_emptiest_host(void **state)
{
    (void)state;
    const struct ph_topology topology = {6, 2};
    const struct ph_table_facts tables[] = {table_of("a", 10, 4), table_of("b", 9, 4), table_of("c", 8, 4),
        table_of("d", 7, 4), table_of("e", 1, 4)};
    struct ph_plan_choice choices[5] = {{.kind = PH_SHARD_TABLE_ROW_WISE},
        {.kind = PH_SHARD_TABLE_COLUMN_WISE}, {.kind = PH_SHARD_TABLE_ROW_WISE},
        {.kind = PH_SHARD_TABLE_ROW_WISE}, {.kind = PH_SHARD_ROW_WISE}};
    struct ph_arena arena = {0};
    assert_ok(ph__plan_places(&topology, tables, 5, choices, &arena));
    expect_places(&choices[0], (uint32_t[]){1}, 1); /* the only row of "e" is on rank 0 */
    expect_places(&choices[1], (uint32_t[]){2}, 1);
    expect_places(&choices[2], (uint32_t[]){0}, 1);
    expect_places(&choices[3], (uint32_t[]){0}, 1); /* 9 rows are there, as on host 2 */
    expect_places(&choices[4], (uint32_t[]){0, 1, 2, 3, 4, 5}, 6);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_tables_go_where_the_fewest_bytes_are_the_largest_first),
        cmocka_unit_test(columns_go_over_as_many_ranks_as_they_are_enough_for),
        cmocka_unit_test(kinds_of_a_host_go_to_the_emptiest_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
