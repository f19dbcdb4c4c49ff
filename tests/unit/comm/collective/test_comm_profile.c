/* What is recorded of operations between ranks, and when. */
#include "base/thread/clock.h"
#include "comm/collective/comm_inside.h"
#include "support/thread_ranks.h"

#include <stdio.h>
#include <string.h>

/* Rank a and rank b send each other (a + 1) (b + 1) words. */
static ph_status give_words(struct ph_comm *comm, const char *what, uint64_t *ticket_out)
{
    static const uint64_t words[THREAD_RANKS_MOST * THREAD_RANKS_MOST];
    static _Thread_local uint64_t got[THREAD_RANKS_MOST][THREAD_RANKS_MOST * THREAD_RANKS_MOST];
    const size_t own = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    struct ph__message sends[THREAD_RANKS_MOST], receives[THREAD_RANKS_MOST];
    for (size_t rank = 0; rank < world_size; rank++) {
        const uint64_t bytes = (own + 1) * (rank + 1) * sizeof *words;
        sends[rank] = (struct ph__message){rank, (void *)(uintptr_t)words, bytes};
        receives[rank] = (struct ph__message){rank, got[rank], bytes};
    }
    return ph__comm_exchange_start(comm, &(struct ph__comm_call){3, what},
        &(struct ph__exchange){sends, receives, world_size, world_size}, ticket_out);
}

static ph_status give_and_wait(struct ph_comm *comm, const char *what)
{
    uint64_t ticket;
    PH_TRY(give_words(comm, what, &ticket));
    return ph__comm_wait(comm, ticket);
}

static ph_status check_sent(const struct ph__comm_profile *profile, size_t own, size_t times)
{
    for (size_t rank = 0; rank < profile->world_size; rank++) {
        const uint64_t expected = rank == own ? 0 : times * (own + 1) * (rank + 1) * sizeof(uint64_t);
        RANK_CHECK(profile->sent_bytes[rank] == expected);
    }
    return PH_OK;
}

static ph_status check_flights(const struct ph__comm_profile *profile)
{
    uint64_t waited_ns = 0, sent_bytes = 0;
    for (size_t i = 0; i < profile->num_flights; i++) {
        const struct ph__comm_flight *flight = &profile->flights[i];
        RANK_CHECK(flight->started_ns > 0 && flight->started_ns <= flight->done_ns);
        RANK_CHECK(flight->started_ns <= flight->wait_ns);
        RANK_CHECK(flight->waited_ns == 0 || flight->wait_ns + flight->waited_ns >= flight->done_ns);
        RANK_CHECK(flight->topic < profile->num_topics);
        waited_ns += flight->waited_ns;
        sent_bytes += flight->sent_bytes;
    }
    for (size_t rank = 0; rank < profile->world_size; rank++)
        sent_bytes -= profile->sent_bytes[rank];
    RANK_CHECK(waited_ns == profile->waited_ns && sent_bytes == 0);
    return PH_OK;
}

/* Twice while it counts, once before and once behind. */
static ph_status record_two(struct ph_comm *comm, void *context)
{
    (void)context;
    struct ph__comm_profile *profile;
    const size_t own = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    PH_TRY(ph__comm_profile_create(comm, 10, &profile));
    PH_TRY(give_and_wait(comm, "before"));
    ph__comm_profile_begin(profile);
    PH_TRY(give_and_wait(comm, "words"));
    PH_TRY(give_and_wait(comm, "words"));
    ph__comm_profile_end(profile);
    PH_TRY(give_and_wait(comm, "behind"));
    RANK_CHECK(profile->num_topics == 1 && strcmp(profile->topics[0].what, "words") == 0);
    RANK_CHECK(profile->topics[0].num_operations == 2 && profile->topics[0].waited_ns == profile->waited_ns);
    RANK_CHECK(profile->num_flights == 2 && profile->flights[0].num_messages == 2 * (world_size - 1));
    RANK_CHECK(profile->flights[0].sent_bytes == profile->flights[0].received_bytes);
    PH_TRY(check_sent(profile, own, 2));
    PH_TRY(check_flights(profile));
    ph__comm_profile_destroy(profile);
    return PH_OK;
}

static void only_what_begins_while_a_record_counts_is_in_it(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 1}, record_two, NULL, NULL);
    thread_ranks_run(&(struct thread_ranks){.world_size = 4}, record_two, NULL, NULL);
}

static ph_status record_topics(struct ph_comm *comm, void *context)
{
    (void)context;
    static const char *const whats[] = {"ids", "vectors", "ids", "ids", "vectors", "loss"};
    struct ph__comm_profile *profile;
    PH_TRY(ph__comm_profile_create(comm, 4, &profile));
    ph__comm_profile_begin(profile);
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        char name[16]; /* a text's place says nothing of it */
        snprintf(name, sizeof name, "%s", whats[i]);
        PH_TRY(give_and_wait(comm, name));
    }
    RANK_CHECK(profile->num_topics == 3);
    RANK_CHECK(strcmp(profile->topics[0].what, "ids") == 0 && profile->topics[0].num_operations == 3);
    RANK_CHECK(strcmp(profile->topics[1].what, "vectors") == 0 && profile->topics[1].num_operations == 2);
    RANK_CHECK(strcmp(profile->topics[2].what, "loss") == 0 && profile->topics[2].num_operations == 1);
    RANK_CHECK(profile->topics[0].sent_bytes == 3 * profile->topics[2].sent_bytes);
    /* polls that took long, of which there are as many as the machine is slow, find no room either */
    RANK_CHECK(profile->num_flights == 4 && profile->num_dropped >= 2);
    PH_TRY(check_sent(profile, ph_comm_rank(comm), sizeof whats / sizeof *whats));
    ph__comm_profile_destroy(profile);
    return PH_OK;
}

