#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/thread_ranks.h"

enum { MESSAGES = 4 /* of each pair */, MOST_BYTES = 600 };

static const size_t worlds[] = {1, 2, 3, 4, 7};
enum { NUM_WORLDS = sizeof worlds / sizeof *worlds };

static uint64_t bytes_between(size_t from, size_t to, size_t k)
{
    return (from * 7 + to * 3 + k * 131) % 5 == 0 ? 0 : (from * 31 + to * 17 + k * 101) % MOST_BYTES;
}

static unsigned char byte_between(size_t from, size_t to, size_t k, size_t i)
{
    return (unsigned char)(from * 101 + to * 29 + k * 13 + i * 7);
}

/* Of one rank: what it sends to all, itself too, and what it gets. */
struct letters {
    struct ph__message sends[THREAD_RANKS_MOST * MESSAGES], receives[THREAD_RANKS_MOST * MESSAGES];
    unsigned char sent[THREAD_RANKS_MOST * MESSAGES][MOST_BYTES],
        got[THREAD_RANKS_MOST * MESSAGES][MOST_BYTES];
    size_t count;
};

static void write_letters(struct letters *letters, size_t own, size_t world_size)
{
    letters->count = world_size * MESSAGES;
    for (size_t l = 0; l < letters->count; l++) {
        const size_t other = l % world_size, k = l / world_size;
        letters->sends[l] = (struct ph__message){other, letters->sent[l], bytes_between(own, other, k)};
        letters->receives[l] = (struct ph__message){other, letters->got[l], bytes_between(other, own, k)};
        for (size_t i = 0; i < MOST_BYTES; i++)
            letters->sent[l][i] = byte_between(own, other, k, i);
        memset(letters->got[l], 0xEE, MOST_BYTES);
    }
}

static ph_status read_letters(const struct letters *letters, size_t own, size_t world_size)
{
    for (size_t l = 0; l < letters->count; l++) {
        const size_t other = l % world_size, k = l / world_size;
        for (size_t i = 0; i < MOST_BYTES; i++)
            RANK_CHECK(letters->got[l][i] ==
                       (i < letters->receives[l].bytes ? byte_between(other, own, k, i) : 0xEE));
    }
    return PH_OK;
}

