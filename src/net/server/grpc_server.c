/* The gRPC server, over nghttp2, which knows HTTP/2 and does no input and output: bytes of a socket go in, and
 * bytes for it come out.
 *
 *  call       what has come              event -> next
 *  OPEN       a head, then messages      the client's end -> HALF_CLOSED
 *  HALF_CLOSED  all                      (the handler finishes)
 *  either                                finished -> FINISHED, reset or connection lost -> ended
 *  FINISHED   what comes is dropped      status sent -> ended */
#include "net/server/grpc_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "net/link/socket.h"

enum {
    DEFAULT_CONNECTIONS = 256,
    DEFAULT_CALLS = 128,
    DEFAULT_MESSAGE_BYTES = 4 << 20,
    DEFAULT_TIMEOUT_MS = 10000,
    SWEEP_MS = 500,          /* between two looks at slow clients */
    EVENTS_A_ROUND = 64,
    READ_BYTES = 64 << 10,   /* of a socket at a time */
    WRITE_BYTES = 256 << 10, /* that wait in a connection, before nghttp2 is asked for more */
    WINDOW_BYTES = 1 << 20,  /* of a call; of a connection it is 8 times as large */
    MAX_HEAD_BYTES = 16 << 10,
    PREFIX_BYTES = 5,           /* before a message: whether it is compressed, and its size */
    KEPT_BUFFER_BYTES = 1 << 20 /* of a call's buffers, from call to call */
};
#define DEFAULT_ADDRESS "127.0.0.1:0"

/* Codes of gRPC that the server itself gives. */
enum { INVALID = 3, TOO_LARGE = 8, UNIMPLEMENTED = 12, UNAVAILABLE = 14 };

struct connection;

struct ph__grpc_call {
    struct connection *connection;
    int32_t stream;
    bool has_begun;     /* the handler knows the call */
    bool is_finished;   /* its status is to be sent, or has been */
    bool has_answered;  /* the response's head has been handed to nghttp2 */
    bool is_grpc;       /* the head says so */
    size_t head_bytes;  /* of names and values so far */
    uint64_t timeout_ns;
    uint64_t since_ns; /* since when a message is awaited, the first one or the one in the making; 0: not */
    struct ph__buffer path, authorization;
    struct ph__buffer in;  /* the message in the making, with its prefix */
    struct ph__buffer out; /* messages with their prefixes; sent up to out_sent */
    size_t out_sent;
    unsigned status;
    struct ph__buffer status_text; /* percent-encoded */
    void *user;
    struct ph__grpc_call *next, *previous; /* in the connection's ring; next of free ones */
};

struct connection {
    struct ph__grpc_server *server;
    int socket;
    nghttp2_session *session;
    struct ph__grpc_call calls; /* a ring, with this as its end */
    struct ph__buffer out;      /* bytes for the socket; written up to out_written */
    size_t out_written;
    uint64_t since_ns; /* when the last call ended, or the socket stopped to take bytes */
    bool is_blocked;   /* the socket takes no more bytes now */
    bool is_dirty;     /* nghttp2 has bytes to send */
    bool is_dead;      /* to be closed */
    bool has_said_goodbye; /* takes no further calls */
    struct connection *next, *previous;
};

struct ph__grpc_server {
    struct ph__grpc_options options;
    char address[PH_ADDRESS_BYTES];
    int listener, descriptor; /* descriptor: epoll */
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *settings;
    struct connection connections; /* a ring, with this as its end */
    size_t num_connections, num_calls;
    struct ph__grpc_call *free_calls;
    uint64_t next_sweep_ns;
    bool is_draining, has_dirty;
};

/* ---- calls ---- */

static void clear_large(struct ph__buffer *buffer)
{
    if (buffer->capacity > KEPT_BUFFER_BYTES)
        ph__buffer_fini(buffer);
    ph__buffer_clear(buffer);
}

static struct ph__grpc_call *create_call(struct connection *connection, int32_t stream)
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

