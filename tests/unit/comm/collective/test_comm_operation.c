/* Many operations in flight, and what they cost in memory. First, since it replaces malloc: */
#include "support/count_allocations.h"

#include "comm/collective/comm_inside.h"
#include "support/thread_ranks.h"
#include "unit/comm/wire_oracle.h"

/* ---- beside each other ---- */

enum { CHANNELS = 24, NUMBERS = 50 };

/* All are started in one order; each rank waits for them in another. */
static ph_status sum_on_many_channels(struct ph_comm *comm, void *context)
{
    (void)context;
    const struct ph__group *world = ph__comm_world(comm);
    float data[CHANNELS][NUMBERS], sum[NUMBERS], numbers[NUMBERS];
    uint64_t tickets[CHANNELS];
    for (uint32_t channel = 0; channel < CHANNELS; channel++) {
        const struct ph__comm_call call = {channel * 341, "a bucket"}; /* up to 7843 */
        wire_oracle_numbers(world->own, channel, NUMBERS, data[channel]);
        PH_TRY(ph__comm_all_reduce_start(
            comm, &call, world, PH_WIRE_FP32, 1, NUMBERS, data[channel], NULL, &tickets[channel]));
    }
    for (size_t k = 0; k < CHANNELS; k++) {
        const size_t channel = (k * 7 + world->own * 5) % CHANNELS; /* 7 has no factor of 24 */
        PH_TRY(ph__comm_wait(comm, tickets[channel]));
        for (size_t rank = 0; rank < world->size; rank++) {
            wire_oracle_numbers(rank, channel, NUMBERS, numbers);
            for (size_t i = 0; i < NUMBERS; i++)
                sum[i] = rank == 0 ? numbers[i] : sum[i] + numbers[i];
        }
        RANK_CHECK(memcmp(sum, data[channel], sizeof sum) == 0);
    }
    return PH_OK;
}

static void operations_in_flight_do_not_mix(void **state)
{
    (void)state;
    const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = 1, .count = 20};
    for (size_t world_size = 1; world_size <= 7; world_size += 2)
        thread_ranks_run(&(struct thread_ranks){.world_size = world_size, .faults = &slow, .num_faults = 1},
            sum_on_many_channels, NULL, NULL);
}

static ph_status send_word(struct ph_comm *comm, uint32_t channel, size_t to, uint64_t *ticket_out)
{
    static uint64_t word = 4711;
    const struct ph__message message = {to, &word, sizeof word};
    return ph__comm_exchange_start(comm, &(struct ph__comm_call){channel, "a word"},
        &(struct ph__exchange){.sends = &message, .num_sends = 1}, ticket_out);
}

static ph_status receive_word(
    struct ph_comm *comm, uint32_t channel, size_t from, uint64_t *word, uint64_t *ticket_out)
{
    const struct ph__message message = {from, word, sizeof *word};
    return ph__comm_exchange_start(comm, &(struct ph__comm_call){channel, "a word"},
        &(struct ph__exchange){.receives = &message, .num_receives = 1}, ticket_out);
}

/* Rank 1 waits for rank 0's word on channel 1, which was started last; only then rank 0 sends the one on
 * channel 0. */
static ph_status finish_the_last_first(struct ph_comm *comm, void *context)
{
    (void)context;
    const size_t own = ph_comm_rank(comm), other = 1 - own;
    uint64_t first, last, answer, words[2] = {0};
    if (own == 0) {
        PH_TRY(receive_word(comm, 2, other, &words[0], &answer));
        PH_TRY(send_word(comm, 1, other, &last));
        PH_TRY(ph__comm_wait(comm, answer));
        PH_TRY(send_word(comm, 0, other, &first));
        PH_TRY(ph__comm_wait(comm, first));
        return ph__comm_wait(comm, last);
    }
    PH_TRY(receive_word(comm, 0, other, &words[0], &first));
    PH_TRY(receive_word(comm, 1, other, &words[1], &last));
    PH_TRY(ph__comm_wait(comm, last));
    RANK_CHECK(words[0] == 0 && words[1] == 4711);
    PH_TRY(send_word(comm, 2, other, &answer));
    PH_TRY(ph__comm_wait(comm, answer));
    PH_TRY(ph__comm_wait(comm, first));
    RANK_CHECK(words[0] == 4711);
    return PH_OK;
}

static void an_operation_may_end_before_those_that_were_started_earlier(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 2}, finish_the_last_first, NULL, NULL);
}

/* What is in flight moves on while the rank polls and waits for nothing. */
static ph_status poll_until_there(struct ph_comm *comm, void *context)
{
    (void)context;
    const struct ph__group *world = ph__comm_world(comm);
    float data[NUMBERS];
    uint64_t ticket;
    wire_oracle_numbers(world->own, 0, NUMBERS, data);
    PH_TRY(ph__comm_all_reduce_start(
        comm, &(struct ph__comm_call){0, "polled"}, world, PH_WIRE_BF16, 5, 10, data, NULL, &ticket));
    while (comm->operations.num_flying > 0)
        PH_TRY(ph__comm_progress(comm));
    const double waited = ph__comm_counters(comm).waited_seconds;
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(ph__comm_counters(comm).waited_seconds == waited);
    return PH_OK;
}

