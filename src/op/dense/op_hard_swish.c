/* Hard swish (Howard et al. 2019): x clamp(x + 3, 0, 6) / 6. Elementwise, so the result may take over its
 * input's memory, unless training keeps that: the gradient is no function of the result. */
#include "op/attributes.h"
#include "op/operator.h"

static ph_status hard_swish_run(struct ph__call *call)
{
    return ph__run_unary(call, call->backend->kernels->hard_swish);
}

static void hard_swish_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[0] = ph__activation_backward(
        gradient->builder, PH_HARD_SWISH, gradient->output_gradients[0], gradient->node->inputs[0]);
}

/* Counts an addition, two bounds and two products. */
static void hard_swish_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 5, cost_out);
}

static bool hard_swish_fuse(
    struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    return ph__fuse_activation(builder, node, producer, PH_HARD_SWISH);
}

const struct ph__op ph__op_hard_swish = {
    .name = "hard_swish",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .gradient = hard_swish_gradient,
    .cost = hard_swish_cost,
    .run = hard_swish_run,
    .fuse = hard_swish_fuse,
};

/* inputs: dy, x; dx = dy times the slope at x */
static ph_status hard_swish_backward_run(struct ph__call *call)
{
    return ph__run_binary(call, call->backend->kernels->hard_swish_backward, 1, 0);
}

/* Counts the gate, the inner slope, its bound, their sum and the product with dy. */
static void hard_swish_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 8, cost_out);
}

static bool hard_swish_backward_fuse(
    struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    return ph__fuse_activation_backward(builder, node, producer, PH_HARD_SWISH, false);
}

const struct ph__op ph__op_hard_swish_backward = {
    .name = "hard_swish_backward",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .cost = hard_swish_backward_cost,
    .run = hard_swish_backward_run,
    .fuse = hard_swish_backward_fuse,
    .fusible_input = PH_ACTIVATION_BACKWARD_DY,
};

ph_value ph_hard_swish(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_hard_swish, NULL, NULL, 0, 1, &x);
}
