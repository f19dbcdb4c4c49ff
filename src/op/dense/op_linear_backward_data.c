/* The gradient of a linear operator's input: dx = dy W, and where x is what an activation made, on through that:
 * inputs: dy (...,M), W (M,K) packed transposed, x (...,K) or none; output dx (...,K) = (dy W) * activation'(x). The activation
 * comes by its backward operator's fuse rule. */
#include "op/attributes.h"
#include "op/operator.h"

enum { DY, PACKED, ACTIVATED, NUM_INPUTS };

struct backward_data_attributes {
    enum ph_activation activation;
};

static ph_status backward_data_infer(struct ph_infer *infer)
{
    const struct ph_type *dy = &infer->inputs[DY], *weight = &infer->inputs[PACKED];
    if (!ph__type_is_real(dy) || dy->rank < 2 || !ph__type_is_real_of_rank(weight, 2) ||
        !ph__dim_equal(ph__last_dim(dy), weight->dims[0]))
        return ph__infer_fail(infer, "dy (...,M), weight (M,K)");
    infer->outputs[0] = ph__type_with_last(dy, weight->dims[1]);
    return PH_OK;
}

static void backward_data_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)call->inputs[PACKED].shape.dims[0], cost_out);
}

static struct ph_gemm_weight_shape weight_shape(const struct ph_call *call)
{
    return ph__weight_shape(&call->inputs[PACKED], PH_PACK_TRANSPOSED);
}

static size_t backward_data_scratch_bytes(const struct ph_call *call)
{
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    return ph__gemm_scratch_bytes(call->backend->gemm, &shape);
}

static ph_status backward_data_run(struct ph_call *call)
{
    const struct backward_data_attributes *attributes = call->attributes;
    const struct ph_operand *dy = &call->inputs[DY], *activated = &call->inputs[ACTIVATED],
                            *dx = &call->outputs[0];
    const struct ph_gemm_weight_shape shape = weight_shape(call);
    const struct ph_gemm_args args = {.rows = ph__vectors(dy),
        .x = dy->data,
        .packed = call->inputs[PACKED].data,
        .activation = attributes->activation,
        .activated = activated->data,
        .is_activated_bf16 = ph__is_bf16(activated),
        .y = dx->data,
        .is_y_bf16 = ph__is_bf16(dx),
        .scratch = call->scratch};
    return ph__gemm_backward_data(call->backend->gemm, &shape, &args);
}

const struct ph_op ph__op_linear_backward_data = {
    .name = "linear_backward_data",
    .traits = PH_OP_CALLS_LIBRARY,
    .bf16_operands = 1 << DY | 1 << PACKED,
    .bf16_inputs = 1 << DY | 1 << PACKED | 1 << ACTIVATED,
    .bf16_outputs = 1,
    .infer = backward_data_infer,
    .cost = backward_data_cost,
    .scratch_bytes = backward_data_scratch_bytes,
    .run = backward_data_run,
};

ph_value ph__linear_backward_data(struct ph_builder *builder, ph_value dy, ph_value packed)
{
    const struct backward_data_attributes attributes = {PH_IDENTITY};
    const ph_value inputs[NUM_INPUTS] = {dy, packed, 0};
    return ph__emit1(
        builder, &ph__op_linear_backward_data, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs);
}

bool ph__fuse_activation_backward(struct ph_builder *builder, struct ph_node *node,
    const struct ph_node *producer, enum ph_activation activation)
{
    const struct backward_data_attributes attributes = {activation};
    if (producer->op != &ph__op_linear_backward_data || producer->inputs[ACTIVATED] != 0)
        return false;
    const ph_value inputs[NUM_INPUTS] = {
        producer->inputs[DY], producer->inputs[PACKED], node->inputs[PH_ACTIVATION_BACKWARD_Y]};
    node->op = &ph__op_linear_backward_data;
    node->name = producer->name;
    node->attributes = ph__builder_copy(builder, &attributes, sizeof attributes);
    node->attributes_size = sizeof attributes;
    node->num_inputs = NUM_INPUTS;
    node->inputs = ph__builder_copy(builder, inputs, sizeof inputs);
    return true;
}
