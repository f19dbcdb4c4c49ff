/* Links over TCP. A queue of frames goes out; one frame comes in at a time, in three parts: head, payload,
 * tag. */
#include "net/link/tcp_link.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "net/wire.h"

#define FRAME_MAGIC 0x31425048u /* "HPB1" */
#define FRAMES_A_CALL 64        /* of one sendmsg */
#define LEAST_REGISTERED_BYTES 8192
#define BYTES_A_TURN ((size_t)512 << 10) /* received before other links have their turn */

struct out_frame {
    struct ph__message message;
    const void *payload;
    size_t payload_bytes;
    unsigned char head[PH_TCP_FRAME_BYTES], tag[PH_FRAME_TAG_BYTES];
};

struct tcp_link {
    struct ph__link link; /* first */
    struct ph__frame_key *send_key, *receive_key;
    const struct ph__region *registered;
    size_t tag_bytes; /* 0 without keys */
    /* Sending: frames [first, end) of the ring; of the first, `sent` bytes have left. */
    struct out_frame *frames;
    uint64_t mask, first, end;
    size_t sent;
    /* Receiving: `received` bytes of the current part. */
    enum { IN_HEAD, IN_PAYLOAD } part;
    size_t received; /* of the head; or of payload and tag together */
    unsigned char head[PH_TCP_FRAME_BYTES], tag[PH_FRAME_TAG_BYTES];
    struct ph__message message;
    char *payload;
    size_t payload_bytes;
};

/* ---- frames ---- */

void ph__tcp_frame_encode(
    const struct ph__message *message, uint32_t payload_bytes, unsigned char head_out[PH_TCP_FRAME_BYTES])
{
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, head_out, PH_TCP_FRAME_BYTES);
    ph__wire_put_u32(&writer, FRAME_MAGIC);
    ph__wire_put_u32(&writer, payload_bytes);
    ph__wire_put_u8(&writer, message->kind);
    ph__wire_put_u8(&writer, message->flags);
    ph__wire_put_u16(&writer, message->count);
    ph__wire_put_u32(&writer, message->chunk);
    ph__wire_put_u64(&writer, message->iteration);
}

ph_status ph__tcp_frame_decode(const unsigned char head[PH_TCP_FRAME_BYTES], struct ph__message *message_out,
    uint32_t *payload_bytes_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, head, PH_TCP_FRAME_BYTES);
    if (ph__wire_get_u32(&reader) != FRAME_MAGIC)
        return ph_fail(PH_ERROR_PEER, "the peer sent bytes that are not a frame");
    *payload_bytes_out = ph__wire_get_u32(&reader);
    message_out->kind = ph__wire_get_u8(&reader);
    message_out->flags = ph__wire_get_u8(&reader);
    message_out->count = ph__wire_get_u16(&reader);
    message_out->chunk = ph__wire_get_u32(&reader);
    message_out->iteration = ph__wire_get_u64(&reader);
    return PH_OK;
}

/* ---- going out ---- */

static ph_status tcp_send(
    struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    struct tcp_link *self = (struct tcp_link *)link;
    if (self->end - self->first > self->mask)
        return ph_fail(PH_ERROR_PEER, "the peer does not read its messages: %llu are waiting",
            (unsigned long long)(self->end - self->first));
    assert(payload_bytes <= UINT32_MAX);
    struct out_frame *frame = &self->frames[self->end & self->mask];
    frame->message = *message;
    frame->payload = payload;
    frame->payload_bytes = payload_bytes;
    ph__tcp_frame_encode(message, (uint32_t)payload_bytes, frame->head);
    if (self->send_key != NULL)
        PH_TRY(ph__frame_mac(
            self->send_key, frame->head, sizeof frame->head, payload, payload_bytes, frame->tag));
    self->end++;
    return PH_OK;
}

/* Adds the part's bytes behind the first *skip ones, which have left already. */
static int add_part(struct iovec *parts, int count, const void *bytes, size_t size, size_t *skip)
{
    if (*skip >= size) {
        *skip -= size;
        return count;
    }
    parts[count] = (struct iovec){.iov_base = (char *)(uintptr_t)bytes + *skip, .iov_len = size - *skip};
    *skip = 0;
    return count + 1;
}

/* Tells whether the payload is sent from its pages: a small one is copied faster. */
static bool is_registered(const struct tcp_link *self, const struct out_frame *frame)
{
    const uintptr_t payload = (uintptr_t)frame->payload;
    return self->registered != NULL && frame->payload_bytes >= LEAST_REGISTERED_BYTES &&
           payload >= (uintptr_t)self->registered->memory &&
           payload - (uintptr_t)self->registered->memory < self->registered->size;
}

/* Lists the bytes of frames that one sendmsg can send: up to a registered payload, which is sent on its own.
 * is_last_out: no payload follows them. */
