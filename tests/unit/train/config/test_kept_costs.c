/* A planner learns from the costs in a run's folder, and refuses those of other machines, tables and batch
 * sizes. */
#include "train/config/kept_costs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan/plan_cost.h"
#include "support/test_support.h"
#include "train/config/kept_plan.h"

enum { WORLD = 2, NUM_TABLES = 2, BATCH_SIZE = 256 };

static const struct ph__table_facts tables[NUM_TABLES] = {
    {.name = "a", .num_rows = 1000, .dim = 8, .num_features = 1, .ids_per_sample = 2, .weight_bytes = 32},
    {.name = "b", .num_rows = 5000, .dim = 8, .num_features = 1, .ids_per_sample = 1, .weight_bytes = 32},
};
static const struct ph__topology of_run = {WORLD, WORLD}, of_job = {8, 4};

static struct ph__analytic_cost analytic;
static struct ph__cost_model model;

/* A pricing for eight ranks. */
static struct ph__pricing pricing(size_t batch_size, const struct ph__table_facts *facts)
{
    analytic = (struct ph__analytic_cost){
        ph__plan_machine_nominal(0), {batch_size, false, {.number_bytes = 4}, {.number_bytes = 4}}};
    model = ph__analytic_model(&analytic);
    return (struct ph__pricing){.model = &model,
        .machine = &analytic.machine,
        .topology = &of_job,
        .step = &analytic.step,
        .tables = facts,
        .num_tables = NUM_TABLES};
}

/* Leaves a run's plan, and costs that are `times` those of the model. */
static void leave_run(const char *folder, double times, const char *processor)
{
    struct ph__pricing base = pricing(BATCH_SIZE, tables);
    struct ph__plan plan;
    struct ph__rank_price prices[WORLD];
    struct ph__measured_cost ranks[WORLD];
    double slowest_ms;
    base.topology = &of_run;
    assert_ok(ph__plan_greedy(base.machine, &of_run, base.step, tables, NUM_TABLES, &plan));
    assert_ok(ph__plan_price(&base, &plan, prices, &slowest_ms));
    for (size_t rank = 0; rank < WORLD; rank++)
        ranks[rank] = (struct ph__measured_cost){times * prices[rank].compute_ms,
            times * prices[rank].backward_ms, times * prices[rank].forward_ms};
    struct ph__kept_costs costs = {
        .facts.batch_size = BATCH_SIZE, .topology = of_run, .num_steps = 9, .ranks = ranks};
    assert_ok(ph__cost_facts_here(&costs.facts));
    if (processor != NULL)
        snprintf(costs.facts.processor, sizeof costs.facts.processor, "%s", processor);
    assert_ok(ph__kept_plan_write(folder, &plan));
    assert_ok(ph__kept_costs_write(folder, &costs, &plan));
    ph__plan_fini(&plan);
}

static void refuse(const char *folder, bool may_be_foreign, const struct ph__pricing *base, ph_status status,
    const char *why)
{
    struct ph__learnt_costs learnt;
    assert_fails(ph__kept_costs_learn(folder, may_be_foreign, base, &learnt), status, why);
    ph__learnt_costs_fini(&learnt);
}

static void learnt_model_is_as_slow_as_the_run(void **state)
{
    (void)state;
    struct ph__learnt_costs learnt;
    const char *folder = test_fresh_folder();
    leave_run(folder, 3, NULL);
    const struct ph__pricing base = pricing(BATCH_SIZE, tables);
    assert_ok(ph__kept_costs_learn(folder, false, &base, &learnt));
    assert_int_equal(learnt.costs.topology.world_size, WORLD);
    assert_int_equal(learnt.costs.num_steps, 9);
    assert_int_equal(learnt.plan.num_tables, NUM_TABLES);
    assert_near(learnt.scaled.scale.compute, 3, 0, 1e-6);
    assert_near(learnt.scaled.scale.backward, 3, 0, 1e-6);
    assert_near(learnt.scaled.scale.forward, 3, 0, 1e-6);
    double ms, base_ms;
    assert_ok(base.model->compute(base.model->context, &(float){.5F}, 1, &base_ms));
    assert_ok(learnt.model.compute(learnt.model.context, &(float){.5F}, 1, &ms));
    assert_near(ms, 3 * base_ms, 0, 1e-6);
    ph__learnt_costs_fini(&learnt);
}

static void costs_of_another_job_or_machine_are_refused(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder();
    struct ph__learnt_costs learnt;
    struct ph__table_facts others[NUM_TABLES] = {tables[0], tables[1]};
    leave_run(folder, 1, "Abacus 3000");
    struct ph__pricing base = pricing(BATCH_SIZE, tables);
    refuse(folder, false, &base, PH_ERROR_CONFIG, "learnt on 'Abacus 3000'");
    assert_ok(ph__kept_costs_learn(folder, true, &base, &learnt));
    ph__learnt_costs_fini(&learnt);
    others[1].num_rows++;
    base = pricing(BATCH_SIZE, others);
    refuse(folder, true, &base, PH_ERROR_CONFIG, "name a run of this config's tables");
    base = pricing(2 * BATCH_SIZE, tables);
    refuse(folder, true, &base, PH_ERROR_CONFIG, "a batch size of 256, the config's is 512");
}

/* Puts `to` in place of `from` in the run's costs.json. */
static void damage(const char *folder, const char *from, const char *to)
{
    char path[512], text[4096], damaged[4096];
    leave_run(folder, 1, NULL);
    snprintf(path, sizeof path, "%s/costs.json", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(damaged, sizeof damaged, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    test_write_text(path, damaged);
}

static void damaged_files_are_named(void **state)
{
    (void)state;
    static const char *damages[][3] = {
        {"{", "", "costs.json"},
        {"\"version\": 1", "\"version\": 9", "'version' is missing or damaged"},
        {"\"isa\"", "\"was\"", "'isa' is missing or damaged"},
        {"\"world_size\": 2", "\"world_size\": 99999999999", "'ranks' is missing"},
        {"\"ranks_per_host\": 2", "\"ranks_per_host\": 0", "'ranks_per_host' is missing"},
        {"\"compute_ms\": ", "\"compute_ms\": -", "'ranks' is missing"},
        {"\"backward_ms\": ", "\"backward_ms\": null, \"was\": ", "'ranks' is missing"},
    };
    const char *folder = test_fresh_folder();
    const struct ph__pricing base = pricing(BATCH_SIZE, tables);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        damage(folder, damages[i][0], damages[i][1]);
        refuse(folder, false, &base, PH_ERROR_CHECKPOINT, damages[i][2]);
    }
    ph__kept_costs_remove(folder);
    refuse(folder, false, &base, PH_ERROR_CHECKPOINT, "costs.json");
}

static void plan_of_the_run_is_required(void **state)
{
    (void)state;
    char path[512];
    const char *folder = test_fresh_folder();
    const struct ph__pricing base = pricing(BATCH_SIZE, tables);
    leave_run(folder, 1, NULL);
    snprintf(path, sizeof path, "%s/plan.yaml", folder);
    unlink(path);
    refuse(folder, false, &base, PH_ERROR_CONFIG, "plan.yaml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learnt_model_is_as_slow_as_the_run),
        cmocka_unit_test(costs_of_another_job_or_machine_are_refused),
        cmocka_unit_test(damaged_files_are_named),
        cmocka_unit_test(plan_of_the_run_is_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
