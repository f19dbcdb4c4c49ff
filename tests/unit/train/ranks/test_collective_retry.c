/* Retries of collectives, over ranks that are threads, where some messages are made slow. */
#include "train/ranks/collective_retry.h"

#include <string.h>
#include <time.h>

#include "support/thread_ranks.h"

enum { NUMBERS = 1000 };
#define SLOW_NS 2000000

/* ---- a transport whose messages to the next rank, or to all other ones, take long ---- */

static _Thread_local struct {
    struct ph__transport plain;
    bool is_next_slow;
} slow;

static bool send_slowly(void *context, size_t to, int tag, const void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    const bool is_next = to == (slow.plain.rank + 1) % slow.plain.world_size;
    if (bytes > NUMBERS / 10 && is_next == slow.is_next_slow)
        nanosleep(&(struct timespec){.tv_nsec = SLOW_NS}, NULL);
    return slow.plain.send(context, to, tag, data, bytes, request_out, error);
}

/* ---- steps ---- */

/* Sums each rank's number and checks the sum, which is exact by any collective. */
static ph_status step(struct ph_comm *comm, struct ph__comm_profile *profile)
{
    const struct ph__comm_call call = {100, "sums"};
    const size_t world_size = ph_comm_world_size(comm);
    static _Thread_local ph_real data[NUMBERS];
    uint64_t ticket;
    for (size_t i = 0; i < NUMBERS; i++)
        data[i] = (ph_real)(ph_comm_rank(comm) + i);
    ph__comm_profile_begin(profile);
    PH_TRY(ph__comm_all_reduce_start(
        comm, &call, ph__comm_world(comm), PH_WIRE_FP32, NUMBERS, 1, data, NULL, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    ph__comm_profile_end(profile);
    for (size_t i = 0; i < NUMBERS; i++)
        RANK_CHECK(data[i] == (ph_real)(world_size * (world_size - 1) / 2 + world_size * i));
    return PH_OK;
}

/* Takes a period of steps, of which only the last one may change the collective. */
static ph_status take_period(struct ph_comm *comm, struct ph__comm_profile *profile,
    struct ph__collective_retry *retry, struct ph__collective_settings *settings, char *note)
{
    const enum ph_collective before = ph__comm_collective(comm, ph__comm_world(comm), 4 * NUMBERS);
    for (size_t i = 1; i <= PH_COLLECTIVE_RETRY_STEPS; i++) {
        PH_TRY(step(comm, profile));
        PH_TRY(ph__collective_retry_step(retry, profile, PH_WIRE_FP32, settings, note));
        RANK_CHECK(i == PH_COLLECTIVE_RETRY_STEPS || note[0] == '\0');
        RANK_CHECK(i == PH_COLLECTIVE_RETRY_STEPS ||
                   ph__comm_collective(comm, ph__comm_world(comm), 4 * NUMBERS) == before);
    }
    return step(comm, profile);
}

static ph_status retry_with_slow_messages(struct ph_comm *comm, struct ph__comm_profile *profile)
{
    struct ph__collective_settings settings = {.choices = {{0, PH_COLLECTIVE_EXCHANGE}},
        .num_choices = 1,
        .may_change = true,
        .text = "auto: exchange"};
    struct ph__collective_retry retry = {0};
    const struct ph__group *world = ph__comm_world(comm);
    char note[PH_COLLECTIVE_NOTE_BYTES];
    PH_TRY(ph__collectives_set(comm, &settings, NULL));
    for (size_t i = 0; i < PH_COLLECTIVE_SIZES; i++)
        settings.predicted_ns[i] = 1; /* too little for any network */
    slow.plain = comm->transport;
    comm->transport.send = send_slowly;
    PH_TRY(take_period(comm, profile, &retry, &settings, note));
    RANK_CHECK(ph__comm_collective(comm, world, 4 * NUMBERS) == PH_COLLECTIVE_RING);
    RANK_CHECK(ph__comm_collective(comm, world, 4 * NUMBERS / 2 - 1) == PH_COLLECTIVE_EXCHANGE);
    RANK_CHECK(strcmp(settings.text, "auto: exchange; later, from 2000 bytes ring") == 0);
    RANK_CHECK(strstr(note, "sums of 3.9 KiB took ") != NULL && strstr(note, "ring goes on") != NULL);
    RANK_CHECK(strstr(note, "exchange takes ") != NULL && strstr(note, "hierarchical") == NULL);
    /* The next period tells what to expect, and then the ring has become slow. */
    PH_TRY(take_period(comm, profile, &retry, &settings, note));
    RANK_CHECK(note[0] == '\0' && ph__comm_collective(comm, world, 4 * NUMBERS) == PH_COLLECTIVE_RING);
    retry.expected_ns = 1;
    slow.is_next_slow = true;
    PH_TRY(take_period(comm, profile, &retry, &settings, note));
    RANK_CHECK(ph__comm_collective(comm, world, 4 * NUMBERS) == PH_COLLECTIVE_EXCHANGE);
    RANK_CHECK(settings.num_choices == 2);
    return PH_OK;
}

static ph_status run(struct ph_comm *comm, void *context)
{
    struct ph__comm_profile *profile;
    (void)context;
    PH_TRY(ph__comm_profile_create(comm, 0, &profile));
    const ph_status status = retry_with_slow_messages(comm, profile);
    ph__comm_profile_destroy(profile);
    return status;
}

static void slow_sums_change_the_collective_on_all_ranks_at_once(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 4}, run, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_sums_change_the_collective_on_all_ranks_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
