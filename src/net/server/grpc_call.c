/* Calls of a gRPC server. nghttp2 knows HTTP/2, and does no input and output: its callbacks say what has
 * come, and ask for what is to be sent.
 *
 *  call         what has come             event -> next
 *  OPEN         a head, then messages     the client's end -> HALF_CLOSED
 *  HALF_CLOSED  all                       (the handler finishes)
 *  either                                 finished -> FINISHED, reset or connection lost -> ended
 *  FINISHED     what comes is dropped     status sent -> ended */
#include "net/server/grpc_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread/clock.h"

#define PREFIX_BYTES 5 /* before a message: whether it is compressed, and its size */

/* Codes of gRPC that the server itself gives. */
enum { INVALID = 3, TOO_LARGE = 8, UNIMPLEMENTED = 12, UNAVAILABLE = 14 };

/* ---- calls ---- */

static struct ph__grpc_call *create_call(struct ph__grpc_connection *connection, int32_t stream)
{
    struct ph__grpc_server *server = connection->server;
    struct ph__grpc_call *call = server->free_calls;
    if (call != NULL)
        server->free_calls = call->next;
    else
        call = calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    call->connection = connection;
    call->stream = stream;
    call->timeout_ns = UINT64_MAX;
    call->since_ns = ph__clock_ns();
    call->next = &connection->calls;
    call->previous = connection->calls.previous;
    call->previous->next = connection->calls.previous = call;
    server->num_calls++;
    return call;
}

void ph__grpc_end_call(struct ph__grpc_call *call, bool was_cancelled)
{
    struct ph__grpc_connection *connection = call->connection;
    struct ph__grpc_server *server = connection->server;
    struct ph__grpc_call kept;
    if (call->has_begun)
        server->options.handler->end(server->options.handler->context, call, was_cancelled);
    call->previous->next = call->next;
    call->next->previous = call->previous;
    ph__buffer_recycle(&call->in);
    ph__buffer_recycle(&call->out);
    ph__buffer_clear(&call->path);
    ph__buffer_clear(&call->authorization);
    ph__buffer_clear(&call->status_text);
    kept = (struct ph__grpc_call){.in = call->in,
        .out = call->out,
        .path = call->path,
        .authorization = call->authorization,
        .status_text = call->status_text,
        .next = server->free_calls};
    *call = kept;
    server->free_calls = call;
    server->num_calls--;
    connection->since_ns = ph__clock_ns();
}

void ph__grpc_free_call(struct ph__grpc_call *call)
{
    ph__buffer_fini(&call->in);
    ph__buffer_fini(&call->out);
    ph__buffer_fini(&call->path);
    ph__buffer_fini(&call->authorization);
    ph__buffer_fini(&call->status_text);
    free(call);
}

struct ph__bytes ph__grpc_call_path(const struct ph__grpc_call *call)
{
    return ph__buffer_bytes(&call->path);
}

struct ph__bytes ph__grpc_call_authorization(const struct ph__grpc_call *call)
{
    return ph__buffer_bytes(&call->authorization);
}

uint64_t ph__grpc_call_timeout_ns(const struct ph__grpc_call *call)
{
    return call->timeout_ns;
}

void **ph__grpc_call_user(struct ph__grpc_call *call)
{
    return &call->user;
}

/* ---- sending ---- */

#define HEADER(name_text, value_text, value_size)                                    \
    {                                                                                \
        .name = (uint8_t *)(uintptr_t)(name_text), .namelen = sizeof(name_text) - 1, \
        .value = (uint8_t *)(uintptr_t)(value_text), .valuelen = (value_size),       \
        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME                                        \
    }

/* Writes the trailers, or the end of an answer that is a head alone. */
static size_t list_trailers(const struct ph__grpc_call *call, char digits[4], nghttp2_nv trailers[2])
{
    const nghttp2_nv status = HEADER("grpc-status", digits, (size_t)snprintf(digits, 4, "%u", call->status));
    const nghttp2_nv text = HEADER("grpc-message", call->status_text.bytes, call->status_text.size);
    trailers[0] = status;
    trailers[1] = text;
    return call->status_text.size > 0 ? 2 : 1;
}

