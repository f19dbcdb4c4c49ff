/* y = activation(x W^T + bias), the activation and the bias fused into the product. In inference a sample's row of y does
 * not depend on the batch that it is in (packing PH_PACK_ROW_WISE). x (B,K), W (M,K) packed,
 * bias (M) or absent, y (B,M). The gradient passes the activation first, by y alone:
 *   dx = dy W (linear_backward_data),  dW = dy^T x and db = sum_b dy (linear_backward_weight). */
#include "op/attributes.h"
#include "op/operator.h"

enum { X, PACKED, BIAS, NUM_INPUTS };

static ph_status linear_infer(struct ph_infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *weight = &infer->inputs[PACKED],
                         *bias = &infer->inputs[BIAS];
    bool is_bias_right = bias->kind == PH_TOKEN ||
                         (ph__type_is_real_of_rank(bias, 1) && ph__dim_equal(bias->dims[0], weight->dims[0]));
    if (!ph__type_is_real_of_rank(x, 2) || !ph__dim_equal(x->dims[1], weight->dims[1]) || !is_bias_right)
        return ph__infer_fail(infer, "x (B,K), weight (M,K), bias (M) or none");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){x->dims[0], weight->dims[0]});
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
    if (gradient->is_wanted[X]) {
        const ph_value inputs[] = {
            dy, ph__pack(builder, weight_of(builder, node.inputs[PACKED]), PH_PACK_TRANSPOSED)};
        gradient->input_gradients[X] =
            ph__emit1(builder, &ph__op_linear_backward_data, NULL, NULL, 0, 2, inputs);
    }
    if (gradient->is_wanted[PACKED] || gradient->is_wanted[BIAS]) {
        const ph_value inputs[] = {dy, node.inputs[X]};
        ph_value outputs[2] = {0, 0};
        ph__emit(builder, &ph__op_linear_backward_weight, NULL, NULL, 0, 2, inputs,
            node.inputs[BIAS] != 0 ? 2 : 1, outputs);
        gradient->input_gradients[PACKED] = outputs[0];
        gradient->input_gradients[BIAS] = outputs[1];
    }
}

/* a multiplication and an addition for each of B K M products */
static void linear_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)call->inputs[PACKED].shape.dims[1], cost_out);
}

static ph_status linear_run(struct ph_call *call)
{
    const struct ph_linear_attributes *attributes = call->attributes;
    const struct ph_operand *x = &call->inputs[X], *packed = &call->inputs[PACKED];
    const struct ph_gemm_weight_shape shape = ph__weight_shape(packed->shape.dims, attributes->packing);
    return ph__gemm_forward(call->backend->gemm, &shape, ph__rows(x), x->data, packed->data,
        call->inputs[BIAS].data, attributes->activation, call->outputs[0].data);
}

const struct ph_op ph__op_linear = {
    .name = "linear",
    .infer = linear_infer,
    .gradient = linear_gradient,
    .cost = linear_cost,
    .run = linear_run,
};

ph_value ph_linear(
    struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias, enum ph_activation activation)
{
    const enum ph_packing packing =
        ph_builder_mode(builder) == PH_INFERENCE ? PH_PACK_ROW_WISE : PH_PACK_FORWARD;
    const struct ph_linear_attributes attributes = {activation, packing};
    const ph_value inputs[NUM_INPUTS] = {x, ph__pack(builder, weight, packing), bias};
    return ph__emit1(builder, &ph__op_linear, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs);
}
