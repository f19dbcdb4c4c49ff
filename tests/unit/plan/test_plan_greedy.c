/* The greedy planner against all ways to lay whole tables out, and at its limits. */
#include "unit/plan/plan_fixture.h"

#include <math.h>
#include <string.h>

#include "plan/plan_cost.h"

enum { FEW_TABLES = 7, FEW_RANKS = 3, NEAR_TRIALS = 60, ANY_TRIALS = 150 };

static const struct ph__plan_step step = {4096, false, {4, 0}, {4, 0}};
static const struct ph__plan_machine usual_machine = {5e9, 5e9, 1e9, 0};

struct judgement {
    double busiest; /* seconds */
    uint64_t fullest;
};

static struct judgement judge_plan(
    const struct drawing *drawing, const struct ph__plan_machine *machine, const struct ph__plan *plan)
{
    struct ph__plan_load loads[MAX_WORLD];
    struct judgement judgement = {0};
    assert_ok(ph__plan_loads(plan, machine, &step, drawing->tables, loads));
    for (size_t i = 0; i < plan->topology.world_size; i++) {
        judgement.busiest = fmax(judgement.busiest, loads[i].seconds);
        judgement.fullest = loads[i].bytes > judgement.fullest ? loads[i].bytes : judgement.fullest;
    }
    return judgement;
}

/* The least that the busiest rank can have where tables stay whole; infinite where none fits. */
static double best_of_whole_tables(struct drawing *drawing, const struct ph__plan_machine *machine)
{
    const size_t world_size = drawing->topology.world_size;
    double best = INFINITY;
    size_t num_ways = 1;
    for (size_t i = 0; i < drawing->num_tables; i++)
        num_ways *= world_size;
    for (size_t way = 0; way < num_ways; way++) {
        struct ph__plan plan;
        size_t digits = way;
        for (size_t i = 0; i < drawing->num_tables; i++, digits /= world_size) {
            drawing->places[i][0] = (uint32_t)(digits % world_size);
            drawing->choices[i] = (struct ph__plan_choice){PH_SHARD_TABLE_WISE, drawing->places[i], 1, NULL};
        }
        assert_ok(ph__plan_build(
            &drawing->topology, drawing->tables, drawing->num_tables, drawing->choices, &plan));
        const struct judgement judgement = judge_plan(drawing, machine, &plan);
        if (judgement.busiest < best &&
            (machine->rank_bytes == 0 || judgement.fullest <= machine->rank_bytes))
            best = judgement.busiest;
        ph__plan_fini(&plan);
    }
    return best;
}

static void greedy_is_near_the_best_way_to_lay_whole_tables_out(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    double worst = 0;
    for (size_t trial = 0; trial < NEAR_TRIALS; trial += test_is_brief() ? 5 : 1) {
        struct ph__plan_machine machine = usual_machine;
        struct ph__plan plan;
        drawing.topology = (struct ph__topology){2 + trial % 2, trial % 4 == 0 ? 2 : 1};
        if (drawing.topology.world_size % drawing.topology.ranks_per_host != 0)
            drawing.topology.ranks_per_host = 1;
        draw_scattered(&drawing, FEW_TABLES);
        if (trial % 3 > 0) /* twice or 1.3 times what an even share takes */
            machine.rank_bytes =
                bytes_of_all(&drawing) * (trial % 3 == 1 ? 20 : 13) / 10 / drawing.topology.world_size;
        const double best = best_of_whole_tables(&drawing, &machine);
        assert_ok(
            ph__plan_greedy(&machine, &drawing.topology, &step, drawing.tables, drawing.num_tables, &plan));
        const struct judgement judgement = judge_plan(&drawing, &machine, &plan);
        assert_true(machine.rank_bytes == 0 || judgement.fullest <= machine.rank_bytes);
        assert_true(judgement.busiest <= 1.35 * best);
        worst = fmax(worst, judgement.busiest / best);
        ph__plan_fini(&plan);
    }
    print_message("at worst %.3f of the best\n", worst);
}

