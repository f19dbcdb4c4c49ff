/* The HTTP server, over libmicrohttpd in its mode without threads: it waits with an epoll descriptor of its
 * own, which can itself be polled.
 *
 * While a handler works on an exchange its connection is suspended, and libmicrohttpd does not look at the
 * socket. So a socket is watched here for the other end's closing as well, from its first exchange on: once,
 * edge-triggered, in the epoll descriptor that the driver polls. */
#include "net/server/http_server.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "net/link/socket.h"

#define MAX_HEAD_BYTES ((size_t)16 << 10) /* of a connection, its request's head included */
#define DEFAULT_TIMEOUT_MS 10000
#define SWEEP_MS 500 /* between two looks at slow clients */
#define EVENTS_A_ROUND 64
#define DEFAULT_ADDRESS "127.0.0.1:0"

/*  state       the connection       event -> next
 *  RECEIVING   sends a body         whole -> WAITING, answer -> REFUSED, gone -> ended
 *  REFUSED     sends a body         (the same call) -> SENDING
 *  WAITING     is suspended         answer -> ANSWERED, gone -> GONE
 *  ANSWERED    is resumed           (its next call) -> SENDING
 *  SENDING     takes the answer     taken or gone -> ended
 *  GONE        is resumed           (its next call) -> ended */
enum exchange_state { RECEIVING, REFUSED, WAITING, ANSWERED, SENDING, GONE };

struct connection;

struct ph__http_exchange {
    struct ph__http_server *server;
    struct connection *connection;
    enum exchange_state state;
    const char *method, *path;
    void *user;
    struct ph__buffer body;
    struct ph__http_answer answer;
    struct ph__http_exchange *next_free;
};

/* A connection. `since_ns` is when its phase has begun: sending a request, or taking an answer. */
struct connection {
    struct ph__http_server *server;
    struct MHD_Connection *own;
    int socket;
    bool is_watched, has_exchanged;
    uint64_t since_ns;
    struct ph__http_exchange *exchange; /* NULL: none */
    struct connection *next, *previous;
};

struct ph__http_server {
    struct MHD_Daemon *daemon;
    int descriptor; /* epoll: the daemon's own descriptor, and watched sockets */
    char address[PH_ADDRESS_BYTES];
    struct ph__http_options options;
    struct connection connections; /* a ring, with this as its end */
    struct ph__http_exchange *free_exchanges;
    size_t num_exchanges;
    uint64_t next_sweep_ns;
    bool is_draining;
    bool has_resumed; /* a connection, which libmicrohttpd looks at in its next run */
};

/* ---- answers ---- */

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned code, const char *header,
    const char *value, struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO; /* which ends the connection */
    enum MHD_Result result = MHD_add_response_header(response, header, value);
    if (result == MHD_YES)
        result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

/* Sends an error; `text` is static. */
static enum MHD_Result refuse(
    struct MHD_Connection *connection, unsigned code, const char *header, const char *value, char *text)
{
    return send_response(connection, code, header, value,
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_PERSISTENT));
}

static ph_status write_page(const struct ph__http_page *page, char **text_out, size_t *size_out)
{
    struct ph__writer *writer = NULL;
    PH_TRY(ph__writer_open_memory(page->path, PH_HTTP_MAX_PAGE_BYTES, &writer));
    ph_status status = page->write(page->context, writer);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    if (status == PH_OK)
        *text_out = ph__writer_take(writer, size_out);
    ph__writer_close(writer);
    return status;
}

static enum MHD_Result send_page(
    const struct ph__http_server *server, struct MHD_Connection *connection, const struct ph__http_page *page)
{
    static char failed[] = "the page could not be made\n";
    char *text = NULL;
    size_t size = 0;
    if (write_page(page, &text, &size) != PH_OK) {
        PH_LOG(server->options.log, PH_LOG_WARNING, "http_page_failed", ph__log_text("path", page->path),
            ph__log_text("error", ph_error_text()));
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "Content-Type", "text/plain", failed);
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(text);
    return send_response(connection, MHD_HTTP_OK, "Content-Type", page->content_type, response);
}

static const struct ph__http_page *find_page(const struct ph__http_server *server, const char *path)
{
    for (size_t i = 0; i < server->options.num_pages; i++)
        if (strcmp(server->options.pages[i].path, path) == 0)
            return &server->options.pages[i];
    return NULL;
}

/* Answers a request that is none of the handler's at the end of its body, which leaves the connection open
 * for the next request. */
static enum MHD_Result answer_page(const struct ph__http_server *server, struct MHD_Connection *connection,
    const struct ph__http_page *page, const char *method, bool is_whole)
{
    static char not_allowed[] = "only GET\n", not_found[] = "not found\n";
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET", not_allowed);
    if (!is_whole)
        return MHD_YES;
    if (page != NULL)
        return send_page(server, connection, page);
    return refuse(connection, MHD_HTTP_NOT_FOUND, "Content-Type", "text/plain", not_found);
}