static int list_parts(const struct tcp_link *self, struct iovec *parts, bool *is_last_out)
{
    int count = 0;
    size_t skip = self->sent;
    *is_last_out = true;
    for (uint64_t i = self->first; i != self->end && i - self->first < FRAMES_A_CALL; i++) {
        const struct out_frame *frame = &self->frames[i & self->mask];
        count = add_part(parts, count, frame->head, sizeof frame->head, &skip);
        if (is_registered(self, frame)) {
            *is_last_out = skip >= frame->payload_bytes;
            if (!*is_last_out)
                return count;
            skip -= frame->payload_bytes;
        } else if (frame->payload_bytes > 0) {
            count = add_part(parts, count, frame->payload, frame->payload_bytes, &skip);
        }
        if (self->tag_bytes > 0)
            count = add_part(parts, count, frame->tag, self->tag_bytes, &skip);
    }
    return count;
}

static ssize_t send_parts(struct tcp_link *self)
{
    struct iovec parts[3 * FRAMES_A_CALL];
    bool is_last;
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = (size_t)list_parts(self, parts, &is_last)};
    self->link.counters.system_calls++;
    return sendmsg(self->link.descriptor, &header, MSG_DONTWAIT | MSG_NOSIGNAL | (is_last ? 0 : MSG_MORE));
}

/* Sends the payload of the first frame, of which `sent` bytes have left, head included. */
static ssize_t send_pages(struct tcp_link *self, const struct out_frame *frame)
{
    const size_t done = self->sent - sizeof frame->head;
    off_t offset =
        (off_t)((const char *)frame->payload - (const char *)self->registered->memory) + (off_t)done;
    self->link.counters.system_calls++;
    return sendfile(
        self->link.descriptor, self->registered->descriptor, &offset, frame->payload_bytes - done);
}

static ssize_t send_some(struct tcp_link *self)
{
    const struct out_frame *frame = &self->frames[self->first & self->mask];
    const size_t head_bytes = sizeof frame->head;
    const bool is_in_payload = self->sent >= head_bytes && self->sent < head_bytes + frame->payload_bytes;
    return is_in_payload && is_registered(self, frame) ? send_pages(self, frame) : send_parts(self);
}

/* Accounts for bytes that have left. Calls the owner for each frame that has left whole, and returns their
 * number. */
static size_t take_off(struct tcp_link *self, size_t bytes)
{
    size_t num_frames = 0;
    self->sent += bytes;
    while (self->first != self->end) {
        const struct out_frame *frame = &self->frames[self->first & self->mask];
        const size_t frame_bytes = sizeof frame->head + frame->payload_bytes + self->tag_bytes;
        if (self->sent < frame_bytes)
            break;
        self->sent -= frame_bytes;
        self->link.counters.messages_sent++;
        self->link.counters.payload_bytes_sent += frame->payload_bytes;
        self->first++;
        num_frames++;
        self->link.owner.sent(self->link.owner.context, &frame->message);
    }
    return num_frames;
}

static ph_status broken(const char *why)
{
    return ph_fail(PH_ERROR_PEER, "the connection is broken: %s", why);
}

static ph_status flush(struct tcp_link *self, size_t *num_moved)
{
    while (self->first != self->end) {
        const ssize_t sent = send_some(self);
        if (sent < 0 && errno == EAGAIN)
            return PH_OK;
        if (sent < 0 && errno != EINTR)
            return broken(strerror(errno));
        if (sent > 0)
            *num_moved += take_off(self, (size_t)sent);
    }
    return PH_OK;
}

/* ---- coming in ---- */

static ph_status begin_payload(struct tcp_link *self)
{
    uint32_t payload_bytes;
    void *memory = NULL;
    PH_TRY(ph__tcp_frame_decode(self->head, &self->message, &payload_bytes));
    PH_TRY(self->link.owner.place(self->link.owner.context, &self->message, payload_bytes, &memory));
    self->payload = memory;
    self->payload_bytes = payload_bytes;
    self->part = IN_PAYLOAD;
    self->received = 0;
    return PH_OK;
}

static ph_status check_tag(struct tcp_link *self)
{
    if (self->receive_key == NULL)
        return PH_OK;
    PH_TRY(ph__frame_begin(self->receive_key, self->head, sizeof self->head));
    if (self->payload_bytes > 0)
        PH_TRY(ph__frame_add(self->receive_key, self->payload, self->payload_bytes));
    return ph__frame_check(self->receive_key, self->tag, "the peer");
}

static ph_status end_frame(struct tcp_link *self)
{
    PH_TRY(check_tag(self));
    self->link.counters.messages_received++;
    self->link.counters.payload_bytes_received += self->payload_bytes;
    self->part = IN_HEAD;
    self->received = 0;
    return self->link.owner.arrived(self->link.owner.context, &self->message);
}

/* Lists the places of the next bytes: the rest of this frame, and the head of the next one behind it. Without
 * tags, the frame's own head is decoded by then and may be overwritten; a tag still needs it. */