static void a_plan_is_found_wherever_rows_over_all_ranks_fit(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t trial = 0; trial < ANY_TRIALS; trial++) {
        struct ph__plan_machine machine = usual_machine;
        struct ph__plan plan, rows;
        draw_topology(&drawing);
        draw_scattered(&drawing, MAX_TABLES);
        uint32_t everywhere[MAX_WORLD];
        for (uint32_t i = 0; i < drawing.topology.world_size; i++)
            everywhere[i] = i;
        for (size_t i = 0; i < drawing.num_tables; i++)
            drawing.choices[i] =
                (struct ph__plan_choice){PH_SHARD_ROW_WISE, everywhere, drawing.topology.world_size, NULL};
        assert_ok(
            ph__plan_build(&drawing.topology, drawing.tables, drawing.num_tables, drawing.choices, &rows));
        machine.rank_bytes = judge_plan(&drawing, &machine, &rows).fullest; /* not a byte more */
        assert_ok(
            ph__plan_greedy(&machine, &drawing.topology, &step, drawing.tables, drawing.num_tables, &plan));
        assert_true(judge_plan(&drawing, &machine, &plan).fullest <= machine.rank_bytes);
        ph__plan_fini(&rows);
        ph__plan_fini(&plan);
    }
}

/* ---- what it chooses ---- */

static struct ph__table_facts table_of(const char *name, uint64_t num_rows, size_t dim, double ids_per_sample)
{
    return (struct ph__table_facts){
        name, num_rows, dim, 1, ids_per_sample, 4 * dim, 4, 4, 0, NULL, false, NULL, NULL};
}

static void plan_for(const struct ph__plan_machine *machine, struct ph__topology topology,
    const struct ph__table_facts *tables, size_t num_tables, struct ph__plan *plan_out)
{
    assert_ok(ph__plan_greedy(machine, &topology, &step, tables, num_tables, plan_out));
}

static void a_table_larger_than_a_ranks_memory_is_cut(void **state)
{
    (void)state;
    const struct ph__table_facts tables[] = {
        table_of("large", 1000000, 64, 1), table_of("small", 1000, 64, 1)};
    struct ph__plan_machine machine = usual_machine;
    struct ph__plan plan;
    struct ph__plan_load loads[4];
    machine.rank_bytes = 80000000; /* of 260 MB */
    plan_for(&machine, (struct ph__topology){4, 2}, tables, 2, &plan);
    assert_int_equal(plan.tables[0].num_shards, 4);
    assert_ok(ph__plan_loads(&plan, &machine, &step, tables, loads));
    for (size_t i = 0; i < 4; i++)
        assert_true(loads[i].bytes <= machine.rank_bytes);
    ph__plan_fini(&plan);
}

static void a_table_that_fits_nowhere_is_named_with_what_is_missing(void **state)
{
    (void)state;
    const struct ph__table_facts tables[] = {
        table_of("fits", 1024, 63, 1), table_of("large", 4 << 20, 63, 1)}; /* 256 bytes a row */
    const struct ph__topology topology = {4, 2};
    struct ph__plan_machine machine = usual_machine;
    struct ph__plan plan;
    machine.rank_bytes = 200 << 20;
    assert_fails(ph__plan_greedy(&machine, &topology, &step, tables, 2, &plan), PH_ERROR_MEMORY,
        "table 'large' (1.0 GiB with its optimizer's slots) does not fit: even cut by rows over all 4 ranks, "
        "it lacks 56.0 MiB on rank 0, where other tables take 0 B of 200.0 MiB");
}

