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

/* ---- agreement ----------------------------------------------------------------------------------------------- */

/* A plan that differs on the rank at `context`, and before that one that does not. */
static ph_status agree_on_a_plan(struct ph_comm *comm, void *context)
{
    const size_t *odd = context;
    char plan[40];
    PH_TRY(ph__comm_agree(comm, "nothing", NULL, 0));
    PH_TRY(ph__comm_agree(comm, "the plan", "table 1 on rank 0", 17));
    snprintf(plan, sizeof plan, "table 1 on rank %d", ph_comm_rank(comm) >= *odd);
    const ph_status status = ph__comm_agree(comm, "the plan", plan, strlen(plan));
    RANK_CHECK(status == PH_ERROR_CONFIG && strcmp(ph_error_text(), "") != 0);
    char text[200];
    snprintf(text, sizeof text, "%s", ph_error_text());
    RANK_CHECK(ph__comm_barrier(comm) == PH_ERROR_CONFIG && strcmp(ph_error_text(), text) == 0);
    return status;
}

static void ranks_that_disagree_end_alike_and_the_first_says_so(void **state)
{
    (void)state;
    struct thread_rank_end ends[4];
    size_t odd = 3;
    thread_ranks_run(&(struct thread_ranks){.world_size = 4}, agree_on_a_plan, &odd, ends);
    for (size_t rank = 0; rank < 4; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
        assert_string_equal(ends[rank].text, "the plan differs between ranks 0 and 3");
        assert_int_equal(ends[rank].speaks, rank == 0);
    }
}

static ph_status agree_on_a_length(struct ph_comm *comm, void *context)
{
    (void)context;
    static const char names[] = "abc";
    return ph__comm_agree(comm, "the list of features", names, ph_comm_rank(comm) == 1 ? 2 : 3);
}

static void a_different_length_is_a_difference(void **state)
{
    (void)state;
    struct thread_rank_end ends[3];
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, agree_on_a_length, NULL, ends);
    for (size_t rank = 0; rank < 3; rank++)
        assert_string_equal(ends[rank].text, "the list of features differs between ranks 0 and 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gather_puts_everybodys_bytes_behind_each_other),
        cmocka_unit_test(broadcast_gives_all_what_the_root_has),
        cmocka_unit_test(ranks_that_disagree_end_alike_and_the_first_says_so),
        cmocka_unit_test(a_different_length_is_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
