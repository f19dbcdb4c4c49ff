#include "support/test_support.h"

#include "train/ranks/memory_check.h"

#define MIB (1ull << 20)

static const struct ph_train_memory job = {
    .baseline_bytes = 5 * MIB, .parameter_bytes = 100 * MIB, .slot_bytes = 200 * MIB, .plan_bytes = 36 * MIB};

static void job_that_fits_exactly_passes(void **state)
{
    (void)state;
    assert_ok(ph__memory_check(&job, 400 * MIB));
}

static void job_that_does_not_fit_is_refused_with_the_sum(void **state)
{
    (void)state;
    assert_fails(ph__memory_check(&job, 400 * MIB - 1), PH_ERROR_MEMORY,
        "needs 400.0 MiB: parameters 100.0 MiB + optimizer slots 200.0 MiB + plan of a batch 36.0 MiB + "
        "allowance 64.0 MiB");
    assert_int_equal(ph_status_exit_code(PH_ERROR_MEMORY), 5);
}

static void plan_that_is_not_known_yet_is_not_called_zero(void **state)
{
    (void)state;
    struct ph_train_memory weights = job;
    weights.plan_bytes = 0;
    assert_fails(ph__memory_check(&weights, 0), PH_ERROR_MEMORY,
        "needs at least 364.0 MiB: parameters 100.0 MiB + optimizer slots 200.0 MiB + plan of a batch (not "
        "laid out "
        "yet) + allowance 64.0 MiB");
}

static void plan_that_cannot_be_laid_out_is_named_in_the_sum(void **state)
{
    (void)state;
    ph_status status = ph_fail(PH_ERROR_MEMORY, "no 9 bytes");
    assert_fails(ph__memory_plan_failed(status, &job, 7 * MIB), PH_ERROR_MEMORY,
        "parameters 100.0 MiB + optimizer slots 200.0 MiB + plan of a batch (no 9 bytes); 7.0 MiB are free");
    assert_int_equal(ph__memory_plan_failed(PH_OK, &job, 0), PH_OK);
    assert_int_equal(ph__memory_plan_failed(PH_ERROR_BUG, &job, 0), PH_ERROR_BUG);
}

static void limit_adds_the_baseline(void **state)
{
    (void)state;
    assert_int_equal(ph__memory_limit(&job), 405 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_that_fits_exactly_passes),
        cmocka_unit_test(job_that_does_not_fit_is_refused_with_the_sum),
        cmocka_unit_test(plan_that_is_not_known_yet_is_not_called_zero),
        cmocka_unit_test(plan_that_cannot_be_laid_out_is_named_in_the_sum),
        cmocka_unit_test(limit_adds_the_baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
