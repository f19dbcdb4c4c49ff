/* The search against brute force and the greedy planner, under the analytic model, and at its limits. */
#include "unit/plan/plan_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/clock.h"
#include "plan/search/plan_search.h"

enum { FEW_TABLES = 7, TRIALS = 60 };

static const struct ph__plan_step step = {4096, false, {4, 0}, {4, 0}};

struct task {
    struct drawing drawing;
    struct ph__plan_machine machine;
    struct ph__analytic_cost cost;
    struct ph__cost_model model;
    struct ph__pricing pricing;
};

static void price_for(struct task *task, uint64_t rank_bytes)
{
    task->machine = (struct ph__plan_machine){5e9, 5e9, 1e9, rank_bytes};
    task->cost = (struct ph__analytic_cost){task->machine, step};
    task->model = ph__analytic_model(&task->cost);
    task->pricing = (struct ph__pricing){.model = &task->model,
        .machine = &task->machine,
        .topology = &task->drawing.topology,
        .step = &step,
        .tables = task->drawing.tables,
        .num_tables = task->drawing.num_tables};
}

static void draw_task(struct task *task, size_t most_tables, struct ph__topology topology, double room)
{
    draw_scattered(&task->drawing, most_tables);
    task->drawing.topology = topology;
    price_for(
        task, (uint64_t)(room * (double)bytes_of_all(&task->drawing)) / task->drawing.topology.world_size);
}

static double price_of(const struct task *task, const struct ph__plan *plan, uint64_t *fullest_out)
{
    struct ph__rank_price prices[MAX_WORLD];
    double ms;
    assert_ok(ph__plan_price(&task->pricing, plan, prices, &ms));
    *fullest_out = 0;
    for (size_t rank = 0; rank < plan->topology.world_size; rank++)
        *fullest_out = prices[rank].bytes > *fullest_out ? prices[rank].bytes : *fullest_out;
    return ms;
}

static double best_of_whole_tables(struct task *task)
{
    struct drawing *drawing = &task->drawing;
    const size_t world_size = drawing->topology.world_size;
    double best = INFINITY;
    size_t num_ways = 1;
    for (size_t i = 0; i < drawing->num_tables; i++)
        num_ways *= world_size;
    for (size_t way = 0; way < num_ways; way++) {
        struct ph__plan plan;
        uint64_t fullest;
        size_t digits = way;
        for (size_t i = 0; i < drawing->num_tables; i++, digits /= world_size) {
            drawing->places[i][0] = (uint32_t)(digits % world_size);
            drawing->choices[i] = (struct ph__plan_choice){PH_SHARD_TABLE_WISE, drawing->places[i], 1, NULL};
        }
        assert_ok(ph__plan_build(
            &drawing->topology, drawing->tables, drawing->num_tables, drawing->choices, &plan));
        const double ms = price_of(task, &plan, &fullest);
        if (task->machine.rank_bytes == 0 || fullest <= task->machine.rank_bytes)
            best = fmin(best, ms);
        ph__plan_fini(&plan);
    }
    return best;
}

static void a_search_is_at_least_as_good_as_whole_tables_and_the_greedy_planner(void **state)
{
    (void)state;
    struct task task = {.drawing.rng.key.seed = test_seed()};
    double worst = 0, sum = 0;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        const double rooms[] = {0, 2, 1.3};
        struct ph__plan plan, greedy;
        uint64_t fullest;
        double ms;
        draw_task(&task, FEW_TABLES, (struct ph__topology){2 + trial % 2, 2 + trial % 2}, rooms[trial % 3]);
        const struct ph__search_options options = {.placing.pricing = &task.pricing};
        assert_ok(ph__plan_search(&options, &plan, &ms));
        const double found = price_of(&task, &plan, &fullest), whole = best_of_whole_tables(&task);
        assert_true(task.machine.rank_bytes == 0 || fullest <= task.machine.rank_bytes);
        assert_true(found <= ms * (1 + 1e-6)); /* parts are placed as if each were the largest */
        assert_ok(ph__plan_greedy(&task.machine, &task.drawing.topology, &step, task.drawing.tables,
            task.drawing.num_tables, &greedy));
        const double of_greedy = price_of(&task, &greedy, &fullest);
        worst = fmax(worst, found / fmin(whole, of_greedy));
        sum += found / of_greedy;
        ph__plan_fini(&greedy);
        ph__plan_fini(&plan);
    }
    print_message(
        "at worst %.3f of the better one; on average %.3f of the greedy planner's\n", worst, sum / TRIALS);
    assert_true(worst <= 1.05);
}