/* Ends a call and keeps its memory for another one. */
static void end_call(struct ph__grpc_call *call, bool was_cancelled)
{
    struct connection *connection = call->connection;
    struct ph__grpc_server *server = connection->server;
    struct ph__grpc_call kept;
    if (call->has_begun)
        server->options.handler->end(server->options.handler->context, call, was_cancelled);
    call->previous->next = call->next;
    call->next->previous = call->previous;
    clear_large(&call->in);
    clear_large(&call->out);
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

static struct ph__bytes bytes_of(const struct ph__buffer *buffer)
{
    return (struct ph__bytes){(const char *)buffer->bytes, buffer->size};
}

struct ph__bytes ph__grpc_call_path(const struct ph__grpc_call *call)
{
    return bytes_of(&call->path);
}

struct ph__bytes ph__grpc_call_authorization(const struct ph__grpc_call *call)
{
    return bytes_of(&call->authorization);
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

static void mark_dirty(struct connection *connection)
{
    connection->is_dirty = true;
    connection->server->has_dirty = true;
}

#define HEADER(name_text, value_text, value_size)                                                  \
    {                                                                                              \
        .name = (uint8_t *)(uintptr_t)(name_text), .namelen = sizeof(name_text) - 1,               \
        .value = (uint8_t *)(uintptr_t)(value_text), .valuelen = (value_size),                     \
        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME                                                      \
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
    if (call->out_sent < call->out.size)
        return (ssize_t)count;
    ph__buffer_clear(&call->out);
    call->out_sent = 0;
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
    mark_dirty(call->connection);
}

void ph__grpc_send(struct ph__grpc_call *call, const void *message, size_t size)
{
    if (call->is_finished)
        return;
    const unsigned char prefix[PREFIX_BYTES] = {0, (unsigned char)(size >> 24), (unsigned char)(size >> 16),
        (unsigned char)(size >> 8), (unsigned char)size};
    ph__buffer_append(&call->out, prefix, PREFIX_BYTES);
    ph__buffer_append(&call->out, message, size);
    if (call->out.has_failed)
        call->connection->is_dead = true;
    if (!call->has_answered)
        answer(call, false);
    else
        (void)nghttp2_session_resume_data(call->connection->session, call->stream);
    mark_dirty(call->connection);
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
    encode_text(text, &call->status_text);
    if (!call->has_answered)
        answer(call, true);
    else
        (void)nghttp2_session_resume_data(call->connection->session, call->stream);
    mark_dirty(call->connection);
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
    return found != NULL ? number * ns[found - units] : UINT64_MAX;
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
    if (call->head_bytes > MAX_HEAD_BYTES)
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

/* Looks at a prefix that is there. Returns false for a message that cannot be taken, and finishes the call. */
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

static int came_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
    size_t size, void *context)
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
        end_call(call, error != NGHTTP2_NO_ERROR || !call->is_finished);
    return 0;
}

/* ---- connections ---- */

static void close_connection(struct connection *connection)
{
    struct ph__grpc_server *server = connection->server;
    while (connection->calls.next != &connection->calls) {
        struct ph__grpc_call *call = connection->calls.next;
        (void)nghttp2_session_set_stream_user_data(connection->session, call->stream, NULL);
        end_call(call, true);
    }
    nghttp2_session_del(connection->session);
    close(connection->socket);
    connection->previous->next = connection->next;
    connection->next->previous = connection->previous;
    ph__buffer_fini(&connection->out);
    free(connection);
    server->num_connections--;
}

static bool begin_session(struct connection *connection)
{
    const struct ph__grpc_server *server = connection->server;
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)server->options.max_calls},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEAD_BYTES},
    };
    return nghttp2_session_server_new2(
               &connection->session, server->callbacks, connection, server->settings) == 0 &&
           nghttp2_submit_settings(
               connection->session, NGHTTP2_FLAG_NONE, entries, sizeof entries / sizeof *entries) == 0 &&
           nghttp2_session_set_local_window_size(
               connection->session, NGHTTP2_FLAG_NONE, 0, 8 * WINDOW_BYTES) == 0;
}

/* Makes a connection of a socket, which it owns; without memory the socket is closed. */
static void open_connection(struct ph__grpc_server *server, int socket)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (connection == NULL) {
        close(socket);
        return;
    }
    connection->server = server;
    connection->socket = socket;
    connection->calls.next = connection->calls.previous = &connection->calls;
    connection->since_ns = ph__clock_ns();
    connection->next = &server->connections;
    connection->previous = server->connections.previous;
    connection->previous->next = server->connections.previous = connection;
    server->num_connections++;
    if (!begin_session(connection) || epoll_ctl(server->descriptor, EPOLL_CTL_ADD, socket, &event) != 0)
        connection->is_dead = true;
    mark_dirty(connection);
}

/* Accepts all that wait. Where that fails, for want of descriptors, the next connection brings another
 * event. */
static void accept_connections(struct ph__grpc_server *server)
{
    int socket = -1;
    while (ph__socket_accept(server->listener, &socket) == PH_OK && socket >= 0) {
        if (server->num_connections < server->options.max_connections)
            open_connection(server, socket);
        else
            close(socket);
    }
}

