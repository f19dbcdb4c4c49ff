#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "support/thread_ranks.h"

enum { WORLD = 4 };

static ph_status sum_of(struct ph_comm *comm, const char *what)
{
    float data[16] = {0};
    uint64_t ticket;
    PH_TRY(ph__comm_all_reduce_start(comm, &(struct ph__comm_call){0, what}, ph__comm_world(comm),
        PH_WIRE_FP32, 4, 4, data, NULL, &ticket));
    return ph__comm_wait(comm, ticket);
}

/* Step after step, until something ends it. */
static ph_status sum_again_and_again(struct ph_comm *comm, void *context)
{
    (void)context;
    for (;;)
        PH_TRY(sum_of(comm, "dense gradients"));
}

static size_t count_speakers(const struct thread_rank_end *ends, size_t count)
{
    size_t speakers = 0;
    for (size_t rank = 0; rank < count; rank++)
        speakers += ends[rank].speaks;
    return speakers;
}

/* ---- death ---- */

static void die(size_t rank, size_t message)
{
    struct thread_rank_end ends[WORLD];
    const struct thread_fault death = {.kind = THREAD_DIES, .rank = rank, .count = message};
    char wanted[64];
    snprintf(wanted, sizeof wanted, "rank %zu has died", rank);
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .faults = &death, .num_faults = 1},
        sum_again_and_again, NULL, ends);
    for (size_t r = 0; r < WORLD; r++) {
        assert_int_equal(ends[r].status, PH_ERROR_PEER);
        assert_string_equal(ends[r].text, wanted);
        assert_int_equal(ends[r].speaks, r == (rank == 0 ? 1 : 0));
    }
}

static void a_death_ends_all_ranks_and_the_lowest_that_lives_tells_it(void **state)
{
    (void)state;
    for (size_t rank = 0; rank < WORLD; rank++)
        for (size_t message = 0; message < 25; message += 8)
            die(rank, message);
}

/* ---- silence ---- */

static ph_status meet_at_a_barrier(struct ph_comm *comm, void *context)
{
    (void)context;
    return ph__comm_barrier(comm);
}

static void a_silent_rank_is_waited_for_so_long_and_then_named(void **state)
{
    (void)state;
    struct thread_rank_end ends[WORLD];
    const struct thread_fault death = {.kind = THREAD_DIES, .rank = 2};
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD,
                         .options = {.timeout_seconds = .25},
                         .faults = &death,
                         .num_faults = 1,
                         .is_unwatched = true},
        meet_at_a_barrier, NULL, ends);
    for (size_t rank = 0; rank < WORLD; rank++) {
        char wanted[96];
        snprintf(wanted, sizeof wanted, "barrier timed out: rank %zu has waited 0.25 s for rank 2 (process ",
            rank);
        assert_int_equal(ends[rank].status, PH_ERROR_PEER);
        if (rank != 2)
            assert_ptr_equal(strstr(ends[rank].text, wanted), ends[rank].text);
        assert_int_equal(ends[rank].speaks, rank == 0);
    }
    assert_non_null(strstr(ends[2].text, " and 2 others"));
}

/* Rank 1 computes, polling, and never takes part in the sum. */
static ph_status wait_for_rank_one(struct ph_comm *comm, void *context)
{
    (void)context;
    if (ph_comm_rank(comm) != 1)
        return sum_of(comm, "dense gradients");
    for (;;)
        PH_TRY(ph__comm_progress(comm));
}

static void a_rank_that_is_waited_for_in_vain_hears_it_while_it_computes(void **state)
{
    (void)state;
    struct thread_rank_end ends[WORLD];
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .options = {.timeout_seconds = .25}},
        wait_for_rank_one, NULL, ends);
    for (size_t rank = 0; rank < WORLD; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_PEER);
        assert_string_equal(ends[rank].text, ends[0].text);
        assert_non_null(strstr(ends[rank].text, "dense gradients timed out: rank "));
        assert_non_null(strstr(ends[rank].text, " for rank 1 (process"));
        assert_int_equal(ends[rank].speaks, rank == 0);
    }
}

static void a_rank_that_is_slow_is_waited_for(void **state)
{
    (void)state;
    const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = 1, .count = 2000};
    thread_ranks_run(&(struct thread_ranks){.world_size = 3, .faults = &slow, .num_faults = 1},
        meet_at_a_barrier, NULL, NULL);
}

