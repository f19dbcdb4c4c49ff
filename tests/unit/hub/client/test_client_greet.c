/* What a client hears over its control connection, and what it does with descriptors that come where none
 * should. */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/client/client_greet.h"
#include "net/waiter.h"
#include "support/test_support.h"

struct pair {
    struct ph__control_stream *worker, *hub;
};

static struct pair make_pair(void)
{
    struct pair pair;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_ok(ph__control_stream_create(ends[0], &pair.worker));
    assert_ok(ph__control_stream_create(ends[1], &pair.hub));
    return pair;
}

static void free_pair(struct pair *pair)
{
    ph__control_stream_destroy(pair->worker);
    ph__control_stream_destroy(pair->hub);
}

/* The hub says a frame of this type with one end of a doorbell, which only the worker holds then. Returns the
 * other end. */
static int say_with_doorbell(const struct pair *pair, enum ph__hub_frame type)
{
    int bell[2];
    assert_ok(ph__doorbell_create(bell));
    assert_ok(ph__control_stream_put(pair->hub, (uint16_t)type, NULL, 0, &bell[1], 1));
    assert_ok(ph__control_stream_flush(pair->hub));
    close(bell[1]);
    return bell[0];
}

static void descriptors_that_nobody_wants_are_closed(void **state)
{
    (void)state;
    struct pair pair = make_pair();
    struct ph__control_frame frame;
    bool is_there;
    const int bell = say_with_doorbell(&pair, PH_FRAME_BEGIN);
    assert_ok(ph__client_look_for(pair.worker, PH_FRAME_BEGIN, &frame, &is_there));
    assert_true(is_there);
    assert_false(ph__doorbell_answer(bell)); /* nobody holds the other end */
    close(bell);
    free_pair(&pair);
}

static void those_of_a_layout_are_kept(void **state)
{
    (void)state;
    struct pair pair = make_pair();
    struct ph__control_frame frame;
    bool is_there;
    const int bell = say_with_doorbell(&pair, PH_FRAME_LAYOUT);
    assert_ok(ph__client_look_for(pair.worker, PH_FRAME_LAYOUT, &frame, &is_there));
    assert_true(is_there);
    assert_int_equal(frame.num_descriptors, 1);
    assert_true(ph__doorbell_answer(bell));
    ph__control_frame_close(&frame);
    assert_false(ph__doorbell_answer(bell));
    close(bell);
    free_pair(&pair);
}

/* A hub closes connections of jobs that have ended after a while; whoever asks then hears why. */
static void the_last_words_of_a_hub_that_has_closed_are_heard(void **state)
{
    (void)state;
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct pair pair = make_pair();
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    bool is_there;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, PH_ERROR_PEER, "worker 1 has died");
    for (int i = 0; i < 2; i++)
        assert_ok(ph__control_stream_put(pair.hub, PH_FRAME_FAILED, bytes, writer.used, NULL, 0));
    assert_ok(ph__control_stream_flush(pair.hub));
    ph__control_stream_destroy(pair.hub);
    pair.hub = NULL;
    assert_fails(ph__client_request(pair.worker, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER,
                     (struct ph__timeout){.ms = 20000}, &frame),
        PH_ERROR_PEER, "worker 1 has died");
    assert_ok(ph__client_put(pair.worker, PH_FRAME_LEAVE, NULL));
    assert_fails(
        ph__client_look_for(pair.worker, PH_FRAME_ANSWER, &frame, &is_there), PH_ERROR_PEER, "has died");
    assert_fails(
        ph__client_look_for(pair.worker, PH_FRAME_ANSWER, &frame, &is_there), PH_ERROR_PEER, "connection");
    free_pair(&pair);
}

/* Hubs say it when they like, also before an answer. */
static void what_a_hub_says_of_its_parts_is_no_answer(void **state)
{
    (void)state;
    struct pair pair = make_pair();
    struct ph__control_frame frame;
    bool is_there;
    const int bell = say_with_doorbell(&pair, PH_FRAME_SAVED);
    assert_ok(ph__control_stream_put(pair.hub, PH_FRAME_GO, NULL, 0, NULL, 0));
    assert_ok(ph__control_stream_flush(pair.hub));
    assert_ok(ph__client_look_for(pair.worker, PH_FRAME_GO, &frame, &is_there));
    assert_true(is_there && frame.type == PH_FRAME_SAVED);
    assert_false(ph__doorbell_answer(bell));
    assert_ok(ph__client_look_for(pair.worker, PH_FRAME_GO, &frame, &is_there));
    assert_true(is_there && frame.type == PH_FRAME_GO);
    close(bell);
    free_pair(&pair);
}

/* The timeout is an hour: this ends by the signal. */
static void a_signal_ends_the_wait_for_an_answer(void **state)
{
    (void)state;
    volatile int stop_signal = SIGTERM;
    const struct ph__timeout timeout = {.ms = 3600000, .stop_signal = &stop_signal};
    struct pair pair = make_pair();
    struct ph__control_frame frame;
    assert_fails(ph__client_request(pair.worker, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER, timeout, &frame),
        PH_ERROR_TERMINATED, "stopped by a signal");
    stop_signal = SIGINT;
    assert_fails(ph__client_request(pair.worker, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER, timeout, &frame),
        PH_ERROR_INTERRUPTED, "stopped by a signal");
    free_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_that_nobody_wants_are_closed),
        cmocka_unit_test(those_of_a_layout_are_kept),
        cmocka_unit_test(the_last_words_of_a_hub_that_has_closed_are_heard),
        cmocka_unit_test(a_signal_ends_the_wait_for_an_answer),
        cmocka_unit_test(what_a_hub_says_of_its_parts_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
