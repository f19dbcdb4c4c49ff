/* y = activation(x W^T + bias), the activation and the bias fused into the product; an activation of its own node
 * behind the layer becomes the layer's. In inference a row of y does not depend on the batch that it is in (packing
 * PH_PACK_ROW_WISE), and in bf16 precision the weight alone is rounded there. x (...,K) of rank 2 or more, whose rows
 * are all its dimensions but the last, W (M,K) packed, bias (M) or absent, y (...,M). The gradient passes the
 * activation first, by y alone:
 *   dx = dy W (linear_backward_data),  dW = dy^T x and db = sum of the rows of dy (linear_backward_weight). */
#include "op/attributes.h"
#include "op/operator.h"

static ph_status linear_infer(struct ph_infer *infer)
{
    const struct ph_type *x = &infer->inputs[PH_LINEAR_X], *weight = &infer->inputs[PH_LINEAR_PACKED],
                         *bias = &infer->inputs[PH_LINEAR_BIAS];
    if (!ph__type_is_real(x) || x->rank < 2 || !ph__dim_equal(ph__last_dim(x), weight->dims[1]) ||
        !ph__is_bias(bias, weight->dims[0]))
        return ph__infer_fail(infer, "x (...,K), weight (M,K), bias (M) or none");
    infer->outputs[0] = ph__type_with_last(x, weight->dims[0]);
    return PH_OK;
}

/* The weight behind a packed value. */
static ph_value weight_of(const struct ph_builder *builder, ph_value packed)
{
    return ph__builder_producer(builder, packed)->inputs[0];
}

static void linear_gradient(struct ph_gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph_node node = *gradient->node;
    const struct ph_linear_attributes *attributes = node.attributes;
    ph_value dy = ph__activation_backward(
        builder, attributes->activation, gradient->output_gradients[0], node.outputs[0]);
    if (gradient->is_wanted[PH_LINEAR_X]) {
        const ph_value packed =
            ph__pack(builder, weight_of(builder, node.inputs[PH_LINEAR_PACKED]), PH_PACK_TRANSPOSED);
        gradient->input_gradients[PH_LINEAR_X] = ph__linear_backward_data(builder, dy, packed);
    }
    ph__weight_gradients(gradient, PH_LINEAR_PACKED, PH_LINEAR_BIAS, &ph__op_linear_backward_weight, NULL, 0,
        2, (const ph_value[]){dy, node.inputs[PH_LINEAR_X]});
}

/* a multiplication and an addition for each of K M products of a row */
static void linear_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)call->inputs[PH_LINEAR_PACKED].shape.dims[1], cost_out);
}

static struct ph_gemm_weight_shape weight_shape(const struct ph_call *call)
{
    const struct ph_linear_attributes *attributes = call->attributes;
    return ph__weight_shape(&call->inputs[PH_LINEAR_PACKED], attributes->packing);
}

static size_t linear_scratch_bytes(const struct ph_call *call)
{
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    return ph__gemm_scratch_bytes(call->backend->gemm, &shape);
}

static ph_status linear_run(struct ph_call *call)
{
    const struct ph_linear_attributes *attributes = call->attributes;
    const struct ph_operand *x = &call->inputs[PH_LINEAR_X], *y = &call->outputs[0];
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    const struct ph_gemm_args args = {.rows = ph__vectors(x),
        .x = x->data,
        .packed = call->inputs[PH_LINEAR_PACKED].data,
        .bias = call->inputs[PH_LINEAR_BIAS].data,
        .activation = attributes->activation,
        .y = y->data,
        .is_y_bf16 = ph__is_bf16(y),
        .scratch = call->scratch};
    return ph__gemm_forward(call->backend->gemm, &shape, &args);
}

const struct ph_op ph__op_linear = {
    .name = "linear",
    .traits = PH_OP_CALLS_LIBRARY,
    .bf16_operands = 1 << PH_LINEAR_X | 1 << PH_LINEAR_PACKED,
    .bf16_inputs = 1 << PH_LINEAR_X | 1 << PH_LINEAR_PACKED,
    .bf16_outputs = 1,
    .infer = linear_infer,
    .gradient = linear_gradient,
    .cost = linear_cost,
    .scratch_bytes = linear_scratch_bytes,
    .run = linear_run,
};

bool ph__is_plain_linear(const struct ph_node *node, uint32_t entry)
{
    const struct ph_linear_attributes *attributes = node->attributes;
    return node->op == &ph__op_linear && node->entry == entry && attributes->activation == PH_IDENTITY;
}

void ph__become_linear(struct ph_builder *builder, struct ph_node *node, const struct ph_node *linear,
    const ph_value inputs[PH_LINEAR_NUM_INPUTS], enum ph_activation activation)
{
    struct ph_linear_attributes attributes = *(const struct ph_linear_attributes *)linear->attributes;
    attributes.activation = activation;
    node->op = &ph__op_linear;
    node->name = linear->name;
    node->attributes = ph__builder_copy(builder, &attributes, sizeof attributes);
    node->attributes_size = sizeof attributes;
    node->num_inputs = PH_LINEAR_NUM_INPUTS;
    node->inputs = ph__builder_copy(builder, inputs, PH_LINEAR_NUM_INPUTS * sizeof *inputs);
}

bool ph__fuse_activation(struct ph_builder *builder, struct ph_node *node, const struct ph_node *producer,
    enum ph_activation activation)
{
    if (!ph__is_plain_linear(producer, node->entry))
        return false;
    ph__become_linear(builder, node, producer, producer->inputs, activation);
    return true;
}

static enum ph_packing packing_of(const struct ph_builder *builder)
{
    if (ph_builder_mode(builder) == PH_TRAINING)
        return PH_PACK_FORWARD;
    return builder->precision == PH_PRECISION_BF16 ? PH_PACK_ROW_WISE_BF16 : PH_PACK_ROW_WISE;
}

ph_value ph_linear(
    struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias, enum ph_activation activation)
{
    const enum ph_packing packing = packing_of(builder);
    const struct ph_linear_attributes attributes = {activation, packing};
    const ph_value inputs[PH_LINEAR_NUM_INPUTS] = {x, ph__pack(builder, weight, packing), bias};
    return ph__emit1(
        builder, &ph__op_linear, NULL, &attributes, sizeof attributes, PH_LINEAR_NUM_INPUTS, inputs);
}