static ph_status exchange_letters(struct ph_comm *comm, struct letters *letters)
{
    const struct ph__comm_call call = {3, "letters"};
    uint64_t ticket;
    write_letters(letters, ph_comm_rank(comm), ph_comm_world_size(comm));
    const struct ph__exchange exchange = {letters->sends, letters->receives, letters->count, letters->count};
    PH_TRY(ph__comm_exchange_start(comm, &call, &exchange, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    return read_letters(letters, ph_comm_rank(comm), ph_comm_world_size(comm));
}

static ph_status exchange_again_and_again(struct ph_comm *comm, void *context)
{
    (void)context;
    struct letters *letters = malloc(sizeof *letters);
    ph_status status = letters != NULL ? PH_OK : ph_fail(PH_ERROR_MEMORY, "no memory for a test");
    for (size_t step = 0; step < 3 && status == PH_OK; step++)
        status = exchange_letters(comm, letters);
    free(letters);
    return status;
}

static void every_message_reaches_its_rank_in_order(void **state)
{
    (void)state;
    for (size_t w = 0; w < NUM_WORLDS; w++)
        thread_ranks_run(
            &(struct thread_ranks){.world_size = worlds[w]}, exchange_again_and_again, NULL, NULL);
}

static void messages_over_the_cut_arrive_whole(void **state)
{
    (void)state;
    for (size_t cut = 1; cut <= MOST_BYTES; cut *= 9)
        thread_ranks_run(
            &(struct thread_ranks){.world_size = 3, .cut_bytes = cut}, exchange_again_and_again, NULL, NULL);
}

static void the_order_of_arrival_does_not_matter(void **state)
{
    (void)state;
    const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = 1, .count = 50};
    for (uint64_t seed = 1; seed <= 4; seed++)
        thread_ranks_run(
            &(struct thread_ranks){.world_size = 4, .seed = seed, .faults = &slow, .num_faults = 1},
            exchange_again_and_again, NULL, NULL);
}

/* ---- figures ---- */

static ph_status count_what_was_sent(struct ph_comm *comm, void *context)
{
    (void)context;
    enum { BYTES = 100 };
    unsigned char data[BYTES] = {0}, got[BYTES];
    const size_t own = ph_comm_rank(comm), other = 1 - own;
    const struct ph__message sends[] = {{other, data, BYTES}, {own, data, BYTES}, {other, NULL, 0}};
    const struct ph__message receives[] = {{own, got, BYTES}, {other, got, BYTES}, {other, NULL, 0}};
    const struct ph__comm_counters before = ph__comm_counters(comm);
    const uint64_t bytes = before.sent_bytes[other], messages = before.sent_messages[other];
    uint64_t ticket;
    PH_TRY(ph__comm_exchange_start(
        comm, &(struct ph__comm_call){0, "counted"}, &(struct ph__exchange){sends, receives, 3, 3}, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    const struct ph__comm_counters after = ph__comm_counters(comm);
    RANK_CHECK(after.num_operations == before.num_operations + 1);
    RANK_CHECK(after.sent_bytes[other] == bytes + BYTES);
    RANK_CHECK(after.sent_messages[other] == messages + 4 + 1); /* cut at 30 bytes, and one of none */
    RANK_CHECK(after.sent_bytes[own] == 0 && after.sent_messages[own] == 0);
    RANK_CHECK(after.waited_seconds > before.waited_seconds);
    return PH_OK;
}

static void figures_tell_what_was_sent_to_whom(void **state)
{
    (void)state;
    const struct thread_fault slow[] = {
        {.kind = THREAD_IS_SLOW, .rank = 0, .count = 50}, {.kind = THREAD_IS_SLOW, .rank = 1, .count = 50}};
    thread_ranks_run(
        &(struct thread_ranks){.world_size = 2, .cut_bytes = 30, .faults = slow, .num_faults = 2},
        count_what_was_sent, NULL, NULL);
}

/* ---- the barrier ---- */

struct arrivals {
    _Atomic size_t count;
};

static ph_status arrive(struct ph_comm *comm, void *context)
{
    struct arrivals *arrivals = context;
    for (size_t round = 1; round <= 20; round++) {
        arrivals->count++;
        PH_TRY(ph__comm_barrier(comm));
        RANK_CHECK(arrivals->count >= round * ph_comm_world_size(comm));
    }
    return PH_OK;
}

static void a_barrier_lets_none_through_before_all_have_come(void **state)
{
    (void)state;
    for (size_t w = 0; w < NUM_WORLDS; w++) {
        struct arrivals arrivals = {0};
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[w]}, arrive, &arrivals, NULL);
    }
}

enum { MOST_GATHERED = 4000 };

static unsigned char byte_of(size_t rank, size_t i)
{
    return (unsigned char)(rank * 37 + i * 11 + 5);
}

/* ---- all gather ---- */

/* Sizes that differ, some of them 0; in place: the own bytes stand where they belong already. */
static ph_status check_gather(struct ph_comm *comm, size_t scale, bool is_in_place)
{
    const struct ph__group *world = ph__comm_world(comm);
    unsigned char own[MOST_GATHERED], all[MOST_GATHERED + 1];
    uint64_t bytes_of[THREAD_RANKS_MOST], total = 0, first = 0, ticket;
    for (size_t member = 0; member < world->size; member++) {
        bytes_of[member] = (member * 2 + 1) % 3 * scale; /* 1, 0, 2 ... */
        first += member < world->own ? bytes_of[member] : 0;
        total += bytes_of[member];
    }
    unsigned char *data = is_in_place ? all + first : own;
    memset(all, 0xEE, sizeof all);
    for (size_t i = 0; i < bytes_of[world->own]; i++)
        data[i] = byte_of(world->own, i);
    PH_TRY(ph__comm_all_gather_start(
        comm, &(struct ph__comm_call){1, "lengths"}, world, data, bytes_of, all, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    size_t at = 0;
    for (size_t member = 0; member < world->size; member++)
        for (size_t i = 0; i < bytes_of[member]; i++)
            RANK_CHECK(all[at++] == byte_of(member, i));
    RANK_CHECK(all[total] == 0xEE);
    return PH_OK;
}

static ph_status gather_all(struct ph_comm *comm, void *context)
{
    (void)context;
    for (size_t scale = 0; scale <= 200; scale += 40) {
        PH_TRY(check_gather(comm, scale, false));
        PH_TRY(check_gather(comm, scale, true));
    }
    return PH_OK;
}

static void all_gather_puts_everybodys_bytes_behind_each_other(void **state)
{
    (void)state;
    for (size_t w = 0; w < NUM_WORLDS; w++) {
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[w]}, gather_all, NULL, NULL);
        thread_ranks_run(
            &(struct thread_ranks){.world_size = worlds[w], .cut_bytes = 33}, gather_all, NULL, NULL);
    }
}

/* ---- gather ---- */

/* To all ranks but the first. */
static uint64_t sent_to_others(const struct ph_comm *comm)
{
    uint64_t sum = 0;
    for (size_t rank = 1; rank < ph_comm_world_size(comm); rank++)
        sum += ph__comm_counters(comm).sent_bytes[rank];
    return sum;
}

/* Rank r has scale * r bytes; nobody but the first one is given any. */
static ph_status check_first(struct ph_comm *comm, size_t scale)
{
    const struct ph__group *world = ph__comm_world(comm);
    unsigned char own[MOST_GATHERED], all[MOST_GATHERED];
    uint64_t bytes_of[THREAD_RANKS_MOST];
    const uint64_t sent_before = sent_to_others(comm);
    size_t at = 0;
    memset(all, 0xEE, sizeof all);
    for (size_t member = 0; member < world->size; member++)
        bytes_of[member] = scale * member;
    for (size_t i = 0; i < bytes_of[world->own]; i++)
        own[i] = byte_of(world->own, i);
    PH_TRY(ph__comm_collect_once(comm, "scores", own, bytes_of, all));
    for (size_t member = 0; world->own == 0 && member < world->size; member++)
        for (size_t i = 0; i < bytes_of[member]; i++)
            RANK_CHECK(all[at++] == byte_of(member, i));
    while (at < MOST_GATHERED)
        RANK_CHECK(all[at++] == 0xEE);
    RANK_CHECK(sent_to_others(comm) == sent_before);
    return PH_OK;
}

static ph_status gather_for_first(struct ph_comm *comm, void *context)
{
    (void)context;
    for (size_t scale = 0; scale <= 150; scale += 50)
        PH_TRY(check_first(comm, scale));
    return PH_OK;
}

static void gather_gives_the_first_alone_everybodys_bytes(void **state)
{
    (void)state;
    for (size_t w = 0; w < NUM_WORLDS; w++) {
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[w]}, gather_for_first, NULL, NULL);
        thread_ranks_run(
            &(struct thread_ranks){.world_size = worlds[w], .cut_bytes = 33}, gather_for_first, NULL, NULL);
    }
}

