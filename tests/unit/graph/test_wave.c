/* Nodes that run side by side do so indeed, change no result, and fail, count and allocate as nodes in a row
 * do. */
#include "support/test_support.h"

#include "support/count_allocations.h"
#include "unit/graph/toy_ops.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/thread/clock.h"
#include "graph/wave.h"

#define NODES 40
#define WIDTH 3
#define MOST_THREADS 3

static void large_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.flops = 7, .bytes = 100 << 10};
}

/* ---- meeting ---- */

static atomic_uint num_begun;

/* Until the other has begun, or for long enough that no machine is that busy. */
static ph_status meet_run(struct ph__call *call)
{
    const double deadline = ph__clock_seconds() + 60;
    atomic_fetch_add(&num_begun, 1);
    while (atomic_load(&num_begun) < 2)
        if (ph__clock_seconds() > deadline)
            return ph_fail(PH_ERROR_BUG, "%s was left alone", call->node->name);
        else
            sched_yield();
    return PH_OK;
}

static const struct ph__op meet = {
    .name = "meet", .infer = toy_same_infer, .cost = large_cost, .run = meet_run};

static void build_pair(struct ph_builder **builder_out, const struct ph__op *op)
{
    assert_ok(ph_builder_create(PH_TRAINING, builder_out));
    ph_value x = ph_input_dense(*builder_out, WIDTH);
    ph_output(*builder_out, "a", toy1(*builder_out, op, x));
    ph_output(*builder_out, "b", toy1(*builder_out, op, x));
}

static void bind(struct toy_machine *machine, size_t rows)
{
    static const ph_real dense[16 * WIDTH] = {1, 2, 3};
    struct ph_batch batch = toy_batch(rows, WIDTH, dense);
    assert_ok(ph_workspace_bind(machine->workspace, &batch, 0, 0));
}

static void nodes_of_a_wave_meet(void **state)
{
    (void)state;
    struct ph_builder *builder;
    struct toy_machine machine = {0};
    build_pair(&builder, &meet);
    TOY_TEAM_START(&machine, builder, 2, 2);
    bind(&machine, 2);
    atomic_store(&num_begun, 0);
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    toy_machine_stop(&machine);
}

/* ---- results ---- */

static struct ph__op large_twice, large_product; /* toy operators of a size that is worth a thread */

static void build_random(struct ph__rng_sequence rng, struct ph_builder **builder_out)
{
    assert_ok(ph_builder_create(PH_TRAINING, builder_out));
    ph_value values[NODES + 1] = {ph_input_dense(*builder_out, WIDTH)};
    for (size_t i = 0; i < NODES; i++) {
        const size_t oldest = i > 6 ? i - 6 : 0;
        const ph_value a = values[oldest + ph__rng_below(&rng, i + 1 - oldest)];
        const ph_value b = values[oldest + ph__rng_below(&rng, i + 1 - oldest)];
        values[i + 1] = ph__rng_below(&rng, 2) == 0 ? toy1(*builder_out, &large_twice, a)
                                                    : toy2(*builder_out, &large_product, a, b);
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        if (i == NODES - 1 || ph__rng_below(&rng, 4) == 0)
            ph_output(*builder_out, name, values[i + 1]);
    }
}

static size_t num_waves(const struct toy_machine *machine)
{
    size_t count = 0;
    for (size_t i = 0; i < machine->program->graph.num_nodes; i = machine->workspace->wave_ends[i])
        count += machine->workspace->wave_ends[i] > i + 1;
    return count;
}

static void assert_same_outputs(const struct toy_machine *a, const struct toy_machine *b)
{
    for (size_t i = 0; i < a->program->graph.num_outputs; i++) {
        const char *name = a->program->graph.outputs[i].name;
        const ph_real *of_a, *of_b;
        struct ph_shape shape;
        assert_ok(ph_workspace_output(a->workspace, name, &of_a, &shape));
        assert_ok(ph_workspace_output(b->workspace, name, &of_b, &shape));
        assert_memory_equal(of_a, of_b, ph_shape_elements(&shape) * sizeof *of_a);
    }
}

