#include "load.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "figures.h"
#include "net/link/socket.h"

enum { STREAMS_A_CONNECTION = 16, ANSWER_BYTES = 64 << 10, CONNECT_MS = 5000, EVENTS_A_ROUND = 64 };

struct connection;

/* A request in flight, or a place for one. */
struct client {
    struct load *load;
    struct connection *connection;
    double due_s; /* when it was to be sent */
    const struct load_body *body;
    size_t body_sent;
    int status;          /* gRPC: of the trailers; -1: none yet */
    struct client *next; /* free */
    int32_t stream;
};

struct connection {
    struct load *load;
    int socket;
    nghttp2_session *session; /* gRPC */
    struct client *client;    /* REST: the one that it serves */
    struct ph__buffer out;    /* not written yet */
    size_t in_size;
    char in[ANSWER_BYTES];
};

struct load {
    const struct load_options *options;
    struct load_result *result;
    int epoll;
    struct connection *connections;
    size_t num_connections;
    struct client *clients, *free_clients;
    double *due; /* a ring of requests that are due and wait for a client */
    size_t due_first, due_count, due_capacity;
    size_t num_in_flight, next_body, times_capacity;
    char path[200];
};

static double now_s(void)
{
    return (double)ph__clock_ns() * 1e-9;
}

/* ---- answers ---- */

static void answered(struct client *client, int code, const char *text)
{
    struct load *load = client->load;
    struct load_result *result = load->result;
    if (code == 0) {
        bench_check(ph__array_reserve(
            (void **)&result->times, &load->times_capacity, result->num_answered + 1, sizeof *result->times));
        result->times[result->num_answered++] = now_s() - client->due_s;
    } else if (code == 14 || code == 4) {
        result->num_refused++;
    } else if (result->num_failed++ == 0) {
        snprintf(result->error, sizeof result->error, "%d: %.150s", code, text);
    }
    load->num_in_flight--;
    client->next = load->free_clients;
    load->free_clients = client;
}

/* ---- connections ---- */

static void write_out(struct connection *connection)
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

static void open_socket(struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
    bench_check(ph__socket_connect(connection->load->options->address, CONNECT_MS, &connection->socket));
    if (epoll_ctl(connection->load->epoll, EPOLL_CTL_ADD, connection->socket, &event) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "cannot watch a socket"));
}

/* ---- REST ---- */

static void send_rest(struct client *client)
{
    struct connection *connection = client->connection;
    const struct load_body *body = client->body;
    char head[400];
    const int length = snprintf(head, sizeof head,
        "POST %s HTTP/1.1\r\nHost: bench\r\nInference-Header-Content-Length: %zu\r\nContent-Length: "
        "%zu\r\n\r\n",
        client->load->path, body->json_bytes, body->bytes.size);
    ph__buffer_append(&connection->out, head, (size_t)length);
    ph__buffer_append(&connection->out, body->bytes.bytes, body->bytes.size);
    connection->client = client;
    write_out(connection);
}

/* Takes an answer when it is whole. */
static void read_rest(struct connection *connection)
{
    connection->in[connection->in_size] = '\0';
    const char *head_end = strstr(connection->in, "\r\n\r\n");
    const char *length = strcasestr(connection->in, "content-length: ");
    if (head_end == NULL || connection->client == NULL)
        return;
    const size_t wanted =
        (size_t)(head_end - connection->in) + 4 + (length != NULL ? strtoul(length + 16, NULL, 10) : 0);
    if (connection->in_size < wanted)
        return;
    struct client *client = connection->client;
    const int status = atoi(connection->in + 9);
    connection->client = NULL;
    connection->in_size = 0;
    answered(client, status == 200 ? 0 : status == 503 ? 14 : status, head_end + 4);
}

/* Opens the connection anew when the server has closed it; a request on it has failed. */
static void reopen(struct connection *connection)
{
    struct client *client = connection->client;
    close(connection->socket);
    connection->client = NULL;
    connection->in_size = connection->out.size = 0;
    open_socket(connection);
    if (client != NULL)
        answered(client, 1, "the connection was closed");
}