static void a_rank_that_does_not_come_to_the_meeting_is_named(void **state)
{
    (void)state;
    struct thread_rank_end ends[3];
    const struct thread_fault death = {.kind = THREAD_DIES, .rank = 1, .is_early = true};
    thread_ranks_run(
        &(struct thread_ranks){
            .world_size = 3, .options = {.timeout_seconds = .25}, .faults = &death, .num_faults = 1},
        meet_at_a_barrier, NULL, ends);
    for (size_t rank = 0; rank < 3; rank += 2) {
        assert_false(ends[rank].has_met);
        assert_int_equal(ends[rank].speaks, rank == 0);
        assert_int_equal(ends[rank].status, PH_ERROR_PEER);
        assert_non_null(strstr(ends[rank].text, "meeting of the ranks timed out: rank "));
        assert_non_null(strstr(ends[rank].text, " for rank 1"));
    }
}

/* ---- leaving ---- */

enum { MEETING_MESSAGES = 2 * (WORLD - 1) }; /* of a rank: it receives first, then it sends */

static ph_status leave(struct ph_comm *comm, void *context)
{
    (void)context;
    return ph_comm_leave(comm);
}

/* Also when all have come to leave: until it has said in the second meeting that it was still there. */
static void a_rank_that_dies_before_it_has_left_ends_the_others(void **state)
{
    (void)state;
    for (size_t message = 0; message <= MEETING_MESSAGES + WORLD - 1; message++) {
        struct thread_rank_end ends[WORLD];
        const struct thread_fault death = {.kind = THREAD_DIES, .rank = message % WORLD, .count = message};
        char wanted[64];
        snprintf(wanted, sizeof wanted, "rank %zu has died", death.rank);
        thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .faults = &death, .num_faults = 1},
            leave, NULL, ends);
        for (size_t rank = 0; rank < WORLD; rank++) {
            if (rank == death.rank)
                continue;
            assert_int_equal(ends[rank].status, PH_ERROR_PEER);
            assert_string_equal(ends[rank].text, wanted);
            assert_int_equal(ends[rank].speaks, rank == (death.rank == 0 ? 1 : 0));
        }
    }
}

static void a_rank_that_does_not_leave_is_waited_for_so_long(void **state)
{
    (void)state;
    struct thread_rank_end ends[WORLD];
    const struct thread_fault death = {.kind = THREAD_DIES, .rank = 2, .count = MEETING_MESSAGES};
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD,
                         .options = {.timeout_seconds = .25},
                         .faults = &death,
                         .num_faults = 1,
                         .is_unwatched = true},
        leave, NULL, ends);
    for (size_t rank = 0; rank < WORLD; rank++) {
        char wanted[96];
        snprintf(wanted, sizeof wanted,
            "the end of the job timed out: rank %zu has waited 0.25 s for rank 2 (process ", rank);
        assert_int_equal(ends[rank].status, PH_ERROR_PEER);
        if (rank != 2)
            assert_ptr_equal(strstr(ends[rank].text, wanted), ends[rank].text);
    }
}

static ph_status leave_again(struct ph_comm *comm, void *context)
{
    (void)context;
    PH_TRY(ph_comm_leave(comm));
    const uint64_t num_operations = ph__comm_counters(comm).num_operations;
    PH_TRY(ph_comm_leave(comm));
    RANK_CHECK(ph__comm_counters(comm).num_operations == num_operations);
    return PH_OK;
}

static void who_has_left_does_not_leave_again(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, leave_again, NULL, NULL);
}

/* ---- errors of a rank's own ---- */

/* Ranks that fail by themselves, as bits. */
static ph_status read_bad_data(struct ph_comm *comm, void *context)
{
    const unsigned *who_fails = context;
    PH_TRY(sum_of(comm, "dense gradients"));
    if (*who_fails >> ph_comm_rank(comm) & 1)
        return ph_fail(PH_ERROR_DATA, "train.csv: line %zu is empty", ph_comm_rank(comm) + 10);
    return sum_again_and_again(comm, NULL);
}

static void what_one_rank_fails_with_all_end_with(void **state)
{
    (void)state;
    struct thread_rank_end ends[WORLD];
    for (size_t failing = 0; failing < WORLD; failing++) {
        unsigned who_fails = 1u << failing;
        char wanted[64];
        snprintf(wanted, sizeof wanted, "train.csv: line %zu is empty", failing + 10);
        thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, read_bad_data, &who_fails, ends);
        for (size_t rank = 0; rank < WORLD; rank++) {
            assert_int_equal(ends[rank].status, PH_ERROR_DATA);
            assert_string_equal(ends[rank].text, wanted);
            assert_int_equal(ends[rank].speaks, rank == failing);
        }
    }
}

