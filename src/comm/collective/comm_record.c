/* What operations cost: see comm.h. Operations carry what is known of them in `flight` (comm_inside.h). */
#include "comm/collective/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "comm/collective/comm_inside.h"

#define SEEN_POLL_NS 5000u

ph_status ph__comm_record_create(
    struct ph_comm *comm, size_t max_flights, struct ph__comm_record **record_out)
{
    struct ph__comm_record *record = calloc(1, sizeof *record);
    if (record == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to record what ranks exchange");
    record->comm = comm;
    record->world_size = comm->transport.world_size;
    record->max_flights = max_flights;
    record->sent_bytes = calloc(record->world_size, sizeof *record->sent_bytes);
    record->flights = calloc(max_flights + 1, sizeof *record->flights);
    record->polls = calloc(max_flights + 1, sizeof *record->polls);
    if (record->sent_bytes == NULL || record->flights == NULL || record->polls == NULL) {
        ph__comm_record_destroy(record);
        return ph_fail(PH_ERROR_MEMORY, "no memory to record what ranks exchange");
    }
    *record_out = record;
    return PH_OK;
}

/* Operations that have failed keep their slots: none of them is to remember the record. */
static void forget(struct ph__comm_record *record)
{
    const struct ph__operations *operations = &record->comm->operations;
    ph__comm_record_end(record);
    for (size_t slot = 0; slot < operations->num_slots; slot++)
        if (operations->slots[slot]->record == record)
            operations->slots[slot]->record = NULL;
}

void ph__comm_record_destroy(struct ph__comm_record *record)
{
    if (record == NULL)
        return;
    forget(record);
    for (size_t i = 0; i < record->num_topics; i++)
        free((char *)(uintptr_t)record->topics[i].what);
    free(record->topics);
    free(record->flights);
    free(record->polls);
    free(record->sent_bytes);
    free(record);
}

void ph__comm_record_begin(struct ph__comm_record *record)
{
    record->comm->record = record;
}

void ph__comm_record_end(struct ph__comm_record *record)
{
    if (record->comm->record == record)
        record->comm->record = NULL;
}

/* ---- topics -------------------------------------------------------------------------------------------------------- */

static ph_status add_topic(struct ph__comm_record *record, const char *what)
{
    PH_TRY(ph__array_reserve(
        (void **)&record->topics, &record->topics_capacity, record->num_topics + 1, sizeof *record->topics));
    char *copy = strdup(what);
    if (copy == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to record what ranks exchange");
    record->topics[record->num_topics++] = (struct ph__comm_topic){.what = copy};
    return PH_OK;
}

/* A slot's operations are mostly about the same. */
static ph_status find_topic(
    struct ph__comm_record *record, const char *what, uint32_t former, uint32_t *topic_out)
{
    uint32_t topic = former;
    if (topic >= record->num_topics || strcmp(record->topics[topic].what, what) != 0)
        for (topic = 0; topic < record->num_topics; topic++)
            if (strcmp(record->topics[topic].what, what) == 0)
                break;
    if (topic == record->num_topics)
        PH_TRY(add_topic(record, what));
    *topic_out = topic;
    return PH_OK;
}

/* ---- what operations do ------------------------------------------------------------------------------------------------ */

ph_status ph__record_take(struct ph_comm *comm, struct ph__operation *operation)
{
    uint32_t topic = 0;
    operation->record = comm->record;
    if (comm->record == NULL)
        return PH_OK;
    PH_TRY(find_topic(comm->record, operation->what, operation->flight.topic, &topic));
    operation->flight = (struct ph__comm_flight){.topic = topic, .started_ns = ph__clock_ns()};
    return PH_OK;
}

void ph__record_message(struct ph__operation *operation, size_t rank, bool is_send, uint64_t bytes)
{
    if (operation->record == NULL)
        return;
    operation->flight.num_messages++;
    if (is_send) {
        operation->flight.sent_bytes += bytes;
        operation->record->sent_bytes[rank] += bytes;
    } else {
        operation->flight.received_bytes += bytes;
    }
}

void ph__record_done(struct ph__operation *operation)
{
    if (operation->record != NULL)
        operation->flight.done_ns = ph__clock_ns();
}

static void add_flight(struct ph__comm_record *record, const struct ph__comm_flight *flight)
{
    struct ph__comm_topic *topic = &record->topics[flight->topic];
    topic->num_operations++;
    topic->sent_bytes += flight->sent_bytes;
    topic->waited_ns += flight->waited_ns;
    record->waited_ns += flight->waited_ns;
    if (record->num_flights < record->max_flights)
        record->flights[record->num_flights++] = *flight;
    else
        record->num_dropped++;
}

void ph__record_waited(struct ph__operation *operation, uint64_t since_ns, uint64_t waited_ns)
{
    if (operation->record == NULL)
        return;
    operation->flight.wait_ns = since_ns;
    operation->flight.waited_ns = waited_ns;
    add_flight(operation->record, &operation->flight);
}

void ph__record_polled(struct ph__comm_record *record, uint64_t since_ns)
{
    const uint64_t duration_ns = ph__clock_ns() - since_ns;
    record->polled_ns += duration_ns;
    if (duration_ns < SEEN_POLL_NS)
        return;
    if (record->num_polls < record->max_flights)
        record->polls[record->num_polls++] = (struct ph__comm_poll){since_ns, duration_ns};
    else
        record->num_dropped++;
}

/* ---- what others do ---------------------------------------------------------------------------------------------------- */

void ph__comm_record_wait_begin(struct ph_comm *comm)
{
    struct ph__comm_record *record = comm->record;
    if (record == NULL)
        return;
    record->other_since_ns = ph__clock_ns();
    record->other_polled_ns = record->polled_ns;
}

/* Polls while it waited are the wait's time. */
ph_status ph__comm_record_wait_end(struct ph_comm *comm, const struct ph__comm_other *other)
{
    struct ph__comm_record *record = comm->record;
    struct ph__comm_flight flight = {.started_ns = other->started_ns,
        .done_ns = ph__clock_ns(),
        .sent_bytes = other->sent_bytes,
        .received_bytes = other->received_bytes};
    if (record == NULL)
        return PH_OK;
    PH_TRY(find_topic(record, other->what, 0, &flight.topic));
    flight.wait_ns = record->other_since_ns;
    flight.waited_ns = flight.done_ns - flight.wait_ns;
    record->polled_ns = record->other_polled_ns;
    add_flight(record, &flight);
    return PH_OK;
}
