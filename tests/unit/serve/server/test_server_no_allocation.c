/* Once warm, a server takes no memory for a request, on either wire; libmicrohttpd and nghttp2 do. */
#include "unit/serve/server/scoring_server_case.h"

#include "serve/wire/oip_messages.h"
#include "support/count_allocations.h"

enum { WARM_UP = 300, COUNTED = 1000, NUM_LINES = 3, ROOM = 8192 };

/* Bytes of a client, and its connection. Nothing is allocated after they are made. */
struct client {
    int socket;
    unsigned char request[ROOM], answer[ROOM];
    size_t size, stream_at[2]; /* gRPC: where the frames' stream is written */
};

static void add(struct client *client, const void *bytes, size_t size)
{
    assert_true(client->size + size <= ROOM);
    memcpy(client->request + client->size, bytes, size);
    client->size += size;
}

static void receive_more(struct client *client, size_t *size)
{
    const ssize_t count = recv(client->socket, client->answer + *size, ROOM - *size, 0);
    assert_true(count > 0);
    *size += (size_t)count;
}

/* ---- REST ---- */

static void make_rest(struct client *client, const char *body)
{
    char head[300];
    const int length = snprintf(head, sizeof head,
        "POST /v2/models/ads/infer HTTP/1.1\r\nHost: here\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    client->socket = connect_to(ph_server_http_address(server));
    add(client, head, (size_t)length);
    add(client, body, strlen(body));
}

static void ask_rest(struct client *client)
{
    size_t size = 0;
    assert_true(send_all(client->socket, (const char *)client->request, client->size));
    do {
        receive_more(client, &size);
        client->answer[size] = '\0';
    } while (strstr((const char *)client->answer, "]}]}") == NULL);
    assert_memory_equal(client->answer, "HTTP/1.1 200", 12);
}

/* ---- gRPC: frames of HTTP/2 (RFC 9113), headers as literals that no table keeps (RFC 7541, 6.2.2) ---- */

enum {
    DATA = 0,
    HEADERS = 1,
    SETTINGS = 4,
    WINDOW_UPDATE = 8,
    END_STREAM = 1,
    ACK = 1,
    END_HEADERS = 4,
    FRAME_HEAD = 9
};

/* Begins a frame, and returns the place where its stream is written. */
static size_t add_frame(struct client *client, size_t size, unsigned char type, unsigned char flags)
{
    const unsigned char head[FRAME_HEAD] = {0, (unsigned char)(size >> 8), (unsigned char)size, type, flags};
    add(client, head, sizeof head);
    return client->size - 4;
}

static size_t write_header(unsigned char *to, const char *name, const char *value)
{
    const size_t name_size = strlen(name), value_size = strlen(value);
    assert_true(name_size < 127 && value_size < 127);
    to[0] = 0;
    to[1] = (unsigned char)name_size;
    memcpy(to + 2, name, name_size);
    to[2 + name_size] = (unsigned char)value_size;
    memcpy(to + 3 + name_size, value, value_size);
    return 3 + name_size + value_size;
}

static void make_call(struct client *client, const struct ph__buffer *message)
{
    static const char *const headers[][2] = {{":method", "POST"}, {":scheme", "http"},
        {":path", "/inference.GRPCInferenceService/ModelInfer"}, {":authority", "here"},
        {"content-type", "application/grpc"}, {"te", "trailers"}};
    unsigned char head[500];
    size_t size = 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        size += write_header(head + size, headers[i][0], headers[i][1]);
    client->stream_at[0] = add_frame(client, size, HEADERS, END_HEADERS);
    add(client, head, size);
    client->stream_at[1] = add_frame(client, 5 + message->size, DATA, END_STREAM);
    add(client,
        (const unsigned char[]){0, 0, 0, (unsigned char)(message->size >> 8), (unsigned char)message->size},
        5);
    add(client, message->bytes, message->size);
}

static void make_grpc(struct client *client, const struct ph__oip_infer_request *request)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct ph__buffer message = {0};
    client->socket = connect_to(ph_server_grpc_address(server));
    add(client, preface, sizeof preface - 1);
    (void)add_frame(client, 0, SETTINGS, 0);
    (void)add_frame(client, 0, SETTINGS, ACK);
    /* the connection has a window for all answers */
    (void)add_frame(client, 4, WINDOW_UPDATE, 0);
    add(client, (const unsigned char[]){0x7f, 0, 0, 0}, 4);
    assert_true(send_all(client->socket, (const char *)client->request, client->size));
    client->size = 0;
    ph__message_to_protobuf(&ph__oip_infer_request_message, request, &message);
    make_call(client, &message);
    ph__buffer_fini(&message);
}

