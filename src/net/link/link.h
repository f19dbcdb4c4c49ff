/* Links: what lies between a worker and one core thread of a hub, and the one table of functions that all
 * transports share.
 *
 * A link carries messages in order, both ways. Its owner is told of each and moves the link on by
 * ph__link_progress(), which never blocks. Over shared memory a message is all that moves: the payload lies
 * where both sides see it. Elsewhere the payload is sent from where it lies, and received to where the owner
 * says it belongs; nothing is copied in between by us.
 *
 * To sleep, a thread calls ph__link_begin_sleep() for each of its links; where none says that there is
 * something to do, it waits at an epoll that watches them (ph__link_watch), or polls their descriptors, and
 * afterwards calls ph__link_end_sleep() for each.
 *
 * A link belongs to one thread at a time. Nothing is allocated after it was made. Errors: PH_ERROR_PEER,
 * naming what is wrong; the link is then good for ph__link_destroy() alone. */
#ifndef PH_NET_LINK_H
#define PH_NET_LINK_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

/* What links carry: 16 bytes that say what happened to a chunk, and on links without shared memory the
 * chunk's bytes behind them. */
struct ph__message {
    uint8_t kind; /* its meaning is its owners' */
    uint8_t flags;
    uint16_t count;
    uint32_t chunk;
    uint64_t iteration;
};
static_assert(sizeof(struct ph__message) == 16, "four to a cache line");

/* What a link's owner is called with; `context` is the owner's. */
struct ph__link_owner {
    void *context;
    /* A message comes: may it, and where do its payload_bytes go (over shared memory 0, whatever belongs to
     * it)? What fails here ends the link. */
    ph_status (*place)(
        void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out);
    /* It is there, with all its payload. */
    ph_status (*arrived)(void *context, const struct ph__message *message);
    /* The payload of a message that was sent has left, and is not read any more. */
    void (*sent)(void *context, const struct ph__message *message);
};

struct ph__link_counters {
    uint64_t messages_sent, messages_received;
    uint64_t payload_bytes_sent,
        payload_bytes_received; /* through the link itself, so 0 over shared memory */
    uint64_t system_calls;      /* those that move bytes */
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
    uint32_t events; /* of epoll_ctl(2), that may ever bring something to do */
};

struct ph__link {
    const struct ph__link_transport *transport;
    struct ph__link_owner owner;
    struct ph__link_counters counters;
    int descriptor; /* what to poll, for poll_events; the link's */
};

/* Queues a message; the payload stays as it is until owner.sent. PH_ERROR_PEER when the other side does not
 * take what it is sent. What is queued leaves with the next progress. */
static inline ph_status ph__link_send(
    struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    return link->transport->send(link, message, payload, payload_bytes);
}

/* Sends what is queued and can leave, and receives up to max_messages of what has come. num_moved_out:
 * messages that arrived or left, 0: nothing to do at the moment. */
static inline ph_status ph__link_progress(struct ph__link *link, size_t max_messages, size_t *num_moved_out)
{
    return link->transport->progress(link, max_messages, num_moved_out);
}

/* From now on the other side rings. false: something has come meanwhile, do not sleep. */
static inline bool ph__link_begin_sleep(struct ph__link *link)
{
    return link->transport->begin_sleep(link);
}

/* false: the other side has gone. */
static inline bool ph__link_end_sleep(struct ph__link *link)
{
    return link->transport->end_sleep(link);
}

static inline short ph__link_poll_events(const struct ph__link *link)
{
    return link->transport->poll_events(link);
}

/* Adds the link to an epoll, edge-triggered: from then on that tells when there may be something to do after
 * a progress that has moved nothing. Destroying the link ends it. PH_ERROR_MEMORY. */
ph_status ph__link_watch(const struct ph__link *link, int epoll);

/* What was queued goes no further: its owner is told of nothing any more. NULL is fine. */
void ph__link_destroy(struct ph__link *link);

/* ---- what has moved over links, added up by their transport ---- */

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
