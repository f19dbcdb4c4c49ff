/* Control streams. Descriptors travel with the first byte of their frame, as one sendmsg of SCM_RIGHTS
 * (unix(7)). */
#include "net/control_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "net/wire.h"

#define HEAD_BYTES 8
#define RECEIVE_BYTES 65536

struct buffer {
    char *bytes;
    size_t begin, end, capacity;
};

/* Descriptors that leave with the byte at `position` of the stream's output. */
struct parcel {
    uint64_t position;
    size_t count;
    int *descriptors;
    struct parcel *next;
};

struct ph__control_stream {
    int socket;
    struct buffer in, out;
    size_t max_bytes;  /* of a received body */
    uint64_t num_sent; /* bytes since the beginning */
    struct parcel *parcels, **last_parcel;
    int received[PH_CONTROL_MAX_DESCRIPTORS];
    size_t num_received;
    struct ph__frame_key *send_key, *receive_key; /* NULL: frames have no tags */
    bool refuses_descriptors, is_closed;
};

ph_status ph__control_stream_create(int socket, struct ph__control_stream **stream_out)
{
    struct ph__control_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        close(socket);
        return ph__out_of_memory("a connection");
    }
    stream->socket = socket;
    stream->max_bytes = PH_CONTROL_MAX_BYTES;
    stream->last_parcel = &stream->parcels;
    *stream_out = stream;
    return PH_OK;
}

static void close_all(const int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(descriptors[i]);
}

static void free_parcel(struct parcel *parcel)
{
    close_all(parcel->descriptors, parcel->count);
    free(parcel->descriptors);
    free(parcel);
}

static void drop_parcel(struct ph__control_stream *stream)
{
    struct parcel *parcel = stream->parcels;
    stream->parcels = parcel->next;
    if (stream->parcels == NULL)
        stream->last_parcel = &stream->parcels;
    free_parcel(parcel);
}

void ph__control_stream_destroy(struct ph__control_stream *stream)
{
    if (stream == NULL)
        return;
    while (stream->parcels != NULL)
        drop_parcel(stream);
    close_all(stream->received, stream->num_received);
    if (stream->socket >= 0)
        close(stream->socket);
    ph__frame_key_destroy(stream->send_key);
    ph__frame_key_destroy(stream->receive_key);
    free(stream->in.bytes);
    free(stream->out.bytes);
    free(stream);
}

int ph__control_stream_socket(const struct ph__control_stream *stream)
{
    return stream->socket;
}

void ph__control_stream_protect(
    struct ph__control_stream *stream, struct ph__frame_key *send_key, struct ph__frame_key *receive_key)
{
    stream->send_key = send_key;
    stream->receive_key = receive_key;
}

ph_status ph__control_stream_release(struct ph__control_stream *stream, int *socket_out,
    struct ph__frame_key **send_key_out, struct ph__frame_key **receive_key_out)
{
    const bool is_idle = stream->in.begin == stream->in.end && !ph__control_stream_has_output(stream);
    if (!is_idle || stream->num_received > 0) {
        ph__control_stream_destroy(stream);
        return ph_fail(PH_ERROR_PEER, "the peer sent data before the connection became a link");
    }
    *socket_out = stream->socket;
    *send_key_out = stream->send_key;
    *receive_key_out = stream->receive_key;
    stream->socket = -1;
    stream->send_key = stream->receive_key = NULL;
    ph__control_stream_destroy(stream);
    return PH_OK;
}

void ph__control_stream_refuse_descriptors(struct ph__control_stream *stream)
{
    stream->refuses_descriptors = true;
}

/* ---- buffers ---- */

/* Makes room for `size` more bytes at the end. */
static ph_status make_room(struct buffer *buffer, size_t size)
{
    if (buffer->begin > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->begin, buffer->end - buffer->begin);
        buffer->end -= buffer->begin;
        buffer->begin = 0;
    }
    return ph__array_reserve((void **)&buffer->bytes, &buffer->capacity, buffer->end + size, 1);
}