/* ---- exchanges ---- */

static struct ph__http_exchange *take_exchange(struct ph__http_server *server)
{
    struct ph__http_exchange *exchange = server->free_exchanges;
    if (exchange != NULL)
        server->free_exchanges = exchange->next_free;
    else
        exchange = calloc(1, sizeof *exchange);
    return exchange;
}

static void give_exchange_back(struct ph__http_exchange *exchange)
{
    struct ph__http_server *server = exchange->server;
    ph__buffer_recycle(&exchange->body);
    *exchange = (struct ph__http_exchange){.body = exchange->body, .next_free = server->free_exchanges};
    server->free_exchanges = exchange;
}

static void end_exchange(struct ph__http_exchange *exchange, bool was_cancelled)
{
    struct ph__http_server *server = exchange->server;
    exchange->connection->exchange = NULL;
    exchange->connection->has_exchanged = true;
    exchange->connection->since_ns = ph__clock_ns();
    server->num_exchanges--;
    if (exchange->state != GONE)
        server->options.handler->end(server->options.handler->context, exchange, was_cancelled);
    give_exchange_back(exchange);
}

const char *ph__http_exchange_method(const struct ph__http_exchange *exchange)
{
    return exchange->method;
}

const char *ph__http_exchange_path(const struct ph__http_exchange *exchange)
{
    return exchange->path;
}

const char *ph__http_exchange_header(const struct ph__http_exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection->own, MHD_HEADER_KIND, name);
}

void **ph__http_exchange_user(struct ph__http_exchange *exchange)
{
    return &exchange->user;
}

static void resume(struct connection *connection)
{
    connection->server->has_resumed = true;
    MHD_resume_connection(connection->own);
}

void ph__http_answer(struct ph__http_exchange *exchange, const struct ph__http_answer *answer)
{
    exchange->answer = *answer;
    if (exchange->state == RECEIVING) {
        exchange->state = REFUSED;
    } else {
        exchange->state = ANSWERED;
        resume(exchange->connection);
    }
}

/* Hands the answer to libmicrohttpd, which borrows the body until the exchange ends. */
static enum MHD_Result send_answer(struct ph__http_exchange *exchange)
{
    const struct ph__http_answer *answer = &exchange->answer;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->body.size, (void *)(uintptr_t)answer->body.bytes, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = response != NULL ? MHD_YES : MHD_NO;
    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < PH_HTTP_MAX_ANSWER_HEADERS && answer->headers[i].name != NULL; i++)
        if (result == MHD_YES)
            result = MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    if (result == MHD_YES && exchange->server->is_draining)
        result = MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    exchange->state = SENDING;
    exchange->connection->since_ns = ph__clock_ns();
    if (result == MHD_YES)
        result = MHD_queue_response(exchange->connection->own, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

static uint64_t announced_bytes(struct MHD_Connection *connection)
{
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length != NULL)
        return strtoull(length, NULL, 10); /* digits: libmicrohttpd has refused anything else */
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL
               ? UINT64_MAX
               : 0;
}

static enum MHD_Result begin_exchange(
    struct connection *connection, const char *path, const char *method, void **exchange_out)
{
    struct ph__http_server *server = connection->server;
    const struct ph__http_handler *handler = server->options.handler;
    const uint64_t body_bytes = announced_bytes(connection->own);
    struct ph__http_exchange *exchange = take_exchange(server);
    if (exchange == NULL)
        return MHD_NO;
    exchange->server = server;
    exchange->connection = connection;
    exchange->state = RECEIVING;
    exchange->method = method;
    exchange->path = path;
    connection->exchange = exchange;
    connection->since_ns = ph__clock_ns();
    server->num_exchanges++;
    *exchange_out = exchange;
    handler->begin(handler->context, exchange, body_bytes);
    return exchange->state == REFUSED ? send_answer(exchange) : MHD_YES;
}

/* Adds a piece of the body. A body that is larger than announced sizes may be ends the connection. */
static enum MHD_Result receive(struct ph__http_exchange *exchange, const char *piece, size_t *size)
{
    if (*size > exchange->server->options.max_body_bytes - exchange->body.size)
        return MHD_NO;
    ph__buffer_append(&exchange->body, piece, *size);
    *size = 0;
    return exchange->body.has_failed ? MHD_NO : MHD_YES;
}

/* Watches the socket for the other end's closing while its connection is suspended. */
static void watch(struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (connection->is_watched)
        return;
    connection->is_watched =
        epoll_ctl(connection->server->descriptor, EPOLL_CTL_ADD, connection->socket, &event) == 0;
}

