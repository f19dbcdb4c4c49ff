/* Bandwidths from marks of transfers whose networks are known: plain, with token buckets, shared. */
#include "comm/probe/probe_measure.h"

#include <math.h>

#include "support/test_support.h"

#define MBIT (1e6 / 8 / 1e9) /* bytes a nanosecond */

static double bandwidth(const struct ph__netprobe_mark *marks)
{
    bool is_steady;
    return ph__netprobe_bandwidth(marks, &is_steady);
}

static bool is_steady(const struct ph__netprobe_mark *marks)
{
    bool is_steady;
    ph__netprobe_bandwidth(marks, &is_steady);
    return is_steady;
}

/* Fills marks of a transfer that arrives at `rate`, after a burst that takes no time and a start. */
static void arrive(double bytes, double rate, double burst, double start_ns, struct ph__netprobe_mark *marks)
{
    for (size_t i = 0; i < PH_NETPROBE_NUM_MARKS; i++) {
        const double part = bytes * (double)(i + 1) / PH_NETPROBE_NUM_MARKS;
        marks[i].bytes = (uint64_t)part;
        marks[i].ns = (uint64_t)(start_ns + fmax(0, part - burst) / rate);
    }
}

static void a_bandwidth_is_the_slope_behind_start_and_burst(void **state)
{
    (void)state;
    struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS];
    arrive(1e6, 200 * MBIT, 0, 0, marks);
    assert_near(bandwidth(marks), 200 * MBIT, 0, 1e-3);
    assert_true(is_steady(marks));
    arrive(1e6, 200 * MBIT, 4e5, 3e7, marks);
    assert_near(bandwidth(marks), 200 * MBIT, 0, 1e-3);
    assert_true(is_steady(marks));
}

static void a_burst_beyond_the_half_is_not_steady(void **state)
{
    (void)state;
    struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS];
    arrive(1e6, 200 * MBIT, 6e5, 0, marks);
    assert_false(is_steady(marks));
    arrive(1e6, 200 * MBIT, 1.1e6, 0, marks); /* all at once */
    assert_false(is_steady(marks));
    assert_true(isnan(bandwidth(marks)));
}

static void one_arrival_for_all_marks_gives_the_mean(void **state)
{
    (void)state;
    struct ph__netprobe_mark marks[PH_NETPROBE_NUM_MARKS];
    for (size_t i = 0; i < PH_NETPROBE_NUM_MARKS; i++)
        marks[i] = (struct ph__netprobe_mark){1000, 500};
    assert_near(bandwidth(marks), 2, 0, 0);
    assert_false(is_steady(marks));
}

static void no_marks_give_no_bandwidth(void **state)
{
    (void)state;
    const struct ph__netprobe_mark none[PH_NETPROBE_NUM_MARKS] = {{0}};
    assert_true(isnan(bandwidth(none)));
}

static void flows_that_share_a_link_have_its_rate_together(void **state)
{
    (void)state;
    struct ph__netprobe_answer answers[4] = {{.error = ""}};
    for (size_t i = 0; i < 4; i++)
        arrive(1e6, 50 * MBIT, 0, 0, answers[i].marks);
    assert_near(ph__netprobe_joint_bandwidth(answers, 4), 200 * MBIT, 0, 1e-2);
    /* Two flows: one has 3/4 of 200 Mb/s until it ends, then the other has all.
     * Between marks, its arrivals are not known. */
    arrive(1e6, 150 * MBIT, 0, 0, answers[0].marks);
    for (size_t i = 0; i < PH_NETPROBE_NUM_MARKS; i++) {
        const double part = 1e6 * (double)(i + 1) / PH_NETPROBE_NUM_MARKS, first = 1e6 / 3;
        answers[1].marks[i].bytes = (uint64_t)part;
        answers[1].marks[i].ns =
            (uint64_t)(part < first ? part / (50 * MBIT)
                                    : first / (50 * MBIT) + (part - first) / (200 * MBIT));
    }
    assert_near(ph__netprobe_joint_bandwidth(answers, 2), 200 * MBIT, 0, .03);
}

static void flows_that_stalled_late_do_not_lower_what_was_shared_before(void **state)
{
    (void)state;
    struct ph__netprobe_answer answers[2] = {{.error = ""}};
    arrive(1e6, 100 * MBIT, 0, 0, answers[0].marks);
    arrive(1e6, 100 * MBIT, 0, 0, answers[1].marks);
    answers[1].marks[PH_NETPROBE_NUM_MARKS - 1].ns += 400000000;
    assert_near(ph__netprobe_joint_bandwidth(answers, 2), 200 * MBIT, 0, .07);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bandwidth_is_the_slope_behind_start_and_burst),
        cmocka_unit_test(a_burst_beyond_the_half_is_not_steady),
        cmocka_unit_test(one_arrival_for_all_marks_gives_the_mean),
        cmocka_unit_test(no_marks_give_no_bandwidth),
        cmocka_unit_test(flows_that_share_a_link_have_its_rate_together),
        cmocka_unit_test(flows_that_stalled_late_do_not_lower_what_was_shared_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
