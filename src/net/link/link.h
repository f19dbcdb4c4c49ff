/* Links between a worker and one core thread of a hub, and the table of functions that all transports share.
 *
 * A link carries messages in order, both ways. ph__link_progress() moves a link on without blocking and calls
 * the link's owner for each message. Over shared memory only messages move: payloads lie where both sides see
 * them. Other links send a payload from where it lies and receive it where the owner wants it, without copies
 * in between.
 *
 * To sleep, a thread calls ph__link_begin_sleep() for each of its links. When all return true, the thread
 * waits at an epoll that watches them (ph__link_watch), or polls their descriptors. Afterwards it calls
 * ph__link_end_sleep() for each.
 *
 * A link belongs to one thread at a time. Only creation allocates. Errors: PH_ERROR_PEER with the reason; the
 * link is then good for ph__link_destroy() alone. */
#ifndef PH_NET_LINK_H
#define PH_NET_LINK_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

/* A message of a link: 16 bytes that say what happened to a chunk. On links without shared memory, the
 * chunk's bytes follow. */
struct ph__message {
    uint8_t kind; /* defined by the owners */
    uint8_t flags;
    uint16_t count;
    uint32_t chunk;
    uint64_t iteration;
};
static_assert(sizeof(struct ph__message) == 16, "four to a cache line");

/* Functions that a link calls; `context` is the owner's. */
struct ph__link_owner {
    void *context;
    /* Accepts a message that is arriving, and says where its payload_bytes go (over shared memory 0, whatever
     * the payload). An error ends the link. */
    ph_status (*place)(
        void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out);
    /* Takes a message that has arrived with all its payload. */
    ph_status (*arrived)(void *context, const struct ph__message *message);
    /* Called when the payload of a sent message has left and is not read any more. */
    void (*sent)(void *context, const struct ph__message *message);
};

struct ph__link_counters {
    uint64_t messages_sent, messages_received;
    uint64_t payload_bytes_sent,
        payload_bytes_received; /* through the link itself, so 0 over shared memory */
    uint64_t system_calls;      /* calls that move bytes */
    uint64_t doorbells;
};

struct ph__link;

struct ph__link_transport {
    const char *name;
    ph_status (*send)(
        struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes);
    ph_status (*progress)(struct ph__link *link, size_t max_messages, size_t *num_moved_out);
    bool (*begin_sleep)(struct ph__link *link);
    bool (*end_sleep)(struct ph__link *link);
    short (*poll_events)(const struct ph__link *link);
    void (*destroy)(struct ph__link *link);
    uint32_t events; /* of epoll_ctl(2) that can mean work */
};

struct ph__link {
    const struct ph__link_transport *transport;
    struct ph__link_owner owner;
    struct ph__link_counters counters;
    int descriptor; /* for poll_events; owned by the link */
};

/* Queues a message, which leaves with the next progress; the payload must not change until owner.sent.
 * PH_ERROR_PEER when the other side does not take its messages. */
static inline ph_status ph__link_send(
    struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    return link->transport->send(link, message, payload, payload_bytes);
}

/* Sends queued messages as far as possible, and receives up to max_messages. num_moved_out: messages that
 * arrived or left, 0: nothing to do at the moment. */
static inline ph_status ph__link_progress(struct ph__link *link, size_t max_messages, size_t *num_moved_out)
{
    return link->transport->progress(link, max_messages, num_moved_out);
}

/* Asks the other side to ring from now on. Returns false when a message has arrived meanwhile: do not
 * sleep. */
static inline bool ph__link_begin_sleep(struct ph__link *link)
{
    return link->transport->begin_sleep(link);
}

/* Ends the sleep. Returns false when the other side has gone. */
static inline bool ph__link_end_sleep(struct ph__link *link)
{
    return link->transport->end_sleep(link);
}

static inline short ph__link_poll_events(const struct ph__link *link)
{
    return link->transport->poll_events(link);
}

/* Adds the link to an epoll, edge-triggered. After a progress that has moved nothing, the epoll tells when
 * there may be work. Destroying the link removes it. PH_ERROR_MEMORY. */
ph_status ph__link_watch(const struct ph__link *link, int epoll);

/* Destroys the link with its queued messages, without calling its owner. NULL is fine. */
void ph__link_destroy(struct ph__link *link);

/* ---- traffic of links, added up by transport ---- */

#define PH_MAX_TRANSPORTS 4

struct ph__traffic { /* zero-initialised: none */
    size_t num_transports;
    const char *transports[PH_MAX_TRANSPORTS]; /* names; static */
    struct ph__link_counters counters[PH_MAX_TRANSPORTS];
};

void ph__link_counters_add(struct ph__link_counters *sum, const struct ph__link_counters *part);
void ph__traffic_add(
    struct ph__traffic *traffic, const char *transport, const struct ph__link_counters *counters);
void ph__traffic_merge(struct ph__traffic *traffic, const struct ph__traffic *part);

#endif