/* Frees the memory behind the used bytes. */
static void give_back(struct buffer *buffer)
{
    memmove(buffer->bytes, buffer->bytes + buffer->begin, buffer->end - buffer->begin);
    buffer->end -= buffer->begin;
    buffer->begin = 0;
    void *bytes = buffer->end > 0 ? realloc(buffer->bytes, buffer->end) : NULL;
    if (buffer->end > 0 && bytes == NULL)
        return; /* the buffer stays as it is */
    if (buffer->end == 0)
        free(buffer->bytes);
    buffer->bytes = bytes;
    buffer->capacity = buffer->end;
}

void ph__control_stream_limit(struct ph__control_stream *stream, size_t max_bytes)
{
    stream->max_bytes = max_bytes;
    if (stream->in.capacity > HEAD_BYTES + max_bytes + PH_FRAME_TAG_BYTES)
        give_back(&stream->in);
}

static void append(struct buffer *buffer, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(buffer->bytes + buffer->end, bytes, size);
    buffer->end += size;
}

/* ---- sending ---- */

static ph_status copy_descriptors(const int *descriptors, size_t count, struct parcel *parcel)
{
    for (; parcel->count < count; parcel->count++) {
        parcel->descriptors[parcel->count] = fcntl(descriptors[parcel->count], F_DUPFD_CLOEXEC, 0);
        if (parcel->descriptors[parcel->count] < 0)
            return ph_fail(PH_ERROR_MEMORY, "cannot copy a descriptor: %s", strerror(errno));
    }
    return PH_OK;
}

/* Copies the descriptors into a parcel; NULL in *parcel_out when there are none. */
static ph_status make_parcel(const int *descriptors, size_t count, struct parcel **parcel_out)
{
    *parcel_out = NULL;
    if (count == 0)
        return PH_OK;
    struct parcel *parcel = calloc(1, sizeof *parcel);
    if (parcel == NULL || (parcel->descriptors = calloc(count, sizeof *parcel->descriptors)) == NULL) {
        free(parcel);
        return ph__out_of_memory("%zu descriptors", count);
    }
    const ph_status status = copy_descriptors(descriptors, count, parcel);
    if (status != PH_OK) {
        free_parcel(parcel);
        return status;
    }
    *parcel_out = parcel;
    return PH_OK;
}

static void add_parcel(struct ph__control_stream *stream, struct parcel *parcel)
{
    parcel->position = stream->num_sent + (stream->out.end - stream->out.begin);
    *stream->last_parcel = parcel;
    stream->last_parcel = &parcel->next;
}

/* Computes the frame's tag; leaves tag_out alone when there is no key. */
static ph_status make_tag(const struct ph__control_stream *stream, const unsigned char head[HEAD_BYTES],
    const void *body, size_t size, unsigned char tag_out[PH_FRAME_TAG_BYTES])
{
    if (stream->send_key == NULL)
        return PH_OK;
    return ph__frame_mac(stream->send_key, head, HEAD_BYTES, body, size, tag_out);
}

ph_status ph__control_stream_put(struct ph__control_stream *stream, uint16_t type, const void *body,
    size_t size, const int *descriptors, size_t num_descriptors)
{
    unsigned char head[HEAD_BYTES], tag[PH_FRAME_TAG_BYTES];
    struct ph__wire_writer writer;
    struct parcel *parcel;
    if (size > PH_CONTROL_MAX_BYTES || num_descriptors > PH_CONTROL_MAX_DESCRIPTORS)
        return ph_fail(PH_ERROR_USAGE, "a control message of %zu bytes and %zu descriptors is too large",
            size, num_descriptors);
    if (stream->out.end - stream->out.begin > PH_CONTROL_MAX_BYTES)
        return ph_fail(PH_ERROR_PEER, "the peer does not read its messages: %zu bytes are waiting",
            stream->out.end - stream->out.begin);
    ph__wire_writer_init(&writer, head, sizeof head);
    ph__wire_put_u32(&writer, (uint32_t)size);
    ph__wire_put_u16(&writer, type);
    ph__wire_put_u16(&writer, (uint16_t)num_descriptors);
    PH_TRY(make_room(&stream->out, HEAD_BYTES + size + PH_FRAME_TAG_BYTES));
    PH_TRY(make_parcel(descriptors, num_descriptors, &parcel)); /* before the tag, which counts frames */
    const ph_status status = make_tag(stream, head, body, size, tag);
    if (status != PH_OK) {
        if (parcel != NULL)
            free_parcel(parcel);
        return status;
    }
    if (parcel != NULL)
        add_parcel(stream, parcel);
    append(&stream->out, head, sizeof head);
    append(&stream->out, body, size);
    if (stream->send_key != NULL)
        append(&stream->out, tag, sizeof tag);
    return PH_OK;
}

