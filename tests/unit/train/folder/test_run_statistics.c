#include "train/folder/run_statistics.h"

#include "support/count_allocations.h"
#include "support/test_support.h"

static const struct ph_table_slice slices[] = {{"a", 10}};
static const struct ph_model_features features = {.num_sparse = 1, .sparse = slices};
static const uint32_t offsets[] = {0, 1, 2};
static const int64_t ids[] = {3, 4};
static const struct ph_batch batch = {
    .num_samples = 2, .num_sparse = 1, .num_ids = 2, .offsets = offsets, .ids = ids};

static void never_the_first_step_is_measured_then_some_then_few(void **state)
{
    (void)state;
    struct ph__run_statistics statistics = {0};
    assert_ok(ph__run_statistics_init(&features, &statistics));
    uint64_t measured = 0, early = 0;
    for (int step = 1; step <= 10000; step++) {
        count_allocations(true);
        bool is_measured = ph__run_statistics_profiles_next(&statistics);
        assert_false(step == 1 && is_measured);
        measured += is_measured;
        early += is_measured && step <= 20;
        ph__run_statistics_step(&statistics, &batch, is_measured);
        count_allocations(false);
    }
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
    assert_int_equal(statistics.taken_steps, 10000);
    assert_int_equal(statistics.profiled_steps, measured);
    assert_true(early >= 8);
    assert_true(measured >= 100 && measured <= 10000 / 40);
    assert_int_equal(statistics.coverage.num_seen[0], 2);
    ph__run_statistics_fini(&statistics);
}

static void a_pass_is_whole_unless_rows_were_left_out(void **state)
{
    (void)state;
    struct ph__run_statistics statistics = {0};
    assert_ok(ph__run_statistics_init(&features, &statistics));
    ph__run_statistics_pass(&statistics, 0.5);
    assert_false(statistics.coverage.is_over);
    ph__run_statistics_pass(&statistics, 1);
    assert_true(statistics.coverage.is_over);
    ph__run_statistics_fini(&statistics);
}

static void one_that_is_off_gathers_nothing(void **state)
{
    (void)state;
    struct ph__run_statistics statistics = {0};
    ph__run_statistics_step(&statistics, &batch, false);
    assert_false(ph__run_statistics_profiles_next(&statistics));
    struct ph__evaluation_details details = ph__run_statistics_valid(&statistics);
    assert_null(details.calibration);
    assert_null(details.coverage);
    ph__run_statistics_fini(&statistics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_the_first_step_is_measured_then_some_then_few),
        cmocka_unit_test(a_pass_is_whole_unless_rows_were_left_out),
        cmocka_unit_test(one_that_is_off_gathers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