/* Called by nghttp2 for the next bytes of a call's messages. */
static ssize_t read_messages(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
    uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct ph__grpc_call *call = source->ptr;
    const size_t count = ph__min(size, call->out.size - call->out_sent);
    char digits[4];
    nghttp2_nv trailers[2];
    (void)context;
    if (count > 0)
        memcpy(to, call->out.bytes + call->out_sent, count);
    call->out_sent += count;
    call->untaken_ns = ph__clock_ns();
    if (call->out_sent < call->out.size)
        return (ssize_t)count;
    ph__buffer_clear(&call->out);
    call->out_sent = 0;
    if (!call->is_finished)
        call->untaken_ns = 0;
    if (!call->is_finished)
        return count > 0 ? (ssize_t)count : NGHTTP2_ERR_DEFERRED;
    *flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (nghttp2_submit_trailer(session, stream, trailers, list_trailers(call, digits, trailers)) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return (ssize_t)count;
}

/* Hands the answer's head to nghttp2. Without messages the status is part of it. */
static void answer(struct ph__grpc_call *call, bool is_alone)
{
    char digits[4];
    nghttp2_nv head[4] = {HEADER(":status", "200", 3), HEADER("content-type", "application/grpc", 16)};
    const nghttp2_data_provider messages = {.source.ptr = call, .read_callback = read_messages};
    const size_t count = is_alone ? 2 + list_trailers(call, digits, head + 2) : 2;
    call->has_answered = true;
    if (nghttp2_submit_response(
            call->connection->session, call->stream, head, count, is_alone ? NULL : &messages) != 0)
        call->connection->is_dead = true;
    ph__grpc_mark_dirty(call->connection);
}

void ph__grpc_send(struct ph__grpc_call *call, const void *message, size_t size)
{
    if (call->is_finished)
        return;
    const unsigned char prefix[PREFIX_BYTES] = {0, (unsigned char)(size >> 24), (unsigned char)(size >> 16),
        (unsigned char)(size >> 8), (unsigned char)size};
    if (call->out.size == 0)
        call->untaken_ns = ph__clock_ns();
    ph__buffer_append(&call->out, prefix, PREFIX_BYTES);
    ph__buffer_append(&call->out, message, size);
    if (call->out.has_failed)
        call->connection->is_dead = true;
    if (!call->has_answered)
        answer(call, false);
    else
        (void)nghttp2_session_resume_data(call->connection->session, call->stream);
    ph__grpc_mark_dirty(call->connection);
}

/* Encodes a text as grpc-message: bytes but printable ASCII as %XX. */
static void encode_text(const char *text, struct ph__buffer *to)
{
    char escape[4];
    for (; *text != '\0'; text++) {
        const bool is_plain = *text >= ' ' && *text <= '~' && *text != '%';
        snprintf(escape, sizeof escape, is_plain ? "%c" : "%%%02X", (unsigned char)*text);
        ph__buffer_append_text(to, escape);
    }
}

void ph__grpc_finish(struct ph__grpc_call *call, unsigned status, const char *text)
{
    if (call->is_finished)
        return;
    call->is_finished = true;
    call->status = status;
    call->since_ns = 0;
    call->untaken_ns = ph__clock_ns();
    encode_text(text, &call->status_text);
    if (!call->has_answered)
        answer(call, true);
    else
        (void)nghttp2_session_resume_data(call->connection->session, call->stream);
    ph__grpc_mark_dirty(call->connection);
}

/* ---- receiving ---- */

static int begun_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct ph__grpc_call *call = create_call(context, frame->hd.stream_id);
    if (call == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
}

/* Reads "100m": at most eight digits and a unit. Returns UINT64_MAX for anything else: no deadline. */
static uint64_t read_timeout(struct ph__bytes text)
{
    static const char units[] = "HMSmun";
    static const uint64_t ns[] = {3600000000000, 60000000000, 1000000000, 1000000, 1000, 1};
    uint64_t number = 0;
    if (text.size < 2 || text.size > 9)
        return UINT64_MAX;
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return UINT64_MAX;
        number = number * 10 + (uint64_t)(text.bytes[i] - '0');
    }
    const char unit = text.bytes[text.size - 1];
    const char *found = unit != '\0' ? strchr(units, unit) : NULL;
    if (found == NULL || number > UINT64_MAX / ns[found - units])
        return UINT64_MAX;
    return number * ns[found - units];
}

