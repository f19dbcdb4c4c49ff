/* Block norm: RMS norm (Zhang and Sennrich 2019) without parameters over blocks of PH_NORM_BLOCK numbers of
 * the last dimension, and hard swish in the same pass where that is the activation. Behind a linear layer all
 * of it becomes the layer's. The gradient computes a block's scale again from x, so nothing else is kept. */
#include "op/attributes.h"
#include "op/operator.h"

static ph_status norm_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[0];
    if (!ph__type_is_real(x) || x->num_dims < 2 || !ph__has_fixed_dims(x, x->num_dims - 1))
        return ph__infer_fail(infer, "x (...,K) of 2 dims or more");
    return ph__infer_elementwise(infer);
}

static void norm_gradient(struct ph__gradient *gradient)
{
    const struct ph__block_norm_attributes *attributes = gradient->node->attributes;
    gradient->input_gradients[0] =
        ph__block_norm_gradient(gradient->builder, attributes->is_swished ? PH_HARD_SWISH : PH_IDENTITY,
            gradient->output_gradients[0], gradient->node->inputs[0], 0);
}

/* Counts square and sum, the product with the scale, and hard swish. */
static void norm_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__block_norm_attributes *attributes = call->attributes;
    ph__cost_elementwise(call, attributes->is_swished ? 8 : 3, cost_out);
}

static void norm_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct ph__call *call = argument;
    const struct ph__block_norm_attributes *attributes = call->attributes;
    const size_t columns = ph__row_width(&call->inputs[0]), offset = first * columns;
    call->backend->kernels->block_norm(last - first, columns, attributes->is_swished,
        (const ph_real *)call->inputs[0].data + offset, (ph_real *)call->outputs[0].data + offset);
}

static ph_status norm_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[0];
    ph__for_blocks(call->backend, ph__vectors(x), ph__block_rows(ph__row_width(x)), norm_rows, call);
    return PH_OK;
}

static bool norm_fuse(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    const struct ph__block_norm_attributes *norm = node->attributes;
    if (!ph__is_plain_linear(producer, node->entry))
        return false;
    struct ph__linear_attributes attributes = *(const struct ph__linear_attributes *)producer->attributes;
    attributes.is_block_normed = true;
    attributes.activation = norm->is_swished ? PH_HARD_SWISH : PH_IDENTITY;
    ph__become_linear(builder, node, producer, producer->inputs, &attributes);
    return true;
}

const struct ph__op ph__op_block_norm = {
    .name = "block_norm",
    .traits = PH_OP_IN_PLACE,
    .infer = norm_infer,
    .gradient = norm_gradient,
    .cost = norm_cost,
    .run = norm_run,
    .fuse = norm_fuse,
};

/* ---- inputs: dy (...,K), x; output dx ---- */

/* Counts square and sum, xhat twice, g xhat and sum, and three operations of the result; the slope of hard
 * swish and its product. */
static void backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__block_norm_attributes *attributes = call->attributes;
    ph__cost_elementwise(call, attributes->is_swished ? 18 : 9, cost_out);
}

static void backward_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct ph__call *call = argument;
    const struct ph__block_norm_attributes *attributes = call->attributes;
    const struct ph__operand *x = &call->inputs[PH_ACTIVATION_BACKWARD_BY];
    const size_t columns = ph__row_width(x), offset = first * columns;
    call->backend->kernels->block_norm_backward(last - first, columns, attributes->is_swished,
        (const ph_real *)x->data + offset,
        (const ph_real *)call->inputs[PH_ACTIVATION_BACKWARD_DY].data + offset,
        (ph_real *)call->outputs[0].data + offset);
}

static ph_status backward_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[PH_ACTIVATION_BACKWARD_BY];
    ph__for_blocks(call->backend, ph__vectors(x), ph__block_rows(ph__row_width(x)), backward_rows, call);
    return PH_OK;
}

static bool backward_fuse(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    const struct ph__block_norm_attributes *attributes = node->attributes;
    return ph__fuse_activation_backward(
        builder, node, producer, attributes->is_swished ? PH_HARD_SWISH : PH_IDENTITY, true);
}

const struct ph__op ph__op_block_norm_backward = {
    .name = "block_norm_backward",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .cost = backward_cost,
    .run = backward_run,
    .fuse = backward_fuse,
    .fusible_input = PH_ACTIVATION_BACKWARD_DY,
};

ph_value ph__block_norm_gradient(
    struct ph_builder *builder, enum ph_activation activation, ph_value dy, ph_value x, ph_value y)
{
    const struct ph__block_norm_attributes attributes = {activation == PH_HARD_SWISH};
    if (!attributes.is_swished)
        dy = ph__activation_backward(builder, activation, dy, y);
    return ph__emit1(builder, &ph__op_block_norm_backward, NULL, &attributes, sizeof attributes, 2,
        (const ph_value[]){dy, x});
}

ph_value ph_block_norm(struct ph_builder *builder, ph_value x, enum ph_activation activation)
{
    const struct ph__block_norm_attributes attributes = {activation == PH_HARD_SWISH};
    const ph_value y = ph__emit1(builder, &ph__op_block_norm, NULL, &attributes, sizeof attributes, 1, &x);
    switch (activation) {
    case PH_RELU:
        return ph_relu(builder, y);
    case PH_SIGMOID:
        return ph_sigmoid(builder, y);
    default:
        return y;
    }
}