static void polling_alone_brings_an_operation_to_its_end(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, poll_until_there, NULL, NULL);
}

/* Programs carry tickets from node to node as numbers. */
static ph_status carry_tickets(struct ph_comm *comm, void *context)
{
    (void)context;
    const size_t own = ph_comm_rank(comm), other = 1 - own;
    uint64_t sent, received;
    comm->operations.num_started = (uint64_t)1 << 40; /* a training that has gone on for long */
    for (uint32_t channel = 0; channel < 10; channel += 2) {
        uint64_t word = 0;
        PH_TRY(receive_word(comm, channel + (uint32_t)own, other, &word, &received));
        PH_TRY(send_word(comm, channel + (uint32_t)other, other, &sent));
        PH_TRY(ph__comm_wait(comm, (uint64_t)(double)received));
        PH_TRY(ph__comm_wait(comm, (uint64_t)(double)sent));
        RANK_CHECK(ph__operation_find(comm, received) == NULL && ph__operation_find(comm, sent) == NULL);
        RANK_CHECK(word == 4711);
    }
    return PH_OK;
}

static void a_ticket_is_found_again_after_any_number_of_operations(void **state)
{
    (void)state;
    const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = 1, .count = 20};
    thread_ranks_run(
        &(struct thread_ranks){.world_size = 2, .faults = &slow, .num_faults = 1}, carry_tickets, NULL, NULL);
}

/* ---- memory ---- */

static ph_status step(struct ph_comm *comm)
{
    const struct ph__group *world = ph__comm_world(comm);
    float data[PH_WIRE_COUNT][NUMBERS] = {{0}}, got[THREAD_RANKS_MOST][NUMBERS];
    struct ph__message sends[THREAD_RANKS_MOST], receives[THREAD_RANKS_MOST];
    uint64_t tickets[PH_WIRE_COUNT + 1];
    for (size_t rank = 0; rank < world->size; rank++) {
        sends[rank] = (struct ph__message){rank, data[0], sizeof data[0]};
        receives[rank] = (struct ph__message){rank, got[rank], sizeof got[rank]};
    }
    PH_TRY(ph__comm_exchange_start(comm, &(struct ph__comm_call){9, "pooled vectors"},
        &(struct ph__exchange){sends, receives, world->size, world->size}, &tickets[PH_WIRE_COUNT]));
    PH_TRY(ph__comm_wait(comm, tickets[PH_WIRE_COUNT]));
    for (uint32_t wire = 0; wire < PH_WIRE_COUNT; wire++)
        PH_TRY(ph__comm_all_reduce_start(comm, &(struct ph__comm_call){wire, "a bucket"}, world,
            (enum ph_wire_format)wire, 5, 10, data[wire], NULL, &tickets[wire]));
    for (uint32_t wire = 0; wire < PH_WIRE_COUNT; wire++)
        PH_TRY(ph__comm_wait(comm, tickets[wire]));
    return PH_OK;
}

struct steps {
    enum ph_collective kind;
    bool is_recorded;
};

static ph_status count_in_steps(struct ph_comm *comm, void *context)
{
    static const uint32_t groups[] = {0, 1, 0, 1};
    const struct steps *steps = context;
    struct ph__comm_profile *profile = NULL;
    PH_TRY(ph__comm_set_collectives(comm, &(struct ph__collective_choice){0, steps->kind}, 1, groups));
    if (steps->is_recorded) {
        PH_TRY(ph__comm_profile_create(comm, 100, &profile));
        ph__comm_profile_begin(profile);
    }
    PH_TRY(step(comm));
    PH_TRY(ph__comm_barrier(comm));
    const uint64_t num_growths = comm->operations.num_growths;
    RANK_CHECK(num_growths > 0);
    if (ph_comm_rank(comm) == 0)
        count_allocations(true);
    PH_TRY(ph__comm_barrier(comm));
    for (size_t s = 0; s < 50; s++)
        PH_TRY(step(comm));
    PH_TRY(ph__comm_barrier(comm));
    if (ph_comm_rank(comm) == 0)
        count_allocations(false);
    RANK_CHECK(comm->operations.num_growths == num_growths);
    RANK_CHECK(profile == NULL || profile->num_dropped > 0);
    ph__comm_profile_destroy(profile);
    return PH_OK;
}

/* Recorded or not. */
static void steps_after_the_first_allocate_nothing(void **state)
{
    (void)state;
    const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = 2, .count = 11};
    const struct thread_ranks ranks = {.world_size = 4, .cut_bytes = 64, .faults = &slow, .num_faults = 1};
    for (enum ph_collective kind = 0; kind < PH_COLLECTIVE_AUTO; kind++) {
        struct steps steps = {kind, false}, recorded = {kind, true};
        thread_ranks_run(&ranks, count_in_steps, &steps, NULL);
        thread_ranks_run(&ranks, count_in_steps, &recorded, NULL);
    }
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_in_flight_do_not_mix),
        cmocka_unit_test(an_operation_may_end_before_those_that_were_started_earlier),
        cmocka_unit_test(polling_alone_brings_an_operation_to_its_end),
        cmocka_unit_test(a_ticket_is_found_again_after_any_number_of_operations),
        cmocka_unit_test(steps_after_the_first_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