static int came_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
    size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
    struct ph__grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    const struct ph__bytes key = {(const char *)name, name_size}, text = {(const char *)value, value_size};
    (void)flags, (void)context;
    if (call == NULL || call->has_begun)
        return 0;
    call->head_bytes += name_size + value_size;
    if (call->head_bytes > PH_GRPC_HEAD_BYTES)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (ph__bytes_are(key, ":path"))
        ph__buffer_append(&call->path, value, value_size);
    else if (ph__bytes_are(key, "authorization"))
        ph__buffer_append(&call->authorization, value, value_size);
    else if (ph__bytes_are(key, "grpc-timeout"))
        call->timeout_ns = read_timeout(text);
    else if (ph__bytes_are(key, "content-type"))
        call->is_grpc = value_size >= 16 && memcmp(value, "application/grpc", 16) == 0;
    return 0;
}

static void begin(struct ph__grpc_call *call)
{
    const struct ph__grpc_handler *handler = call->connection->server->options.handler;
    call->has_begun = true;
    handler->begin(handler->context, call);
    if (!call->is_grpc)
        ph__grpc_finish(call, INVALID, "the content-type must be application/grpc");
}

static void half_close(struct ph__grpc_call *call)
{
    const struct ph__grpc_handler *handler = call->connection->server->options.handler;
    call->since_ns = 0;
    if (call->is_finished)
        return;
    if (call->in.size > 0)
        ph__grpc_finish(call, INVALID, "the call ends within a message");
    else
        handler->half_closed(handler->context, call);
}

static int came_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct ph__grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    const bool has_head = frame->hd.type == NGHTTP2_HEADERS;
    (void)context;
    if (call == NULL || (!has_head && frame->hd.type != NGHTTP2_DATA))
        return 0;
    if (has_head && !call->has_begun)
        begin(call);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
        half_close(call);
    return 0;
}

/* Returns the size of the message that `in` begins with; its prefix must be there. */
static size_t message_bytes(const struct ph__buffer *in)
{
    const unsigned char *prefix = in->bytes;
    return (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 | prefix[4];
}

/* Looks at a prefix that is there. Returns false for a message that cannot be taken, and finishes the call.
 */
static bool is_prefix_good(struct ph__grpc_call *call)
{
    const size_t max_bytes = call->connection->server->options.max_message_bytes;
    char text[100];
    if (call->in.bytes[0] != 0) {
        ph__grpc_finish(call, UNIMPLEMENTED, "compressed messages are not supported");
        return false;
    }
    if (message_bytes(&call->in) <= max_bytes)
        return true;
    snprintf(text, sizeof text, "a message of %zu bytes exceeds the limit of %zu", message_bytes(&call->in),
        max_bytes);
    ph__grpc_finish(call, TOO_LARGE, text);
    return false;
}

/* Hands a whole message to the handler, without its prefix. */
static void deliver(struct ph__grpc_call *call)
{
    const struct ph__grpc_handler *handler = call->connection->server->options.handler;
    memmove(call->in.bytes, call->in.bytes + PREFIX_BYTES, call->in.size - PREFIX_BYTES);
    call->in.size -= PREFIX_BYTES;
    handler->message(handler->context, call, &call->in);
    ph__buffer_clear(&call->in);
    call->since_ns = 0;
}

static int came_data(
    nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size, void *context)
{
    struct ph__grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags, (void)context;
    while (call != NULL && size > 0 && !call->is_finished) {
        const bool has_prefix = call->in.size >= PREFIX_BYTES;
        const size_t wanted = has_prefix ? PREFIX_BYTES + message_bytes(&call->in) : PREFIX_BYTES;
        const size_t count = ph__min(size, wanted - call->in.size);
        if (call->in.size == 0)
            call->since_ns = ph__clock_ns();
        ph__buffer_append(&call->in, bytes, count);
        bytes += count;
        size -= count;
        if (call->in.has_failed) {
            ph__grpc_finish(call, UNAVAILABLE, "out of memory");
        } else if (call->in.size == PREFIX_BYTES && !has_prefix) {
            if (is_prefix_good(call) && message_bytes(&call->in) == 0)
                deliver(call);
        } else if (has_prefix && call->in.size == PREFIX_BYTES + message_bytes(&call->in)) {
            deliver(call);
        }
    }
    return 0;
}

/* Called when a stream is over: its status has been sent, or it was reset. */
static int closed_stream(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    struct ph__grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)context;
    if (call != NULL)
        ph__grpc_end_call(call, error != NGHTTP2_NO_ERROR || !call->is_finished);
    return 0;
}

void ph__grpc_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begun_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, came_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, came_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, came_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closed_stream);
}
