/* The rule by which a team gives way, on a clock of the test's. */
#include "base/thread/parallel_width.h"
#include "support/test_support.h"

#define MS ((uint64_t)1000000)

static const int64_t large_loss_ns = 100 * 1000000;

static void gains_keep_all_workers(void **state)
{
    (void)state;
    struct ph__team_width width;
    ph__team_width_init(&width, 3, 0);
    for (uint64_t now = 0; now < 1000 * MS; now += MS) {
        assert_int_equal(ph__team_width_before(&width, now), 3);
        ph__team_width_after(&width, now, 500000, 0);
    }
}

static void a_loss_that_gains_have_paid_for_costs_no_worker(void **state)
{
    (void)state;
    struct ph__team_width width;
    ph__team_width_init(&width, 1, 0);
    for (uint64_t i = 0; i < 20; i++)
        ph__team_width_after(&width, i * MS, 1000000, 0);
    ph__team_width_after(&width, 20 * MS, 0, PH_WIDTH_MOST_CREDIT_NS / PH_WIDTH_LOSS_WEIGHT);
    assert_int_equal(width.num_active, 1);
    ph__team_width_after(&width, 21 * MS, 0, 1);
    assert_int_equal(width.num_active, 0);
}

static void each_large_loss_costs_one_worker(void **state)
{
    (void)state;
    struct ph__team_width width;
    ph__team_width_init(&width, 2, 0);
    for (size_t left = 2; left > 0; left--) {
        assert_int_equal(width.num_active, left);
        ph__team_width_after(&width, 1, 0, large_loss_ns);
    }
    assert_int_equal(width.num_active, 0);
    ph__team_width_after(&width, 2, 0, large_loss_ns);
    assert_int_equal(width.num_active, 0);
}

/* Runs the width from `now` on: a region takes 1 ms, and loses as soon as a worker takes part. Returns the
 * first trial. */
static uint64_t next_trial(struct ph__team_width *width, uint64_t now)
{
    while (ph__team_width_before(width, now) == 0)
        now += MS;
    ph__team_width_after(width, now, 0, large_loss_ns);
    return now;
}

static void pauses_double_while_trials_fail(void **state)
{
    (void)state;
    struct ph__team_width width;
    ph__team_width_init(&width, 1, 0);
    ph__team_width_after(&width, 0, 0, large_loss_ns);
    uint64_t before = 0, pause = width.pause_ns;
    assert_int_equal(pause, 2 * PH_WIDTH_LEAST_PAUSE_NS); /* the team was new */
    for (int i = 0; i < 12; i++) {
        const uint64_t now = next_trial(&width, before);
        assert_int_equal(now - before, pause);
        pause = 2 * pause < PH_WIDTH_MOST_PAUSE_NS ? 2 * pause : PH_WIDTH_MOST_PAUSE_NS;
        before = now;
    }
    assert_int_equal(pause, PH_WIDTH_MOST_PAUSE_NS);
}

static void a_trial_that_lasts_shortens_the_next_pause(void **state)
{
    (void)state;
    struct ph__team_width width;
    uint64_t now = 0;
    ph__team_width_init(&width, 1, 0);
    ph__team_width_after(&width, 0, 0, large_loss_ns);
    for (int i = 0; i < 12; i++)
        now = next_trial(&width, now);
    now += PH_WIDTH_MOST_PAUSE_NS;
    assert_int_equal(ph__team_width_before(&width, now), 1);
    now += PH_WIDTH_MOST_PAUSE_NS;
    ph__team_width_after(&width, now, 0, large_loss_ns);
    assert_int_equal(width.num_active, 0);
    assert_int_equal(width.pause_ns, PH_WIDTH_LEAST_PAUSE_NS);
}

static void workers_come_back_ever_faster(void **state)
{
    (void)state;
    struct ph__team_width width;
    ph__team_width_init(&width, 16, 0);
    for (int i = 0; i < 16; i++)
        ph__team_width_after(&width, 0, 0, large_loss_ns);
    assert_int_equal(width.num_active, 0);
    assert_int_equal(width.pause_ns, PH_WIDTH_MOST_PAUSE_NS);
    uint64_t now = 0;
    while (ph__team_width_before(&width, now) < 16)
        now += MS;
    assert_true(now < 4 * (uint64_t)PH_WIDTH_MOST_PAUSE_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gains_keep_all_workers),
        cmocka_unit_test(a_loss_that_gains_have_paid_for_costs_no_worker),
        cmocka_unit_test(each_large_loss_costs_one_worker),
        cmocka_unit_test(pauses_double_while_trials_fail),
        cmocka_unit_test(a_trial_that_lasts_shortens_the_next_pause),
        cmocka_unit_test(workers_come_back_ever_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