static void small_tables_are_copied_and_equal_ones_dealt(void **state)
{
    (void)state;
    struct ph__table_facts tables[5] = {table_of("a", 1000000, 64, 10), table_of("b", 1000000, 64, 10),
        table_of("c", 1000000, 64, 10), table_of("d", 1000000, 64, 10), table_of("tiny", 4, 64, 1)};
    size_t num_of_rank[2] = {0};
    struct ph__plan plan;
    plan_for(&usual_machine, (struct ph__topology){2, 1}, tables, 5, &plan);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(plan.tables[i].kind, PH_SHARD_TABLE_WISE);
        num_of_rank[plan.tables[i].places[0]]++;
    }
    assert_int_equal(num_of_rank[0], 2);
    assert_int_equal(plan.tables[4].kind, PH_SHARD_DATA_PARALLEL);
    ph__plan_fini(&plan);
}

/* Hosts of four ranks on a slow network: what many ids become is summed before it leaves its host. */
static void hot_tables_are_cut_so_that_little_crosses_a_slow_network(void **state)
{
    (void)state;
    struct ph__table_facts tables[] = {table_of("a", 1000000, 64, 200), table_of("b", 1000000, 64, 200)};
    for (size_t i = 0; i < 2; i++)
        tables[i].slot_bytes = tables[i].row_slot_bytes = 0; /* no squares cross the network */
    const struct ph__plan_machine machine = {1e9, 1e10, 2e7, 0};
    const struct ph__topology topology = {8, 4};
    struct ph__plan one, two;
    plan_for(&machine, topology, tables, 1, &one);
    assert_int_equal(one.tables[0].kind, PH_SHARD_GRID);
    plan_for(&machine, topology, tables, 2, &two);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(two.tables[i].kind, PH_SHARD_TABLE_ROW_WISE);
    assert_int_not_equal(two.tables[0].places[0], two.tables[1].places[0]);
    ph__plan_fini(&one);
    ph__plan_fini(&two);
}

/* Where the one above is a grid. */
static void columns_that_stay_together_are_not_cut(void **state)
{
    (void)state;
    struct ph__table_facts table = table_of("a", 1000000, 64, 200);
    struct ph__plan_machine machine = {1e9, 1e10, 2e7, 0};
    table.has_whole_rows = true;
    for (size_t ranks_per_host = 1; ranks_per_host <= 8; ranks_per_host *= 2)
        for (size_t i = 0; i < 2; i++) {
            struct ph__plan plan;
            machine.rank_bytes = i == 0 ? 0 : 60000000; /* of 260 MB: it must be cut */
            plan_for(&machine, (struct ph__topology){8, ranks_per_host}, &table, 1, &plan);
            for (size_t s = 0; s < plan.num_shards; s++)
                assert_int_equal(plan.shards[s].num_columns, 64);
            ph__plan_fini(&plan);
        }
}

static void the_same_facts_give_the_same_plan(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t trial = 0; trial < 20; trial++) {
        struct ph__plan first, second;
        draw_topology(&drawing);
        draw_scattered(&drawing, MAX_TABLES);
        plan_for(&usual_machine, drawing.topology, drawing.tables, drawing.num_tables, &first);
        plan_for(&usual_machine, drawing.topology, drawing.tables, drawing.num_tables, &second);
        assert_int_equal(first.num_shards, second.num_shards);
        if (first.num_shards > 0)
            assert_memory_equal(first.shards, second.shards, first.num_shards * sizeof *first.shards);
        ph__plan_fini(&first);
        ph__plan_fini(&second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_is_near_the_best_way_to_lay_whole_tables_out),
        cmocka_unit_test(a_plan_is_found_wherever_rows_over_all_ranks_fit),
        cmocka_unit_test(a_table_larger_than_a_ranks_memory_is_cut),
        cmocka_unit_test(a_table_that_fits_nowhere_is_named_with_what_is_missing),
        cmocka_unit_test(small_tables_are_copied_and_equal_ones_dealt),
        cmocka_unit_test(hot_tables_are_cut_so_that_little_crosses_a_slow_network),
        cmocka_unit_test(columns_that_stay_together_are_not_cut),
        cmocka_unit_test(the_same_facts_give_the_same_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
