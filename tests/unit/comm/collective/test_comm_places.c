#include "comm/collective/comm_places.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

/* A world whose rank r runs on the machine of that letter. */
static void place(struct ph_comm_places *places, const char *machines, size_t own, size_t ranks_per_host)
{
    size_t world_size = 0;
    while (machines[world_size] != '\0')
        world_size++;
    assert_ok(ph__comm_places_init(places, own, world_size));
    for (size_t rank = 0; rank < world_size; rank++) {
        struct ph_greeting *greeting = &places->greetings[rank];
        snprintf(greeting->host, sizeof greeting->host, "node-%c", machines[rank]);
        greeting->ranks_per_host = ranks_per_host;
        greeting->processors = (struct ph_processors){.mask = {3}, .most = 2};
    }
}

/* wanted: the members, a digit each. */
static void check_group(const struct ph_group *group, size_t own, const char *wanted)
{
    assert_int_equal(group->size, strlen(wanted));
    assert_int_equal(group->own, own);
    for (size_t member = 0; member < group->size; member++)
        assert_int_equal(group->ranks[member], wanted[member] - '0');
}

static void hosts_are_counted_in_the_order_of_their_ranks(void **state)
{
    (void)state;
    struct ph_comm_places places;
    place(&places, "bbaa", 3, 0);
    assert_ok(ph__comm_places_find(&places));
    assert_int_equal(places.num_hosts, 2);
    assert_int_equal(places.own_host, 1);
    assert_int_equal(places.ranks_per_host, 2);
    check_group(&places.world, 3, "0123");
    check_group(&places.host, 1, "23");
    check_group(&places.peers, 1, "13");
    assert_int_equal(places.num_neighbours, 2);
    assert_int_equal(places.num_processors, 2);
    ph__comm_places_fini(&places);
}

static void hosts_may_differ_in_size(void **state)
{
    (void)state;
    struct ph_comm_places places;
    place(&places, "aaabccc", 5, 0);
    assert_ok(ph__comm_places_find(&places));
    assert_int_equal(places.num_hosts, 3);
    assert_int_equal(places.ranks_per_host, 0);
    check_group(&places.host, 1, "456");
    check_group(&places.peers, 1, "15"); /* host b has no second rank */
    ph__comm_places_fini(&places);
}

static void hosts_are_emulated_on_one_machine(void **state)
{
    (void)state;
    struct ph_comm_places places;
    place(&places, "aaaaaa", 4, 3);
    assert_ok(ph__comm_places_find(&places));
    assert_int_equal(places.num_hosts, 2);
    assert_int_equal(places.own_host, 1);
    assert_int_equal(places.ranks_per_host, 3);
    check_group(&places.host, 1, "345");
    check_group(&places.peers, 1, "14");
    assert_int_equal(places.num_neighbours, 6);
    ph__comm_places_fini(&places);
}

static void two_boots_of_one_name_are_two_machines(void **state)
{
    (void)state;
    struct ph_comm_places places;
    place(&places, "aa", 0, 0);
    snprintf(places.greetings[1].boot, sizeof places.greetings[1].boot, "another");
    assert_ok(ph__comm_places_find(&places));
    assert_int_equal(places.num_hosts, 2);
    assert_int_equal(places.num_neighbours, 1);
    assert_true(ph__comm_places_are_neighbours(&places, 1, 1));
    assert_false(ph__comm_places_are_neighbours(&places, 0, 1));
    ph__comm_places_fini(&places);
}

static void ranks_that_are_dealt_out_to_hosts_in_turn_are_refused(void **state)
{
    (void)state;
    struct ph_comm_places places;
    place(&places, "aabab", 0, 0);
    assert_fails(ph__comm_places_find(&places), PH_ERROR_CONFIG,
        "ranks 0 and 3 are on one host and rank 2, between them, is on another: number them host by host "
        "(mpirun --map-by slot");
    ph__comm_places_fini(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_counted_in_the_order_of_their_ranks),
        cmocka_unit_test(hosts_may_differ_in_size),
        cmocka_unit_test(hosts_are_emulated_on_one_machine),
        cmocka_unit_test(two_boots_of_one_name_are_two_machines),
        cmocka_unit_test(ranks_that_are_dealt_out_to_hosts_in_turn_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
