#include "schedule_world.h"

#include "support/test_support.h"

/* 8 Gb/s are a byte a nanosecond; a message takes 1 us of each side, and 5 us for each link. */
static const char star[] = "version: 1\nkind: star\nhosts: 4\nhost: {gbits_per_s: 8, latency_us: 5}\n";
static const char racks[] = "version: 1\nkind: racks\nhosts: 8\nhost: {gbits_per_s: 8, latency_us: 0}\n"
                            "rack: {hosts: 4, uplinks: 1, gbits_per_s: 2, latency_us: 0}\n"
                            "messages: {send_us: 0, receive_us: 0}\n";

static struct schedule_outcome simulate(
    const char *topology, enum schedule_kind kind, size_t bytes, enum schedule_order by)
{
    struct ph__fabric fabric = schedule_fabric(topology);
    uint32_t order[8];
    const struct schedule schedule = {kind, (uint32_t)fabric.num_hosts, bytes, order};
    struct schedule_outcome outcome;
    schedule_fill_order(by, schedule.num_ranks, 4, order);
    assert_ok(schedule_simulate(&fabric, &schedule, 0, &outcome));
    ph__fabric_fini(&fabric);
    return outcome;
}

static void a_ring_takes_its_steps_one_after_the_other(void **state)
{
    (void)state;
    const struct schedule_outcome ring = simulate(star, SCHEDULE_RING, 4000, ORDER_GROUPED);
    assert_near(ring.seconds * 1e6, 6 * (1 + 1 + 10 + 1), 1e-3, 0);
    assert_int_equal(ring.num_messages, 6 * 4);
}

/* The root's two messages begin a microsecond apart, and share its link: the first, which another one
 * follows, loses as long as it shares. */
static void a_tree_takes_its_depth(void **state)
{
    (void)state;
    const struct schedule_outcome tree = simulate(star, SCHEDULE_TREE, 4000, ORDER_GROUPED);
    assert_near(tree.seconds * 1e6, (1 + 1 + 2 * 3 + 10 + 1) + (1 + 4 + 10 + 1), 1e-3, 0);
    assert_int_equal(tree.num_messages, 3);
}

/* Blocks of 1000 bytes, a microsecond each: the ring sends three, two and one, Bruck two twice. */
static void blocks_that_are_passed_on_take_their_steps(void **state)
{
    (void)state;
    const struct schedule_outcome ring = simulate(star, SCHEDULE_RING_ALLTOALL, 4000, ORDER_GROUPED);
    const struct schedule_outcome bruck = simulate(star, SCHEDULE_BRUCK, 4000, ORDER_GROUPED);
    assert_near(ring.seconds * 1e6, 3 * (1 + 10 + 1) + 3 + 2 + 1, 1e-3, 0);
    assert_near(bruck.seconds * 1e6, 2 * (1 + 2 + 10 + 1), 1e-3, 0);
    assert_int_equal(ring.num_messages, 3 * 4);
    assert_int_equal(bruck.num_messages, 2 * 4);
}

/* A rack's link carries one message of 100 kB at a time, or four, at a quarter of a host's rate. */
static void an_order_decides_how_many_messages_leave_a_rack(void **state)
{
    (void)state;
    const double one_us = 14 * 100 * 4, four_us = 4 * one_us;
    assert_near(simulate(racks, SCHEDULE_RING, 800000, ORDER_GROUPED).seconds * 1e6, one_us, 1e-3, 0);
    assert_near(simulate(racks, SCHEDULE_RING, 800000, ORDER_INTERLEAVED).seconds * 1e6, four_us, 1e-3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_takes_its_steps_one_after_the_other),
        cmocka_unit_test(a_tree_takes_its_depth),
        cmocka_unit_test(blocks_that_are_passed_on_take_their_steps),
        cmocka_unit_test(an_order_decides_how_many_messages_leave_a_rack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