static void bits_are_those_of_one_thread(void **state)
{
    (void)state;
    size_t waves[MOST_THREADS] = {0};
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t round = 0; round < 50; round++) {
        struct toy_machine machines[MOST_THREADS] = {{0}};
        ph_real dense[7 * WIDTH];
        for (size_t i = 0; i < 7 * WIDTH; i++)
            dense[i] = (ph_real)(1 + ph__rng_next_uniform(&rng));
        ph__rng_next_uniform(&rng);
        for (size_t k = 0; k < MOST_THREADS; k++) {
            struct ph_builder *builder;
            build_random(rng, &builder);
            TOY_TEAM_START(&machines[k], builder, 5, k + 1);
            waves[k] += num_waves(&machines[k]);
        }
        const size_t rows[] = {5, 2, 0, 7}; /* full, smaller, none, outgrown */
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < MOST_THREADS; k++) {
                struct ph_batch batch = toy_batch(rows[i], WIDTH, dense);
                assert_ok(ph_workspace_bind(machines[k].workspace, &batch, 0, 0));
                assert_ok(ph_workspace_run(machines[k].workspace, "forward"));
                assert_same_outputs(&machines[0], &machines[k]);
            }
        for (size_t k = 0; k < MOST_THREADS; k++)
            toy_machine_stop(&machines[k]);
    }
    assert_int_equal(waves[0], 0);
    assert_true(waves[1] > 50 && waves[2] > 50); /* something was tried */
}

/* ---- failures ---- */

static ph_status fail_run(struct ph__call *call)
{
    return ph_fail(PH_ERROR_DATA, "%s does not like it", call->node->name);
}

static const struct ph__op fails = {
    .name = "fails", .infer = toy_same_infer, .cost = large_cost, .run = fail_run};

static void first_failure_of_a_wave_is_reported(void **state)
{
    (void)state;
    struct toy_machine machine = {0};
    struct ph_builder *builder;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value x = ph_input_dense(builder, WIDTH);
    static const char *const names[] = {"first", "second", "third", "fourth", "fifth"};
    for (size_t i = 0; i < 5; i++)
        ph_output(builder, names[i],
            ph__emit1(builder, i % 2 == 1 ? &fails : &large_product, names[i], NULL, 0, i % 2 == 1 ? 1 : 2,
                (ph_value[]){x, x}));
    TOY_TEAM_START(&machine, builder, 2, 3);
    assert_int_equal(machine.workspace->wave_ends[0], 5);
    for (size_t i = 0; i < 100; i++) {
        bind(&machine, 2);
        assert_fails(
            ph_workspace_run(machine.workspace, "forward"), PH_ERROR_DATA, "second does not like it");
    }
    toy_machine_stop(&machine);
}

/* ---- what else nodes promise ---- */

static void each_node_has_its_own_profile(void **state)
{
    (void)state;
    struct ph_builder *builder;
    struct toy_machine machine = {0};
    build_pair(&builder, &large_twice);
    TOY_TEAM_START(&machine, builder, 2, 2);
    assert_int_equal(machine.workspace->wave_ends[0], 2);
    assert_ok(ph_executor_profile(machine.executor, true, 100));
    for (size_t i = 0; i < 3; i++) {
        bind(&machine, 2);
        assert_ok(ph_workspace_run(machine.workspace, "forward"));
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(machine.executor->profile[i].num_calls, 3);
        assert_near(machine.executor->profile[i].cost.flops, 21, 0, 0);
    }
    toy_machine_stop(&machine);
}

static void waves_allocate_nothing(void **state)
{
    (void)state;
    if (!allocations_are_counted())
        return print_message("a sanitizer owns malloc: not counted\n");
    struct ph_builder *builder;
    struct toy_machine machine = {0};
    build_pair(&builder, &large_twice);
    TOY_TEAM_START(&machine, builder, 4, 2);
    for (size_t step = 0; step < 5; step++) {
        count_allocations(step > 0);
        bind(&machine, 4 - step % 2);
        ph_status status = ph_workspace_run(machine.workspace, "forward");
        count_allocations(false);
        assert_ok(status);
    }
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
    toy_machine_stop(&machine);
}

int main(void)
{
    large_twice = toy_twice;
    large_product = toy_product;
    large_twice.cost = large_product.cost = large_cost;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_a_wave_meet),
        cmocka_unit_test(bits_are_those_of_one_thread),
        cmocka_unit_test(first_failure_of_a_wave_is_reported),
        cmocka_unit_test(each_node_has_its_own_profile),
        cmocka_unit_test(waves_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
