#include "train/folder/run_record.h"

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
    struct ph__run_record record = {0};
    assert_ok(ph__run_record_init(&features, &record));
    uint64_t measured = 0, early = 0;
    for (int step = 1; step <= 10000; step++) {
        count_allocations(true);
        bool is_measured = ph__run_record_profiles_next(&record);
        assert_false(step == 1 && is_measured);
        measured += is_measured;
        early += is_measured && step <= 20;
        ph__run_record_step(&record, &batch, is_measured);
        count_allocations(false);
    }
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
    assert_int_equal(record.taken_steps, 10000);
    assert_int_equal(record.profiled_steps, measured);
    assert_true(early >= 8);
    assert_true(measured >= 100 && measured <= 10000 / 40);
    assert_int_equal(record.coverage.num_seen[0], 2);
    ph__run_record_fini(&record);
}

static void a_pass_is_whole_unless_rows_were_left_out(void **state)
{
    (void)state;
    struct ph__run_record record = {0};
    assert_ok(ph__run_record_init(&features, &record));
    ph__run_record_pass(&record, 0.5);
    assert_false(record.coverage.is_over);
    ph__run_record_pass(&record, 1);
    assert_true(record.coverage.is_over);
    ph__run_record_fini(&record);
}

static void one_that_is_off_gathers_nothing(void **state)
{
    (void)state;
    struct ph__run_record record = {0};
    ph__run_record_step(&record, &batch, false);
    assert_false(ph__run_record_profiles_next(&record));
    struct ph__evaluation_details details = ph__run_record_valid(&record);
    assert_null(details.calibration);
    assert_null(details.coverage);
    ph__run_record_fini(&record);
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
