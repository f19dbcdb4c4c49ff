/* Connections of a gRPC server: bytes of a socket go into nghttp2, and bytes for it come out. */
#include "net/server/grpc_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"

enum {
    DEFAULT_CONNECTIONS = 256,
    MAX_CALLS = 128, /* of a connection, at a time */
    DEFAULT_MESSAGE_BYTES = 4 << 20,
    DEFAULT_TIMEOUT_MS = 10000,
    SWEEP_MS = 500, /* between two looks at slow clients */
    EVENTS_A_ROUND = 64,
    READ_BYTES = 64 << 10,   /* of a socket at a time */
    WRITE_BYTES = 256 << 10, /* that wait in a connection, before nghttp2 is asked for more */
    WINDOW_BYTES = 1 << 20,  /* of a call; of a connection it is 8 times as large */
};
#define DEFAULT_ADDRESS "127.0.0.1:0"

/* ---- connections ---- */

static void close_connection(struct ph__grpc_connection *connection)
{
    struct ph__grpc_server *server = connection->server;
    while (connection->calls.next != &connection->calls) {
        struct ph__grpc_call *call = connection->calls.next;
        (void)nghttp2_session_set_stream_user_data(connection->session, call->stream, NULL);
        ph__grpc_end_call(call, true);
    }
    nghttp2_session_del(connection->session);
    close(connection->socket);
    connection->previous->next = connection->next;
    connection->next->previous = connection->previous;
    ph__buffer_fini(&connection->out);
    free(connection);
    server->num_connections--;
}

static bool begin_session(struct ph__grpc_connection *connection)
{
    const struct ph__grpc_server *server = connection->server;
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_CALLS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, PH_GRPC_HEAD_BYTES},
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
    struct ph__grpc_connection *connection = calloc(1, sizeof *connection);
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
    ph__grpc_mark_dirty(connection);
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
static void receive(struct ph__grpc_connection *connection)
{
    static _Thread_local uint8_t bytes[READ_BYTES];
    ssize_t count = READ_BYTES;
    while (!connection->is_dead) {
        count = recv(connection->socket, bytes, sizeof bytes, MSG_DONTWAIT);
        if (count <= 0)
            break;
        if (nghttp2_session_mem_recv(connection->session, bytes, (size_t)count) != count)
            connection->is_dead = true;
        ph__grpc_mark_dirty(connection);
    }
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        connection->is_dead = true;
}

/* Takes bytes from nghttp2 until enough wait for the socket. */
static void gather(struct ph__grpc_connection *connection)
{
    const uint8_t *bytes;
    ssize_t count = 1;
    struct ph__buffer *out = &connection->out;
    if (connection->out_written >= WRITE_BYTES) { /* a client that always lags: what it has taken goes */
        memmove(out->bytes, out->bytes + connection->out_written, out->size - connection->out_written);
        out->size -= connection->out_written;
        connection->out_written = 0;
    }
    while (count > 0 && out->size - connection->out_written < WRITE_BYTES) {
        count = nghttp2_session_mem_send(connection->session, &bytes);
        if (count > 0)
            ph__buffer_append(out, bytes, (size_t)count);
    }
    if (count < 0 || out->has_failed)
        connection->is_dead = true;
}

/* Writes until the socket takes no more, or nothing is left. */
static void flush(struct ph__grpc_connection *connection)
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
            ph__buffer_recycle(&connection->out);
            connection->out_written = 0;
        }
    }
    const bool is_over = connection->has_said_goodbye && connection->calls.next == &connection->calls;
    const bool wants_more = nghttp2_session_want_write(connection->session) ||
                            (nghttp2_session_want_read(connection->session) && !is_over);
    if (!wants_more && connection->out.size == 0)
        connection->is_dead = true;
}

/* Flushes what has something to send, and closes what is dead. */
static void settle(struct ph__grpc_server *server)
{
    struct ph__grpc_connection *connection, *next;
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

static bool is_slow(const struct ph__grpc_connection *connection, uint64_t now_ns)
{
    const struct ph__grpc_options *options = &connection->server->options;
    if (connection->is_blocked)
        return is_late(connection->since_ns, options->client_timeout_ms, now_ns);
    if (connection->calls.next == &connection->calls)
        return is_late(connection->since_ns, options->idle_timeout_ms, now_ns);
    for (const struct ph__grpc_call *call = connection->calls.next; call != &connection->calls;
         call = call->next)
        if (is_late(call->since_ns, options->client_timeout_ms, now_ns) ||
            is_late(call->untaken_ns, options->client_timeout_ms, now_ns))
            return true;
    return false;
}

/* Names the last call that is served. The connection ends when its calls have. */
static void say_goodbye(struct ph__grpc_connection *connection)
{
    if (connection->has_said_goodbye)
        return;
    connection->has_said_goodbye = true;
    (void)nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE,
        nghttp2_session_get_last_proc_stream_id(connection->session), NGHTTP2_NO_ERROR, NULL, 0);
    ph__grpc_mark_dirty(connection);
}

static void sweep(struct ph__grpc_server *server)
{
    const uint64_t now_ns = ph__clock_ns();
    struct ph__grpc_connection *connection, *next;
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
    ph__grpc_set_callbacks(server->callbacks);
    nghttp2_option_set_max_send_header_block_length(server->settings, PH_GRPC_HEAD_BYTES);
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

void ph__grpc_server_destroy(struct ph__grpc_server *server)
{
    if (server == NULL)
        return;
    while (server->connections.next != &server->connections)
        close_connection(server->connections.next);
    for (struct ph__grpc_call *call = server->free_calls, *next; call != NULL; call = next) {
        next = call->next;
        ph__grpc_free_call(call);
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
    for (struct ph__grpc_connection *connection = server->connections.next;
         connection != &server->connections; connection = connection->next) {
        (void)nghttp2_submit_shutdown_notice(connection->session);
        ph__grpc_mark_dirty(connection);
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
        struct ph__grpc_connection *connection = events[i].data.ptr;
        if (connection == NULL) {
            accept_connections(server);
            continue;
        }
        if ((events[i].events & EPOLLOUT) != 0 && connection->is_blocked) {
            connection->is_blocked = false;
            ph__grpc_mark_dirty(connection);
        }
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0)
            receive(connection);
    }
    settle(server);
    sweep(server);
    return PH_OK;
}
