/* Links to a hub that is played here, in a thread, and has ended the job: it says so over the control
 * connection while the worker makes its links. This program has a getaddrinfo(3) of its own: each name is of
 * this host, and counted. */
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sum/checksum.h"
#include "hub/wire/protocol.h"
#include "net/control_stream.h"
#include "support/test_support.h"

enum { CHUNK_BYTES = 4096, TIMEOUT_MS = 20000, AN_HOUR_MS = 3600000 };

static unsigned num_names; /* that were looked up */

int getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted, struct addrinfo **found)
{
    struct place {
        struct addrinfo info;
        struct sockaddr_in address;
    } *place = calloc(1, sizeof *place);
    (void)wanted;
    assert_non_null(place);
    num_names += !ph__is_host(name);
    place->address = (struct sockaddr_in){.sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)atoi(service))};
    place->info = (struct addrinfo){.ai_family = AF_INET,
        .ai_socktype = SOCK_STREAM,
        .ai_addr = (struct sockaddr *)&place->address,
        .ai_addrlen = sizeof place->address};
    *found = &place->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
    free(found);
}

struct played_hub {
    ph_status (*play)(struct played_hub *hub, struct ph__control_stream *control);
    int listening; /* -1: not any more */
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

static ph_status accept_next(const struct played_hub *hub, struct ph__control_stream **stream_out)
{
    int socket;
    PH_TRY(wait_for(hub->listening));
    PH_TRY(ph__socket_accept(hub->listening, &socket));
    return ph__control_stream_create(socket, stream_out);
}

static ph_status hear(struct ph__control_stream *stream, enum ph__hub_frame wanted)
{
    struct ph__control_frame frame;
    bool is_there = false;
    while (!is_there) {
        PH_TRY(wait_for(ph__control_stream_socket(stream)));
        (void)ph__control_stream_receive(stream);
        PH_TRY(ph__control_stream_take(stream, &frame, &is_there));
    }
    return frame.type == wanted ? PH_OK : ph_fail(PH_ERROR_BUG, "a frame %u, not %u", frame.type, wanted);
}

static ph_status say(
    struct ph__control_stream *stream, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    PH_TRY(ph__control_stream_put(stream, (uint16_t)type, body->bytes, body->used, NULL, 0));
    return ph__control_stream_flush(stream);
}

static ph_status greet(struct ph__control_stream *stream)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    const struct ph__welcome welcome = {.local_socket = "nowhere"};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_welcome(&writer, &welcome);
    PH_TRY(hear(stream, PH_FRAME_HELLO));
    return say(stream, PH_FRAME_WELCOME, &writer);
}

static ph_status answer(struct ph__control_stream *stream, enum ph__hub_frame type, const char *text)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, PH_ERROR_PEER, text);
    return say(stream, type, &writer);
}

static ph_status join(struct ph__control_stream *stream)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    const uint16_t core_of_chunk = 0;
    const struct ph__joined joined = {.num_workers = 2, .depth = 1, .num_optimizers = 1};
    const struct ph__job_layout layout = {.chunk_bytes = CHUNK_BYTES,
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

static ph_status end_job(struct ph__control_stream *control, struct ph__control_stream *link)
{
    PH_TRY(greet(link));
    PH_TRY(hear(link, PH_FRAME_ATTACH));
    PH_TRY(answer(control, PH_FRAME_FAILED, "worker 1 has died"));
    return answer(link, PH_FRAME_ANSWER, "no worker waits for this link");
}

static ph_status end_before_links(struct played_hub *hub, struct ph__control_stream *control)
{
    struct ph__control_stream *link;
    PH_TRY(greet(control));
    PH_TRY(join(control));
    PH_TRY(accept_next(hub, &link));
    const ph_status status = end_job(control, link);
    ph__control_stream_destroy(link);
    PH_TRY(status);
    return wait_for(ph__control_stream_socket(control)); /* until the worker has gone */
}

/* As when the hub is killed and not started again, but for its last word. */
static ph_status listen_no_more(struct played_hub *hub, struct ph__control_stream *control)
{
    close(hub->listening);
    hub->listening = -1;
    PH_TRY(greet(control));
    PH_TRY(join(control));
    PH_TRY(answer(control, PH_FRAME_FAILED, "worker 1 has died"));
    return wait_for(
        ph__control_stream_socket(control)); /* until the worker has gone, long before its timeout */
}

static void *run_hub(void *context)
{
    struct played_hub *hub = context;
    struct ph__control_stream *control;
    hub->status = accept_next(hub, &control);
    if (hub->status == PH_OK) {
        hub->status = hub->play(hub, control);
        ph__control_stream_destroy(control);
    }
    snprintf(hub->text, sizeof hub->text, "%s", ph_error_text());
    return NULL;
}

/* A worker of a job that ends while it makes its links. name: of the hub's host. */
static void run_worker(struct played_hub *hub, const char *name, uint32_t timeout_ms)
{
    const struct ph_hub_key key = {.num_elements = CHUNK_BYTES / sizeof(float)};
    struct ph_hub_client *client;
    char address[PH_ADDRESS_BYTES];
    assert_ok(ph__socket_listen("127.0.0.1:0", &hub->listening));
    assert_ok(ph__socket_address(hub->listening, hub->address));
    snprintf(address, sizeof address, "%s%s", name, strrchr(hub->address, ':'));
    assert_int_equal(pthread_create(&hub->thread, NULL, run_hub, hub), 0);
    const struct ph_hub_options options = {
        .size = sizeof options, .address = address, .transport = PH_HUB_TCP, .timeout_ms = timeout_ms};
    num_names = 0;
    assert_ok(ph_hub_connect(&options, "job", 7, 0, &client));
    assert_fails(ph_hub_init(client, &key, 1, NULL), PH_ERROR_PEER, "worker 1 has died");
    ph_hub_client_destroy(client);
    pthread_join(hub->thread, NULL);
    if (hub->listening >= 0)
        close(hub->listening);
    if (hub->status != PH_OK)
        fail_msg("the hub that is played here: %s", hub->text);
}

static void a_refused_link_says_why_the_job_has_ended(void **state)
{
    (void)state;
    struct played_hub hub = {.play = end_before_links};
    run_worker(&hub, "127.0.0.1", TIMEOUT_MS);
}

static void a_hub_that_listens_no_more_is_not_waited_for(void **state)
{
    (void)state;
    struct played_hub hub = {.play = listen_no_more};
    run_worker(&hub, "127.0.0.1", AN_HOUR_MS);
}

/* A name may have other addresses the next time, of other machines. */
static void links_go_where_the_control_connection_goes(void **state)
{
    (void)state;
    struct played_hub hub = {.play = end_before_links};
    run_worker(&hub, "a-hub", TIMEOUT_MS);
    assert_int_equal(num_names, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_link_says_why_the_job_has_ended),
        cmocka_unit_test(a_hub_that_listens_no_more_is_not_waited_for),
        cmocka_unit_test(links_go_where_the_control_connection_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