static void handle_exchange(struct ph__http_exchange *exchange)
{
    const struct ph__http_handler *handler = exchange->server->options.handler;
    exchange->state = WAITING;
    watch(exchange->connection);
    MHD_suspend_connection(exchange->connection->own);
    handler->handle(handler->context, exchange, ph__buffer_bytes(&exchange->body));
}

/* Called when a request's head has arrived, for each piece of its body, at its end, and when its connection
 * has been resumed. *begun is NULL in the first call, and what it then sets in all others. */
static enum MHD_Result called(void *context, struct MHD_Connection *own, const char *path, const char *method,
    const char *version, const char *body, size_t *body_size, void **begun)
{
    struct ph__http_server *server = context;
    struct connection *connection =
        MHD_get_connection_info(own, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    const struct ph__http_page *page = find_page(server, path);
    (void)version;
    if (connection == NULL)
        return MHD_NO;
    if (page != NULL || server->options.handler == NULL) {
        const bool is_whole = *begun != NULL;
        *begun = server;
        return *body_size > 0 ? MHD_NO : answer_page(server, own, page, method, is_whole);
    }
    if (*begun == NULL)
        return begin_exchange(connection, path, method, begun);
    struct ph__http_exchange *exchange = *begun;
    if (*body_size > 0)
        return exchange->state == RECEIVING ? receive(exchange, body, body_size) : MHD_NO;
    if (exchange->state == ANSWERED)
        return send_answer(exchange);
    if (exchange->state == RECEIVING)
        handle_exchange(exchange);
    return exchange->state == GONE ? MHD_NO : MHD_YES;
}

/* Called when a request is over, answered or not. */
static void completed(
    void *context, struct MHD_Connection *own, void **begun, enum MHD_RequestTerminationCode code)
{
    struct ph__http_server *server = context;
    (void)own;
    if (*begun != NULL && *begun != server)
        end_exchange(*begun, code != MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *begun = NULL;
}

/* ---- connections ---- */

static void connected(struct connection *connection, struct connection *ring)
{
    connection->next = ring;
    connection->previous = ring->previous;
    ring->previous->next = connection;
    ring->previous = connection;
}

/* Called when a connection has begun or ended. Without memory for it the connection is closed at its first
 * request. */
static void notified(void *context, struct MHD_Connection *own, void **connection_place,
    enum MHD_ConnectionNotificationCode code)
{
    struct ph__http_server *server = context;
    struct connection *connection = *connection_place;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        connection = calloc(1, sizeof *connection);
        *connection_place = connection;
        if (connection == NULL)
            return;
        *connection = (struct connection){.server = server,
            .own = own,
            .socket = MHD_get_connection_info(own, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
            .since_ns = ph__clock_ns()};
        connected(connection, &server->connections);
    } else if (connection != NULL) {
        if (connection->is_watched)
            (void)epoll_ctl(server->descriptor, EPOLL_CTL_DEL, connection->socket, NULL);
        connection->next->previous = connection->previous;
        connection->previous->next = connection->next;
        free(connection);
        *connection_place = NULL;
    }
}

/* Ends the exchange of a client that has gone; libmicrohttpd closes the connection when it is resumed. */
static void client_gone(struct connection *connection)
{
    struct ph__http_exchange *exchange = connection->exchange;
    if (exchange == NULL || exchange->state != WAITING)
        return;
    exchange->server->options.handler->end(exchange->server->options.handler->context, exchange, true);
    exchange->state = GONE;
    resume(connection);
}

/* Shuts connections down whose client is slow, or idle while the server drains. libmicrohttpd notices. */
static void sweep(struct ph__http_server *server)
{
    const uint64_t now_ns = ph__clock_ns();
    const struct ph__http_options *options = &server->options;
    if (now_ns < server->next_sweep_ns)
        return;
    server->next_sweep_ns = now_ns + SWEEP_MS * 1000000ull;
    for (struct connection *connection = server->connections.next; connection != &server->connections;
         connection = connection->next) {
        const struct ph__http_exchange *exchange = connection->exchange;
        const bool is_ours = exchange != NULL && (exchange->state == WAITING || exchange->state == ANSWERED);
        const bool is_idle = exchange == NULL && connection->has_exchanged;
        const uint32_t limit_ms = is_idle ? options->idle_timeout_ms : options->client_timeout_ms;
        const bool is_late = now_ns - connection->since_ns > limit_ms * 1000000ull;
        if (!is_ours && (is_late || (server->is_draining && exchange == NULL)))
            shutdown(connection->socket, SHUT_RDWR);
    }
}

/* ---- the server ---- */

/* Starts the daemon, which owns the socket even after an error. */
static ph_status start_daemon(struct ph__http_server *server, int listener)
{
    const struct ph__http_options *options = &server->options;
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO;
    server->daemon = MHD_start_daemon(flags, 0, NULL, NULL, called, server, MHD_OPTION_LISTEN_SOCKET,
        listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->max_connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, MAX_HEAD_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)ph__max(options->client_timeout_ms, options->idle_timeout_ms) / 1000 + 1,
        MHD_OPTION_NOTIFY_COMPLETED, completed, server, MHD_OPTION_NOTIFY_CONNECTION, notified, server,
        MHD_OPTION_END);
    if (server->daemon == NULL)
        return ph_fail(PH_ERROR_MEMORY, "cannot begin to serve HTTP at %s", server->address);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (info == NULL || epoll_ctl(server->descriptor, EPOLL_CTL_ADD, info->epoll_fd, &event) != 0)
        return ph_fail(PH_ERROR_BUG, "libmicrohttpd was built without epoll");
    return PH_OK;
}

static ph_status start_server(struct ph__http_server *server)
{
    int listener = -1;
    server->descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (server->descriptor < 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot create an event queue: %s", strerror(errno));
    PH_TRY(ph__socket_listen(server->options.address, &listener));
    const ph_status status = ph__socket_address(listener, server->address);
    if (status != PH_OK) {
        close(listener);
        return status;
    }
    return start_daemon(server, listener);
}

ph_status ph__http_server_create(const struct ph__http_options *options, struct ph__http_server **server_out)
{
    struct ph__http_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return ph__out_of_memory("an HTTP server");
    server->options = *options;
    server->descriptor = -1;
    server->connections.next = server->connections.previous = &server->connections;
    if (options->address == NULL)
        server->options.address = DEFAULT_ADDRESS;
    if (options->max_connections == 0)
        server->options.max_connections = PH_HTTP_MAX_CONNECTIONS;
    if (options->client_timeout_ms == 0)
        server->options.client_timeout_ms = DEFAULT_TIMEOUT_MS;
    if (options->idle_timeout_ms == 0)
        server->options.idle_timeout_ms = server->options.client_timeout_ms;
    const ph_status status = start_server(server);
    if (status == PH_OK)
        *server_out = server;
    else
        ph__http_server_destroy(server);
    return status;
}

/* Ends suspended exchanges first: a daemon must not stop with suspended connections. */
static void end_suspended(struct ph__http_server *server)
{
    for (struct connection *connection = server->connections.next; connection != &server->connections;
         connection = connection->next)
        client_gone(connection);
    MHD_run(server->daemon);
}

void ph__http_server_destroy(struct ph__http_server *server)
{
    if (server == NULL)
        return;
    if (server->daemon != NULL) {
        end_suspended(server);
        MHD_stop_daemon(server->daemon);
    }
    if (server->descriptor >= 0)
        close(server->descriptor);
    for (struct ph__http_exchange *exchange = server->free_exchanges, *next; exchange != NULL;
         exchange = next) {
        next = exchange->next_free;
        ph__buffer_fini(&exchange->body);
        free(exchange);
    }
    free(server);
}

void ph__http_server_drain(struct ph__http_server *server)
{
    const int listener = MHD_quiesce_daemon(server->daemon);
    if (listener != MHD_INVALID_SOCKET)
        close(listener);
    server->is_draining = true;
    server->next_sweep_ns = 0;
}

size_t ph__http_server_num_exchanges(const struct ph__http_server *server)
{
    return server->num_exchanges;
}

/* ---- running ---- */

const char *ph__http_server_address(const struct ph__http_server *server)
{
    return server->address;
}

int ph__http_server_descriptor(const struct ph__http_server *server)
{
    return server->descriptor;
}

int ph__http_server_timeout_ms(const struct ph__http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    const int sweep_ms = server->connections.next != &server->connections ? SWEEP_MS : -1;
    if (server->has_resumed)
        return 0;
    if (MHD_get_timeout(server->daemon, &timeout) != MHD_YES)
        return sweep_ms;
    return sweep_ms >= 0 && timeout > SWEEP_MS ? sweep_ms : timeout < INT_MAX ? (int)timeout : INT_MAX;
}

/* Ends the exchanges of clients that have gone. */
static void look_at_watched(struct ph__http_server *server)
{
    struct epoll_event events[EVENTS_A_ROUND];
    const int count = epoll_wait(server->descriptor, events, EVENTS_A_ROUND, 0);
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr != NULL)
            client_gone(events[i].data.ptr);
}

ph_status ph__http_server_run(struct ph__http_server *server)
{
    if (server->options.handler != NULL)
        look_at_watched(server);
    server->has_resumed = false;
    if (MHD_run(server->daemon) != MHD_YES)
        return ph_fail(PH_ERROR_BUG, "the HTTP server at %s has failed", server->address);
    sweep(server);
    return PH_OK;
}
