/* A hub's control connections, spoken frame by frame, as no client of ours would. */
#include <string.h>
#include <sys/socket.h>

#include "hub/client/client_greet.h"
#include "support/hub_thread.h"

/* ---- a worker by hand: over TCP, of a hub with one core thread ---- */

struct spoken {
    struct ph__control_stream *control, *link;
};

static void say(
    struct ph__control_stream *stream, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    assert_ok(ph__client_put(stream, type, body));
    assert_ok(ph__control_stream_flush(stream));
}

static struct ph__control_frame ask(struct ph__control_stream *stream, enum ph__hub_frame type,
    const struct ph__wire_writer *body, enum ph__hub_frame answer)
{
    struct ph__control_frame frame;
    assert_ok(ph__client_request(
        stream, type, body, answer, (struct ph__timeout){.ms = HUB_THREAD_TIMEOUT_MS}, &frame));
    return frame;
}

static void join(struct spoken *worker, const struct hub_thread *hub, const char *service, uint32_t rank)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__join wanted = {
        .nonce = HUB_THREAD_NONCE, .rank = rank, .way = PH_WAY_ASKED_FOR, .share = {.num_hubs = 1}};
    *worker = (struct spoken){0};
    strcpy(wanted.name, service);
    assert_ok(ph__client_reach_once(&hub->options, &worker->control));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wanted);
    ask(worker->control, PH_FRAME_JOIN, &writer, PH_FRAME_JOINED);
}

static void put_key(struct spoken *worker)
{
    static const struct ph_hub_key key = {.num_elements = 1000, .dtype = PH_F32};
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_keys(&writer, &key, 1);
    say(worker->control, PH_FRAME_INIT, &writer);
}

static struct ph__control_frame hear(struct spoken *worker, enum ph__hub_frame wanted)
{
    struct ph__control_frame frame;
    bool is_there = false;
    struct pollfd polled = ph__client_polled(worker->control);
    for (;;) {
        assert_ok(ph__client_look_for(worker->control, wanted, &frame, &is_there));
        if (is_there)
            return frame;
        assert_int_equal(poll(&polled, 1, HUB_THREAD_TIMEOUT_MS), 1);
    }
}

static void make_link(struct spoken *worker, const struct hub_thread *hub)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__job_layout layout;
    const struct ph__control_frame frame = hear(worker, PH_FRAME_LAYOUT);
    assert_ok(ph__get_layout(frame.body, frame.size, &layout));
    assert_int_equal(layout.num_cores, 1);
    const struct ph__attach attach = {.token = layout.token};
    assert_ok(ph__client_reach_once(&hub->options, &worker->link));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_attach(&writer, &attach);
    ask(worker->link, PH_FRAME_ATTACH, &writer, PH_FRAME_ANSWER);
    say(worker->control, PH_FRAME_LINKED, NULL);
}

static void end(struct spoken *worker)
{
    ph__control_stream_destroy(worker->link);
    ph__control_stream_destroy(worker->control);
}

enum { NUM_WORKERS = 2 };

/* All have their links, and nobody has said that its parameters are there. */
static void begin(struct spoken workers[NUM_WORKERS], const struct hub_thread *hub, const char *service)
{
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++) {
        join(&workers[rank], hub, service, rank);
        put_key(&workers[rank]);
    }
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        make_link(&workers[rank], hub);
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        hear(&workers[rank], PH_FRAME_BEGIN);
}

/* -------------------------------------------------------------------------------------------------------------------
 */

static void leaves_before_the_job_goes(bool is_ready, enum ph_hub_on_death on_death)
{
    struct hub_thread hub;
    struct spoken workers[NUM_WORKERS];
    bool is_there = false;
    struct ph__control_frame frame;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = 1});
    struct ph_hub_service service = hub_thread_service("parting", NUM_WORKERS);
    service.on_death = on_death;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    begin(workers, &hub, service.name);
    if (is_ready)
        say(workers[1].control, PH_FRAME_ASSIGNED, NULL);
    ask(workers[1].control, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER);
    ph_status status = ph__client_put(workers[0].control, PH_FRAME_ASSIGNED, NULL);
    struct pollfd polled = ph__client_polled(workers[0].control);
    while (status == PH_OK && !is_there && poll(&polled, 1, HUB_THREAD_TIMEOUT_MS) == 1)
        status = ph__client_look_for(workers[0].control, PH_FRAME_GO, &frame, &is_there);
    assert_fails(status, PH_ERROR_PEER, "worker 1 of service 'parting' failed: left before the job began");
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        end(&workers[rank]);
    begin(workers, &hub, service.name); /* the service is as good as new */
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        end(&workers[rank]);
    hub_thread_end(&hub);
}