/* ---- gRPC ---- */

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size, uint32_t *flags,
    nghttp2_data_source *source, void *context)
{
    struct client *client = source->ptr;
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
    struct client *client = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags, (void)context;
    if (client != NULL && name_size == 11 && memcmp(name, "grpc-status", 11) == 0)
        client->status = value_size > 0 ? atoi((const char *)value) : -1;
    return 0;
}

static int closed_stream(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    struct client *client = nghttp2_session_get_stream_user_data(session, stream);
    (void)context;
    if (client != NULL)
        answered(client, error == 0 && client->status >= 0 ? client->status : 2, "the call failed");
    return 0;
}

static void flush_grpc(struct connection *connection)
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

static void send_grpc(struct client *client)
{
    char timeout[24];
    const uint64_t timeout_us = client->load->options->timeout_us;
    snprintf(timeout, sizeof timeout, "%lluu", (unsigned long long)timeout_us);
    const nghttp2_nv head[] = {HEADER(":method", "POST"), HEADER(":scheme", "http"),
        HEADER(":path", "/inference.GRPCInferenceService/ModelInfer"), HEADER(":authority", "bench"),
        HEADER("content-type", "application/grpc"), HEADER("te", "trailers"),
        HEADER("grpc-timeout", timeout)};
    const size_t count = sizeof head / sizeof *head - (timeout_us == 0);
    const nghttp2_data_provider body = {.source.ptr = client, .read_callback = read_body};
    client->body_sent = 0;
    client->status = -1;
    client->stream = nghttp2_submit_request(client->connection->session, NULL, head, count, &body, client);
    if (client->stream < 0)
        bench_check(ph_fail(PH_ERROR_BUG, "nghttp2: %s", nghttp2_strerror(client->stream)));
    flush_grpc(client->connection);
}

static void open_session(struct connection *connection)
{
    nghttp2_session_callbacks *callbacks;
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, came_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closed_stream);
    if (nghttp2_session_client_new(&connection->session, callbacks, connection) != 0 ||
        nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, &window, 1) != 0 ||
        nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0, 16 << 20) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "a session of nghttp2"));
    nghttp2_session_callbacks_del(callbacks);
    flush_grpc(connection);
}

/* ---- the loop ---- */

static void receive(struct connection *connection)
{
    for (;;) {
        const ssize_t count = recv(connection->socket, connection->in + connection->in_size,
            ANSWER_BYTES - 1 - connection->in_size, MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count <= 0) {
            if (connection->session != NULL)
                bench_check(ph_fail(PH_ERROR_PEER, "the server has closed a connection"));
            reopen(connection);
            return;
        }
        if (connection->session == NULL) {
            connection->in_size += (size_t)count;
            read_rest(connection);
        } else if (nghttp2_session_mem_recv(
                       connection->session, (const uint8_t *)connection->in, (size_t)count) != count) {
            bench_check(ph_fail(PH_ERROR_PEER, "the server does not speak HTTP/2"));
        }
    }
}

static void poll_sockets(struct load *load)
{
    struct epoll_event events[EVENTS_A_ROUND];
    const int count = epoll_wait(load->epoll, events, EVENTS_A_ROUND, 0);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        receive(connection);
        if (connection->session != NULL)
            flush_grpc(connection);
        else
            write_out(connection);
    }
}

static void send_one(struct load *load, double due_s)
{
    struct client *client = load->free_clients;
    load->free_clients = client->next;
    client->due_s = due_s;
    client->body = &load->options->bodies[load->next_body++ % load->options->num_bodies];
    load->num_in_flight++;
    load->result->num_sent++;
    if (load->options->is_grpc)
        send_grpc(client);
    else
        send_rest(client);
}