static void whole_tables_are_laid_as_brute_force_lays_them(void **state)
{
    (void)state;
    static const uint32_t numbers[FEW_TABLES] = {0, 1, 2, 3, 4, 5, 6};
    struct ph__table_group alone[FEW_TABLES]; /* a group that lies together is not cut */
    struct task task = {.drawing.rng.key.seed = test_seed()};
    double worst = 0;
    size_t num_best = 0;
    for (size_t i = 0; i < FEW_TABLES; i++)
        alone[i] = (struct ph__table_group){&numbers[i], 1, false};
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct ph__plan plan;
        uint64_t fullest;
        double ms;
        draw_task(&task, FEW_TABLES, (struct ph__topology){2 + trial % 2, 2 + trial % 2}, 0);
        const struct ph__search_options options = {
            .placing = {.pricing = &task.pricing,
                .limits = {.groups = alone, .num_groups = task.drawing.num_tables}}};
        assert_ok(ph__plan_search(&options, &plan, &ms));
        const double of_best = price_of(&task, &plan, &fullest) / best_of_whole_tables(&task);
        num_best += of_best <= 1 + 1e-6;
        worst = fmax(worst, of_best);
        ph__plan_fini(&plan);
    }
    print_message(
        "whole tables: %zu of %d as by brute force, at worst %.4f of it\n", num_best, TRIALS, worst);
    assert_true(worst <= 1.05);
    assert_true(num_best >= TRIALS - 2); /* without refinement 53 to 56 */
}

/* ---- limits ---- */

/* Twelve equal tables on four ranks. */
static void make_equal(struct task *task, size_t num_tables, uint64_t rank_bytes)
{
    task->drawing.topology = (struct ph__topology){4, 2};
    task->drawing.num_tables = num_tables;
    for (size_t i = 0; i < num_tables; i++) {
        snprintf(task->drawing.names[i], sizeof task->drawing.names[i], "embedding.f%zu", i);
        task->drawing.tables[i] = (struct ph__table_facts){.name = task->drawing.names[i],
            .num_rows = 1000000,
            .dim = 16,
            .num_features = 1,
            .ids_per_sample = 10,
            .weight_bytes = 64,
            .slot_bytes = 64};
    }
    price_for(task, rank_bytes);
}

static uint32_t rank_of(const struct ph__plan *plan, size_t table)
{
    assert_int_equal(plan->tables[table].num_shards, 1);
    return plan->shards[plan->tables[table].first_shard].rank;
}

static void groups_lie_together_and_apart(void **state)
{
    (void)state;
    struct task task = {0};
    struct ph__plan plan;
    double ms;
    make_equal(&task, 12, 0);
    const uint32_t together[] = {0, 5, 7}, apart[] = {1, 2, 3, 4};
    const struct ph__table_group groups[] = {{together, 3, false}, {apart, 4, true}};
    const struct ph__search_options options = {
        .placing.pricing = &task.pricing, .placing.limits = {.groups = groups, .num_groups = 2}};
    assert_ok(ph__plan_search(&options, &plan, &ms));
    assert_int_equal(rank_of(&plan, 0), rank_of(&plan, 5));
    assert_int_equal(rank_of(&plan, 0), rank_of(&plan, 7));
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(rank_of(&plan, apart[i]), rank_of(&plan, apart[k]));
    ph__plan_fini(&plan);
}

