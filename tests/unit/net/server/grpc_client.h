/* A gRPC server whose handler echoes, and clients of nghttp2 in the same thread, for the tests of the server.
 */
#ifndef PH_TEST_GRPC_CLIENT_H
#define PH_TEST_GRPC_CLIENT_H

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sizes.h"
#include "base/thread/clock.h"
#include "net/link/socket.h"
#include "net/server/grpc_server.h"
#include "support/test_support.h"

enum {
    MAX_MESSAGE = 4 << 20,
    CLIENT_TIMEOUT_MS = 600,
    DEADLINE_MS = 20000,
    MAX_CLIENTS = 4,
    NUM_CALLS = 100, /* of a connection at once */
};

/* ---- the handler: /echo sends messages back, /later leaves the call to the test, /fail gives a status ----
 */

static struct ph__grpc_server *server;
static struct ph__grpc_call *waiting; /* the last call of /later */
static size_t num_begun, num_ended, num_cancelled, num_half_closed, num_messages;
static uint64_t timeout_ns;
static char authorization[64];

static inline void begin(void *context, struct ph__grpc_call *call)
{
    assert_ptr_equal(context, &server);
    assert_null(*ph__grpc_call_user(call));
    *ph__grpc_call_user(call) = &num_begun;
    num_begun++;
    timeout_ns = ph__grpc_call_timeout_ns(call);
    const struct ph__bytes text = ph__grpc_call_authorization(call);
    snprintf(authorization, sizeof authorization, "%.*s", (int)text.size, text.size > 0 ? text.bytes : "");
    if (ph__bytes_are(ph__grpc_call_path(call), "/fail"))
        ph__grpc_finish(call, 5, "no 'caf\xc3\xa9':\n100% sure~");
    if (ph__bytes_are(ph__grpc_call_path(call), "/later"))
        waiting = call;
}

static inline void message(void *context, struct ph__grpc_call *call, struct ph__buffer *bytes)
{
    (void)context;
    num_messages++;
    if (ph__bytes_are(ph__grpc_call_path(call), "/echo"))
        ph__grpc_send(call, bytes->bytes, bytes->size);
}

static inline void half_closed(void *context, struct ph__grpc_call *call)
{
    (void)context;
    num_half_closed++;
    if (ph__bytes_are(ph__grpc_call_path(call), "/echo"))
        ph__grpc_finish(call, 0, "");
}

static inline void end(void *context, struct ph__grpc_call *call, bool was_cancelled)
{
    (void)context;
    assert_ptr_equal(*ph__grpc_call_user(call), &num_begun);
    num_ended++;
    num_cancelled += was_cancelled;
    if (waiting == call)
        waiting = NULL;
}

static const struct ph__grpc_handler handler = {begin, message, half_closed, end, &server};

/* ---- clients ---- */

/* A call as its client sees it. */
struct call {
    int32_t stream;
    struct ph__buffer out; /* for the server, sent up to out_sent in frames of up to `piece` bytes */
    size_t out_sent, piece;
    bool has_more; /* the client does not half-close yet */
    struct ph__buffer in;
    int status; /* grpc-status; -1: none yet */
    char text[200];
    bool is_closed;
    uint32_t error; /* of the stream, when it is closed */
};

struct client {
    int socket;
    nghttp2_session *session;
    bool is_lost, was_told_to_go, is_deaf; /* deaf: reads nothing */
};

static struct client clients[MAX_CLIENTS];
static size_t num_clients;

static inline int came_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
    size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    const struct ph__bytes key = {(const char *)name, name_size};
    (void)flags, (void)context;
    assert_non_null(call);
    if (ph__bytes_are(key, ":status"))
        assert_memory_equal(value, "200", 3);
    if (ph__bytes_are(key, "grpc-status"))
        call->status = atoi((const char *)value);
    if (ph__bytes_are(key, "grpc-message"))
        snprintf(call->text, sizeof call->text, "%.*s", (int)value_size, (const char *)value);
    return 0;
}

