/* What is said of a plan: sums and factors by hand, and the smallest world by trying each. */
#include "unit/plan/plan_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/search/plan_explain.h"

enum { NUM_TABLES = 6, ROWS = 1200, DIM = 16, ROW_BYTES = DIM * sizeof(float) };

static const struct ph__plan_step step = {512, false, {4, 0}, {4, 0}};

struct task {
    struct ph__topology topology;
    struct ph__table_facts tables[NUM_TABLES];
    struct ph__plan_machine machine;
    struct ph__analytic_cost cost;
    struct ph__cost_model model;
    struct ph__pricing pricing;
};

/* Equal tables, but for the last one, which is read four times as often. */
static void make_task(struct task *task, struct ph__topology topology, uint64_t rank_bytes)
{
    static const char *const names[NUM_TABLES] = {"a", "b", "c", "d", "e", "f"};
    *task = (struct task){.topology = topology, .machine = {5e9, 5e9, 1e9, rank_bytes}};
    for (size_t i = 0; i < NUM_TABLES; i++)
        task->tables[i] = (struct ph__table_facts){.name = names[i],
            .num_rows = ROWS,
            .dim = DIM,
            .num_features = 1,
            .ids_per_sample = i + 1 < NUM_TABLES ? 2 : 8,
            .weight_bytes = ROW_BYTES};
    task->cost = (struct ph__analytic_cost){task->machine, step};
    task->model = ph__analytic_model(&task->cost);
    task->pricing = (struct ph__pricing){.model = &task->model,
        .machine = &task->machine,
        .topology = &task->topology,
        .step = &step,
        .tables = task->tables,
        .num_tables = NUM_TABLES};
}

static void test_a_plan_is_explained(void **state)
{
    struct task task;
    struct ph__plan plan;
    struct ph__plan_explanation explanation;
    const struct ph__plan_load loads[] = {{100, .004, .003, 0}, {300, .002, .001, 0}};
    struct ph__plan_choice choices[NUM_TABLES];
    static const uint32_t ranks[] = {0, 1};
    (void)state;
    make_task(&task, (struct ph__topology){2, 2}, 0);
    for (size_t i = 0; i < NUM_TABLES; i++)
        choices[i] = (struct ph__plan_choice){PH_SHARD_TABLE_WISE, &ranks[i % 2], 1, NULL};
    assert_ok(ph__plan_build(&task.topology, task.tables, NUM_TABLES, choices, &plan));
    assert_ok(ph__plan_explain(&task.pricing, &plan, loads, &explanation));
    assert_near(explanation.slowest_ms, 4, 1e-9, 0);
    assert_near(explanation.compute_imbalance, 1.5, 1e-9, 0);
    assert_near(explanation.exchange_imbalance, 1, 1e-9, 0);
    assert_near(explanation.bytes_imbalance, 1.5, 1e-9, 0);
    assert_int_equal(explanation.num_dear, PH_PLAN_DEAR);
    assert_int_equal(explanation.dear[0].table, NUM_TABLES - 1);
    assert_near(explanation.dear[0].ids, 8 / 3., 1e-6, 0); /* the mean is (5 x 2 + 8) / 6 */
    assert_near(explanation.dear[0].columns, 1, 1e-9, 0);
    assert_true(explanation.dear[0].share > 1. / NUM_TABLES && explanation.dear[0].share < 1);
    ph__plan_fini(&plan);
}

static void test_the_print_names_the_dear_table_and_why(void **state)
{
    struct task task;
    struct ph__writer *writer;
    const struct ph__plan_explanation explanation = {
        4, 1.5, 1, 1.5, {{5, 1.25, .4, 2.67, 1, 1.1}, {0, .5, .2, 1, 1, 1}}, 2};
    (void)state;
    make_task(&task, (struct ph__topology){2, 2}, 0);
    assert_ok(ph__writer_open_memory("explanation", 1 << 16, &writer));
    assert_ok(ph__plan_explain_print(&explanation, task.tables, writer));
    size_t size;
    assert_ok(ph__writer_finish(writer));
    char *text = ph__writer_take(writer, &size);
    assert_non_null(memmem(text, size, "4.000 ms a step", strlen("4.000 ms a step")));
    assert_non_null(memmem(text, size, "2.7 x the mean's ids", strlen("2.7 x the mean's ids")));
    assert_non_null(memmem(text, size, "as the others", strlen("as the others")));
    free(text);
    ph__writer_close(writer);
}

static bool fits(struct task *task, size_t world_size, size_t local)
{
    struct ph__plan plan = {0};
    double ms;
    task->topology = (struct ph__topology){world_size, local};
    const struct ph__search_options options = {.placing.pricing = &task->pricing};
    const ph_status status = ph__plan_search(&options, &plan, &ms);
    ph__plan_fini(&plan);
    return status == PH_OK;
}

static void test_the_smallest_world_is_that_of_trying_each(void **state)
{
    static const uint64_t limits[] = {240 * ROW_BYTES, 333 * ROW_BYTES, 1199 * ROW_BYTES, ROWS * ROW_BYTES};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof limits / sizeof *limits; i++) {
        const size_t local = 1 + i % 2; /* 1: all ranks are on one host */
        struct task task;
        size_t found, expected;
        make_task(&task, (struct ph__topology){4, local == 1 ? 4 : local}, limits[i / 2]);
        const struct ph__search_options options = {.placing.pricing = &task.pricing};
        assert_ok(ph__plan_smallest_world(&options, 4096, &found));
        for (expected = local; !fits(&task, expected, local == 1 ? expected : local); expected += local)
            ;
        assert_int_equal(found, expected);
    }
}

static void test_no_world_holds_a_group_that_lies_together(void **state)
{
    static const uint32_t tables[] = {0, 1};
    const struct ph__table_group group = {tables, 2, false};
    struct task task;
    size_t found;
    (void)state;
    make_task(&task, (struct ph__topology){2, 2}, ROWS * ROW_BYTES);
    const struct ph__search_options options = {
        .placing = {.pricing = &task.pricing, .limits = {.groups = &group, .num_groups = 1}}};
    assert_ok(ph__plan_smallest_world(&options, 64, &found));
    assert_int_equal(found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_is_explained),
        cmocka_unit_test(test_the_print_names_the_dear_table_and_why),
        cmocka_unit_test(test_the_smallest_world_is_that_of_trying_each),
        cmocka_unit_test(test_no_world_holds_a_group_that_lies_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
