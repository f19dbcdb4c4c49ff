#include "base/clock.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_time_never_goes_back),
        cmocka_unit_test(the_time_of_day_is_that_of_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
