#include "comm/collective/comm_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"
#include "support/thread_ranks.h"

enum { WORLD = 4 };

static ph_status describe_oneself(struct ph_comm *comm, void *context)
{
    const size_t ranks_per_host = *(const size_t *)context, rank = ph_comm_rank(comm);
    char wanted[64];
    RANK_CHECK(ph_comm_world_size(comm) == WORLD);
    RANK_CHECK(ph_comm_ranks_per_host(comm) == ranks_per_host);
    RANK_CHECK(ph_comm_num_hosts(comm) == WORLD / ranks_per_host);
    snprintf(wanted, sizeof wanted, "threads, rank %zu of %d, host %zu of %zu", rank, WORLD,
        rank / ranks_per_host, WORLD / ranks_per_host);
    RANK_CHECK(strcmp(ph_comm_describe(comm), wanted) == 0);
    RANK_CHECK(ph__comm_world(comm)->own == rank);
    RANK_CHECK(ph__comm_host(comm)->own == rank % ranks_per_host);
    RANK_CHECK(ph__comm_peers(comm)->own == rank / ranks_per_host);
    return PH_OK;
}

static void ranks_know_where_they_are(void **state)
{
    (void)state;
    for (size_t ranks_per_host = 1; ranks_per_host <= WORLD; ranks_per_host *= 2)
        thread_ranks_run(
            &(struct thread_ranks){.world_size = WORLD, .options = {.ranks_per_host = ranks_per_host}},
            describe_oneself, &ranks_per_host, NULL);
    size_t all = WORLD;
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, describe_oneself, &all, NULL);
}

/* Whoever needs the instruction set says that there is none of that name, and all ranks hear it. */
static void ranks_meet_whatever_instruction_set_they_are_to_use(void **state)
{
    (void)state;
    size_t all = WORLD;
    const char *given = getenv("PHLOEM_ISA");
    char *former = given != NULL ? strdup(given) : NULL;
    assert_int_equal(setenv("PHLOEM_ISA", "abacus", 1), 0);
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, describe_oneself, &all, NULL);
    assert_int_equal(former != NULL ? setenv("PHLOEM_ISA", former, 1) : unsetenv("PHLOEM_ISA"), 0);
    free(former);
}

/* Four ranks beside each other, which keep one thread busy each, or as many as a test says. */
static ph_status count_the_crowd(struct ph_comm *comm, void *context)
{
    const uint64_t processors = comm->places.num_processors;
    (void)context;
    RANK_CHECK(comm->places.num_neighbours == WORLD);
    RANK_CHECK(comm->patience.is_crowded == (WORLD > processors));
    ph__comm_set_threads(comm, processors / WORLD + 1);
    RANK_CHECK(comm->patience.is_crowded);
    ph__comm_set_threads(comm, processors / WORLD);
    RANK_CHECK(!comm->patience.is_crowded);
    return PH_OK;
}

static void ranks_that_want_more_processors_than_there_are_are_crowded(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, count_the_crowd, NULL, NULL);
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .options = {.ranks_per_host = 1}},
        count_the_crowd, NULL, NULL);
}

/* ---- disagreement ---- */

static ph_status never_meet(struct ph_comm *comm, void *context)
{
    (void)comm;
    (void)context;
    return PH_OK;
}

static void check_refusal(const struct thread_ranks *ranks, const char *text)
{
    struct thread_rank_end ends[WORLD];
    thread_ranks_run(ranks, never_meet, NULL, ends);
    for (size_t rank = 0; rank < ranks->world_size; rank++) {
        assert_false(ends[rank].has_met);
        assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
        assert_string_equal(ends[rank].text, text);
        assert_int_equal(ends[rank].speaks, rank == 0);
    }
}

static void options_that_differ_are_refused_on_all_ranks(void **state)
{
    (void)state;
    const struct ph_comm_options timeouts[WORLD] = {[2] = {.timeout_seconds = 20}};
    const struct ph_comm_options hosts[WORLD] = {[3] = {.ranks_per_host = 2}};
    const struct ph_comm_options names[WORLD] = {[1] = {.transport = "mpich"}};
    const struct ph_comm_options same[WORLD] = {[1] = {.transport = "auto"}};
    size_t all = WORLD;
    check_refusal(&(struct thread_ranks){.world_size = WORLD, .of_rank = timeouts},
        "timeout_seconds differs between ranks 0 and 2");
    check_refusal(&(struct thread_ranks){.world_size = WORLD, .of_rank = hosts},
        "ranks_per_host differs between ranks 0 and 3");
    check_refusal(&(struct thread_ranks){.world_size = WORLD, .of_rank = names},
        "transport differs between ranks 0 and 1");
    thread_ranks_run(
        &(struct thread_ranks){.world_size = WORLD, .of_rank = same}, describe_oneself, &all, NULL);
}