/* Reads frames up to the trailers of the stream, which must say "grpc-status: 0" after some data. */
static void read_call(struct client *client, uint32_t stream)
{
    size_t size = 0, at = 0, data_bytes = 0;
    for (;;) {
        while (size < at + FRAME_HEAD)
            receive_more(client, &size);
        const unsigned char *head = client->answer + at;
        const size_t length = (size_t)head[1] << 8 | head[2];
        while (size < at + FRAME_HEAD + length)
            receive_more(client, &size);
        const bool is_ours = (((uint32_t)head[7] << 8) | head[8]) == (stream & 0xffff) && stream != 0;
        data_bytes += is_ours && head[3] == DATA ? length : 0;
        at += FRAME_HEAD + length;
        if (is_ours && head[3] == HEADERS && (head[4] & END_STREAM) != 0)
            break;
    }
    assert_true(data_bytes > 5 + NUM_LINES * sizeof(float));
}

static void ask_grpc(struct client *client)
{
    static uint32_t stream = 1;
    for (size_t i = 0; i < 2; i++)
        for (size_t byte = 0; byte < 4; byte++)
            client->request[client->stream_at[i] + byte] = (unsigned char)(stream >> (8 * (3 - byte)));
    assert_true(send_all(client->socket, (const char *)client->request, client->size));
    read_call(client, stream);
    stream += 2;
}

/* ---- tests ---- */

static void expect_no_allocation(
    const char *wire, struct client *client, void (*ask_once)(struct client *client))
{
    for (size_t i = 0; i < WARM_UP; i++)
        ask_once(client);
    const unsigned ours = num_allocations(ALLOCATOR_OURS), theirs = num_allocations(ALLOCATOR_LIBRARY);
    count_allocations(true);
    for (size_t i = 0; i < COUNTED; i++)
        ask_once(client);
    count_allocations(false);
    print_message("%s: allocations in %d requests: %u ours, %u of libraries\n", wire, COUNTED,
        num_allocations(ALLOCATOR_OURS) - ours, num_allocations(ALLOCATOR_LIBRARY) - theirs);
    assert_int_equal(num_allocations(ALLOCATOR_OURS) - ours, 0);
    if (allocations_are_counted())
        assert_true(num_allocations(ALLOCATOR_LIBRARY) > theirs); /* what is counted would be seen */
    close(client->socket);
}

static void a_warm_server_allocates_nothing_for_a_request(void **state)
{
    (void)state;
    static struct client rest, grpc;
    struct ph__bytes shops = {"\1\0\0\0\2\0\0\0\3\0\0\0", 12};
    int64_t shape = NUM_LINES;
    struct ph__oip_tensor input = {
        .name = ph__bytes_of("shop"), .datatype = ph__bytes_of("INT32"), .shape = {&shape, 1}};
    const struct ph__oip_infer_request request = {
        .model_name = ph__bytes_of("ads"), .inputs = {&input, 1}, .raw = {&shops, 1}};
    options.num_threads = 1;
    start();
    make_rest(&rest,
        "{\"inputs\":[{\"name\":\"shop\",\"datatype\":\"INT32\",\"shape\":[3],\"data\":[1,2,3]}],"
        "\"outputs\":[{\"name\":\"probability\"}]}");
    make_grpc(&grpc, &request);
    expect_no_allocation("REST", &rest, ask_rest);
    expect_no_allocation("gRPC", &grpc, ask_grpc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_warm_server_allocates_nothing_for_a_request),
    };
    return cmocka_run_group_tests(tests, make_repository, NULL);
}