static inline int came_data(
    nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size, void *context)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags, (void)context;
    ph__buffer_append(&call->in, bytes, size);
    return 0;
}

static inline int came_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)session;
    ((struct client *)context)->was_told_to_go |= frame->hd.type == NGHTTP2_GOAWAY;
    return 0;
}

static inline int closed_stream(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)context;
    if (call != NULL) {
        call->is_closed = true;
        call->error = error;
    }
    return 0;
}

static inline ssize_t read_messages(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
    uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct call *call = source->ptr;
    const size_t count = ph__min(ph__min(size, call->piece), call->out.size - call->out_sent);
    (void)session, (void)stream, (void)context;
    if (count > 0)
        memcpy(to, call->out.bytes + call->out_sent, count);
    call->out_sent += count;
    if (call->out_sent == call->out.size && !call->has_more)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (count == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)count;
}

static inline int connect_socket(void)
{
    int client;
    assert_ok(ph__socket_connect(ph__grpc_server_address(server), DEADLINE_MS, &client));
    return client;
}

static struct client *connect_client(void)
{
    struct client *client = &clients[num_clients++];
    nghttp2_session_callbacks *callbacks;
    *client = (struct client){.socket = connect_socket()};
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, came_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, came_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, came_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closed_stream);
    assert_int_equal(nghttp2_session_client_new(&client->session, callbacks, client), 0);
    nghttp2_session_callbacks_del(callbacks);
    assert_int_equal(nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
    return client;
}

static inline void disconnect(struct client *client)
{
    if (client->session == NULL)
        return;
    nghttp2_session_del(client->session);
    client->session = NULL;
    close(client->socket);
}

/* Lets the server do what is due, and waits for that for up to `ms`. */
static inline void run_server(int ms)
{
    struct pollfd descriptor = {.fd = ph__grpc_server_descriptor(server), .events = POLLIN};
    const int timeout = ph__grpc_server_timeout_ms(server);
    assert_true(poll(&descriptor, 1, timeout >= 0 && timeout < ms ? timeout : ms) >= 0);
    assert_ok(ph__grpc_server_run(server));
}

