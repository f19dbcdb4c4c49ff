#include "base/clock.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_time_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
