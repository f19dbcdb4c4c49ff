#include "support/test_support.h"

#include <pthread.h>

#include "graph/distribution.h"
#include "toy_ops.h"

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
        cmocka_unit_test(an_error_of_a_poll_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
