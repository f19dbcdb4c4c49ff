#include "support/test_support.h"

#include <pthread.h>

#include "base/thread/clock.h"
#include "graph/distribution.h"
#include "unit/graph/toy_ops.h"

enum { NUM_NODES = 5 };

/* Who polls, and how often; fail_at: which of the calls fails. */
struct polls {
    pthread_t thread;
    size_t count, fail_at;
};

static ph_status count_poll(void *context)
{
    struct polls *polls = context;
    polls->thread = pthread_self();
    polls->count++;
    return polls->count == polls->fail_at ? ph_fail(PH_ERROR_PEER, "rank 3 has ended") : PH_OK;
}

/* sum(2 (2 (2 (2 x)))), by a team of two threads. */
static void start_chain(struct toy_machine *machine)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value x = ph_input_dense(builder, 1);
    for (size_t i = 0; i + 1 < NUM_NODES; i++)
        x = toy1(builder, &toy_twice, x);
    ph_output(builder, "loss", toy1(builder, &toy_sum, x));
    TOY_TEAM_START(machine, builder, 4, 2);
}

static ph_status run_chain(struct toy_machine *machine)
{
    static const ph_real numbers[] = {1, 2};
    const struct ph_batch batch = toy_batch(2, 1, numbers);
    assert_ok(ph_workspace_bind(machine->workspace, &batch, 0, 0));
    return ph_workspace_run(machine->workspace, "forward");
}

static void the_thread_that_runs_nodes_polls_between_them(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    struct polls polls = {.count = 0};
    double loss;
    start_chain(&machine);
    ph__executor_poll(machine.executor, count_poll, &polls);
    assert_ok(run_chain(&machine));
    assert_int_equal(polls.count, NUM_NODES);
    assert_true(pthread_equal(polls.thread, pthread_self()));
    assert_ok(ph_workspace_scalar(machine.workspace, "loss", &loss));
    assert_near(loss, 16 * (1 + 2), 0, 0);
    toy_machine_stop(&machine);
}

/* y = x by four tasks, each of which takes a while. */
static void take_a_while(void *argument, size_t first, size_t last, size_t worker)
{
    const uint64_t began = ph__clock_ns();
    (void)argument, (void)first, (void)last, (void)worker;
    while (ph__clock_ns() - began < 200000) {
    }
}

static ph_status slow_run(struct ph__call *call)
{
    ph__for_blocks(call->backend, 4, 1, take_a_while, NULL);
    return toy_twice_run(call);
}

static const struct ph__op slow = {
    .name = "slow", .infer = toy_same_infer, .cost = toy_cost, .run = slow_run};

static void a_node_of_many_tasks_is_polled_within(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    struct ph_builder *builder = NULL;
    struct polls polls = {
        .fail_at = 2}; /* within the node, where nobody hears it: a communicator would repeat it */
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_output(builder, "x", toy1(builder, &slow, ph_input_dense(builder, 1)));
    TOY_MACHINE_START(&machine, builder, 4);
    ph__executor_poll(machine.executor, count_poll, &polls);
    assert_ok(run_chain(&machine));
    assert_int_equal(polls.count, 4 + 1);
    ph__for_blocks(machine.backend, 4, 1, take_a_while, NULL); /* no workspace's */
    assert_int_equal(polls.count, 4 + 1);
    toy_machine_stop(&machine);
}

static void an_error_of_a_poll_ends_the_run(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    struct polls polls = {.fail_at = 2};
    start_chain(&machine);
    ph__executor_poll(machine.executor, count_poll, &polls);
    assert_fails(run_chain(&machine), PH_ERROR_PEER, "rank 3 has ended");
    assert_int_equal(polls.count, 2);
    toy_machine_stop(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_thread_that_runs_nodes_polls_between_them),
        cmocka_unit_test(a_node_of_many_tasks_is_polled_within),
        cmocka_unit_test(an_error_of_a_poll_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