static void who_leaves_before_the_job_goes_ends_it(void **state)
{
    (void)state;
    leaves_before_the_job_goes(false, PH_HUB_ABORT);
    leaves_before_the_job_goes(true, PH_HUB_ABORT);
    leaves_before_the_job_goes(true, PH_HUB_SHRINK);
}

static void destroy(struct ph__control_stream *stream, const char *service)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__join which = {.nonce = HUB_THREAD_NONCE, .share = {.num_hubs = 1}};
    strcpy(which.name, service);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &which);
    say(stream, PH_FRAME_DESTROY, &writer);
}

/* Worker 0 leaves, and the service is destroyed: worker 1 can still leave where the job has ended by that. */
static void leaves_and_destroys(enum ph_hub_on_death on_death, bool is_waited_for)
{
    struct hub_thread hub;
    struct spoken workers[NUM_WORKERS];
    struct ph__control_frame frame;
    struct ph__control_stream *stream;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = 1});
    struct ph_hub_service service = hub_thread_service("left", NUM_WORKERS);
    service.on_death = on_death;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph__client_reach_once(&hub.options, &stream));
    begin(workers, &hub, service.name);
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        say(workers[rank].control, PH_FRAME_ASSIGNED, NULL);
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        hear(&workers[rank], PH_FRAME_GO);
    ask(workers[0].control, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER);
    destroy(stream, service.name);
    struct spoken destroyer = {.control = stream};
    if (!is_waited_for)
        hear(&destroyer, PH_FRAME_ANSWER);
    const ph_status status = ph__client_request(workers[1].control, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER,
        (struct ph__timeout){.ms = HUB_THREAD_TIMEOUT_MS}, &frame);
    if (is_waited_for)
        hear(&destroyer, PH_FRAME_ANSWER);
    assert_int_equal(status, is_waited_for ? PH_OK : PH_ERROR_PEER);
    service.nonce++; /* the name is free */
    assert_ok(ph_hub_create_service(&hub.options, &service));
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        end(&workers[rank]);
    end(&destroyer);
    hub_thread_end(&hub);
}

static void who_destroys_having_left_waits_for_the_others(void **state)
{
    (void)state;
    leaves_and_destroys(PH_HUB_ABORT, true);
    leaves_and_destroys(PH_HUB_SHRINK, false); /* they would go on */
}

/* Many requests at once, and no word after them: all are answered, in their order. */
static void each_frame_of_many_is_answered(void **state)
{
    (void)state;
    enum { NUM_FRAMES = 500 };
    static const char name[] = "each";
    struct hub_thread hub;
    struct ph__control_stream *stream;
    struct ph__wire_writer writer;
    unsigned char bytes[PH_HUB_MAX_BODY];
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = 1});
    const struct ph_hub_service service = hub_thread_service(name, 1);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph__client_reach_once(&hub.options, &stream));
    struct spoken worker = {.control = stream};
    for (size_t i = 0; i < NUM_FRAMES; i++) {
        ph__wire_writer_init(&writer, bytes, sizeof bytes);
        ph__put_service_name(&writer, i % 2 == 0 ? name : "nobody");
        assert_ok(ph__client_put(stream, PH_FRAME_STATUS, &writer));
    }
    while (ph__control_stream_has_output(stream))
        assert_ok(ph__control_stream_flush(stream));
    shutdown(ph__control_stream_socket(stream), SHUT_WR);
    for (size_t i = 0; i < NUM_FRAMES; i++) {
        const struct ph__control_frame frame = hear(&worker, PH_FRAME_STATUS_TEXT);
        assert_int_equal(memmem(frame.body, frame.size, name, strlen(name)) != NULL, i % 2 == 0);
    }
    end(&worker);
    hub_thread_end(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_before_the_job_goes_ends_it),
        cmocka_unit_test(who_destroys_having_left_waits_for_the_others),
        cmocka_unit_test(each_frame_of_many_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