/* Reads what has come. An end of file ends the connection: its calls are cancelled. */
static void receive(struct connection *connection)
{
    static _Thread_local uint8_t bytes[READ_BYTES];
    ssize_t count = READ_BYTES;
    while (!connection->is_dead) {
        count = recv(connection->socket, bytes, sizeof bytes, MSG_DONTWAIT);
        if (count <= 0)
            break;
        if (nghttp2_session_mem_recv(connection->session, bytes, (size_t)count) != count)
            connection->is_dead = true;
        mark_dirty(connection);
    }
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        connection->is_dead = true;
}

/* Takes bytes from nghttp2 until enough wait for the socket. */
static void gather(struct connection *connection)
{
    const uint8_t *bytes;
    ssize_t count = 1;
    while (count > 0 && connection->out.size - connection->out_written < WRITE_BYTES) {
        count = nghttp2_session_mem_send(connection->session, &bytes);
        if (count > 0)
            ph__buffer_append(&connection->out, bytes, (size_t)count);
    }
    if (count < 0 || connection->out.has_failed)
        connection->is_dead = true;
}

/* Writes until the socket takes no more, or nothing is left. */
static void flush(struct connection *connection)
{
    connection->is_dirty = false;
    while (!connection->is_dead && !connection->is_blocked) {
        gather(connection);
        const size_t left = connection->out.size - connection->out_written;
        if (left == 0)
            break;
        const ssize_t count = send(connection->socket, connection->out.bytes + connection->out_written, left,
            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno != EAGAIN)
            connection->is_dead = true;
        if (count < 0) {
            connection->is_blocked = true;
            connection->since_ns = ph__clock_ns();
            break;
        }
        connection->out_written += (size_t)count;
        if (connection->out_written == connection->out.size) {
            clear_large(&connection->out);
            connection->out_written = 0;
        }
    }
    const bool is_over =
        connection->has_said_goodbye && connection->calls.next == &connection->calls;
    const bool wants_more = nghttp2_session_want_write(connection->session) ||
                            (nghttp2_session_want_read(connection->session) && !is_over);
    if (!wants_more && connection->out.size == 0)
        connection->is_dead = true;
}

/* Flushes what has something to send, and closes what is dead. */
static void settle(struct ph__grpc_server *server)
{
    struct connection *connection, *next;
    while (server->has_dirty) { /* an ending call may answer another one */
        server->has_dirty = false;
        for (connection = server->connections.next; connection != &server->connections; connection = next) {
            next = connection->next;
            if (connection->is_dirty)
                flush(connection);
            if (connection->is_dead)
                close_connection(connection);
        }
    }
}

/* ---- slow clients ---- */

static bool is_late(uint64_t since_ns, uint32_t limit_ms, uint64_t now_ns)
{
    return since_ns > 0 && now_ns > since_ns && now_ns - since_ns > limit_ms * 1000000ull;
}

static bool is_slow(const struct connection *connection, uint64_t now_ns)
{
    const struct ph__grpc_options *options = &connection->server->options;
    if (connection->is_blocked)
        return is_late(connection->since_ns, options->client_timeout_ms, now_ns);
    if (connection->calls.next == &connection->calls)
        return is_late(connection->since_ns, options->idle_timeout_ms, now_ns);
    for (const struct ph__grpc_call *call = connection->calls.next; call != &connection->calls;
         call = call->next)
        if (is_late(call->since_ns, options->client_timeout_ms, now_ns))
            return true;
    return false;
}

/* Names the last call that is served. The connection ends when its calls have. */
static void say_goodbye(struct connection *connection)
{
    if (connection->has_said_goodbye)
        return;
    connection->has_said_goodbye = true;
    (void)nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE,
        nghttp2_session_get_last_proc_stream_id(connection->session), NGHTTP2_NO_ERROR, NULL, 0);
    mark_dirty(connection);
}

static void sweep(struct ph__grpc_server *server)
{
    const uint64_t now_ns = ph__clock_ns();
    struct connection *connection, *next;
    if (now_ns < server->next_sweep_ns)
        return;
    server->next_sweep_ns = now_ns + SWEEP_MS * 1000000ull;
    for (connection = server->connections.next; connection != &server->connections; connection = next) {
        next = connection->next;
        if (server->is_draining)
            say_goodbye(connection);
        if (is_slow(connection, now_ns))
            close_connection(connection);
    }
}

/* ---- the server ---- */