static void of_ranks_that_fail_at_once_one_tells_it(void **state)
{
    (void)state;
    struct thread_rank_end ends[WORLD];
    for (unsigned who_fails = 1; who_fails < 1u << WORLD; who_fails++) {
        thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, read_bad_data, &who_fails, ends);
        assert_int_equal(count_speakers(ends, WORLD), 1);
        for (size_t rank = 0; rank < WORLD; rank++)
            assert_int_equal(ends[rank].status, PH_ERROR_DATA);
    }
}

/* ---- the transport ---- */

static void fail_a_transport(struct thread_fault fault, const char *text)
{
    struct thread_rank_end ends[WORLD];
    char who[64];
    snprintf(who, sizeof who, "dense gradients: between rank %zu and rank ", fault.rank);
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .faults = &fault, .num_faults = 1},
        sum_again_and_again, NULL, ends);
    for (size_t rank = 0; rank < WORLD; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_PEER);
        assert_string_equal(ends[rank].text, ends[0].text);
        assert_ptr_equal(strstr(ends[rank].text, who), ends[rank].text);
        assert_non_null(strstr(ends[rank].text, text));
        assert_int_equal(ends[rank].speaks, rank == fault.rank);
    }
}

static void a_transport_that_fails_is_quoted(void **state)
{
    (void)state;
    for (size_t count = 0; count < 20; count += 7) {
        fail_a_transport((struct thread_fault){THREAD_CANNOT_SEND, 3, count, false}, "the cable is cut");
        fail_a_transport(
            (struct thread_fault){THREAD_CANNOT_RECEIVE, 0, count, false}, "the mailbox is full");
    }
}

/* Rank 2 dies; then rank 0, which has not heard of it, finds that it cannot send; then the others go on. */
struct turns {
    _Atomic bool has_died, has_tried;
};

static ph_status send_to_the_dead(struct ph_comm *comm, void *context)
{
    struct turns *turns = context;
    uint64_t ticket;
    if (ph_comm_rank(comm) == 2) {
        PH_TRY(ph__comm_broadcast_start(
            comm, &(struct ph__comm_call){0, "last words"}, ph__comm_world(comm), 2, NULL, 0, &ticket));
        turns->has_died = true;
    }
    while (!(ph_comm_rank(comm) == 0 ? turns->has_died : turns->has_tried))
        sched_yield();
    const ph_status status = sum_again_and_again(comm, NULL);
    turns->has_tried = true;
    return status;
}

static void a_death_explains_why_a_transport_fails(void **state)
{
    (void)state;
    struct thread_rank_end ends[WORLD];
    struct turns turns = {false, false};
    const struct thread_fault faults[] = {
        {.kind = THREAD_DIES, .rank = 2}, {.kind = THREAD_CANNOT_SEND, .rank = 0}};
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .faults = faults, .num_faults = 2},
        send_to_the_dead, &turns, ends);
    for (size_t rank = 0; rank < WORLD; rank++)
        assert_string_equal(ends[rank].text, "rank 2 has died");
}

/* Ranks that have not the same idea of a message. */
static ph_status send_too_little(struct ph_comm *comm, void *context)
{
    (void)context;
    unsigned char data[16] = {0};
    uint64_t ticket;
    PH_TRY(ph__comm_broadcast_start(comm, &(struct ph__comm_call){0, "weights"}, ph__comm_world(comm), 0,
        data, ph_comm_rank(comm) == 0 ? 8 : 16, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    return ph__comm_barrier(comm);
}

static void a_message_of_another_length_is_an_error(void **state)
{
    (void)state;
    struct thread_rank_end ends[2];
    thread_ranks_run(&(struct thread_ranks){.world_size = 2}, send_too_little, NULL, ends);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_PEER);
        assert_non_null(strstr(ends[rank].text, "weights: between rank 1 and rank 0"));
        assert_non_null(strstr(ends[rank].text, "a message has 8 bytes instead of 16"));
        assert_int_equal(ends[rank].speaks, rank == 1);
    }
}

/* ---- afterwards ---- */

/* status and text are those that the communicator has failed with. */
#define CHECK_FAILS_ALIKE(call) \
    RANK_CHECK((call) == PH_ERROR_DATA && strcmp(ph_error_text(), "train.csv: line 10 is empty") == 0)

