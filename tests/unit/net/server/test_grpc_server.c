/* The gRPC server against clients of nghttp2, in the same thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sizes.h"
#include "base/thread/clock.h"
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

static void begin(void *context, struct ph__grpc_call *call)
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

static void message(void *context, struct ph__grpc_call *call, struct ph__buffer *bytes)
{
    (void)context;
    num_messages++;
    if (ph__bytes_are(ph__grpc_call_path(call), "/echo"))
        ph__grpc_send(call, bytes->bytes, bytes->size);
}

static void half_closed(void *context, struct ph__grpc_call *call)
{
    (void)context;
    num_half_closed++;
    if (ph__bytes_are(ph__grpc_call_path(call), "/echo"))
        ph__grpc_finish(call, 0, "");
}

static void end(void *context, struct ph__grpc_call *call, bool was_cancelled)
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

static int came_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
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

static int came_data(
    nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size, void *context)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags, (void)context;
    ph__buffer_append(&call->in, bytes, size);
    return 0;
}

static int came_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)session;
    ((struct client *)context)->was_told_to_go |= frame->hd.type == NGHTTP2_GOAWAY;
    return 0;
}

static int closed_stream(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)context;
    if (call != NULL) {
        call->is_closed = true;
        call->error = error;
    }
    return 0;
}

static ssize_t read_messages(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
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

static int connect_socket(void)
{
    const uint16_t port = (uint16_t)atoi(strrchr(ph__grpc_server_address(server), ':') + 1);
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client >= 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&to, sizeof to), 0);
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

static void disconnect(struct client *client)
{
    if (client->session == NULL)
        return;
    nghttp2_session_del(client->session);
    client->session = NULL;
    close(client->socket);
}

/* Lets the server do what is due, and waits for that for up to `ms`. */
static void run_server(int ms)
{
    struct pollfd descriptor = {.fd = ph__grpc_server_descriptor(server), .events = POLLIN};
    const int timeout = ph__grpc_server_timeout_ms(server);
    assert_true(poll(&descriptor, 1, timeout >= 0 && timeout < ms ? timeout : ms) >= 0);
    assert_ok(ph__grpc_server_run(server));
}

static void send_bytes(struct client *client, const uint8_t *bytes, size_t size)
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
static void run_client(struct client *client)
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

static void run_all(void)
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
static void begin_call_with(
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

static void begin_call(struct client *client, struct call *call, const char *path)
{
    begin_call_with(client, call, path, NULL, NULL);
}

static void add_prefix(struct call *call, unsigned char is_compressed, size_t size)
{
    const unsigned char prefix[5] = {is_compressed, (unsigned char)(size >> 24), (unsigned char)(size >> 16),
        (unsigned char)(size >> 8), (unsigned char)size};
    ph__buffer_append(&call->out, prefix, sizeof prefix);
}

static void add_message(struct call *call, const void *bytes, size_t size)
{
    add_prefix(call, 0, size);
    ph__buffer_append(&call->out, bytes, size);
}

static void go_on(struct client *client, struct call *call)
{
    (void)nghttp2_session_resume_data(client->session, call->stream); /* fails where it is not deferred */
}

static void half_close(struct client *client, struct call *call)
{
    call->has_more = false;
    go_on(client, call);
}

static void fini_call(struct call *call)
{
    ph__buffer_fini(&call->in);
    ph__buffer_fini(&call->out);
}

/* Awaits the end of a call, and expects this status. */
static void expect_status(struct call *call, int status, const char *text)
{
    await(call->status >= 0);
    assert_int_equal(call->status, status);
    assert_string_equal(call->text, text);
}

/* Expects the same messages that the call has sent. */
static void expect_echo(struct call *call)
{
    expect_status(call, 0, "");
    await(call->is_closed);
    assert_int_equal(call->error, NGHTTP2_NO_ERROR);
    assert_int_equal(call->in.size, call->out.size);
    assert_memory_equal(call->in.bytes, call->out.bytes, call->out.size);
    fini_call(call);
}

static void expect_served(struct client *client)
{
    struct call call;
    begin_call(client, &call, "/echo");
    add_message(&call, "alive", 5);
    half_close(client, &call);
    expect_echo(&call);
}

static int start_server(void **state)
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

static int stop_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < num_clients; i++)
        disconnect(&clients[i]);
    ph__grpc_server_destroy(server);
    server = NULL;
    return num_begun == num_ended ? 0 : -1;
}

/* ---- tests ---- */

