/* The gRPC server: calls and messages. */
#include "unit/net/server/grpc_client.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