static int list_wanted(struct tcp_link *self, struct iovec *parts)
{
    int count = 0;
    size_t skip = self->received;
    if (self->part == IN_HEAD)
        return add_part(parts, count, self->head, sizeof self->head, &skip);
    if (self->payload_bytes > 0)
        count = add_part(parts, count, self->payload, self->payload_bytes, &skip);
    if (self->tag_bytes > 0) /* the tag still needs the head */
        return add_part(parts, count, self->tag, self->tag_bytes, &skip);
    return add_part(parts, count, self->head, sizeof self->head, &skip);
}

/* Accounts for bytes that have arrived; `*num_moved` counts frames. */
static ph_status take_in(struct tcp_link *self, size_t bytes, size_t *num_moved)
{
    self->received += bytes;
    for (;;) {
        const size_t whole =
            self->part == IN_HEAD ? sizeof self->head : self->payload_bytes + self->tag_bytes;
        if (self->received < whole)
            return PH_OK;
        const size_t rest = self->received - whole;
        if (self->part == IN_HEAD) {
            PH_TRY(begin_payload(self));
        } else {
            PH_TRY(end_frame(self));
            (*num_moved)++;
        }
        self->received = rest;
        if (rest == 0 && (self->part == IN_HEAD || self->payload_bytes + self->tag_bytes > 0))
            return PH_OK;
    }
}

static ph_status receive(struct tcp_link *self, size_t max_messages, size_t *num_moved)
{
    size_t num_received = 0, bytes = 0;
    while (num_received < max_messages && bytes < BYTES_A_TURN) {
        struct iovec parts[3];
        struct msghdr header = {.msg_iov = parts, .msg_iovlen = (size_t)list_wanted(self, parts)};
        const ssize_t received = recvmsg(self->link.descriptor, &header, MSG_DONTWAIT);
        self->link.counters.system_calls++;
        if (received == 0)
            return ph_fail(PH_ERROR_PEER, "the peer has closed the connection");
        if (received < 0 && errno == EAGAIN)
            break;
        if (received < 0 && errno != EINTR)
            return broken(strerror(errno));
        if (received > 0) {
            bytes += (size_t)received;
            PH_TRY(take_in(self, (size_t)received, &num_received));
        }
    }
    *num_moved += num_received + (bytes > 0);
    return PH_OK;
}

static ph_status tcp_progress(struct ph__link *link, size_t max_messages, size_t *num_moved_out)
{
    struct tcp_link *self = (struct tcp_link *)link;
    size_t num_moved = 0;
    PH_TRY(flush(self, &num_moved));
    if (max_messages > 0)
        PH_TRY(receive(self, max_messages, &num_moved));
    *num_moved_out = num_moved;
    return PH_OK;
}

/* ---- sleep and end ---- */

static bool tcp_begin_sleep(struct ph__link *link)
{
    (void)link; /* the socket itself wakes the thread that polls it */
    return true;
}

static bool tcp_end_sleep(struct ph__link *link)
{
    (void)link; /* the next progress reports the end */
    return true;
}

static short tcp_poll_events(const struct ph__link *link)
{
    const struct tcp_link *self = (const struct tcp_link *)link;
    return self->first != self->end ? POLLIN | POLLOUT : POLLIN;
}

static void tcp_destroy(struct ph__link *link)
{
    struct tcp_link *self = (struct tcp_link *)link;
    ph__frame_key_destroy(self->send_key);
    ph__frame_key_destroy(self->receive_key);
    close(link->descriptor);
    free(self->frames);
    free(self);
}

static const struct ph__link_transport tcp_transport = {
    .name = "tcp",
    .send = tcp_send,
    .progress = tcp_progress,
    .begin_sleep = tcp_begin_sleep,
    .end_sleep = tcp_end_sleep,
    .poll_events = tcp_poll_events,
    .destroy = tcp_destroy,
    .events = EPOLLIN | EPOLLOUT,
};

size_t ph__tcp_link_bytes(size_t capacity)
{
    return sizeof(struct tcp_link) + capacity * sizeof(struct out_frame);
}

ph_status ph__tcp_link_create(const struct ph__tcp_link_options *options, struct ph__link **link_out)
{
    struct tcp_link *self = calloc(1, sizeof *self);
    if (self == NULL || (self->frames = calloc(options->capacity, sizeof *self->frames)) == NULL) {
        free(self);
        return ph__out_of_memory("a link");
    }
    assert(options->capacity > 0 && (options->capacity & (options->capacity - 1)) == 0);
    self->link.transport = &tcp_transport;
    self->link.owner = options->owner;
    self->link.descriptor = options->socket;
    self->send_key = options->send_key;
    self->receive_key = options->receive_key;
    self->registered = options->registered;
    self->tag_bytes = options->receive_key != NULL ? PH_FRAME_TAG_BYTES : 0;
    self->mask = options->capacity - 1;
    /* A peer that is busy computing may leave its socket unread for seconds; that is no failure. The control
     * connection, which every side empties, notices hosts that have failed. When the link has another route,
     * and that route alone has failed, keepalive tells a side that has sent nothing; when both have sent, a
     * wait times out first. */
    const unsigned none = 0;
    setsockopt(options->socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
    *link_out = &self->link;
    return PH_OK;
}
