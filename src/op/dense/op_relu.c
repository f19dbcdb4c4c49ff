/* relu(x) = max(x, 0). Elementwise, so the result may take over its input's memory; the gradient needs only
 * the result. */
#include "op/attributes.h"
#include "op/operator.h"

static ph_status relu_run(struct ph__call *call)
{
    return ph__run_unary(call, call->backend->kernels->relu);
}

static void relu_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[0] = ph__activation_backward(
        gradient->builder, PH_RELU, gradient->output_gradients[0], gradient->node->outputs[0]);
}

static void relu_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

static bool relu_fuse(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    return ph__fuse_activation(builder, node, producer, PH_RELU);
}

const struct ph__op ph__op_relu = {
    .name = "relu",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .gradient = relu_gradient,
    .cost = relu_cost,
    .run = relu_run,
    .fuse = relu_fuse,
};

/* inputs: dy, y; dx = dy where y > 0 */
static ph_status relu_backward_run(struct ph__call *call)
{
    return ph__run_binary(call, call->backend->kernels->relu_backward, 1, 0);
}

static bool relu_backward_fuse(
    struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    return ph__fuse_activation_backward(builder, node, producer, PH_RELU, false);
}

const struct ph__op ph__op_relu_backward = {
    .name = "relu_backward",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .cost = relu_cost,
    .run = relu_backward_run,
    .fuse = relu_backward_fuse,
    .fusible_input = PH_ACTIVATION_BACKWARD_DY,
};

ph_value ph_relu(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_relu, NULL, NULL, 0, 1, &x);
}
