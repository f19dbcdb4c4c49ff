#include <stdio.h>
#include <string.h>

#include "support/staged_messages.h"
#include "support/thread_ranks.h"

enum { MOST_BYTES = 900, CUT_BYTES = 100 };

static unsigned char byte_of(size_t rank, size_t i)
{
    return (unsigned char)(rank * 37 + i * 11 + 5);
}

static void fill(size_t rank, size_t bytes, unsigned char *bytes_out)
{
    for (size_t i = 0; i < bytes; i++)
        bytes_out[i] = byte_of(rank, i);
}

/* ---- what arrives ---- */

static ph_status gather(struct ph_comm *comm, size_t size)
{
    unsigned char own[MOST_BYTES], all[THREAD_RANKS_MOST * MOST_BYTES];
    fill(ph_comm_rank(comm), size, own);
    PH_TRY(ph__comm_gather_once(comm, "greetings", own, size, all));
    for (size_t rank = 0, at = 0; rank < ph_comm_world_size(comm); rank++)
        for (size_t i = 0; i < size; i++)
            RANK_CHECK(all[at++] == byte_of(rank, i));
    return PH_OK;
}

/* Sizes that differ, some of them 0. */
static ph_status gather_parts(struct ph_comm *comm, size_t scale)
{
    const size_t world_size = ph_comm_world_size(comm), own_rank = ph_comm_rank(comm);
    unsigned char own[MOST_BYTES], all[THREAD_RANKS_MOST * MOST_BYTES];
    uint64_t bytes_of[THREAD_RANKS_MOST];
    for (size_t rank = 0; rank < world_size; rank++)
        bytes_of[rank] = (rank * 2 + 1) % 3 * scale; /* 1, 0, 2 ... */
    fill(own_rank, (size_t)bytes_of[own_rank], own);
    PH_TRY(ph__comm_gather_varied_once(comm, "descriptions", own, bytes_of, all));
    for (size_t rank = 0, at = 0; rank < world_size; rank++)
        for (size_t i = 0; i < bytes_of[rank]; i++)
            RANK_CHECK(all[at++] == byte_of(rank, i));
    return PH_OK;
}

static ph_status broadcast(struct ph_comm *comm, size_t root, size_t bytes)
{
    unsigned char data[MOST_BYTES] = {0};
    if (ph_comm_rank(comm) == root)
        fill(root, bytes, data);
    PH_TRY(ph__comm_broadcast_once(comm, "digest", root, data, bytes));
    for (size_t i = 0; i < MOST_BYTES; i++)
        RANK_CHECK(data[i] == (i < bytes ? byte_of(root, i) : 0));
    return PH_OK;
}

/* From the last rank to the first one, while the others go on. */
static ph_status pass(struct ph_comm *comm, size_t bytes)
{
    const size_t from = ph_comm_world_size(comm) - 1, own = ph_comm_rank(comm);
    unsigned char data[MOST_BYTES] = {0};
    if (from == 0 || (own != 0 && own != from))
        return PH_OK;
    if (own == from)
        fill(from, bytes, data);
    PH_TRY(ph__comm_pass_once(comm, "a text", from, 0, data, bytes));
    for (size_t i = 0; i < MOST_BYTES; i++)
        RANK_CHECK(data[i] == (i < bytes ? byte_of(from, i) : 0));
    return PH_OK;
}

static ph_status do_all_once(struct ph_comm *comm, void *context)
{
    (void)context;
    PH_TRY(staged_messages_demand(comm));
    for (size_t bytes = 0; bytes <= MOST_BYTES; bytes += MOST_BYTES / 3) {
        PH_TRY(gather(comm, bytes));
        PH_TRY(gather_parts(comm, bytes / 2));
        PH_TRY(pass(comm, bytes));
        for (size_t root = 0; root < ph_comm_world_size(comm); root++)
            PH_TRY(broadcast(comm, root, bytes));
    }
    return PH_OK;
}

static void what_is_done_once_travels_in_the_communicators_memory(void **state)
{
    (void)state;
    for (size_t world_size = 1; world_size <= 5; world_size++)
        for (size_t cut_bytes = 0; cut_bytes <= CUT_BYTES; cut_bytes += CUT_BYTES)
            thread_ranks_run(&(struct thread_ranks){.world_size = world_size, .cut_bytes = cut_bytes},
                do_all_once, NULL, NULL);
}

/* ---- what does not ---- */

enum { GATHER, GATHER_PARTS, BROADCAST, PASS, NUM_WAYS };

/* Rank 1 never answers: nothing of what it was to give is written, then or later. */
static ph_status wait_for_rank_one(struct ph_comm *comm, void *context)
{
    const int *way = context;
    static const uint64_t bytes_of[] = {8, 8};
    unsigned char data[16];
    if (ph_comm_rank(comm) == 1) {
        for (;;)
            PH_TRY(ph__comm_progress(comm));
    }
    memset(data, 0xEE, sizeof data);
    const ph_status status = *way == GATHER ? ph__comm_gather_once(comm, "in vain", "12345678", 8, data)
                             : *way == GATHER_PARTS
                                 ? ph__comm_gather_varied_once(comm, "in vain", "12345678", bytes_of, data)
                             : *way == BROADCAST ? ph__comm_broadcast_once(comm, "in vain", 1, data, 16)
                                                 : ph__comm_pass_once(comm, "in vain", 1, 0, data, 16);
    for (size_t i = 0; i < sizeof data; i++)
        RANK_CHECK(data[i] == 0xEE);
    return status;
}

static void after_a_failure_the_callers_memory_is_as_it_was(void **state)
{
    (void)state;
    for (int way = 0; way < NUM_WAYS; way++) {
        struct thread_rank_end ends[2];
        thread_ranks_run(&(struct thread_ranks){.world_size = 2, .options = {.timeout_seconds = .25}},
            wait_for_rank_one, &way, ends);
        for (size_t rank = 0; rank < 2; rank++) {
            assert_int_equal(ends[rank].status, PH_ERROR_PEER);
            assert_non_null(
                strstr(ends[rank].text, "in vain timed out: rank 0 has waited 0.25 s for rank 1 (process"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done_once_travels_in_the_communicators_memory),
        cmocka_unit_test(after_a_failure_the_callers_memory_is_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
