/* Links that are refused: a hub that is played here, in a thread, has ended the job, and says so over the control connection while
 * the worker makes its links. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
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
    ph_status status; /* of the thread, with its error; for whoever joins it */
    char text[1024];
};

static ph_status wait_for(int descriptor)
{
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    return poll(&polled, 1, TIMEOUT_MS) == 1 ? PH_OK : ph_fail(PH_ERROR_PEER, "the worker says nothing");
}

static ph_status accept_next(const struct played_hub *hub, struct ph_control_stream **stream_out)
{
    int socket;
    PH_TRY(wait_for(hub->listening));
    PH_TRY(ph__socket_accept(hub->listening, &socket));
    return ph__control_stream_create(socket, stream_out);
}

static ph_status hear(struct ph_control_stream *stream, enum ph_hub_frame wanted)
{
    struct ph_control_frame frame;
    bool is_there = false;
    while (!is_there) {
        PH_TRY(wait_for(ph__control_stream_socket(stream)));
        (void)ph__control_stream_receive(stream);
        PH_TRY(ph__control_stream_take(stream, &frame, &is_there));
    }
    return frame.type == wanted ? PH_OK : ph_fail(PH_ERROR_BUG, "a frame %u, not %u", frame.type, wanted);
}

static ph_status say(
    struct ph_control_stream *stream, enum ph_hub_frame type, const struct ph_wire_writer *body)
{
    PH_TRY(ph__control_stream_put(stream, (uint16_t)type, body->bytes, body->used, NULL, 0));
    return ph__control_stream_flush(stream);
}

static ph_status greet(struct ph_control_stream *stream)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    const struct ph_welcome welcome = {.local_socket = "nowhere"};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_welcome(&writer, &welcome);
    PH_TRY(hear(stream, PH_FRAME_HELLO));
    return say(stream, PH_FRAME_WELCOME, &writer);
}

static ph_status answer(struct ph_control_stream *stream, enum ph_hub_frame type, const char *text)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, PH_ERROR_PEER, text);
    return say(stream, type, &writer);
}

static ph_status join(struct ph_control_stream *stream)
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
    PH_TRY(hear(stream, PH_FRAME_JOIN));
    PH_TRY(say(stream, PH_FRAME_JOINED, &writer));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_layout(&writer, &layout);
    PH_TRY(hear(stream, PH_FRAME_INIT));
    return say(stream, PH_FRAME_LAYOUT, &writer);
}

static ph_status end_job(struct ph_control_stream *control, struct ph_control_stream *link)
{
    PH_TRY(greet(link));
    PH_TRY(hear(link, PH_FRAME_ATTACH));
    PH_TRY(answer(control, PH_FRAME_FAILED, "worker 1 has died"));
    return answer(link, PH_FRAME_ANSWER, "no worker waits for this link");
}

static ph_status play(const struct played_hub *hub, struct ph_control_stream *control)
{
    struct ph_control_stream *link;
    PH_TRY(greet(control));
    PH_TRY(join(control));
    PH_TRY(accept_next(hub, &link));
    const ph_status status = end_job(control, link);
    ph__control_stream_destroy(link);
    PH_TRY(status);
    return wait_for(ph__control_stream_socket(control)); /* until the worker has gone */
}

static void *end_job_before_links(void *context)
{
    struct played_hub *hub = context;
    struct ph_control_stream *control;
    hub->status = accept_next(hub, &control);
    if (hub->status == PH_OK) {
        hub->status = play(hub, control);
        ph__control_stream_destroy(control);
    }
    snprintf(hub->text, sizeof hub->text, "%s", ph_error_text());
    return NULL;
}

static void a_refused_link_says_why_the_job_has_ended(void **state)
{
    (void)state;
    const struct ph_hub_key key = {.num_elements = CHUNK_BYTES / sizeof(float)};
    struct played_hub hub = {0};
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
    if (hub.status != PH_OK)
        fail_msg("the hub that is played here: %s", hub.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_link_says_why_the_job_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