static void a_unary_call_is_answered(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call_with(client, &call, "/echo", "authorization", "Bearer of news");
    add_message(&call, "hello", 5);
    half_close(client, &call);
    expect_echo(&call);
    assert_string_equal(authorization, "Bearer of news");
    assert_true(timeout_ns == UINT64_MAX);
    await(num_ended == 1);
    assert_int_equal(num_messages, 1);
    assert_int_equal(num_cancelled, 0);
    assert_int_equal(ph__grpc_server_num_calls(server), 0);
    begin_call(client, &call, "/echo");
    add_message(&call, "", 0); /* as Google's Empty */
    half_close(client, &call);
    expect_echo(&call);
    assert_string_equal(authorization, "");
}

static void a_stream_of_messages_in_pieces_of_a_byte_is_put_together(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call(client, &call, "/echo");
    call.piece = 1;
    add_message(&call, "first", 5);
    add_message(&call, "", 0);
    add_message(&call, "the third", 9);
    await(num_messages == 3);
    assert_int_equal(num_half_closed, 0);
    await(call.in.size == call.out.size); /* answers come before the client's end */
    assert_int_equal(call.status, -1);
    half_close(client, &call);
    expect_echo(&call);
    assert_int_equal(num_half_closed, 1);
}

static void a_message_larger_than_the_windows_comes_back(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    const size_t size = (3 << 20) + 7;
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < 3; i++) {
        begin_call(client, &call, "/echo");
        add_message(&call, bytes, size);
        half_close(client, &call);
        expect_echo(&call);
    }
    free(bytes);
}

static void an_answer_may_come_later(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call(client, &call, "/later");
    add_message(&call, "question", 8);
    half_close(client, &call);
    await(num_half_closed == 1);
    expect_served(client);
    const uint64_t until = ph__clock_deadline(3 * CLIENT_TIMEOUT_MS); /* however long it takes */
    while (ph__clock_ms_until(until) > 0)
        run_all();
    assert_non_null(waiting);
    assert_int_equal(ph__grpc_server_num_calls(server), 1);
    ph__grpc_send(waiting, "answer", 6);
    ph__grpc_finish(waiting, 0, "");
    ph__grpc_finish(waiting, 13, "too late");
    ph__grpc_send(waiting, "too late", 8);
    expect_status(&call, 0, "");
    assert_int_equal(call.in.size, 11);
    assert_memory_equal(call.in.bytes, "\0\0\0\0\6answer", 11);
    await(waiting == NULL);
    assert_int_equal(num_cancelled, 0);
    fini_call(&call);
}

static void the_text_of_a_status_is_percent_encoded(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call(client, &call, "/fail");
    half_close(client, &call);
    expect_status(&call, 5, "no 'caf%C3%A9':%0A100%25 sure~");
    assert_int_equal(call.in.size, 0);
    await(num_ended == 1);
    assert_int_equal(num_half_closed, 0); /* it was finished before */
    begin_call(client, &call, "/later");
    half_close(client, &call);
    await(num_half_closed == 1);
    ph__grpc_send(waiting, "x", 1); /* the status comes as trailers */
    ph__grpc_finish(waiting, 13, "50%");
    expect_status(&call, 13, "50%25");
    assert_int_equal(call.in.size, 6);
    fini_call(&call);
}

static void a_timeout_is_understood(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {{"100m", 100000000}, {"2S", 2000000000}, {"3M", 180000000000}, {"1H", 3600000000000},
        {"7u", 7000}, {"99999999n", 99999999}, {"0S", 0}, {"99999999H", UINT64_MAX},
        {"99999999M", 5999999940000000000}, {"123456789n", UINT64_MAX}, {"5", UINT64_MAX}, {"S", UINT64_MAX},
        {"-1S", UINT64_MAX}, {"5d", UINT64_MAX}, {"1.5S", UINT64_MAX}};
    (void)state;
    struct client *client = connect_client();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct call call;
        begin_call_with(client, &call, "/echo", "grpc-timeout", cases[i].text);
        half_close(client, &call);
        expect_echo(&call);
        if (timeout_ns != cases[i].ns)
            fail_msg("%s: %llu ns", cases[i].text, (unsigned long long)timeout_ns);
    }
}

static void a_compressed_message_is_refused(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call(client, &call, "/echo");
    add_prefix(&call, 1, 5);
    expect_status(&call, 12, "compressed messages are not supported");
    half_close(client, &call);
    await(num_ended == 1);
    assert_int_equal(num_messages, 0);
    fini_call(&call);
    expect_served(client);
}

static void a_message_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call(client, &call, "/echo");
    add_prefix(&call, 0, MAX_MESSAGE + 1);
    expect_status(&call, 8, "a message of 4194305 bytes exceeds the limit of 4194304");
    static unsigned char rest[MAX_MESSAGE + 1];
    ph__buffer_append(&call.out, rest, sizeof rest); /* it is dropped */
    half_close(client, &call);
    await(call.is_closed && num_ended == 1);
    assert_int_equal(num_messages, 0);
    fini_call(&call);
    expect_served(client);
}