static ph_status try_everything_after_a_failure(struct ph_comm *comm, void *context)
{
    unsigned who_fails = 1;
    float data[4] = {0};
    uint64_t ticket, bytes_of[2] = {4, 4};
    const size_t rows_of[2] = {1, 1};
    const struct ph__comm_call call = {1, "too late"};
    const struct ph__group *world = ph__comm_world(comm);
    const ph_status status = read_bad_data(comm, &who_fails);
    (void)context;
    if (ph_comm_rank(comm) == 0)
        ph_comm_fail(comm, status);
    ph_fail(PH_ERROR_DISK, "something else");
    CHECK_FAILS_ALIKE(ph__comm_progress(comm));
    CHECK_FAILS_ALIKE(ph__comm_wait(comm, 1));
    CHECK_FAILS_ALIKE(ph__comm_barrier(comm));
    CHECK_FAILS_ALIKE(ph_comm_leave(comm));
    CHECK_FAILS_ALIKE(ph__comm_agree(comm, ""));
    CHECK_FAILS_ALIKE(ph__comm_exchange_start(comm, &call, &(struct ph__exchange){0}, &ticket));
    CHECK_FAILS_ALIKE(ph__comm_all_reduce_start(comm, &call, world, PH_WIRE_FP32, 2, 2, data, NULL, &ticket));
    CHECK_FAILS_ALIKE(
        ph__comm_reduce_scatter_start(comm, &call, world, PH_WIRE_FP32, rows_of, 2, data, data, &ticket));
    CHECK_FAILS_ALIKE(ph__comm_all_gather_start(comm, &call, world, data, bytes_of, data, &ticket));
    CHECK_FAILS_ALIKE(ph__comm_broadcast_start(comm, &call, world, 0, data, 4, &ticket));
    ph_fail(PH_ERROR_DISK, "something else");
    ph_comm_fail(comm, PH_ERROR_DISK);
    CHECK_FAILS_ALIKE(ph__comm_progress(comm));
    return PH_OK;
}

/* Rank 0 ends well, and hears only then that another has not. */
static ph_status fail_at_the_end(struct ph_comm *comm, void *context)
{
    _Atomic bool *has_ended = context;
    PH_TRY(sum_of(comm, "dense gradients"));
    if (ph_comm_rank(comm) == 0)
        *has_ended = true;
    while (!*has_ended)
        sched_yield();
    return ph_comm_rank(comm) == 0 ? PH_OK : ph_fail(PH_ERROR_DISK, "summary.json: cannot be written");
}

static void leaving_keeps_the_last_error(void **state)
{
    (void)state;
    struct thread_rank_end ends[2];
    struct ph_comm *alone;
    _Atomic bool has_ended = false;
    thread_ranks_run(&(struct thread_ranks){.world_size = 2}, fail_at_the_end, &has_ended, ends);
    assert_string_equal(ends[0].text_after, "");
    assert_string_equal(ends[1].text_after, "summary.json: cannot be written");
    assert_ok(ph_comm_create(
        &(struct ph_comm_options){.size = sizeof(struct ph_comm_options), .transport = "self"}, &alone));
    assert_int_equal(ph_comm_fail(alone, ph_fail(PH_ERROR_DATA, "the first")), PH_ERROR_DATA);
    ph_fail(PH_ERROR_DISK, "the second");
    ph_comm_destroy(alone);
    assert_string_equal(ph_error_text(), "the second");
}

static void after_a_failure_every_call_says_the_same(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 2}, try_everything_after_a_failure, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_ends_all_ranks_and_the_lowest_that_lives_tells_it),
        cmocka_unit_test(a_silent_rank_is_waited_for_so_long_and_then_named),
        cmocka_unit_test(a_rank_that_is_waited_for_in_vain_hears_it_while_it_computes),
        cmocka_unit_test(a_rank_that_is_slow_is_waited_for),
        cmocka_unit_test(a_rank_that_does_not_come_to_the_meeting_is_named),
        cmocka_unit_test(a_rank_that_dies_before_it_has_left_ends_the_others),
        cmocka_unit_test(a_rank_that_does_not_leave_is_waited_for_so_long),
        cmocka_unit_test(who_has_left_does_not_leave_again),
        cmocka_unit_test(what_one_rank_fails_with_all_end_with),
        cmocka_unit_test(of_ranks_that_fail_at_once_one_tells_it),
        cmocka_unit_test(a_transport_that_fails_is_quoted),
        cmocka_unit_test(a_death_explains_why_a_transport_fails),
        cmocka_unit_test(a_message_of_another_length_is_an_error),
        cmocka_unit_test(after_a_failure_every_call_says_the_same),
        cmocka_unit_test(leaving_keeps_the_last_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
