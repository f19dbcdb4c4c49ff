#include "load_wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "base/sizes.h"
#include "figures.h"
#include "net/link/socket.h"

enum { STREAMS_A_CONNECTION = 16, ANSWER_BYTES = 64 << 10, EVENTS_A_ROUND = 64 };

struct load_connection {
    struct load_wire *wire;
    int socket;                  /* -1: lost */
    struct load_client *clients; /* (num_clients) */
    size_t num_clients;
    nghttp2_session *session; /* gRPC */
    struct ph__buffer out;    /* not written yet */
    size_t in_size;
    char in[ANSWER_BYTES];
};

/* ---- connections ---- */

static void finish(struct load_client *client, int code, const char *bytes, size_t size)
{
    const struct load_wire *wire = client->connection->wire;
    client->is_busy = false;
    wire->answered(wire->context, client, code, bytes, size);
}

static void write_out(struct load_connection *connection)
{
    struct ph__buffer *out = &connection->out;
    size_t written = 0;
    while (written < out->size) {
        const ssize_t count =
            send(connection->socket, out->bytes + written, out->size - written, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0)
            break; /* full, or closed, which reading shows */
        written += (size_t)count;
    }
    memmove(out->bytes, out->bytes + written, out->size - written);
    out->size -= written;
}

/* Connects to a port of the loopback, where that succeeds or fails at once; -1: nobody listens. */
static int connect_once(const char *address)
{
    const char *port = strrchr(address, ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)(port != NULL ? atoi(port + 1) : 0))};
    const int connecting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connecting < 0)
        return -1;
    ph__socket_avoid_pacing(connecting, (const struct sockaddr *)&to);
    setsockopt(connecting, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    /* thousands of connections that linger in TIME_WAIT would use up the ports */
    setsockopt(connecting, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    if (connect(connecting, (const struct sockaddr *)&to, sizeof to) == 0)
        return connecting;
    close(connecting);
    return -1;
}

static void open_session(struct load_connection *connection);

static void open_connection(struct load_connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
    connection->socket = connect_once(connection->wire->options->address);
    if (connection->socket < 0)
        return;
    if (epoll_ctl(connection->wire->epoll, EPOLL_CTL_ADD, connection->socket, &event) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "cannot watch a socket"));
    connection->in_size = connection->out.size = 0;
    if (connection->wire->options->is_grpc)
        open_session(connection);
}

static void close_connection(struct load_connection *connection)
{
    nghttp2_session_del(connection->session);
    connection->session = NULL;
    if (connection->socket >= 0)
        close(connection->socket);
    connection->socket = -1;
}

/* Closes a connection that the server has closed; its requests have failed. */
static void lose(struct load_connection *connection)
{
    static const char text[] = "the connection was closed";
    close_connection(connection);
    for (size_t i = 0; i < connection->num_clients; i++)
        if (connection->clients[i].is_busy)
            finish(&connection->clients[i], LOAD_LOST, text, sizeof text - 1);
}

/* ---- REST ---- */

static void send_rest(struct load_client *client)
{
    struct load_connection *connection = client->connection;
    const struct load_body *body = client->body;
    char head[400], json[80] = "";
    if (body->json_bytes > 0)
        snprintf(json, sizeof json, "Inference-Header-Content-Length: %zu\r\n", body->json_bytes);
    const int length = snprintf(head, sizeof head,
        "POST %s HTTP/1.1\r\nHost: bench\r\n%sContent-Type: application/%s\r\nContent-Length: %zu\r\n\r\n",
        connection->wire->options->path, json, body->json_bytes > 0 ? "octet-stream" : "json",
        body->bytes.size);
    ph__buffer_append(&connection->out, head, (size_t)length);
    ph__buffer_append(&connection->out, body->bytes.bytes, body->bytes.size);
    write_out(connection);
}

/* Takes an answer when it is whole. */
static void read_rest(struct load_connection *connection)
{
    connection->in[connection->in_size] = '\0';
    const char *head_end = strstr(connection->in, "\r\n\r\n");
    const char *length = strcasestr(connection->in, "\r\ncontent-length: ");
    if (head_end == NULL || !connection->clients->is_busy)
        return;
    const size_t size = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
    if (connection->in_size < (size_t)(head_end + 4 - connection->in) + size)
        return;
    const int status = atoi(connection->in + 9);
    const char *closes = strcasestr(connection->in, "connection: close");
    connection->in_size = 0;
    if (closes != NULL && closes < head_end)
        close_connection(connection);
    finish(connection->clients, status == 200 ? 0 : status, head_end + 4, size);
}

/* ---- gRPC ---- */

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size, uint32_t *flags,
    nghttp2_data_source *source, void *context)
{
    struct load_client *client = source->ptr;
    const struct ph__buffer *bytes = &client->body->bytes;
    const unsigned char prefix[5] = {0, (unsigned char)(bytes->size >> 24),
        (unsigned char)(bytes->size >> 16), (unsigned char)(bytes->size >> 8), (unsigned char)bytes->size};
    size_t count = 0;
    (void)session, (void)stream, (void)context;
    while (count < size && client->body_sent < bytes->size + 5) {
        const size_t at = client->body_sent;
        const size_t part =
            at < 5 ? ph__min(5 - at, size - count) : ph__min(bytes->size + 5 - at, size - count);
        memcpy(to + count, at < 5 ? prefix + at : bytes->bytes + at - 5, part);
        count += part;
        client->body_sent += part;
    }
    if (client->body_sent == bytes->size + 5)
        *flags = NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)count;
}

static int came_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
    size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
    struct load_client *client = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags, (void)context;
    if (client != NULL && name_size == 11 && memcmp(name, "grpc-status", 11) == 0)
        client->status = value_size > 0 ? atoi((const char *)value) : -1;
    return 0;
}