static void slow_and_small_ranks_get_less(void **state)
{
    (void)state;
    struct task task = {0};
    struct ph__plan plan;
    struct ph__rank_price prices[4];
    double ms;
    make_equal(&task, 12, 0);
    const uint64_t bytes = task.drawing.tables[0].num_rows * 128;
    const uint64_t limits[] = {12 * bytes, bytes, 12 * bytes, 12 * bytes};
    const double slowness[] = {4, 1, 1, 1};
    task.pricing.slowness = slowness;
    const struct ph__search_options options = {
        .placing.pricing = &task.pricing, .placing.limits.rank_bytes = limits};
    assert_ok(ph__plan_search(&options, &plan, &ms));
    assert_ok(ph__plan_price(&task.pricing, &plan, prices, &ms));
    assert_true(prices[1].bytes <= bytes);
    assert_true(2 * prices[0].bytes <= prices[2].bytes);
    ph__plan_fini(&plan);
}

static bool stop_at_once(void *context, const struct ph__search_progress *progress)
{
    *(size_t *)context = progress->num_tried;
    return true;
}

static void what_fits_nowhere_is_refused_with_the_bytes_that_are_missing(void **state)
{
    (void)state;
    struct task task = {0};
    struct ph__plan plan;
    size_t num_tried;
    double ms;
    make_equal(&task, 12, 12 * 128000000ull / 4 - 1000000);
    struct ph__search_options options = {.placing.pricing = &task.pricing};
    assert_fails(ph__plan_search(&options, &plan, &ms), PH_ERROR_MEMORY, "short of the limit");
    make_equal(&task, 12, 0);
    options.placing.limits.host_bytes = 700000000;
    assert_fails(ph__plan_search(&options, &plan, &ms), PH_ERROR_MEMORY, "a host");
    const uint32_t apart[] = {0, 1, 2, 3, 4};
    const struct ph__table_group group = {apart, 5, true}; /* more than ranks */
    options.placing.limits = (struct ph__plan_limits){.groups = &group, .num_groups = 1};
    options.progress = stop_at_once;
    options.context = &num_tried;
    assert_fails(ph__plan_search(&options, &plan, &ms), PH_ERROR_MEMORY, "tables that lie apart");
}

static void a_plan_to_start_from_is_kept_where_moving_is_dear(void **state)
{
    (void)state;
    struct task task = {.drawing.rng.key.seed = test_seed()};
    struct ph__plan from, cheap, dear;
    double ms;
    do
        draw_task(&task, MAX_TABLES, (struct ph__topology){4, 2}, 0);
    while (task.drawing.num_tables < 4);
    for (size_t i = 0; i < task.drawing.num_tables; i++) {
        task.drawing.places[i][0] = 0;
        task.drawing.choices[i] =
            (struct ph__plan_choice){PH_SHARD_TABLE_WISE, task.drawing.places[i], 1, NULL};
    }
    assert_ok(ph__plan_build(
        &task.drawing.topology, task.drawing.tables, task.drawing.num_tables, task.drawing.choices, &from));
    struct ph__search_options options = {.placing.pricing = &task.pricing, .placing.from = &from};
    assert_ok(ph__plan_search(&options, &cheap, &ms));
    options.placing.ms_per_moved_gb = 1e12;
    assert_ok(ph__plan_search(&options, &dear, &ms));
    assert_true(ph__plan_moved_bytes(&from, &cheap, task.drawing.tables) > 0);
    assert_int_equal(ph__plan_moved_bytes(&from, &dear, task.drawing.tables), 0);
    ph__plan_fini(&dear);
    ph__plan_fini(&cheap);
    ph__plan_fini(&from);
}

static void a_search_that_is_stopped_gives_the_best_so_far(void **state)
{
    (void)state;
    struct task task = {0};
    struct ph__plan plan;
    size_t num_tried = 0;
    double ms;
    make_equal(&task, 12, 0);
    const struct ph__search_options options = {
        .placing.pricing = &task.pricing, .progress = stop_at_once, .context = &num_tried};
    assert_ok(ph__plan_search(&options, &plan, &ms));
    assert_int_equal(num_tried, 1);
    assert_int_equal(plan.num_tables, 12);
    ph__plan_fini(&plan);
}

