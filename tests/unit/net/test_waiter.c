/* How a thread waits: when it spins, offers its processor or sleeps. */
#include "net/waiter.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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
    struct ph__waiter waiter;
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
    static const enum ph__wait_policy policies[] = {PH_WAIT_AUTO, PH_WAIT_SPIN_THEN_SLEEP};
    num_yields = 0;
    for (size_t i = 0; i < 2; i++) {
        struct ph__waiter waiter;
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
    struct ph__waiter spinning, sleeping;
    ph__waiter_init(&spinning, PH_WAIT_SPIN, true);
    ph__waiter_init(&sleeping, PH_WAIT_SLEEP, true);
    num_yields = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_false(ph__waiter_should_sleep(&spinning));
        assert_true(ph__waiter_should_sleep(&sleeping));
    }
    assert_int_equal(num_yields, 0);
}

/* ---- doorbells: a ring is seen by poll(), a ringer never waits, and an end that closes is noticed ---- */

static bool is_rung(int end)
{
    struct pollfd polled = {.fd = end, .events = POLLIN};
    return poll(&polled, 1, 0) == 1;
}

static void a_ring_wakes_the_other_end_once(void **state)
{
    (void)state;
    int ends[2];
    assert_ok(ph__doorbell_create(ends));
    assert_false(is_rung(ends[0]));
    assert_true(ph__doorbell_answer(ends[0]));
    ph__doorbell_ring(ends[1]);
    ph__doorbell_ring(ends[1]);
    assert_true(is_rung(ends[0]));
    assert_false(is_rung(ends[1]));
    assert_true(ph__doorbell_answer(ends[0]));
    assert_false(is_rung(ends[0]));
    ph__doorbell_ring(ends[0]); /* the other way */
    assert_true(is_rung(ends[1]));
    close(ends[0]);
    close(ends[1]);
}

static void ringing_never_blocks(void **state)
{
    (void)state;
    int ends[2];
    assert_ok(ph__doorbell_create(ends));
    for (size_t i = 0; i < 1000000; i++) /* beyond what any socket keeps */
        ph__doorbell_ring(ends[1]);
    size_t num_answers = 0;
    for (; is_rung(ends[0]); num_answers++)
        assert_true(ph__doorbell_answer(ends[0]));
    assert_in_range(num_answers, 1, 1000000);
    ph__doorbell_ring(ends[1]);
    assert_true(is_rung(ends[0]));
    close(ends[0]);
    close(ends[1]);
}

/* The other process may write to its end as it likes. */
static void an_answer_does_not_wait_for_one_who_rings_without_end(void **state)
{
    (void)state;
    static const char noise[65536];
    int ends[2];
    assert_ok(ph__doorbell_create(ends));
    assert_int_equal(send(ends[1], noise, sizeof noise, MSG_DONTWAIT), sizeof noise);
    assert_true(ph__doorbell_answer(ends[0]));
    assert_true(is_rung(ends[0])); /* it took some, not all */
    close(ends[0]);
    close(ends[1]);
}

static void an_end_that_closed_is_noticed(void **state)
{
    (void)state;
    int ends[2];
    assert_ok(ph__doorbell_create(ends));
    ph__doorbell_ring(ends[1]);
    close(ends[1]);
    assert_true(is_rung(ends[0]));
    assert_true(ph__doorbell_answer(ends[0])); /* the ring that came before */
    assert_true(is_rung(ends[0]));
    assert_false(ph__doorbell_answer(ends[0]));
    assert_false(ph__doorbell_answer(ends[0]));
    ph__doorbell_ring(ends[0]); /* to nobody: neither a signal nor an error */
    close(ends[0]);
}

static void an_end_that_closed_without_answering_is_noticed(void **state)
{
    (void)state;
    int ends[2];
    assert_ok(ph__doorbell_create(ends));
    ph__doorbell_ring(ends[0]);
    close(ends[1]);
    assert_false(ph__doorbell_answer(ends[0]));
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_loses_its_processor_to_others_offers_it_once_a_wait),
        cmocka_unit_test(who_is_no_crowd_offers_nothing),
        cmocka_unit_test(who_is_to_spin_or_to_sleep_does),
        cmocka_unit_test(a_ring_wakes_the_other_end_once),
        cmocka_unit_test(ringing_never_blocks),
        cmocka_unit_test(an_answer_does_not_wait_for_one_who_rings_without_end),
        cmocka_unit_test(an_end_that_closed_is_noticed),
        cmocka_unit_test(an_end_that_closed_without_answering_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
