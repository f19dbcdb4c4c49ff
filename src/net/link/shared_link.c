/* Links over shared memory. A ring has one writer, which alone moves `written`, and one reader, which alone
 * moves `read`; each is published with release and read with acquire. The reader sets `is_asleep`, then looks
 * once more; the writer publishes, then looks whether the reader sleeps. These four are sequentially
 * consistent, so that at least one side sees the other. */
#include "net/link/shared_link.h"

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "net/waiter.h"

struct ring { /* in shared memory */
    _Alignas(64) _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t read;
    _Atomic uint32_t is_asleep; /* beside `read`: the reader writes both */
    _Alignas(64) struct ph__message messages[];
};

struct shared_link {
    struct ph__link link; /* first */
    struct ring *out, *in;
    uint64_t capacity;
    uint64_t written, published; /* of out: queued, and published to the other side */
    uint64_t seen_read;          /* of out: the other side's position when last read */
    uint64_t read, seen_written; /* of in */
};

static size_t ring_bytes(size_t capacity)
{
    return sizeof(struct ring) + capacity * sizeof(struct ph__message);
}

size_t ph__shared_link_bytes(size_t capacity)
{
    assert(capacity >= 4 && (capacity & (capacity - 1)) == 0);
    return 2 * ring_bytes(capacity);
}

static ph_status shared_send(
    struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    struct shared_link *self = (struct shared_link *)link;
    (void)payload; /* lies in memory that both sides see */
    (void)payload_bytes;
    if (self->written - self->seen_read >= self->capacity) {
        self->seen_read = atomic_load_explicit(&self->out->read, memory_order_acquire);
        if (self->written - self->seen_read >= self->capacity)
            return ph_fail(PH_ERROR_PEER, "the peer does not read its messages: %llu are waiting",
                (unsigned long long)(self->written - self->seen_read));
    }
    self->out->messages[self->written & (self->capacity - 1)] = *message;
    self->written++;
    return PH_OK;
}

static void publish(struct shared_link *self)
{
    atomic_store_explicit(&self->out->written, self->written, memory_order_seq_cst);
    self->link.counters.messages_sent += self->written - self->published;
    self->published = self->written;
    if (atomic_load_explicit(&self->out->is_asleep, memory_order_seq_cst) != 0) {
        ph__doorbell_ring(self->link.descriptor);
        self->link.counters.doorbells++;
    }
}

/* Tells whether there is a message to read. PH_ERROR_PEER when the writer has overrun the ring. */
static ph_status look(struct shared_link *self, bool *is_there_out)
{
    if (self->read == self->seen_written) {
        const uint64_t written = atomic_load_explicit(&self->in->written, memory_order_acquire);
        if (written - self->read > self->capacity)
            return ph_fail(PH_ERROR_PEER, "the peer has overwritten unread messages");
        self->seen_written = written;
    }
    *is_there_out = self->read != self->seen_written;
    return PH_OK;
}

static ph_status receive_one(struct shared_link *self)
{
    const struct ph__link_owner *owner = &self->link.owner;
    const struct ph__message message = self->in->messages[self->read & (self->capacity - 1)];
    void *memory;
    self->read++;
    self->link.counters.messages_received++;
    PH_TRY(owner->place(owner->context, &message, 0, &memory));
    return owner->arrived(owner->context, &message);
}

static ph_status shared_progress(struct ph__link *link, size_t max_messages, size_t *num_moved_out)
{
    struct shared_link *self = (struct shared_link *)link;
    size_t num_received = 0;
    bool is_there = false;
    PH_TRY(look(self, &is_there));
    while (is_there && num_received < max_messages) {
        PH_TRY(receive_one(self));
        num_received++;
        PH_TRY(look(self, &is_there));
    }
    if (num_received > 0)
        atomic_store_explicit(&self->in->read, self->read, memory_order_release);
    *num_moved_out = num_received + (size_t)(self->written - self->published);
    if (self->written != self->published)
        publish(self);
    return PH_OK;
}

static bool shared_begin_sleep(struct ph__link *link)
{
    struct shared_link *self = (struct shared_link *)link;
    atomic_store_explicit(&self->in->is_asleep, 1, memory_order_seq_cst);
    return self->written == self->published &&
           atomic_load_explicit(&self->in->written, memory_order_seq_cst) == self->read;
}

static bool shared_end_sleep(struct ph__link *link)
{
    struct shared_link *self = (struct shared_link *)link;
    atomic_store_explicit(&self->in->is_asleep, 0, memory_order_relaxed);
    return ph__doorbell_answer(link->descriptor);
}

static short shared_poll_events(const struct ph__link *link)
{
    (void)link;
    return POLLIN;
}

static void shared_destroy(struct ph__link *link)
{
    close(link->descriptor);
    free(link);
}

static const struct ph__link_transport shared_transport = {
    .name = "shared memory",
    .send = shared_send,
    .progress = shared_progress,
    .begin_sleep = shared_begin_sleep,
    .end_sleep = shared_end_sleep,
    .poll_events = shared_poll_events,
    .destroy = shared_destroy,
    .events = EPOLLIN,
};

ph_status ph__shared_link_create(const struct ph__shared_link_options *options, struct ph__link **link_out)
{
    struct shared_link *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ph__out_of_memory("a link");
    struct ring *to_hub = options->memory;
    struct ring *to_worker = (struct ring *)((char *)options->memory + ring_bytes(options->capacity));
    self->link.transport = &shared_transport;
    self->link.owner = options->owner;
    self->link.descriptor = options->doorbell;
    self->out = options->is_hub ? to_worker : to_hub;
    self->in = options->is_hub ? to_hub : to_worker;
    self->capacity = options->capacity;
    *link_out = &self->link;
    return PH_OK;
}