static inline void send_bytes(struct client *client, const uint8_t *bytes, size_t size)
{
    while (size > 0 && !client->is_lost) {
        const ssize_t count = send(client->socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        client->is_lost = count < 0 && errno != EAGAIN;
        bytes += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
        run_server(count > 0 ? 0 : 1);
    }
}

/* Sends what nghttp2 has, chunk by chunk with the server's turns between them, and reads what has come. */
static inline void run_client(struct client *client)
{
    static uint8_t came[64 << 10];
    const uint8_t *bytes;
    ssize_t count;
    while (!client->is_lost && (count = nghttp2_session_mem_send(client->session, &bytes)) > 0)
        send_bytes(client, bytes, (size_t)count);
    while (!client->is_lost && !client->is_deaf &&
           (count = recv(client->socket, came, sizeof came, MSG_DONTWAIT)) > 0)
        assert_int_equal(nghttp2_session_mem_recv(client->session, came, (size_t)count), count);
    client->is_lost |= !client->is_deaf && (count == 0 || (count < 0 && errno == ECONNRESET));
}

static inline void run_all(void)
{
    for (size_t i = 0; i < num_clients; i++)
        if (clients[i].session != NULL)
            run_client(&clients[i]);
    run_server(1);
}

/* Runs clients and server until the condition holds. */
#define await(condition)                                                                                   \
    do {                                                                                                   \
        const uint64_t await_until = ph__clock_deadline(DEADLINE_MS);                                      \
        while (!(condition) && ph__clock_ms_until(await_until) > 0)                                        \
            run_all();                                                                                     \
        if (!(condition))                                                                                  \
            fail_msg("%s:%d: %s did not come true in %d ms", __FILE__, __LINE__, #condition, DEADLINE_MS); \
    } while (0)

#define FIELD(name_text, value_text)                                                            \
    {                                                                                           \
        .name = (uint8_t *)(uintptr_t)(name_text), .namelen = strlen(name_text),                \
        .value = (uint8_t *)(uintptr_t)(value_text), .valuelen = strlen(value_text), .flags = 0 \
    }

/* Begins a call with a field more, or NULL. */
static inline void begin_call_with(
    struct client *client, struct call *call, const char *path, const char *name, const char *value)
{
    const bool is_type = name != NULL && strcmp(name, "content-type") == 0;
    const nghttp2_nv head[] = {FIELD(":method", "POST"), FIELD(":scheme", "http"), FIELD(":path", path),
        FIELD(":authority", "here"), FIELD("te", "trailers"),
        FIELD("content-type", is_type ? value : "application/grpc+proto"),
        FIELD(name != NULL ? name : "", name != NULL ? value : "")};
    const nghttp2_data_provider messages = {.source.ptr = call, .read_callback = read_messages};
    *call = (struct call){.status = -1, .piece = SIZE_MAX};
    call->stream = nghttp2_submit_request(
        client->session, NULL, head, name != NULL && !is_type ? 7 : 6, &messages, call);
    assert_true(call->stream > 0);
    call->has_more = true;
}

static inline void begin_call(struct client *client, struct call *call, const char *path)
{
    begin_call_with(client, call, path, NULL, NULL);
}

static inline void add_prefix(struct call *call, unsigned char is_compressed, size_t size)
{
    const unsigned char prefix[5] = {is_compressed, (unsigned char)(size >> 24), (unsigned char)(size >> 16),
        (unsigned char)(size >> 8), (unsigned char)size};
    ph__buffer_append(&call->out, prefix, sizeof prefix);
}

static inline void add_message(struct call *call, const void *bytes, size_t size)
{
    add_prefix(call, 0, size);
    ph__buffer_append(&call->out, bytes, size);
}

static inline void go_on(struct client *client, struct call *call)
{
    (void)nghttp2_session_resume_data(client->session, call->stream); /* fails where it is not deferred */
}

static inline void half_close(struct client *client, struct call *call)
{
    call->has_more = false;
    go_on(client, call);
}

static inline void fini_call(struct call *call)
{
    ph__buffer_fini(&call->in);
    ph__buffer_fini(&call->out);
}

/* Awaits the end of a call, and expects this status. */
static inline void expect_status(struct call *call, int status, const char *text)
{
    await(call->status >= 0);
    assert_int_equal(call->status, status);
    assert_string_equal(call->text, text);
}

/* Expects the same messages that the call has sent. */
static inline void expect_echo(struct call *call)
{
    expect_status(call, 0, "");
    await(call->is_closed);
    assert_int_equal(call->error, NGHTTP2_NO_ERROR);
    assert_int_equal(call->in.size, call->out.size);
    assert_memory_equal(call->in.bytes, call->out.bytes, call->out.size);
    fini_call(call);
}

static inline void expect_served(struct client *client)
{
    struct call call;
    begin_call(client, &call, "/echo");
    add_message(&call, "alive", 5);
    half_close(client, &call);
    expect_echo(&call);
}

static inline int start_server(void **state)
{
    const struct ph__grpc_options options = {.handler = &handler,
        .max_message_bytes = MAX_MESSAGE,
        .client_timeout_ms = CLIENT_TIMEOUT_MS,
        .idle_timeout_ms = 2 * CLIENT_TIMEOUT_MS};
    (void)state;
    num_begun = num_ended = num_cancelled = num_half_closed = num_messages = num_clients = 0;
    waiting = NULL;
    return ph__grpc_server_create(&options, &server);
}

static inline int stop_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < num_clients; i++)
        disconnect(&clients[i]);
    ph__grpc_server_destroy(server);
    server = NULL;
    return num_begun == num_ended ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_server, stop_server)

#endif
