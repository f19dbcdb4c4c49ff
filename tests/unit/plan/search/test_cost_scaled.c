/* Models scaled to a run predict what the run has measured. */
#include "plan/search/cost_scaled.h"

#include "plan/plan_cost.h"
#include "support/test_support.h"

enum { WORLD = 2, NUM_TABLES = 3, BATCH_SIZE = 512 };

struct job {
    struct ph__table_facts tables[NUM_TABLES];
    struct ph__analytic_cost analytic;
    struct ph__cost_model model;
    struct ph__topology topology;
    struct ph__pricing pricing;
    struct ph__plan plan;
};

static void job_init(struct job *job)
{
    static const char *names[NUM_TABLES] = {"a", "b", "c"};
    for (size_t i = 0; i < NUM_TABLES; i++)
        job->tables[i] = (struct ph__table_facts){.name = names[i],
            .num_rows = UINT64_C(1000) << i,
            .dim = 16,
            .num_features = 1,
            .ids_per_sample = 1 + (double)i,
            .weight_bytes = 64,
            .slot_bytes = 4,
            .row_slot_bytes = 4};
    job->analytic = (struct ph__analytic_cost){
        ph__plan_machine_nominal(0), {BATCH_SIZE, false, {.number_bytes = 4}, {.number_bytes = 2}}};
    job->model = ph__analytic_model(&job->analytic);
    job->topology = (struct ph__topology){WORLD, WORLD};
    job->pricing = (struct ph__pricing){.model = &job->model,
        .machine = &job->analytic.machine,
        .topology = &job->topology,
        .step = &job->analytic.step,
        .tables = job->tables,
        .num_tables = NUM_TABLES};
    assert_ok(ph__plan_greedy(
        job->pricing.machine, &job->topology, job->pricing.step, job->tables, NUM_TABLES, &job->plan));
}

/* Prices the plan, and gives what ranks that are so many times slower would have measured. */
static void measure(
    struct job *job, const struct ph__cost_scale *times, struct ph__measured_cost measured_out[WORLD])
{
    struct ph__rank_price prices[WORLD];
    double slowest_ms;
    assert_ok(ph__plan_price(&job->pricing, &job->plan, prices, &slowest_ms));
    for (size_t rank = 0; rank < WORLD; rank++)
        measured_out[rank] = (struct ph__measured_cost){times->compute * prices[rank].compute_ms,
            times->backward * prices[rank].backward_ms, times->forward * prices[rank].forward_ms};
}

static void factors_are_measured_over_predicted(void **state)
{
    (void)state;
    struct job job = {0};
    struct ph__measured_cost measured[WORLD];
    struct ph__cost_scale scale;
    job_init(&job);
    measure(&job, &(struct ph__cost_scale){3, .25, 7}, measured);
    measured[0].compute_ms += measured[1].compute_ms; /* the sum over ranks alone counts */
    measured[1].compute_ms = 0;
    assert_ok(ph__cost_scale_find(&job.pricing, &job.plan, measured, &scale));
    assert_near(scale.compute, 3, 0, 1e-6);
    assert_near(scale.backward, .25, 0, 1e-6);
    assert_near(scale.forward, 7, 0, 1e-6);
    ph__plan_fini(&job.plan);
}

static void scaled_model_predicts_what_was_measured(void **state)
{
    (void)state;
    struct job job = {0};
    struct ph__measured_cost measured[WORLD];
    struct ph__rank_price prices[WORLD];
    double slowest_ms;
    job_init(&job);
    measure(&job, &(struct ph__cost_scale){2, 5, .5}, measured);
    struct ph__scaled_cost scaled = {.model = job.model};
    assert_ok(ph__cost_scale_find(&job.pricing, &job.plan, measured, &scaled.scale));
    const struct ph__cost_model model = ph__scaled_model(&scaled);
    assert_string_equal(model.name, "analytic");
    job.pricing.model = &model;
    assert_ok(ph__plan_price(&job.pricing, &job.plan, prices, &slowest_ms));
    for (size_t rank = 0; rank < WORLD; rank++) {
        assert_near(prices[rank].compute_ms, measured[rank].compute_ms, 0, 1e-6);
        assert_near(prices[rank].backward_ms, measured[rank].backward_ms, 0, 1e-6);
        assert_near(prices[rank].forward_ms, measured[rank].forward_ms, 0, 1e-6);
    }
    ph__plan_fini(&job.plan);
}

static void what_is_not_measured_or_not_predicted_keeps_its_price(void **state)
{
    (void)state;
    struct job job = {0};
    struct ph__measured_cost measured[WORLD];
    struct ph__cost_scale scale;
    job_init(&job);
    measure(&job, &(struct ph__cost_scale){2, 0, 2}, measured);
    assert_ok(ph__cost_scale_find(&job.pricing, &job.plan, measured, &scale));
    assert_near(scale.compute, 2, 0, 1e-6);
    assert_true(scale.backward == 1);
    ph__plan_fini(&job.plan);
    assert_ok(ph__plan_replicate(&job.topology, job.tables, NUM_TABLES, &job.plan)); /* no vectors travel */
    assert_ok(ph__cost_scale_find(&job.pricing, &job.plan, measured, &scale));
    assert_true(scale.forward == 1);
    ph__plan_fini(&job.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_measured_over_predicted),
        cmocka_unit_test(scaled_model_predicts_what_was_measured),
        cmocka_unit_test(what_is_not_measured_or_not_predicted_keeps_its_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
