#include "base/thread/clock.h"

#include <limits.h>
#include <time.h>

#include "support/test_support.h"

static void monotonic_time_never_goes_back(void **state)
{
    (void)state;
    uint64_t former = ph__clock_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = ph__clock_ns();
        assert_true(now >= former);
        former = now;
    }
    assert_true(ph__clock_seconds() > 0);
}

static void the_time_of_day_is_that_of_the_c_library(void **state)
{
    (void)state;
    const time_t before = time(NULL);
    const uint64_t now = ph__clock_utc_ms();
    const time_t after = time(NULL);
    assert_in_range(now / 1000 + 1, (uint64_t)before, (uint64_t)after + 1); /* time() may lag by a tick */
}

static void what_is_left_until_a_deadline_is_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(ph__clock_ms_until(0), 0);
    assert_int_equal(ph__clock_ms_until(UINT64_MAX), INT_MAX);
    assert_in_range(ph__clock_ms_until(ph__clock_deadline(3600000)), 1, 3600000);
    assert_int_equal(ph__clock_ms_until(ph__clock_deadline(0)), 0);
    uint64_t deadline_ns;
    int left_ms;
    do { /* as long as it was not over before it was asked for */
        deadline_ns = ph__clock_ns() + 999999;
        left_ms = ph__clock_ms_until(deadline_ns);
    } while (ph__clock_ns() >= deadline_ns);
    assert_int_equal(left_ms, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_time_never_goes_back),
        cmocka_unit_test(what_is_left_until_a_deadline_is_rounded_up),
        cmocka_unit_test(the_time_of_day_is_that_of_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
