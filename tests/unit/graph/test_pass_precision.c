/* Doubling is exact in bf16, so that a graph gives the same numbers in either precision, wherever conversions
 * stand. */
#include "support/test_support.h"

#include <stdio.h>

#include "unit/graph/toy_ops.h"

#include "base/rng.h"
#include "tensor/float16.h"

static double read_number(const struct ph__operand *x, size_t i)
{
    return x->type->dtype == PH_BF16 ? (double)ph__float_from_bfloat(((const uint16_t *)x->data)[i])
                                     : (double)((const ph_real *)x->data)[i];
}

/* y = 2 x, either of them bf16 or real */
static ph_status either_run(struct ph__call *call)
{
    const struct ph__operand *y = &call->outputs[0];
    for (size_t i = 0; i < ph_shape_elements(&y->shape); i++) {
        const double doubled = 2 * read_number(&call->inputs[0], i);
        if (y->type->dtype == PH_BF16)
            ((uint16_t *)y->data)[i] = ph__bfloat_from_float((float)doubled);
        else
            ((ph_real *)y->data)[i] = (ph_real)doubled;
    }
    return PH_OK;
}

static ph_status operand_run(struct ph__call *call)
{
    assert_int_equal(call->inputs[0].type->dtype, PH_BF16);
    return either_run(call);
}

static const struct ph__op either = {.name = "either",
    .traits = PH_OP_IN_PLACE,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
    .infer = toy_same_infer,
    .cost = toy_cost,
    .run = either_run};
static const struct ph__op operand = {.name = "operand",
    .bf16_inputs = 1,
    .bf16_outputs = 1,
    .bf16_operands = 1,
    .infer = toy_same_infer,
    .cost = toy_cost,
    .run = operand_run};

static struct ph_builder *create(enum ph_precision precision)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_builder_set_precision(builder, precision);
    return builder;
}

static struct ph_program *finish(struct ph_builder *builder)
{
    struct ph_program *program = NULL;
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static bool is_bf16(const struct ph_program *program, ph_value value)
{
    return program->graph.values[value].type.dtype == PH_BF16;
}

static void a_value_is_made_as_bf16_where_all_readers_can_do_with_that(void **state)
{
    (void)state;
    struct ph_builder *builder = create(PH_PRECISION_BF16);
    const ph_value x = ph_input_dense(builder, 3);
    const ph_value a = toy1(builder, &operand, x), b = toy1(builder, &either, a),
                   c = toy1(builder, &operand, b);
    ph_output(builder, "c", c);
    struct ph_program *program = finish(builder);
    assert_int_equal(ph_program_num_nodes(program, "convert"), 1); /* of the batch's x */
    assert_true(is_bf16(program, a) && is_bf16(program, b));
    assert_false(is_bf16(program, x) || is_bf16(program, c));
    ph_program_destroy(program);
}

static void a_value_that_others_read_as_reals_is_converted_once(void **state)
{
    (void)state;
    struct ph_builder *builder = create(PH_PRECISION_BF16);
    const ph_value a = toy1(builder, &either, ph_input_dense(builder, 3));
    ph_output(builder, "real", toy1(builder, &toy_twice, a));
    ph_output(builder, "one", toy1(builder, &operand, a));
    ph_builder_begin_entry(builder, "later");
    ph_output(builder, "two", toy1(builder, &operand, a));
    struct ph_program *program = finish(builder);
    assert_false(is_bf16(program, a));
    assert_int_equal(ph_program_num_nodes(program, "convert"), 1);
    ph_program_destroy(program);
}

static void fp32_changes_nothing(void **state)
{
    (void)state;
    struct ph_builder *builder = create(PH_PRECISION_FP32);
    const ph_value a = toy1(builder, &operand, ph_input_dense(builder, 3));
    ph_output(builder, "b", toy1(builder, &either, a));
    struct ph_program *program = finish(builder);
    assert_false(is_bf16(program, a));
    assert_int_equal(ph_program_num_nodes(program, "convert"), 0);
    ph_program_destroy(program);
}

/* A chain of doublings with branches, of all operators, whose numbers do not overflow. */
static void check_random_graph(struct ph__rng_sequence *rng)
{
    enum { NODES = 24, WIDTH = 5, ROWS = 3 };
    static const struct ph__op *const ops[] = {&toy_twice, &either, &either, &operand};
    struct toy_machine machine;
    struct ph_builder *builder = create(PH_PRECISION_BF16);
    ph_value values[NODES + 1] = {ph_input_dense(builder, WIDTH)};
    double factors[NODES + 1] = {1};
    char names[NODES + 1][8];
    bool is_output[NODES + 1];
    for (size_t i = 1; i <= NODES; i++) {
        const size_t oldest = i > 4 ? i - 4 : 0, from = oldest + ph__rng_below(rng, i - oldest);
        values[i] = toy1(builder, ops[ph__rng_below(rng, 4)], values[from]);
        factors[i] = 2 * factors[from];
        is_output[i] = i == NODES || ph__rng_below(rng, 6) == 0;
        snprintf(names[i], sizeof names[i], "%zu", i);
        if (is_output[i])
            ph_output(builder, names[i], values[i]);
    }
    TOY_MACHINE_START(&machine, builder, ROWS);
    ph_real dense[ROWS * WIDTH];
    for (size_t i = 0; i < ROWS * WIDTH; i++)
        dense[i] = (ph_real)i - 7;
    const struct ph_batch batch = toy_batch(ROWS, WIDTH, dense);
    assert_ok(ph_workspace_bind(machine.workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(machine.workspace, "forward"));
    for (size_t k = 1; k <= NODES; k++) {
        const ph_real *data;
        struct ph_shape shape;
        if (!is_output[k])
            continue;
        assert_ok(ph_workspace_output(machine.workspace, names[k], &data, &shape));
        for (size_t i = 0; i < ROWS * WIDTH; i++)
            assert_true((double)data[i] == factors[k] * (double)dense[i]);
    }
    toy_machine_stop(&machine);
}

static void random_graphs_give_the_numbers_of_reals(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (int round = 0; round < 200; round++)
        check_random_graph(&rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_made_as_bf16_where_all_readers_can_do_with_that),
        cmocka_unit_test(a_value_that_others_read_as_reals_is_converted_once),
        cmocka_unit_test(fp32_changes_nothing),
        cmocka_unit_test(random_graphs_give_the_numbers_of_reals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
