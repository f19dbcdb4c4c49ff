/* The memory plan is tested by what it must not do: change a result. Random graphs are run through planned
 * memory and compared with an evaluation that keeps every value apart; and plans are compared with a
 * brute-force count of what is alive. */
#include "support/test_support.h"
#include "unit/graph/toy_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define NODES 40
#define WIDTH 3

struct random_graph {
    const struct ph__op *op[NODES];
    size_t inputs[NODES][2]; /* index of an earlier value; 0 is the batch's dense features */
    bool is_output[NODES];
};

static void make_random_graph(struct ph__rng_sequence *rng, struct random_graph *graph)
{
    for (size_t i = 0; i < NODES; i++) {
        graph->op[i] = ph__rng_below(rng, 2) == 0 ? &toy_twice : &toy_product;
        size_t oldest = i > 6 ? i - 6 : 0;
        for (size_t k = 0; k < 2; k++)
            graph->inputs[i][k] = oldest + ph__rng_below(rng, i + 1 - oldest);
        graph->is_output[i] = i == NODES - 1 || ph__rng_below(rng, 8) == 0;
    }
}

static void build(const struct random_graph *graph, struct ph_builder *builder)
{
    ph_value values[NODES + 1] = {ph_input_dense(builder, WIDTH)};
    for (size_t i = 0; i < NODES; i++) {
        ph_value inputs[2] = {values[graph->inputs[i][0]], values[graph->inputs[i][1]]};
        values[i + 1] =
            ph__emit1(builder, graph->op[i], NULL, NULL, 0, graph->op[i] == &toy_twice ? 1 : 2, inputs);
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        if (graph->is_output[i])
            ph_output(builder, name, values[i + 1]);
    }
}

/* Every value apart. float arithmetic as the toy operators do it. */
static void evaluate(const struct random_graph *graph, size_t count, const ph_real *dense, ph_real *values)
{
    memcpy(values, dense, count * sizeof *values);
    for (size_t i = 0; i < NODES; i++)
        for (size_t e = 0; e < count; e++) {
            ph_real a = values[graph->inputs[i][0] * count + e], b = values[graph->inputs[i][1] * count + e];
            values[(i + 1) * count + e] = graph->op[i] == &toy_twice ? 2 * a : a * b;
        }
}

static void assert_outputs(
    const struct random_graph *graph, const struct toy_machine *machine, size_t rows, const ph_real *dense)
{
    ph_real *expected = calloc((NODES + 1) * rows * WIDTH, sizeof *expected);
    evaluate(graph, rows * WIDTH, dense, expected);
    for (size_t i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        const ph_real *data = NULL;
        struct ph_shape shape;
        if (!graph->is_output[i])
            continue;
        assert_ok(ph_workspace_output(machine->workspace, name, &data, &shape));
        assert_int_equal(shape.dims[0], rows);
        assert_memory_equal(data, expected + (i + 1) * rows * WIDTH, rows * WIDTH * sizeof *data);
    }
    free(expected);
}

static void reuse_never_changes_a_result(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t round = 0; round < 50; round++) {
        struct random_graph graph;
        make_random_graph(&rng, &graph);
        struct ph_builder *builder = NULL;
        assert_ok(ph_builder_create(PH_TRAINING, &builder));
        build(&graph, builder);
        struct toy_machine machine = {0};
        TOY_MACHINE_START(&machine, builder, 5);
        ph_real dense[7 * WIDTH];
        for (size_t i = 0; i < 7 * WIDTH; i++)
            dense[i] =
                (ph_real)(1 + ph__rng_next_uniform(&rng)); /* results only grow: none is flushed to zero */
        const size_t rows[] = {5, 2, 0, 7};                /* full, smaller, none, outgrown */
        for (size_t i = 0; i < 4; i++) {
            struct ph_batch batch = toy_batch(rows[i], WIDTH, dense);
            assert_ok(ph_workspace_bind(machine.workspace, &batch, 0, 0));
            assert_ok(ph_workspace_run(machine.workspace, "forward"));
            assert_outputs(&graph, &machine, rows[i], dense);
        }
        struct ph_memory_usage usage = ph_workspace_memory(machine.workspace);
        assert_int_equal(usage.num_growths, 1);
        assert_true(usage.live_bytes <= usage.planned_bytes);
        assert_true(usage.planned_bytes <= usage.no_reuse_bytes);
        toy_machine_stop(&machine);
    }
}

static struct ph_memory_usage usage_of_chain(size_t length, const struct ph__op *op)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value x = ph_input_dense(builder, 16);
    for (size_t i = 0; i < length; i++)
        x = ph__emit1(builder, op, NULL, NULL, 0, op == &toy_twice ? 1 : 2, (ph_value[]){x, x});
    ph_output(builder, "end", x);
    struct toy_machine machine = {0};
    TOY_MACHINE_START(&machine, builder, 64);
    struct ph_memory_usage usage = ph_workspace_memory(machine.workspace);
    toy_machine_stop(&machine);
    return usage;
}

static void chain_in_place_takes_one_buffer(void **state)
{
    (void)state;
    struct ph_memory_usage usage = usage_of_chain(10, &toy_twice);
    assert_int_equal(usage.planned_bytes, 64 * 16 * sizeof(ph_real));
    assert_int_equal(usage.no_reuse_bytes, 10 * 64 * 16 * sizeof(ph_real));
}

static void chain_of_copies_takes_two_buffers(void **state)
{
    (void)state;
    struct ph_memory_usage usage = usage_of_chain(10, &toy_product);
    assert_int_equal(usage.planned_bytes, 2 * 64 * 16 * sizeof(ph_real));
    assert_int_equal(usage.live_bytes, usage.planned_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reuse_never_changes_a_result),
        cmocka_unit_test(chain_in_place_takes_one_buffer),
        cmocka_unit_test(chain_of_copies_takes_two_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