static void a_call_that_ends_within_a_message_is_refused(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    for (size_t i = 0; i < 2; i++) { /* within the message, within its prefix */
        begin_call(client, &call, "/echo");
        add_message(&call, "whole", 5);
        call.out.size -= i == 0 ? 1 : 7;
        half_close(client, &call);
        expect_status(&call, 3, "the call ends within a message");
        fini_call(&call);
    }
    await(num_ended == 2);
    assert_int_equal(num_half_closed, 0);
    assert_int_equal(num_cancelled, 0);
    expect_served(client);
}

static void a_reset_cancels_its_call_alone(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call, other;
    begin_call(client, &other, "/echo");
    await(num_begun == 1);
    begin_call(client, &call, "/later");
    await(waiting != NULL);
    nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, call.stream, NGHTTP2_CANCEL);
    await(waiting == NULL);
    assert_int_equal(num_cancelled, 1);
    assert_int_equal(ph__grpc_server_num_calls(server), 1);
    add_message(&other, "still there", 11);
    half_close(client, &other);
    expect_echo(&other);
    fini_call(&call);
}

static void a_client_that_goes_cancels_its_calls(void **state)
{
    (void)state;
    struct client *client = connect_client(), *other = connect_client();
    struct call calls[3];
    for (size_t i = 0; i < 3; i++)
        begin_call(client, &calls[i], "/later");
    await(num_begun == 3);
    disconnect(client);
    await(num_ended == 3);
    assert_int_equal(num_cancelled, 3);
    assert_null(waiting);
    expect_served(other);
}

static void a_call_of_another_content_type_is_refused(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call_with(client, &call, "/echo", "content-type", "application/json");
    add_message(&call, "{}", 2);
    half_close(client, &call);
    expect_status(&call, 3, "the content-type must be application/grpc");
    await(num_ended == 1);
    assert_int_equal(num_messages, 0);
    fini_call(&call);
    expect_served(client);
}

static void many_calls_are_served_at_once(void **state)
{
    (void)state;
    static struct call calls[MAX_CLIENTS][NUM_CALLS];
    char text[32];
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        connect_client();
    for (size_t i = 0; i < MAX_CLIENTS * NUM_CALLS; i++) {
        struct call *call = &calls[i % MAX_CLIENTS][i / MAX_CLIENTS];
        begin_call(&clients[i % MAX_CLIENTS], call, "/echo");
        call->piece = 3;
        add_message(call, text, (size_t)snprintf(text, sizeof text, "call %zu", i));
    }
    await(ph__grpc_server_num_calls(server) == (size_t)MAX_CLIENTS * NUM_CALLS);
    for (size_t i = MAX_CLIENTS * NUM_CALLS; i-- > 0;)
        half_close(&clients[i % MAX_CLIENTS], &calls[i % MAX_CLIENTS][i / MAX_CLIENTS]);
    for (size_t i = 0; i < MAX_CLIENTS * NUM_CALLS; i++)
        expect_echo(&calls[i % MAX_CLIENTS][i / MAX_CLIENTS]);
    await(ph__grpc_server_num_calls(server) == 0);
    assert_int_equal(num_cancelled, 0);
}

static void a_connection_has_no_more_calls_than_the_limit(void **state)
{
    (void)state;
    static struct call calls[200];
    struct client *client = connect_client();
    expect_served(client); /* the server's settings have come */
    for (size_t i = 0; i < 200; i++)
        begin_call(client, &calls[i], "/later");
    await(ph__grpc_server_num_calls(server) == 128);
    run_all();
    assert_int_equal(ph__grpc_server_num_calls(server), 128);
    disconnect(client);
    await(ph__grpc_server_num_calls(server) == 0);
}

/* ---- slow and bad clients ---- */

static void a_client_that_sends_no_message_is_cut_off(void **state)
{
    (void)state;
    struct client *client = connect_client(), *idle = connect_client();
    struct call call;
    begin_call(client, &call, "/echo");
    add_prefix(&call, 0, 1000);
    await(num_begun == 1);
    await(client->is_lost);
    assert_int_equal(num_cancelled, 1);
    await(idle->is_lost);
    fini_call(&call);
}

/* Begins an echo of 2 MiB, and returns when the server has the message. */
static void begin_large_echo(struct client *client, struct call *call)
{
    const size_t size = 2 << 20;
    void *bytes = calloc(1, size);
    assert_non_null(bytes);
    begin_call(client, call, "/echo");
    add_message(call, bytes, size);
    free(bytes);
    half_close(client, call);
    await(num_messages == 1);
}

static void a_client_that_gives_no_window_is_cut_off(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    nghttp2_submit_window_update(client->session, NGHTTP2_FLAG_NONE, 0, 1 << 30);
    expect_served(client);
    num_messages = 0;
    const nghttp2_settings_entry none = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    assert_int_equal(nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, &none, 1), 0);
    begin_large_echo(client, &call);
    await(num_ended == 2);
    assert_int_equal(num_cancelled, 1);
    fini_call(&call);
}

