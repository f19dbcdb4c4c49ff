#include "unit/plan/plan_fixture.h"

#include <math.h>
#include <string.h>

#include "plan/plan_cost.h"

static const struct ph_plan_machine machine = {1e9, 1e8, 1e7, 0};

static void expected_rows_are_those_of_drawn_ids(void **state)
{
    (void)state;
    enum { ROWS = 50, IDS = 70, DRAWS = 4000 };
    struct ph_rng_sequence rng = {.key = {.seed = test_seed()}};
    double sum = 0;
    for (size_t d = 0; d < DRAWS; d++) {
        bool is_named[ROWS] = {false};
        for (size_t i = 0; i < IDS; i++)
            is_named[ph__rng_below(&rng, ROWS)] = true;
        for (size_t r = 0; r < ROWS; r++)
            sum += is_named[r];
    }
    assert_near(ph__expected_rows(ROWS, IDS), sum / DRAWS, 0, .005);
    assert_near(ph__expected_rows(1, 5), 1, 0, 0);
    assert_near(ph__expected_rows(1, 0), 0, 0, 0);
    assert_near(ph__expected_rows(1e12, 1000), 1000, 0, 1e-6); /* few of many: each names one */
    assert_near(ph__expected_rows(10, 1e6), 10, 0, 1e-9);
}

/* All of it on one of two ranks, the formula of the header written out. */
static void a_whole_table_costs_what_the_formula_says(void **state)
{
    (void)state;
    const struct ph_topology topology = {2, 1};
    const struct ph_table_facts facts = {"t", 1000000, 16, 2, 5, 64, 68, 4, 0, NULL, false};
    const struct ph_plan_step step = {100, false, {4, 0}, {2, 0}};
    static const uint32_t rank[] = {1};
    const struct ph_plan_choice choice = {PH_SHARD_TABLE_WISE, rank, 1};
    struct ph_plan plan;
    struct ph_plan_load loads[2];
    assert_ok(ph__plan_build(&topology, &facts, 1, &choice, &plan));
    assert_ok(ph__plan_loads(&plan, &machine, &step, &facts, loads));
    const double ids = 500, rows = 1e6 * (1 - pow(1 - 1e-6, ids));
    const double touched = ids * (64 + 64) + 200 * 64 + 2 * rows * (64 + 68);
    const double pooled = 50 * 2 * 16 * 4, gradients = pooled / 2, inputs = 4 * 50 * 2 + 4 * 250;
    assert_int_equal(loads[0].bytes, 0);
    assert_int_equal(loads[1].bytes, 1000000ull * 132);
    assert_near(loads[0].sent_bytes, gradients + inputs + 12, 1e-9, 1e-9);
    assert_near(loads[1].sent_bytes, pooled + 12, 1e-9, 1e-9);
    assert_near(loads[0].seconds, fmax(pooled, gradients + inputs) / 1e7, 0, 1e-9);
    assert_near(loads[1].seconds, touched / 1e9 + fmax(pooled, gradients + inputs) / 1e7, 0, 1e-9);
    ph__plan_fini(&plan);
}

static double sum_of(const struct ph_plan_load *loads, size_t world_size)
{
    double sum = 0;
    for (size_t i = 0; i < world_size; i++)
        sum += loads[i].sent_bytes;
    return sum;
}

/* What the loads say is sent is what the traffic of expected counts adds up to, and bytes are those of the shards. */
static void loads_agree_with_traffic_and_shards(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t trial = 0; trial < 100; trial++) {
        const struct ph_plan_step step = {1 + draw(&drawing, 100), trial % 2 == 0, {4, 0}, {1, 4}};
        struct ph_plan plan;
        struct ph_plan_load loads[MAX_WORLD];
        struct ph_table_counts counts[MAX_TABLES];
        static double bytes[PH_TRAFFIC_COUNT * MAX_WORLD * MAX_WORLD];
        struct ph_arena arena = {0};
        draw_topology(&drawing);
        draw_tables(&drawing, 1000);
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        for (size_t i = 0; i < plan.num_tables; i++)
            assert_ok(ph__expected_counts(&plan, i, &drawing.tables[i], &step, &arena, &counts[i]));
        ph__plan_traffic(&plan, drawing.tables, &step, counts, bytes);
        assert_ok(ph__plan_loads(&plan, &machine, &step, drawing.tables, loads));
        const size_t world_size = drawing.topology.world_size;
        double sum = 0;
        for (size_t i = 0; i < PH_TRAFFIC_COUNT * world_size * world_size; i++)
            sum += bytes[i];
        assert_near(sum_of(loads, world_size), sum, 1e-6, 1e-9);
        uint64_t held = 0, wanted = 0;
        for (size_t i = 0; i < world_size; i++)
            held += loads[i].bytes;
        for (size_t i = 0; i < plan.num_tables; i++)
            wanted += plan.tables[i].bytes * (plan.tables[i].kind == PH_SHARD_DATA_PARALLEL ? world_size : 1);
        assert_int_equal(held, wanted);
        ph__arena_fini(&arena);
        ph__plan_fini(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_rows_are_those_of_drawn_ids),
        cmocka_unit_test(a_whole_table_costs_what_the_formula_says),
        cmocka_unit_test(loads_agree_with_traffic_and_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