static int came_data(
    nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size, void *context)
{
    struct load_client *client = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags, (void)context;
    if (client != NULL)
        ph__buffer_append(&client->answer, bytes, size);
    return 0;
}

static int closed_stream(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    struct load_client *client = nghttp2_session_get_stream_user_data(session, stream);
    (void)context;
    if (client == NULL)
        return 0;
    const size_t size = client->answer.size;
    ph__buffer_append(&client->answer, "", 1);
    finish(client, error == 0 && client->status >= 0 ? client->status : 2, (const char *)client->answer.bytes,
        size);
    return 0;
}

static void flush_grpc(struct load_connection *connection)
{
    const uint8_t *bytes;
    ssize_t count;
    while ((count = nghttp2_session_mem_send(connection->session, &bytes)) > 0)
        ph__buffer_append(&connection->out, bytes, (size_t)count);
    write_out(connection);
}

#define HEADER(name_text, value_text)                                                             \
    {                                                                                             \
        (uint8_t *)(uintptr_t)(name_text), (uint8_t *)(uintptr_t)(value_text), strlen(name_text), \
            strlen(value_text), NGHTTP2_NV_FLAG_NONE                                              \
    }

static void send_grpc(struct load_client *client)
{
    char timeout[24];
    const uint64_t timeout_us = client->connection->wire->options->timeout_us;
    snprintf(timeout, sizeof timeout, "%lluu", (unsigned long long)timeout_us);
    const nghttp2_nv head[] = {HEADER(":method", "POST"), HEADER(":scheme", "http"),
        HEADER(":path", "/inference.GRPCInferenceService/ModelInfer"), HEADER(":authority", "bench"),
        HEADER("content-type", "application/grpc"), HEADER("te", "trailers"),
        HEADER("grpc-timeout", timeout)};
    const size_t count = sizeof head / sizeof *head - (timeout_us == 0);
    const nghttp2_data_provider body = {.source.ptr = client, .read_callback = read_body};
    client->body_sent = 0;
    client->status = -1;
    ph__buffer_clear(&client->answer);
    const int32_t stream =
        nghttp2_submit_request(client->connection->session, NULL, head, count, &body, client);
    if (stream < 0)
        bench_check(ph_fail(PH_ERROR_BUG, "nghttp2: %s", nghttp2_strerror(stream)));
    flush_grpc(client->connection);
}

static void open_session(struct load_connection *connection)
{
    nghttp2_session_callbacks *callbacks;
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, came_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, came_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closed_stream);
    if (nghttp2_session_client_new(&connection->session, callbacks, connection) != 0 ||
        nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, &window, 1) != 0 ||
        nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0, 16 << 20) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "a session of nghttp2"));
    nghttp2_session_callbacks_del(callbacks);
    flush_grpc(connection);
}

/* ---- the wire ---- */

static void receive(struct load_connection *connection)
{
    for (;;) {
        const ssize_t count = recv(connection->socket, connection->in + connection->in_size,
            ANSWER_BYTES - 1 - connection->in_size, MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count <= 0) {
            lose(connection);
            return;
        }
        if (connection->session == NULL) {
            connection->in_size += (size_t)count;
            read_rest(connection);
            if (connection->socket < 0)
                return;
        } else if (nghttp2_session_mem_recv(
                       connection->session, (const uint8_t *)connection->in, (size_t)count) != count) {
            bench_check(ph_fail(PH_ERROR_PEER, "the server does not speak HTTP/2"));
        }
    }
}

void load_wire_poll(struct load_wire *wire)
{
    struct epoll_event events[EVENTS_A_ROUND];
    const int count = epoll_wait(wire->epoll, events, EVENTS_A_ROUND, 0);
    for (int i = 0; i < count; i++) {
        struct load_connection *connection = events[i].data.ptr;
        receive(connection);
        if (connection->session != NULL)
            flush_grpc(connection);
        else if (connection->socket >= 0)
            write_out(connection);
    }
}

void load_wire_send(struct load_wire *wire, struct load_client *client)
{
    static const char text[] = "the server cannot be reached";
    struct load_connection *connection = client->connection;
    if (wire->options->looks_first && connection->socket >= 0)
        receive(connection);
    if (connection->socket < 0)
        open_connection(connection);
    client->is_busy = true;
    if (connection->socket < 0)
        finish(client, LOAD_LOST, text, sizeof text - 1);
    else if (wire->options->is_grpc)
        send_grpc(client);
    else
        send_rest(client);
}

void load_wire_open(struct load_wire *wire, struct load_client *clients)
{
    const size_t num_clients = wire->options->num_clients;
    const size_t share = wire->options->is_grpc ? STREAMS_A_CONNECTION : 1;
    wire->num_connections = ph__divide_up(num_clients, share);
    wire->connections = calloc(wire->num_connections, sizeof *wire->connections);
    wire->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (wire->connections == NULL || wire->epoll < 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu connections", wire->num_connections));
    for (size_t i = 0; i < wire->num_connections; i++) {
        struct load_connection *connection = &wire->connections[i];
        connection->wire = wire;
        connection->clients = clients + i * share;
        connection->num_clients = ph__min(share, num_clients - i * share);
        for (size_t k = 0; k < connection->num_clients; k++)
            connection->clients[k].connection = connection;
        open_connection(connection);
        if (connection->socket < 0)
            bench_check(ph_fail(PH_ERROR_PEER, "'%s' cannot be reached", wire->options->address));
    }
}

void load_wire_close(struct load_wire *wire)
{
    for (size_t i = 0; i < wire->num_connections; i++) {
        close_connection(&wire->connections[i]);
        ph__buffer_fini(&wire->connections[i].out);
    }
    close(wire->epoll);
    free(wire->connections);
}
