#include "support/payload_link.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "support/shard_oracle.h"

struct packet {
    struct ph__message message;
    const void *payload; /* the hub's, until it has left for the worker */
    void *copy;          /* payload as it was when sent */
    size_t payload_bytes;
    void *place; /* of a message to the hub, whose payload has not arrived */
    bool is_placed;
};

struct queue {
    struct packet *packets;
    size_t begin, end;
};

struct payload_link {
    struct ph__link link; /* first */
    payload_receiver receiver;
    void *context;
    struct queue to_hub, to_worker, received;
    size_t num_whole;   /* of to_hub: messages whose payload has arrived */
    size_t num_allowed; /* of to_worker: messages that may leave */
    bool is_broken;
};

static void append(struct queue *queue, const struct packet *packet)
{
    queue->packets = realloc(queue->packets, (queue->end + 1) * sizeof *queue->packets);
    trial_require(queue->packets != NULL);
    queue->packets[queue->end++] = *packet;
}

/* Appends a message with a copy of its payload. */
static void enqueue(
    struct queue *queue, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    struct packet packet = {.message = *message, .payload = payload, .payload_bytes = payload_bytes};
    if (payload_bytes > 0) {
        packet.copy = malloc(payload_bytes);
        trial_require(packet.copy != NULL);
        memcpy(packet.copy, payload, payload_bytes);
    }
    append(queue, &packet);
}

static void free_queue(struct queue *queue)
{
    for (size_t i = queue->begin; i < queue->end; i++)
        free(queue->packets[i].copy);
    free(queue->packets);
}

/* ---- the hub's side ---- */

static ph_status payload_send(
    struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    struct payload_link *self = (struct payload_link *)link;
    if (self->is_broken)
        return ph_fail(PH_ERROR_PEER, "the link is broken");
    enqueue(&self->to_worker, message, payload, payload_bytes);
    return PH_OK;
}

static void let_leave(struct payload_link *self)
{
    const struct packet packet = self->to_worker.packets[self->to_worker.begin++];
    trial_require(
        packet.payload_bytes == 0 || memcmp(packet.payload, packet.copy, packet.payload_bytes) == 0);
    self->link.owner.sent(self->link.owner.context, &packet.message);
    append(&self->received, &packet);
}

/* Delivers the next message to the hub, or its head alone when its payload has not arrived. */
static ph_status let_arrive(struct payload_link *self, bool *is_whole_out)
{
    const struct ph__link_owner *owner = &self->link.owner;
    struct packet *packet = &self->to_hub.packets[self->to_hub.begin];
    *is_whole_out = self->num_whole > 0;
    if (!packet->is_placed)
        PH_TRY(owner->place(owner->context, &packet->message, packet->payload_bytes, &packet->place));
    packet->is_placed = true;
    if (!*is_whole_out)
        return PH_OK;
    if (packet->payload_bytes > 0)
        memcpy(packet->place, packet->copy, packet->payload_bytes);
    free(packet->copy);
    self->to_hub.begin++;
    self->num_whole--;
    return owner->arrived(owner->context, &packet->message);
}

static ph_status payload_progress(struct ph__link *link, size_t max_messages, size_t *num_moved_out)
{
    struct payload_link *self = (struct payload_link *)link;
    size_t num_moved = 0;
    bool is_whole = true;
    for (; self->num_allowed > 0 && self->to_worker.begin < self->to_worker.end; num_moved++) {
        self->num_allowed--;
        let_leave(self);
    }
    for (size_t i = 0; i < max_messages && is_whole && self->to_hub.begin < self->to_hub.end; i++) {
        PH_TRY(let_arrive(self, &is_whole));
        num_moved += is_whole;
    }
    *num_moved_out = num_moved;
    return PH_OK;
}

static bool payload_sleep(struct ph__link *link)
{
    (void)link;
    return true;
}

static short payload_poll_events(const struct ph__link *link)
{
    (void)link;
    return POLLIN;
}

static void payload_destroy(struct ph__link *link)
{
    struct payload_link *self = (struct payload_link *)link;
    free_queue(&self->to_hub);
    free_queue(&self->to_worker);
    free_queue(&self->received);
    free(self);
}

static const struct ph__link_transport payload_transport = {
    .name = "payloads of a test",
    .send = payload_send,
    .progress = payload_progress,
    .begin_sleep = payload_sleep,
    .end_sleep = payload_sleep,
    .poll_events = payload_poll_events,
    .destroy = payload_destroy,
};

struct ph__link *payload_link_create(struct ph__link_owner owner, payload_receiver receiver, void *context)
{
    struct payload_link *self = calloc(1, sizeof *self);
    trial_require(self != NULL);
    self->link = (struct ph__link){.transport = &payload_transport, .owner = owner, .descriptor = -1};
    self->receiver = receiver;
    self->context = context;
    return &self->link;
}

/* ---- the worker's side ---- */

void payload_link_put(struct ph__link *link, const struct ph__message *message, const void *payload,
    size_t payload_bytes, bool is_whole)
{
    struct payload_link *self = (struct payload_link *)link;
    trial_require(
        self->num_whole == self->to_hub.end - self->to_hub.begin); /* only one message may lack its payload */
    enqueue(&self->to_hub, message, payload, payload_bytes);
    self->num_whole += is_whole;
}

void payload_link_complete(struct ph__link *link)
{
    struct payload_link *self = (struct payload_link *)link;
    self->num_whole = self->to_hub.end - self->to_hub.begin;
}

void payload_link_receive(struct ph__link *link)
{
    struct payload_link *self = (struct payload_link *)link;
    while (self->received.begin < self->received.end) {
        const struct packet packet = self->received.packets[self->received.begin++];
        self->receiver(self->context, &packet.message, packet.copy, packet.payload_bytes);
        free(packet.copy);
    }
}

void payload_link_allow(struct ph__link *link, size_t count)
{
    ((struct payload_link *)link)->num_allowed = count;
}

void payload_link_break(struct ph__link *link)
{
    ((struct payload_link *)link)->is_broken = true;
}

size_t payload_link_num_waiting(const struct ph__link *link)
{
    const struct payload_link *self = (const struct payload_link *)link;
    return self->to_worker.end - self->to_worker.begin;
}

size_t payload_link_num_sending(const struct ph__link *link, uint32_t chunk, uint8_t copy)
{
    const struct payload_link *self = (const struct payload_link *)link;
    size_t count = 0;
    for (size_t i = self->to_worker.begin; i < self->to_worker.end; i++) {
        const struct packet *packet = &self->to_worker.packets[i];
        count += packet->payload_bytes > 0 && packet->message.chunk == chunk && packet->message.flags == copy;
    }
    return count;
}