static void push_due(struct load *load, double due_s)
{
    if (load->due_count == load->due_capacity) {
        const size_t capacity = load->due_capacity > 0 ? 2 * load->due_capacity : 1024;
        double *due = calloc(capacity, sizeof *due);
        if (due == NULL)
            bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu requests", capacity));
        for (size_t i = 0; i < load->due_count; i++)
            due[i] = load->due[(load->due_first + i) % load->due_capacity];
        free(load->due);
        load->due = due;
        load->due_first = 0;
        load->due_capacity = capacity;
    }
    load->due[(load->due_first + load->due_count++) % load->due_capacity] = due_s;
}

static double pop_due(struct load *load)
{
    const double due_s = load->due[load->due_first];
    load->due_first = (load->due_first + 1) % load->due_capacity;
    load->due_count--;
    return due_s;
}

static void open_all(struct load *load)
{
    const struct load_options *options = load->options;
    const size_t share = options->is_grpc ? STREAMS_A_CONNECTION : 1;
    load->num_connections = ph__divide_up(options->num_clients, share);
    load->connections = calloc(load->num_connections, sizeof *load->connections);
    load->clients = calloc(options->num_clients, sizeof *load->clients);
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load->connections == NULL || load->clients == NULL || load->epoll < 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu clients", options->num_clients));
    for (size_t i = 0; i < load->num_connections; i++) {
        load->connections[i].load = load;
        open_socket(&load->connections[i]);
        if (options->is_grpc)
            open_session(&load->connections[i]);
    }
    for (size_t i = 0; i < options->num_clients; i++) {
        load->clients[i] = (struct client){
            .load = load, .connection = &load->connections[i / share], .next = load->free_clients};
        load->free_clients = &load->clients[i];
    }
}

static void close_all(struct load *load)
{
    for (size_t i = 0; i < load->num_connections; i++) {
        nghttp2_session_del(load->connections[i].session);
        close(load->connections[i].socket);
        ph__buffer_fini(&load->connections[i].out);
    }
    close(load->epoll);
    free(load->connections);
    free(load->clients);
    free(load->due);
}

/* Sends a request by each client, uncounted: the server has accepted all connections then. */
static void warm_up(struct load *load)
{
    while (load->free_clients != NULL)
        send_one(load, now_s());
    while (load->num_in_flight > 0)
        poll_sockets(load);
    free(load->result->times);
    *load->result = (struct load_result){0};
    load->times_capacity = 0;
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void load_run(const struct load_options *options, struct load_result *result_out)
{
    struct load load = {.options = options, .result = result_out};
    struct ph__rng_sequence random = {.key.seed = options->seed};
    *result_out = (struct load_result){0};
    snprintf(load.path, sizeof load.path, "/v2/models/%s/infer", options->model);
    open_all(&load);
    warm_up(&load);
    const double begin_s = now_s(), end_s = begin_s + options->seconds;
    double next_s = begin_s;
    for (double at_s = begin_s; at_s < end_s || load.num_in_flight > 0 || load.due_count > 0;
         at_s = now_s()) {
        for (; options->rate > 0 && next_s <= at_s && next_s < end_s;
             next_s -= log(1 - ph__rng_next_uniform(&random)) / options->rate)
            push_due(&load, next_s);
        while (load.free_clients != NULL && (load.due_count > 0 || (options->rate == 0 && at_s < end_s)))
            send_one(&load, options->rate > 0 ? pop_due(&load) : now_s());
        poll_sockets(&load);
    }
    result_out->seconds = now_s() - begin_s;
    close_all(&load);
    if (result_out->num_answered > 0)
        qsort(result_out->times, result_out->num_answered, sizeof *result_out->times, ascending);
}

void load_result_fini(struct load_result *result)
{
    free(result->times);
    *result = (struct load_result){0};
}

double load_quantile(const struct load_result *result, double share)
{
    if (result->num_answered == 0)
        return (double)NAN;
    return result->times[(size_t)ceil(share * (double)result->num_answered) - 1];
}