static void operations_are_added_up_by_what_they_are_about(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, record_topics, NULL, NULL);
}

/* One that is polled to its end was not waited for. */
static ph_status record_polled(struct ph_comm *comm, void *context)
{
    (void)context;
    struct ph__comm_profile *profile;
    uint64_t ticket;
    PH_TRY(ph__comm_profile_create(comm, 4, &profile));
    ph__comm_profile_begin(profile);
    PH_TRY(give_words(comm, "words", &ticket));
    while (comm->operations.num_flying > 0)
        PH_TRY(ph__comm_progress(comm));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(profile->waited_ns == 0 && profile->flights[0].waited_ns == 0);
    RANK_CHECK(profile->flights[0].done_ns <= profile->flights[0].wait_ns);
    PH_TRY(check_flights(profile));
    ph__comm_profile_destroy(profile);
    return PH_OK;
}

static void what_polling_ends_exposes_nothing(void **state)
{
    (void)state;
    const struct thread_fault slow = {.kind = THREAD_IS_SLOW, .rank = 1, .count = 20};
    thread_ranks_run(
        &(struct thread_ranks){.world_size = 2, .faults = &slow, .num_faults = 1}, record_polled, NULL, NULL);
}

/* Nobody waits for what is done; but what the rank does besides, for what is still in flight, is counted. */
static ph_status record_wait_for_what_is_done(struct ph_comm *comm, void *context)
{
    (void)context;
    struct ph__comm_profile *profile;
    uint64_t first, second = 0;
    PH_TRY(ph__comm_profile_create(comm, 4, &profile));
    ph__comm_profile_begin(profile);
    PH_TRY(give_words(comm, "words", &first));
    while (comm->operations.num_flying > 0)
        PH_TRY(ph__comm_progress(comm));
    if (ph_comm_rank(comm) == 0) /* the others begin when it has been there */
        PH_TRY(give_words(comm, "more words", &second));
    const uint64_t polled_ns = profile->polled_ns;
    const size_t num_flying = comm->operations.num_flying;
    PH_TRY(ph__comm_wait(comm, first));
    RANK_CHECK(profile->waited_ns == 0);
    RANK_CHECK((profile->polled_ns > polled_ns) == (num_flying > 0));
    ph__comm_profile_end(profile);
    PH_TRY(ph__comm_barrier(comm));
    if (ph_comm_rank(comm) > 0)
        PH_TRY(give_words(comm, "more words", &second));
    PH_TRY(ph__comm_wait(comm, second));
    RANK_CHECK(num_flying == (ph_comm_rank(comm) == 0));
    ph__comm_profile_destroy(profile);
    return PH_OK;
}

static void polls_of_a_wait_for_what_is_done_are_counted(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, record_wait_for_what_is_done, NULL, NULL);
}

/* Something is in flight while the rank waits for a hub: the polls of that wait count once. */
static ph_status record_other(struct ph_comm *comm, void *context)
{
    (void)context;
    const struct ph__comm_other other = {"at the hub", ph__clock_ns(), 100, 200};
    struct ph__comm_profile *profile;
    uint64_t ticket;
    ph__comm_profile_wait_begin(comm);
    PH_TRY(ph__comm_profile_wait_end(comm, &other)); /* no profile counts */
    PH_TRY(ph__comm_profile_create(comm, 4, &profile));
    ph__comm_profile_begin(profile);
    PH_TRY(give_words(comm, "words", &ticket));
    const uint64_t polled_ns = profile->polled_ns;
    ph__comm_profile_wait_begin(comm);
    while (comm->operations.num_flying > 0)
        PH_TRY(ph__comm_progress(comm));
    PH_TRY(ph__comm_profile_wait_end(comm, &other));
    PH_TRY(ph__comm_wait(comm, ticket));
    RANK_CHECK(profile->num_flights == 2 && profile->num_topics == 2 && profile->polled_ns == polled_ns);
    const struct ph__comm_topic *topic = &profile->topics[profile->flights[0].topic];
    RANK_CHECK(strcmp(topic->what, "at the hub") == 0 && topic->num_operations == 1);
    RANK_CHECK(topic->sent_bytes == 100 && profile->flights[0].received_bytes == 200);
    RANK_CHECK(topic->waited_ns == profile->waited_ns && topic->waited_ns > 0);
    RANK_CHECK(profile->flights[0].started_ns == other.started_ns);
    RANK_CHECK(profile->flights[0].wait_ns + topic->waited_ns == profile->flights[0].done_ns);
    PH_TRY(check_sent(profile, ph_comm_rank(comm), 1));
    ph__comm_profile_destroy(profile);
    return PH_OK;
}

static void what_a_hub_does_is_waited_for_but_on_no_link(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, record_other, NULL, NULL);
}

/* The profile ends before the operation does. */
static ph_status outlive_record(struct ph_comm *comm, void *context)
{
    (void)context;
    struct ph__comm_profile *profile;
    uint64_t ticket;
    PH_TRY(ph__comm_profile_create(comm, 4, &profile));
    ph__comm_profile_begin(profile);
    PH_TRY(give_words(comm, "words", &ticket));
    ph__comm_profile_destroy(profile);
    return ph__comm_wait(comm, ticket);
}

static void an_operation_may_outlive_its_record(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = 3}, outlive_record, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_begins_while_a_record_counts_is_in_it),
        cmocka_unit_test(operations_are_added_up_by_what_they_are_about),
        cmocka_unit_test(what_polling_ends_exposes_nothing),
        cmocka_unit_test(polls_of_a_wait_for_what_is_done_are_counted),
        cmocka_unit_test(what_a_hub_does_is_waited_for_but_on_no_link),
        cmocka_unit_test(an_operation_may_outlive_its_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
