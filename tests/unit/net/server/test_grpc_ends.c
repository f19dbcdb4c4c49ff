/* The gRPC server: clients that are slow, bad or gone, and its own end. */
#include "unit/net/server/grpc_client.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