static void attach(struct msghdr *header, char *control, size_t control_bytes, const struct parcel *parcel)
{
    memset(control, 0, control_bytes);
    header->msg_control = control;
    header->msg_controllen = CMSG_SPACE(parcel->count * sizeof(int));
    struct cmsghdr *rights = CMSG_FIRSTHDR(header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(parcel->count * sizeof(int));
    memcpy(CMSG_DATA(rights), parcel->descriptors, parcel->count * sizeof(int));
}

/* Sends bytes up to the position of the next descriptors. */
static ssize_t send_some(struct ph__control_stream *stream)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PH_CONTROL_MAX_DESCRIPTORS * sizeof(int))];
    size_t size = stream->out.end - stream->out.begin;
    const struct parcel *parcel = stream->parcels;
    const bool is_due = parcel != NULL && parcel->position == stream->num_sent;
    const struct parcel *next = is_due ? parcel->next : parcel;
    if (next != NULL && next->position - stream->num_sent < size)
        size = (size_t)(next->position - stream->num_sent);
    struct iovec bytes = {.iov_base = stream->out.bytes + stream->out.begin, .iov_len = size};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (is_due)
        attach(&header, control, sizeof control, parcel);
    const ssize_t sent = sendmsg(stream->socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0 && is_due)
        drop_parcel(stream);
    return sent;
}

ph_status ph__control_stream_flush(struct ph__control_stream *stream)
{
    while (ph__control_stream_has_output(stream)) {
        const ssize_t sent = send_some(stream);
        if (sent < 0 && errno == EAGAIN)
            return PH_OK;
        if (sent < 0 && errno != EINTR)
            return ph_fail(PH_ERROR_PEER, "the connection is broken: %s", strerror(errno));
        if (sent > 0) {
            stream->out.begin += (size_t)sent;
            stream->num_sent += (uint64_t)sent;
        }
    }
    return PH_OK;
}

bool ph__control_stream_has_output(const struct ph__control_stream *stream)
{
    return stream->out.begin < stream->out.end;
}

size_t ph__control_stream_output_bytes(const struct ph__control_stream *stream)
{
    return stream->out.end - stream->out.begin;
}

/* ---- receiving ---- */

static ph_status keep_descriptors(struct ph__control_stream *stream, struct msghdr *header)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int descriptors[PH_CONTROL_MAX_DESCRIPTORS];
        const size_t kept = count < PH_CONTROL_MAX_DESCRIPTORS ? count : PH_CONTROL_MAX_DESCRIPTORS;
        memcpy(descriptors, CMSG_DATA(part), kept * sizeof(int));
        if (count > PH_CONTROL_MAX_DESCRIPTORS - stream->num_received) {
            close_all(descriptors, kept);
            return ph_fail(PH_ERROR_PEER, "the peer sent more descriptors than a message can have");
        }
        memcpy(stream->received + stream->num_received, descriptors, count * sizeof(int));
        stream->num_received += count;
    }
    if ((header->msg_flags & MSG_CTRUNC) != 0)
        return ph_fail(PH_ERROR_PEER, stream->refuses_descriptors
                                          ? "the peer sent descriptors that were not asked for"
                                          : "descriptors of a message were lost");
    return PH_OK;
}

/* Returns the bytes that may still be buffered: up to the largest acceptable frame. */
static size_t room_left(const struct ph__control_stream *stream)
{
    const size_t used = stream->in.end - stream->in.begin;
    const size_t limit = HEAD_BYTES + stream->max_bytes + PH_FRAME_TAG_BYTES;
    return used < limit ? limit - used : 0;
}

