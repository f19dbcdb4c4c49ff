/* Links that are refused: a hub that is played here, in a thread, has ended the job, and says so over the control connection while
 * the worker makes its links. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "hub/protocol.h"
#include "net/control_stream.h"
#include "support/test_support.h"

enum { CHUNK_BYTES = 4096, TIMEOUT_MS = 20000 };

struct played_hub {
    int listening;
    char address[PH_ADDRESS_BYTES];
    pthread_t thread;
};

static void wait_for(int descriptor)
{
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, TIMEOUT_MS), 1);
}

static struct ph_control_stream *accept_next(const struct played_hub *hub)
{
    struct ph_control_stream *stream;
    int socket;
    wait_for(hub->listening);
    assert_ok(ph__socket_accept(hub->listening, &socket));
    assert_ok(ph__control_stream_create(socket, &stream));
    return stream;
}

static void hear(struct ph_control_stream *stream, enum ph_hub_frame wanted)
{
    struct ph_control_frame frame;
    bool is_there = false;
    while (!is_there) {
        wait_for(ph__control_stream_socket(stream));
        (void)ph__control_stream_receive(stream);
        assert_ok(ph__control_stream_take(stream, &frame, &is_there));
    }
    assert_int_equal(frame.type, wanted);
}

static void say(struct ph_control_stream *stream, enum ph_hub_frame type, const struct ph_wire_writer *body)
{
    assert_ok(ph__control_stream_put(stream, (uint16_t)type, body->bytes, body->used, NULL, 0));
    assert_ok(ph__control_stream_flush(stream));
}

static void greet(struct ph_control_stream *stream)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    const struct ph_welcome welcome = {.local_socket = "nowhere"};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_welcome(&writer, &welcome);
    hear(stream, PH_FRAME_HELLO);
    say(stream, PH_FRAME_WELCOME, &writer);
}

static void answer(struct ph_control_stream *stream, enum ph_hub_frame type, const char *text)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, PH_ERROR_PEER, text);
    say(stream, type, &writer);
}

static void join(struct ph_control_stream *stream)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    const uint16_t core_of_chunk = 0;
    const struct ph_joined joined = {.num_workers = 2, .depth = 1, .num_optimizers = 1};
    const struct ph_job_layout layout = {.chunk_bytes = CHUNK_BYTES,
        .num_versions = 1,
        .ring_capacity = 64,
        .num_cores = 1,
        .cores_sum = ph__checksum(&core_of_chunk, sizeof core_of_chunk)};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_joined(&writer, &joined);
    hear(stream, PH_FRAME_JOIN);
    say(stream, PH_FRAME_JOINED, &writer);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_layout(&writer, &layout);
    hear(stream, PH_FRAME_INIT);
    say(stream, PH_FRAME_LAYOUT, &writer);
}

static void *end_job_before_links(void *context)
{
    const struct played_hub *hub = context;
    struct ph_control_stream *control = accept_next(hub);
    greet(control);
    join(control);
    struct ph_control_stream *link = accept_next(hub);
    greet(link);
    hear(link, PH_FRAME_ATTACH);
    answer(control, PH_FRAME_FAILED, "worker 1 has died");
    answer(link, PH_FRAME_ANSWER, "no worker waits for this link");
    ph__control_stream_destroy(link);
    wait_for(ph__control_stream_socket(control)); /* until the worker has gone */
    ph__control_stream_destroy(control);
    return NULL;
}

static void a_refused_link_says_why_the_job_has_ended(void **state)
{
    (void)state;
    const struct ph_hub_key key = {.num_elements = CHUNK_BYTES / sizeof(float)};
    struct played_hub hub;
    struct ph_hub_client *client;
    assert_ok(ph__socket_listen("127.0.0.1:0", &hub.listening));
    assert_ok(ph__socket_address(hub.listening, hub.address));
    assert_int_equal(pthread_create(&hub.thread, NULL, end_job_before_links, &hub), 0);
    const struct ph_hub_options options = {
        .address = hub.address, .transport = PH_HUB_TCP, .timeout_ms = TIMEOUT_MS};
    assert_ok(ph_hub_connect(&options, "job", 7, 0, &client));
    assert_fails(ph_hub_init(client, &key, 1, NULL), PH_ERROR_PEER, "worker 1 has died");
    ph_hub_client_destroy(client);
    pthread_join(hub.thread, NULL);
    close(hub.listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_link_says_why_the_job_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