static ph_status make_callbacks(struct ph__grpc_server *server)
{
    if (nghttp2_session_callbacks_new(&server->callbacks) != 0 || nghttp2_option_new(&server->settings) != 0)
        return ph__out_of_memory("a gRPC server");
    nghttp2_session_callbacks *callbacks = server->callbacks;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begun_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, came_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, came_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, came_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closed_stream);
    nghttp2_option_set_max_send_header_block_length(server->settings, MAX_HEAD_BYTES);
    return PH_OK;
}

static ph_status start(struct ph__grpc_server *server)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    PH_TRY(make_callbacks(server));
    server->descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (server->descriptor < 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot create an event queue: %s", strerror(errno));
    PH_TRY(ph__socket_listen(server->options.address, &server->listener));
    PH_TRY(ph__socket_address(server->listener, server->address));
    if (epoll_ctl(server->descriptor, EPOLL_CTL_ADD, server->listener, &event) != 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot watch a socket: %s", strerror(errno));
    return PH_OK;
}

static size_t or_default(size_t number, size_t otherwise)
{
    return number > 0 ? number : otherwise;
}

ph_status ph__grpc_server_create(const struct ph__grpc_options *options, struct ph__grpc_server **server_out)
{
    struct ph__grpc_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return ph__out_of_memory("a gRPC server");
    server->options = *options;
    struct ph__grpc_options *own = &server->options;
    own->address = options->address != NULL ? options->address : DEFAULT_ADDRESS;
    own->max_connections = or_default(options->max_connections, DEFAULT_CONNECTIONS);
    own->max_calls = or_default(options->max_calls, DEFAULT_CALLS);
    own->max_message_bytes = or_default(options->max_message_bytes, DEFAULT_MESSAGE_BYTES);
    own->client_timeout_ms = (uint32_t)or_default(options->client_timeout_ms, DEFAULT_TIMEOUT_MS);
    own->idle_timeout_ms = (uint32_t)or_default(options->idle_timeout_ms, own->client_timeout_ms);
    server->listener = server->descriptor = -1;
    server->connections.next = server->connections.previous = &server->connections;
    const ph_status status = start(server);
    if (status == PH_OK)
        *server_out = server;
    else
        ph__grpc_server_destroy(server);
    return status;
}

static void free_call(struct ph__grpc_call *call)
{
    ph__buffer_fini(&call->in);
    ph__buffer_fini(&call->out);
    ph__buffer_fini(&call->path);
    ph__buffer_fini(&call->authorization);
    ph__buffer_fini(&call->status_text);
    free(call);
}

void ph__grpc_server_destroy(struct ph__grpc_server *server)
{
    if (server == NULL)
        return;
    while (server->connections.next != &server->connections)
        close_connection(server->connections.next);
    for (struct ph__grpc_call *call = server->free_calls, *next; call != NULL; call = next) {
        next = call->next;
        free_call(call);
    }
    if (server->listener >= 0)
        close(server->listener);
    if (server->descriptor >= 0)
        close(server->descriptor);
    nghttp2_session_callbacks_del(server->callbacks);
    nghttp2_option_del(server->settings);
    free(server);
}

/* Says goodbye twice, as RFC 9113 (6.8) has it: the first time without a last stream, so that calls that are
 * on their way are still served; the second time at the next sweep. */
void ph__grpc_server_drain(struct ph__grpc_server *server)
{
    if (server->listener >= 0)
        close(server->listener);
    server->listener = -1;
    server->is_draining = true;
    for (struct connection *connection = server->connections.next; connection != &server->connections;
         connection = connection->next) {
        (void)nghttp2_submit_shutdown_notice(connection->session);
        mark_dirty(connection);
    }
}

size_t ph__grpc_server_num_calls(const struct ph__grpc_server *server)
{
    return server->num_calls;
}

/* ---- running ---- */

const char *ph__grpc_server_address(const struct ph__grpc_server *server)
{
    return server->address;
}

int ph__grpc_server_descriptor(const struct ph__grpc_server *server)
{
    return server->descriptor;
}

int ph__grpc_server_timeout_ms(const struct ph__grpc_server *server)
{
    if (server->has_dirty)
        return 0;
    return server->num_connections > 0 ? SWEEP_MS : -1;
}

ph_status ph__grpc_server_run(struct ph__grpc_server *server)
{
    struct epoll_event events[EVENTS_A_ROUND];
    const int count = epoll_wait(server->descriptor, events, EVENTS_A_ROUND, 0);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if (connection == NULL) {
            accept_connections(server);
            continue;
        }
        if ((events[i].events & EPOLLOUT) != 0 && connection->is_blocked) {
            connection->is_blocked = false;
            mark_dirty(connection);
        }
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0)
            receive(connection);
    }
    settle(server);
    sweep(server);
    return PH_OK;
}