/* Tasks come before options, also where a rank has failed. */
static void tasks_that_differ_are_refused_on_all_ranks(void **state)
{
    (void)state;
    const struct ph_comm_options mixed[WORLD] = {[0] = {.task = "phloem train"},
        [1] = {.task = "phloem train"},
        [2] = {.task = "phloem eval", .timeout_seconds = 10},
        [3] = {.task = "phloem train", .has_failed = true}};
    const struct ph_comm_options unnamed[WORLD] = {[1] = {.task = "phloem train"}};
    check_refusal(&(struct thread_ranks){.world_size = WORLD, .of_rank = mixed},
        "rank 2 runs 'phloem eval', but rank 0 runs 'phloem train': start one command with one mpirun");
    check_refusal(&(struct thread_ranks){.world_size = WORLD, .of_rank = unnamed},
        "rank 1 runs 'phloem train', but rank 0 runs '': start one command with one mpirun");
}

static void hosts_that_do_not_divide_the_world_are_refused(void **state)
{
    (void)state;
    check_refusal(&(struct thread_ranks){.world_size = 3, .options = {.ranks_per_host = 2}},
        "the number of ranks, 3, must be a multiple of ranks_per_host = 2");
}

static void a_timeout_that_is_no_time_is_refused(void **state)
{
    (void)state;
    check_refusal(&(struct thread_ranks){.world_size = 2, .options = {.timeout_seconds = -1}},
        "timeout_seconds must be from 0 to 1e9, not -1");
    check_refusal(&(struct thread_ranks){.world_size = 2, .options = {.timeout_seconds = INFINITY}},
        "timeout_seconds must be from 0 to 1e9, not inf");
}

/* A world whose rank r runs on the machine of that letter. */
static void place(struct ph__comm_places *places, const char *machines, size_t own, size_t ranks_per_host)
{
    size_t world_size = 0;
    while (machines[world_size] != '\0')
        world_size++;
    assert_ok(ph__comm_places_init(places, own, world_size));
    for (size_t rank = 0; rank < world_size; rank++) {
        struct ph__greeting *greeting = &places->greetings[rank];
        snprintf(greeting->host, sizeof greeting->host, "node-%c", machines[rank]);
        greeting->ranks_per_host = ranks_per_host;
        greeting->processors = (struct ph__processors){.mask = {3}, .most = 2};
    }
}

/* wanted: the members, a digit each. */
static void check_group(const struct ph__group *group, size_t own, const char *wanted)
{
    assert_int_equal(group->size, strlen(wanted));
    assert_int_equal(group->own, own);
    for (size_t member = 0; member < group->size; member++)
        assert_int_equal(group->ranks[member], wanted[member] - '0');
}

static void hosts_are_counted_in_the_order_of_their_ranks(void **state)
{
    (void)state;
    struct ph__comm_places places;
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
    struct ph__comm_places places;
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
    struct ph__comm_places places;
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
    struct ph__comm_places places;
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
    struct ph__comm_places places;
    place(&places, "aabab", 0, 0);
    assert_fails(ph__comm_places_find(&places), PH_ERROR_CONFIG,
        "ranks 0 and 3 are on one host and rank 2, between them, is on another: number them host by host "
        "(mpirun --map-by slot");
    ph__comm_places_fini(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_know_where_they_are),
        cmocka_unit_test(ranks_meet_whatever_instruction_set_they_are_to_use),
        cmocka_unit_test(ranks_that_want_more_processors_than_there_are_are_crowded),
        cmocka_unit_test(options_that_differ_are_refused_on_all_ranks),
        cmocka_unit_test(tasks_that_differ_are_refused_on_all_ranks),
        cmocka_unit_test(hosts_that_do_not_divide_the_world_are_refused),
        cmocka_unit_test(a_timeout_that_is_no_time_is_refused),
        cmocka_unit_test(hosts_are_counted_in_the_order_of_their_ranks),
        cmocka_unit_test(hosts_may_differ_in_size),
        cmocka_unit_test(hosts_are_emulated_on_one_machine),
        cmocka_unit_test(two_boots_of_one_name_are_two_machines),
        cmocka_unit_test(ranks_that_are_dealt_out_to_hosts_in_turn_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
