#include <stdio.h>
#include <string.h>

#include "support/thread_ranks.h"

enum { MOST_BYTES = 4000 };

static const size_t worlds[] = {1, 2, 3, 4, 7};
enum { NUM_WORLDS = sizeof worlds / sizeof *worlds };

static unsigned char byte_of(size_t rank, size_t i)
{
    return (unsigned char)(rank * 37 + i * 11 + 5);
}

/* ---- all gather ---------------------------------------------------------------------------------------------- */

/* Sizes that differ, some of them 0; in place: the own bytes stand where they belong already. */
static ph_status check_gather(struct ph_comm *comm, size_t scale, bool is_in_place)
{
    const struct ph_group *world = ph__comm_world(comm);
    unsigned char own[MOST_BYTES], all[MOST_BYTES + 1];
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
        comm, &(struct ph_comm_call){1, "lengths"}, world, data, bytes_of, all, &ticket));
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

/* ---- gather -------------------------------------------------------------------------------------------------- */

/* To all ranks but the first. */
static uint64_t sent_to_others(const struct ph_comm *comm)
{
    uint64_t sum = 0;
    for (size_t rank = 1; rank < ph_comm_world_size(comm); rank++)
        sum += ph__comm_figures(comm).sent_bytes[rank];
    return sum;
}

/* Rank r has scale * r bytes; nobody but the first one is given any. */
static ph_status check_first(struct ph_comm *comm, size_t scale)
{
    const struct ph_group *world = ph__comm_world(comm);
    unsigned char own[MOST_BYTES], all[MOST_BYTES];
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
    while (at < MOST_BYTES)
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

/* ---- broadcast ----------------------------------------------------------------------------------------------- */

static ph_status broadcast_from_each(struct ph_comm *comm, void *context)
{
    (void)context;
    const struct ph_group *world = ph__comm_world(comm);
    unsigned char data[MOST_BYTES];
    uint64_t ticket;
    for (size_t root = 0; root < world->size; root++) {
        for (size_t bytes = 0; bytes < MOST_BYTES; bytes += 999) {
            for (size_t i = 0; i < MOST_BYTES; i++)
                data[i] = world->own == root ? byte_of(root, i) : 0xEE;
            PH_TRY(ph__comm_broadcast_start(
                comm, &(struct ph_comm_call){2, "weights"}, world, root, data, bytes, &ticket));
            PH_TRY(ph__comm_wait(comm, ticket));
            for (size_t i = 0; i < MOST_BYTES; i++)
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
        cmocka_unit_test(all_gather_puts_everybodys_bytes_behind_each_other),
        cmocka_unit_test(gather_gives_the_first_alone_everybodys_bytes),
        cmocka_unit_test(broadcast_gives_all_what_the_root_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