/* ---- broadcast ---- */

static ph_status broadcast_from_each(struct ph_comm *comm, void *context)
{
    (void)context;
    const struct ph__group *world = ph__comm_world(comm);
    unsigned char data[MOST_GATHERED];
    uint64_t ticket;
    for (size_t root = 0; root < world->size; root++) {
        for (size_t bytes = 0; bytes < MOST_GATHERED; bytes += 999) {
            for (size_t i = 0; i < MOST_GATHERED; i++)
                data[i] = world->own == root ? byte_of(root, i) : 0xEE;
            PH_TRY(ph__comm_broadcast_start(
                comm, &(struct ph__comm_call){2, "weights"}, world, root, data, bytes, &ticket));
            PH_TRY(ph__comm_wait(comm, ticket));
            for (size_t i = 0; i < MOST_GATHERED; i++)
                RANK_CHECK(data[i] == (i < bytes || world->own == root ? byte_of(root, i) : 0xEE));
        }
    }
    return PH_OK;
}

static void broadcast_gives_all_what_the_root_has(void **state)
{
    (void)state;
    for (size_t w = 0; w < NUM_WORLDS; w++) {
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[w]}, broadcast_from_each, NULL, NULL);
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[w], .cut_bytes = 100},
            broadcast_from_each, NULL, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_reaches_its_rank_in_order),
        cmocka_unit_test(messages_over_the_cut_arrive_whole),
        cmocka_unit_test(the_order_of_arrival_does_not_matter),
        cmocka_unit_test(figures_tell_what_was_sent_to_whom),
        cmocka_unit_test(a_barrier_lets_none_through_before_all_have_come),
        cmocka_unit_test(all_gather_puts_everybodys_bytes_behind_each_other),
        cmocka_unit_test(gather_gives_the_first_alone_everybodys_bytes),
        cmocka_unit_test(broadcast_gives_all_what_the_root_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