static ph_status receive_some(struct ph__control_stream *stream, size_t max_bytes, bool *is_more_out)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PH_CONTROL_MAX_DESCRIPTORS * sizeof(int))];
    PH_TRY(make_room(&stream->in, max_bytes));
    struct iovec bytes = {.iov_base = stream->in.bytes + stream->in.end, .iov_len = max_bytes};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (!stream->refuses_descriptors) {
        header.msg_control = control;
        header.msg_controllen = sizeof control;
    }
    const ssize_t received = recvmsg(stream->socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *is_more_out = received > 0 || (received < 0 && errno == EINTR);
    if (received == 0 || (received < 0 && errno == ECONNRESET))
        stream->is_closed = true;
    else if (received < 0 && errno != EINTR && errno != EAGAIN)
        return ph_fail(PH_ERROR_PEER, "the connection is broken: %s", strerror(errno));
    if (received <= 0)
        return PH_OK;
    stream->in.end += (size_t)received;
    return keep_descriptors(stream, &header);
}

ph_status ph__control_stream_receive(struct ph__control_stream *stream)
{
    bool is_more = true;
    while (is_more && room_left(stream) > 0)
        PH_TRY(receive_some(stream, ph__min(room_left(stream), RECEIVE_BYTES), &is_more));
    return stream->is_closed ? ph_fail(PH_ERROR_PEER, "the peer has closed the connection") : PH_OK;
}

bool ph__control_stream_is_closed(const struct ph__control_stream *stream)
{
    return stream->is_closed;
}

static void take_descriptors(struct ph__control_stream *stream, struct ph__control_frame *frame)
{
    memcpy(frame->descriptors, stream->received, frame->num_descriptors * sizeof(int));
    stream->num_received -= frame->num_descriptors;
    memmove(stream->received, stream->received + frame->num_descriptors, stream->num_received * sizeof(int));
}

/* Checks the tag of the first buffered frame, whose body has `size` bytes. */
static ph_status check_tag(struct ph__control_stream *stream, size_t size)
{
    const unsigned char *head = (const unsigned char *)stream->in.bytes + stream->in.begin;
    if (stream->receive_key == NULL)
        return PH_OK;
    PH_TRY(ph__frame_begin(stream->receive_key, head, HEAD_BYTES));
    if (size > 0)
        PH_TRY(ph__frame_add(stream->receive_key, head + HEAD_BYTES, size));
    return ph__frame_check(stream->receive_key, head + HEAD_BYTES + size, "the peer");
}

ph_status ph__control_stream_take(
    struct ph__control_stream *stream, struct ph__control_frame *frame_out, bool *is_there_out)
{
    const size_t available = stream->in.end - stream->in.begin;
    struct ph__wire_reader reader;
    *is_there_out = false;
    if (available < HEAD_BYTES)
        return PH_OK;
    ph__wire_reader_init(&reader, stream->in.bytes + stream->in.begin, HEAD_BYTES);
    const size_t size = ph__wire_get_u32(&reader);
    frame_out->type = ph__wire_get_u16(&reader);
    frame_out->num_descriptors = ph__wire_get_u16(&reader);
    if (size > stream->max_bytes)
        return ph_fail(PH_ERROR_PEER, "a control message of %zu bytes is too long", size);
    const size_t tag_bytes = stream->receive_key != NULL ? PH_FRAME_TAG_BYTES : 0;
    if (available < HEAD_BYTES + size + tag_bytes)
        return PH_OK;
    PH_TRY(check_tag(stream, size));
    if (frame_out->num_descriptors > stream->num_received)
        return ph_fail(PH_ERROR_PEER, "a control message came without its descriptors");
    take_descriptors(stream, frame_out);
    frame_out->body = stream->in.bytes + stream->in.begin + HEAD_BYTES;
    frame_out->size = size;
    stream->in.begin += HEAD_BYTES + size + tag_bytes;
    *is_there_out = true;
    return PH_OK;
}

void ph__control_frame_close(const struct ph__control_frame *frame)
{
    close_all(frame->descriptors, frame->num_descriptors);
}