static void a_client_that_never_ends_a_finished_call_is_cut_off(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call;
    begin_call(client, &call, "/fail");
    expect_status(&call, 5, "no 'caf%C3%A9':%0A100%25 sure~");
    await(client->is_lost);
    assert_int_equal(num_ended, 1);
}

static void a_client_that_reads_nothing_is_cut_off(void **state)
{
    (void)state;
    static struct call calls[32];
    struct client *client = connect_client();
    const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30};
    assert_int_equal(nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, &wide, 1), 0);
    nghttp2_submit_window_update(client->session, NGHTTP2_FLAG_NONE, 0, 1 << 30);
    expect_served(client);
    for (size_t i = 0; i < 32; i++)
        begin_call(client, &calls[i], "/later");
    await(num_begun == 33);
    client->is_deaf = true;
    void *bytes = calloc(1, MAX_MESSAGE);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++)
        ph__grpc_send(waiting, bytes, MAX_MESSAGE); /* more than sockets take */
    free(bytes);
    await(num_ended == 33);
    assert_int_equal(num_cancelled, 32);
}

static void bytes_that_are_not_http_2_end_the_connection(void **state)
{
    static const char *const inputs[] = {"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nfollowed by what is no frame at all, but text of some length"};
    (void)state;
    struct client *other = connect_client();
    expect_served(other);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const int client = connect_socket();
        char came[1000];
        ssize_t count;
        assert_int_equal(send(client, inputs[i], strlen(inputs[i]), MSG_NOSIGNAL), strlen(inputs[i]));
        const uint64_t until = ph__clock_deadline(DEADLINE_MS);
        do
            run_all();
        while (
            ((count = recv(client, came, sizeof came, MSG_DONTWAIT)) > 0 || (count < 0 && errno == EAGAIN)) &&
            ph__clock_ms_until(until) > 0);
        assert_true(count == 0 || errno == ECONNRESET);
        close(client);
    }
    expect_served(other);
}

/* ---- ends ---- */

static void a_server_that_drains_finishes_its_calls(void **state)
{
    (void)state;
    struct client *client = connect_client(), *idle = connect_client();
    struct call call;
    expect_served(idle);
    begin_call(client, &call, "/later");
    half_close(client, &call);
    await(waiting != NULL && num_half_closed == 2);
    ph__grpc_server_drain(server);
    await(idle->is_lost);
    assert_true(idle->was_told_to_go);
    await(client->was_told_to_go);
    assert_non_null(waiting);
    ph__grpc_send(waiting, "last", 4);
    ph__grpc_finish(waiting, 0, "");
    expect_status(&call, 0, "");
    assert_int_equal(call.in.size, 9);
    await(client->is_lost);
    assert_int_equal(num_cancelled, 0);
    fini_call(&call);
}

static void a_destroyed_server_ends_its_calls(void **state)
{
    (void)state;
    struct client *client = connect_client();
    struct call call, echo;
    begin_call(client, &call, "/later");
    begin_call(client, &echo, "/echo");
    add_message(&echo, "half of it", 10);
    echo.out.size -= 3;
    await(num_begun == 2 && echo.out_sent == echo.out.size);
    ph__grpc_server_destroy(server);
    server = NULL;
    assert_int_equal(num_cancelled, 2);
    fini_call(&call);
    fini_call(&echo);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_server, stop_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_unary_call_is_answered),
        TEST(a_stream_of_messages_in_pieces_of_a_byte_is_put_together),
        TEST(a_message_larger_than_the_windows_comes_back),
        TEST(an_answer_may_come_later),
        TEST(the_text_of_a_status_is_percent_encoded),
        TEST(a_timeout_is_understood),
        TEST(a_compressed_message_is_refused),
        TEST(a_message_beyond_the_limit_is_refused),
        TEST(a_call_that_ends_within_a_message_is_refused),
        TEST(a_reset_cancels_its_call_alone),
        TEST(a_client_that_goes_cancels_its_calls),
        TEST(a_call_of_another_content_type_is_refused),
        TEST(many_calls_are_served_at_once),
        TEST(a_connection_has_no_more_calls_than_the_limit),
        TEST(a_client_that_sends_no_message_is_cut_off),
        TEST(a_client_that_gives_no_window_is_cut_off),
        TEST(a_client_that_never_ends_a_finished_call_is_cut_off),
        TEST(a_client_that_reads_nothing_is_cut_off),
        TEST(bytes_that_are_not_http_2_end_the_connection),
        TEST(a_server_that_drains_finishes_its_calls),
        TEST(a_destroyed_server_ends_its_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
