/* Records what operations cost: see comm.h. An operation in flight keeps its record in `flight`
 * (comm_inside.h). */
#include "comm/collective/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "comm/collective/comm_inside.h"

#define SEEN_POLL_NS 5000u

ph_status ph__comm_profile_create(
    struct ph_comm *comm, size_t max_flights, struct ph__comm_profile **profile_out)
{
    struct ph__comm_profile *profile = calloc(1, sizeof *profile);
    if (profile == NULL)
        return ph__out_of_memory("cannot record what ranks exchange");
    profile->comm = comm;
    profile->world_size = comm->transport.world_size;
    profile->max_flights = max_flights;
    profile->sent_bytes = calloc(profile->world_size, sizeof *profile->sent_bytes);
    profile->flights = calloc(max_flights + 1, sizeof *profile->flights);
    profile->polls = calloc(max_flights + 1, sizeof *profile->polls);
    if (profile->sent_bytes == NULL || profile->flights == NULL || profile->polls == NULL) {
        ph__comm_profile_destroy(profile);
        return ph__out_of_memory("cannot record what ranks exchange");
    }
    *profile_out = profile;
    return PH_OK;
}

/* Ends the profile and clears every pointer to it: operations that have failed keep their slots. */
static void forget(struct ph__comm_profile *profile)
{
    const struct ph__operations *operations = &profile->comm->operations;
    ph__comm_profile_end(profile);
    for (size_t slot = 0; slot < operations->num_slots; slot++)
        if (operations->slots[slot]->profile == profile)
            operations->slots[slot]->profile = NULL;
}

void ph__comm_profile_destroy(struct ph__comm_profile *profile)
{
    if (profile == NULL)
        return;
    forget(profile);
    for (size_t i = 0; i < profile->num_topics; i++)
        free((char *)(uintptr_t)profile->topics[i].what);
    free(profile->topics);
    free(profile->flights);
    free(profile->polls);
    free(profile->sent_bytes);
    free(profile);
}

static void tell_simulation(const struct ph_comm *comm, bool is_counting)
{
    if (comm->simulation.counts != NULL)
        comm->simulation.counts(comm->simulation.context, is_counting);
}

void ph__comm_profile_begin(struct ph__comm_profile *profile)
{
    profile->comm->profile = profile;
    tell_simulation(profile->comm, true);
}

void ph__comm_profile_end(struct ph__comm_profile *profile)
{
    if (profile->comm->profile != profile)
        return;
    profile->comm->profile = NULL;
    tell_simulation(profile->comm, false);
}

/* ---- topics ---- */

static ph_status add_topic(struct ph__comm_profile *profile, const char *what)
{
    PH_TRY(ph__array_reserve((void **)&profile->topics, &profile->topics_capacity, profile->num_topics + 1,
        sizeof *profile->topics));
    char *copy = strdup(what);
    if (copy == NULL)
        return ph__out_of_memory("cannot record what ranks exchange");
    profile->topics[profile->num_topics++] = (struct ph__comm_topic){.what = copy};
    return PH_OK;
}

/* Finds the topic of `what`, trying `former` first: a slot's operations mostly have the same. */
static ph_status find_topic(
    struct ph__comm_profile *profile, const char *what, uint32_t former, uint32_t *topic_out)
{
    uint32_t topic = former;
    if (topic >= profile->num_topics || strcmp(profile->topics[topic].what, what) != 0)
        for (topic = 0; topic < profile->num_topics; topic++)
            if (strcmp(profile->topics[topic].what, what) == 0)
                break;
    if (topic == profile->num_topics)
        PH_TRY(add_topic(profile, what));
    *topic_out = topic;
    return PH_OK;
}

/* ---- what operations do ---- */

ph_status ph__comm_profile_take(struct ph_comm *comm, struct ph__operation *operation)
{
    uint32_t topic = 0;
    operation->profile = comm->is_uncounted ? NULL : comm->profile;
    if (operation->profile == NULL)
        return PH_OK;
    PH_TRY(find_topic(comm->profile, operation->what, operation->flight.topic, &topic));
    operation->flight = (struct ph__comm_flight){.topic = topic, .started_ns = ph__clock_ns()};
    return PH_OK;
}

void ph__comm_profile_message(struct ph__operation *operation, size_t rank, bool is_send, uint64_t bytes)
{
    if (operation->profile == NULL)
        return;
    operation->flight.num_messages++;
    if (is_send) {
        operation->flight.sent_bytes += bytes;
        operation->profile->sent_bytes[rank] += bytes;
    } else {
        operation->flight.received_bytes += bytes;
    }
}

void ph__comm_profile_done(struct ph__operation *operation)
{
    struct ph__comm_profile *profile = operation->profile;
    if (profile == NULL)
        return;
    operation->flight.done_ns = ph__clock_ns();
    if (operation->sum_bytes < ph__max(profile->sum_bytes, 1))
        return;
    profile->sum_bytes = operation->sum_bytes;
    profile->sum_ns = operation->flight.done_ns - operation->flight.started_ns;
}

static void add_flight(struct ph__comm_profile *profile, const struct ph__comm_flight *flight)
{
    struct ph__comm_topic *topic = &profile->topics[flight->topic];
    topic->num_operations++;
    topic->sent_bytes += flight->sent_bytes;
    topic->waited_ns += flight->waited_ns;
    profile->waited_ns += flight->waited_ns;
    if (profile->num_flights < profile->max_flights)
        profile->flights[profile->num_flights++] = *flight;
    else
        profile->num_dropped++;
}

void ph__comm_profile_waited(struct ph__operation *operation, uint64_t since_ns, uint64_t waited_ns)
{
    if (operation->profile == NULL)
        return;
    operation->flight.wait_ns = since_ns;
    operation->flight.waited_ns = waited_ns;
    add_flight(operation->profile, &operation->flight);
}

void ph__comm_profile_polled(struct ph__comm_profile *profile, uint64_t since_ns)
{
    const uint64_t duration_ns = ph__clock_ns() - since_ns;
    profile->polled_ns += duration_ns;
    if (duration_ns < SEEN_POLL_NS)
        return;
    if (profile->num_polls < profile->max_flights)
        profile->polls[profile->num_polls++] = (struct ph__comm_poll){since_ns, duration_ns};
    else
        profile->num_dropped++;
}

/* ---- outside operations ---- */

void ph__comm_profile_wait_begin(struct ph_comm *comm)
{
    struct ph__comm_profile *profile = comm->profile;
    if (profile == NULL)
        return;
    profile->other_since_ns = ph__clock_ns();
    profile->other_polled_ns = profile->polled_ns;
}

/* Adds the operation. Polls during the wait count as waiting, not as polling. */
ph_status ph__comm_profile_wait_end(struct ph_comm *comm, const struct ph__comm_other *other)
{
    struct ph__comm_profile *profile = comm->profile;
    struct ph__comm_flight flight = {.started_ns = other->started_ns,
        .done_ns = ph__clock_ns(),
        .sent_bytes = other->sent_bytes,
        .received_bytes = other->received_bytes};
    if (profile == NULL)
        return PH_OK;
    PH_TRY(find_topic(profile, other->what, 0, &flight.topic));
    flight.wait_ns = profile->other_since_ns;
    flight.waited_ns = flight.done_ns - flight.wait_ns;
    profile->polled_ns = profile->other_polled_ns;
    add_flight(profile, &flight);
    return PH_OK;
}
