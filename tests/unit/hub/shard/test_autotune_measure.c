/* Measuring ends with times of all sizes: how long it takes is not looked at here. Whatever it took is given
 * back. */
#include "support/count_allocations.h"

#include <sys/resource.h>

#include "base/thread/cpu.h"
#include "hub/shard/autotune.h"
#include "support/test_support.h"

/* As long as a machine may need under sanitizers and other work; rounds of all sizes end sooner. */
static const struct ph__autotune_patience patience = {.thread_seconds = .1, .seconds = 250};

static const struct ph__kernels *kernels(void)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    return ph__kernels_for(isa);
}

static void check_times(const struct ph__autotune_times *times)
{
    assert_in_range(times->num_rounds, PH_AUTOTUNE_MIN_ROUNDS, PH_AUTOTUNE_MAX_ROUNDS);
    for (size_t round = 0; round < times->num_rounds; round++) {
        for (size_t i = 0; i < PH_AUTOTUNE_NUM_SIZES; i++)
            assert_true(times->seconds[round][i] > 0);
    }
}

static void check_path(enum ph__autotune_path path, bool is_non_temporal)
{
    struct ph__autotune_times times;
    const size_t num_descriptors = test_count_descriptors();
    assert_ok(ph__autotune_measure(path, kernels(), is_non_temporal, &patience, &times));
    check_times(&times);
    assert_int_equal(test_count_descriptors(), num_descriptors);
}

static void both_paths_can_be_measured(void **state)
{
    (void)state;
    check_path(PH_AUTOTUNE_SHARED, false);
    check_path(PH_AUTOTUNE_TCP, false);
    check_path(PH_AUTOTUNE_SHARED, true);
}

static void it_ends_when_patience_does(void **state)
{
    (void)state;
    const struct ph__autotune_patience none = {0};
    struct ph__autotune_times times;
    const size_t num_descriptors = test_count_descriptors();
    for (enum ph__autotune_path path = 0; path < PH_AUTOTUNE_NUM_PATHS; path++)
        assert_fails(ph__autotune_measure(path, kernels(), false, &none, &times), PH_ERROR_PEER, "too long");
    assert_int_equal(test_count_descriptors(), num_descriptors);
}

static void a_path_is_measured_once(void **state)
{
    struct ph__autotune tuning = {.kernels = kernels()};
    const struct ph__autotune_job job = {.path = PH_AUTOTUNE_TCP, .num_bytes = 64 << 20, .num_cores = 2};
    char text[PH_AUTOTUNE_TEXT_BYTES];
    (void)state;
    ph__autotune_describe(&tuning, &job, text);
    assert_string_equal(text, "not measured yet");
    const uint32_t chunk_bytes = ph__autotune_chunk_bytes(&tuning, &job);
    assert_true(chunk_bytes >= ph__autotune_size(0));
    ph__autotune_describe(&tuning, &job, text);
    print_message("%u bytes: %s\n", chunk_bytes, text);
    assert_non_null(strstr(text, "tcp"));
    tuning.kernels = NULL; /* a second time would crash */
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), chunk_bytes);
    assert_false(tuning.paths[PH_AUTOTUNE_SHARED].is_measured);
}

static void without_descriptors_it_is_the_default(void **state)
{
    struct ph__autotune tuning = {.kernels = kernels()};
    struct rlimit limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
    for (enum ph__autotune_path path = 0; path < PH_AUTOTUNE_NUM_PATHS; path++) {
        const struct ph__autotune_job job = {.path = path, .num_bytes = 64 << 20, .num_cores = 2};
        char text[PH_AUTOTUNE_TEXT_BYTES];
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        const uint32_t chunk_bytes = ph__autotune_chunk_bytes(&tuning, &job);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(chunk_bytes, PH_AUTOTUNE_DEFAULT_BYTES);
        ph__autotune_describe(&tuning, &job, text);
        assert_non_null(strstr(text, "could not be measured"));
    }
}

/* Those of the C library, while it looks for an address, end in errors of another kind or in none. */
static void each_allocation_may_fail(void **state)
{
    const size_t num_descriptors = test_count_descriptors();
    struct ph__autotune_times times;
    (void)state;
    for (enum ph__autotune_path path = 0; path < PH_AUTOTUNE_NUM_PATHS; path++) {
        bool has_failed = allocations_are_counted();
        for (int number = 1; has_failed; number++) {
            fail_allocation(number);
            const ph_status status = ph__autotune_measure(path, kernels(), false, &patience, &times);
            has_failed = allocation_has_failed();
            fail_allocation(0);
            assert_int_equal(test_count_descriptors(), num_descriptors);
            if (status == PH_OK)
                check_times(&times);
            else
                assert_true(status == PH_ERROR_MEMORY || status == PH_ERROR_PEER);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_paths_can_be_measured),
        cmocka_unit_test(it_ends_when_patience_does),
        cmocka_unit_test(a_path_is_measured_once),
        cmocka_unit_test(without_descriptors_it_is_the_default),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
