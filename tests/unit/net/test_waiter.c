/* How a thread waits: when it spins, offers its processor or sleeps. */
#include "net/waiter.h"

#include <sched.h>
#include <time.h>

#include "support/test_support.h"

enum { SLICE_MS = 2 };

static size_t num_yields;

/* In place of the system's: another program takes the processor for its slice. */
int sched_yield(void)
{
    const struct timespec slice = {.tv_nsec = SLICE_MS * 1000000L};
    num_yields++;
    return nanosleep(&slice, NULL);
}

static void who_loses_its_processor_to_others_offers_it_once_a_wait(void **state)
{
    (void)state;
    struct ph_waiter waiter;
    ph__waiter_init(&waiter, PH_WAIT_AUTO, true);
    num_yields = 0;
    for (size_t wait = 1; wait <= 3; wait++) {
        ph__waiter_reset(&waiter);
        assert_false(ph__waiter_should_sleep(&waiter));
        assert_true(ph__waiter_should_sleep(&waiter));
        assert_int_equal(num_yields, wait);
    }
}

static void who_is_no_crowd_offers_nothing(void **state)
{
    (void)state;
    static const enum ph_wait_policy policies[] = {PH_WAIT_AUTO, PH_WAIT_SPIN_THEN_SLEEP};
    num_yields = 0;
    for (size_t i = 0; i < 2; i++) {
        struct ph_waiter waiter;
        ph__waiter_init(&waiter, policies[i], i > 0); /* a policy that was chosen asks for no crowd */
        assert_false(ph__waiter_should_sleep(&waiter));
        while (!ph__waiter_should_sleep(&waiter)) {
        }
    }
    assert_int_equal(num_yields, 0);
}

static void who_is_to_spin_or_to_sleep_does(void **state)
{
    (void)state;
    struct ph_waiter spinning, sleeping;
    ph__waiter_init(&spinning, PH_WAIT_SPIN, true);
    ph__waiter_init(&sleeping, PH_WAIT_SLEEP, true);
    num_yields = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_false(ph__waiter_should_sleep(&spinning));
        assert_true(ph__waiter_should_sleep(&sleeping));
    }
    assert_int_equal(num_yields, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_loses_its_processor_to_others_offers_it_once_a_wait),
        cmocka_unit_test(who_is_no_crowd_offers_nothing),
        cmocka_unit_test(who_is_to_spin_or_to_sleep_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
