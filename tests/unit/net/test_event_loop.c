/* The event loop: who is told, in which case not any more, and what callbacks may do to the loop. */
#include "net/event_loop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/test_support.h"

enum { NUM_PAIRS = 100 };

struct listener {
    int ends[2]; /* [0] is watched */
    struct ph__event_source *source;
    size_t num_calls;
    uint32_t events;
    struct listener *removes; /* in its callback; may be itself */
    struct listener *adds;
};

static struct ph__event_loop *loop;

static int set_up(void **state)
{
    (void)state;
    return ph__event_loop_create(&loop) == PH_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    ph__event_loop_destroy(loop);
    return 0;
}

static void open_pair(struct listener *listener)
{
    *listener = (struct listener){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, listener->ends), 0);
}

static void called(void *context, uint32_t events);

static void watch(struct listener *listener, uint32_t events)
{
    assert_ok(ph__event_loop_add(loop, listener->ends[0], events, called, listener, &listener->source));
}

static void stop_watching(struct listener *listener)
{
    ph__event_source_remove(listener->source);
    listener->source = NULL;
}

static void called(void *context, uint32_t events)
{
    struct listener *listener = context;
    char byte;
    listener->num_calls++;
    listener->events = events;
    (void)!recv(listener->ends[0], &byte, 1, MSG_DONTWAIT);
    if (listener->removes != NULL && listener->removes->source != NULL)
        stop_watching(listener->removes);
    if (listener->adds != NULL)
        watch(listener->adds, EPOLLIN);
    listener->adds = NULL;
}

static void ring(const struct listener *listener)
{
    assert_int_equal(send(listener->ends[1], "", 1, 0), 1);
}

static void close_pair(struct listener *listener)
{
    stop_watching(listener);
    close(listener->ends[0]);
    close(listener->ends[1]);
}

static void tells_whom_it_concerns(void **state)
{
    (void)state;
    struct listener a, b;
    open_pair(&a);
    open_pair(&b);
    watch(&a, EPOLLIN);
    watch(&b, EPOLLIN);
    assert_ok(ph__event_loop_run(loop, 0));
    assert_int_equal(a.num_calls + b.num_calls, 0);
    ring(&b);
    assert_ok(ph__event_loop_run(loop, -1));
    assert_int_equal(a.num_calls, 0);
    assert_int_equal(b.num_calls, 1);
    assert_int_equal(b.events, EPOLLIN);
    shutdown(a.ends[1], SHUT_RDWR);
    assert_ok(ph__event_loop_run(loop, -1));
    assert_true((a.events & EPOLLHUP) != 0);
    close_pair(&a);
    close_pair(&b);
}

static void events_can_be_changed(void **state)
{
    (void)state;
    struct listener a;
    open_pair(&a);
    watch(&a, EPOLLIN);
    assert_ok(ph__event_source_change(a.source, EPOLLIN | EPOLLOUT));
    assert_ok(ph__event_loop_run(loop, 0));
    assert_int_equal(a.events, EPOLLOUT);
    assert_ok(ph__event_source_change(a.source, EPOLLIN));
    assert_ok(ph__event_loop_run(loop, 0));
    assert_int_equal(a.num_calls, 1);
    close_pair(&a);
}

static void a_callback_may_remove_its_own_source(void **state)
{
    (void)state;
    struct listener a;
    open_pair(&a);
    watch(&a, EPOLLIN);
    a.removes = &a;
    ring(&a);
    ring(&a);
    assert_ok(ph__event_loop_run(loop, 0));
    assert_ok(ph__event_loop_run(loop, 0));
    assert_int_equal(a.num_calls, 1);
    close_pair(&a);
}

/* Both have something in the same round: whichever comes first, the other is not told any more. */
static void what_a_callback_removes_is_not_told(void **state)
{
    (void)state;
    struct listener a, b;
    open_pair(&a);
    open_pair(&b);
    watch(&a, EPOLLIN);
    watch(&b, EPOLLIN);
    a.removes = &b;
    b.removes = &a;
    ring(&a);
    ring(&b);
    assert_ok(ph__event_loop_run(loop, 0));
    assert_ok(ph__event_loop_run(loop, 0));
    assert_int_equal(a.num_calls + b.num_calls, 1);
    close_pair(&a);
    close_pair(&b);
}

static void a_callback_may_add_a_source(void **state)
{
    (void)state;
    struct listener a, b;
    open_pair(&a);
    open_pair(&b);
    watch(&a, EPOLLIN);
    a.adds = &b;
    a.removes = &a;
    ring(&a);
    ring(&b);
    assert_ok(ph__event_loop_run(loop, 0));
    assert_ok(ph__event_loop_run(loop, 0));
    assert_int_equal(b.num_calls, 1);
    close_pair(&a);
    close_pair(&b);
}

static void many_descriptors_all_have_their_turn(void **state)
{
    (void)state;
    static struct listener listeners[NUM_PAIRS];
    for (size_t i = 0; i < NUM_PAIRS; i++) {
        open_pair(&listeners[i]);
        watch(&listeners[i], EPOLLIN);
        ring(&listeners[i]);
    }
    for (size_t i = 0; i < NUM_PAIRS; i++)
        assert_ok(ph__event_loop_run(loop, 0));
    for (size_t i = 0; i < NUM_PAIRS; i++) {
        assert_int_equal(listeners[i].num_calls, 1);
        close_pair(&listeners[i]);
    }
}

static void what_cannot_be_watched_is_an_error(void **state)
{
    (void)state;
    struct ph__event_source *source = NULL;
    assert_fails(ph__event_loop_add(loop, -1, EPOLLIN, called, NULL, &source), PH_ERROR_MEMORY,
        "descriptor -1 cannot be watched");
    assert_null(source);
    ph__event_source_remove(NULL);
    ph__event_loop_destroy(NULL);
}

static void ignore_signal(int number)
{
    (void)number;
}

static void *kill_the_waiter(void *context)
{
    usleep(1000);
    pthread_kill(*(pthread_t *)context, SIGUSR1);
    return NULL;
}

/* However the two threads meet, run returns: at once, or when the signal or the end of its time comes. */
static void a_signal_is_no_error(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = ignore_signal}, former;
    pthread_t self = pthread_self(), thread;
    assert_int_equal(sigaction(SIGUSR1, &action, &former), 0);
    assert_int_equal(pthread_create(&thread, NULL, kill_the_waiter, &self), 0);
    assert_ok(ph__event_loop_run(loop, 1000));
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &former, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tells_whom_it_concerns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_can_be_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_callback_may_remove_its_own_source, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_callback_removes_is_not_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_callback_may_add_a_source, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_descriptors_all_have_their_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_watched_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_signal_is_no_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