static void the_same_facts_give_the_same_plan(void **state)
{
    (void)state;
    struct task task = {.drawing.rng.key.seed = test_seed()};
    for (size_t trial = 0; trial < 10; trial++) {
        struct ph__plan first, second;
        double first_ms, second_ms;
        draw_task(&task, MAX_TABLES, (struct ph__topology){4, 2}, 1.5);
        const struct ph__search_options options = {.placing.pricing = &task.pricing};
        assert_ok(ph__plan_search(&options, &first, &first_ms));
        assert_ok(ph__plan_search(&options, &second, &second_ms));
        assert_true(first_ms == second_ms && first.num_shards == second.num_shards);
        if (first.num_shards > 0)
            assert_memory_equal(first.shards, second.shards, first.num_shards * sizeof *first.shards);
        ph__plan_fini(&first);
        ph__plan_fini(&second);
    }
}

/* ---- many tables on many ranks ---- */

enum { MANY_TABLES = 856, MANY_RANKS = 128 };

static void many_tables_are_spread_over_many_ranks(void **state)
{
    (void)state;
    struct ph__table_facts *tables = calloc(MANY_TABLES, sizeof *tables);
    struct ph__rank_price prices[MANY_RANKS];
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    const struct ph__topology topology = {MANY_RANKS, 8};
    const struct ph__plan_machine machine = {5e9, 5e9, 1e9, 0};
    struct ph__analytic_cost cost = {machine, step};
    const struct ph__cost_model model = ph__analytic_model(&cost);
    struct ph__plan plan;
    double ms, sum = 0, largest = 0;
    assert_non_null(tables);
    for (size_t i = 0; i < MANY_TABLES; i++) {
        const size_t dim = (size_t)4 << ph__rng_below(&rng, 6);
        tables[i] = (struct ph__table_facts){.name = "embedding.f",
            .num_rows = 100 + ph__rng_below(&rng, (uint64_t)1 << (7 + ph__rng_below(&rng, 14))),
            .dim = dim,
            .num_features = 1,
            .ids_per_sample = (double)(1 + ph__rng_below(&rng, (uint64_t)1 << ph__rng_below(&rng, 6))),
            .weight_bytes = 4 * dim,
            .slot_bytes = 4,
            .row_slot_bytes = 4};
    }
    const struct ph__pricing pricing = {.model = &model,
        .machine = &machine,
        .topology = &topology,
        .step = &step,
        .tables = tables,
        .num_tables = MANY_TABLES};
    const struct ph__search_options options = {.placing.pricing = &pricing};
    const double begin = ph__clock_seconds();
    assert_ok(ph__plan_search(&options, &plan, &ms));
    const double seconds = ph__clock_seconds() - begin;
    assert_ok(ph__plan_price(&pricing, &plan, prices, &ms));
    for (size_t rank = 0; rank < MANY_RANKS; rank++) {
        const double busy_ms = ph__rank_price_ms(&prices[rank]) - prices[rank].wait_ms;
        sum += busy_ms;
        largest = fmax(largest, busy_ms);
    }
    print_message(
        "%.1f s; slowest %.3f ms, busiest %.3f of the mean\n", seconds, ms, largest / sum * MANY_RANKS);
    assert_true(largest <= 1.1 * sum / MANY_RANKS);
    ph__plan_fini(&plan);
    free(tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_is_at_least_as_good_as_whole_tables_and_the_greedy_planner),
        cmocka_unit_test(whole_tables_are_laid_as_brute_force_lays_them),
        cmocka_unit_test(groups_lie_together_and_apart),
        cmocka_unit_test(slow_and_small_ranks_get_less),
        cmocka_unit_test(what_fits_nowhere_is_refused_with_the_bytes_that_are_missing),
        cmocka_unit_test(a_plan_to_start_from_is_kept_where_moving_is_dear),
        cmocka_unit_test(a_search_that_is_stopped_gives_the_best_so_far),
        cmocka_unit_test(the_same_facts_give_the_same_plan),
        cmocka_unit_test(many_tables_are_spread_over_many_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
