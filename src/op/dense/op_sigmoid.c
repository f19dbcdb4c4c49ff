/* sigmoid(x) = 1 / (1 + exp(-x)). Elementwise, so the result may take over its input's memory; the gradient
 * needs only the result. */
#include "op/attributes.h"
#include "op/operator.h"

static ph_status sigmoid_run(struct ph__call *call)
{
    return ph__run_unary(call, call->backend->kernels->sigmoid);
}

static void sigmoid_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[0] = ph__activation_backward(
        gradient->builder, PH_SIGMOID, gradient->output_gradients[0], gradient->node->outputs[0]);
}

/* Counts negation, exp (as one), addition and division. */
static void sigmoid_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 4, cost_out);
}

static bool sigmoid_fuse(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    return ph__fuse_activation(builder, node, producer, PH_SIGMOID);
}

const struct ph__op ph__op_sigmoid = {
    .name = "sigmoid",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .gradient = sigmoid_gradient,
    .cost = sigmoid_cost,
    .run = sigmoid_run,
    .fuse = sigmoid_fuse,
};

/* inputs: dy, y; dx = dy y (1 - y) */
static ph_status sigmoid_backward_run(struct ph__call *call)
{
    return ph__run_binary(call, call->backend->kernels->sigmoid_backward, 1, 0);
}

static void sigmoid_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 3, cost_out);
}

static bool sigmoid_backward_fuse(
    struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    return ph__fuse_activation_backward(builder, node, producer, PH_SIGMOID, false);
}

const struct ph__op ph__op_sigmoid_backward = {
    .name = "sigmoid_backward",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .cost = sigmoid_backward_cost,
    .run = sigmoid_backward_run,
    .fuse = sigmoid_backward_fuse,
    .fusible_input = PH_ACTIVATION_BACKWARD_DY,
};

ph_value ph_sigmoid(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_sigmoid, NULL, NULL, 0, 1, &x);
}
