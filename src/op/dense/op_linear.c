/* y = activation(x W^T + bias), or activation(block norm(x W^T + bias)), all of it fused into the product: a
 * following activation node, or block norm, becomes the layer's. In inference a row of y does not depend on
 * its batch (packing PH_PACK_ROW_WISE), and in bf16 precision only the weight is rounded there. x (...,K) of
 * 2 dims or more, whose rows are all its dimensions but the last, W (M,K) packed, bias (M) or absent, y
 * (...,M). The gradient passes the activation first, by y alone, or by the product, which training keeps
 * where hard swish or block norm follows it:
 *   dx = dy W (linear_backward_data)
 *   dW = dy^T x and db = sum of the rows of dy (linear_backward_weight) */
#include "op/attributes.h"
#include "op/operator.h"

static bool is_bf16(const struct ph__operand *operand)
{
    return operand->type->dtype == PH_BF16;
}

/* Returns the type with another last dimension: (...,K) becomes (...,M). */
static struct ph_type type_with_last(const struct ph_type *type, struct ph_dim last)
{
    struct ph_type changed = *type;
    changed.dims[type->num_dims - 1] = last;
    return changed;
}

/* ---- the packed weight ---- */

/* A weight (out, in) in the matrix library's own layout, for products with it (forward) or with its transpose
 * (backward data), or in ours, for forward products whose rows do not depend on each other. Its type is the
 * weight's; only the layout of its bytes is the library's. It is packed again when the weight has changed;
 * bf16 precision rounds it while packing. The gradient of the packed weight is the gradient of the weight, in
 * plain layout. */

struct pack_attributes {
    enum ph__packing packing;
};

static ph_status pack_infer(struct ph__infer *infer)
{
    if (!ph__type_is_real_of_dims(&infer->inputs[0], 2) || infer->inputs[0].dims[0].symbol != 0)
        return ph__infer_fail(infer, "a weight (M,K) of fixed size");
    const struct pack_attributes *attributes = infer->attributes;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dtype = ph__packed_dtype(attributes->packing);
    return PH_OK;
}

static void pack_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[0] = gradient->output_gradients[0];
}

static struct ph__gemm_weight_shape packed_shape(const struct ph__call *call)
{
    const struct pack_attributes *attributes = call->attributes;
    return ph__weight_shape(&call->outputs[0], attributes->packing);
}

static ph_status pack_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    (void)output;
    const struct ph__gemm_weight_shape shape = packed_shape(call);
    return ph__gemm_packed_bytes(call->backend->gemm, &shape, bytes_out);
}

static ph_status pack_run(struct ph__call *call)
{
    const struct ph__gemm_weight_shape shape = packed_shape(call);
    return ph__gemm_pack(call->backend->gemm, &shape, call->inputs[0].data, call->outputs[0].data);
}

const struct ph__op ph__op_pack = {
    .name = "pack",
    .traits = PH_OP_ONCE_PER_VERSION | PH_OP_CALLS_LIBRARY,
    .bf16_outputs = 1,
    .infer = pack_infer,
    .gradient = pack_gradient,
    .cost = ph__cost_copy,
    .output_bytes = pack_output_bytes,
    .run = pack_run,
};

enum ph_dtype ph__packed_dtype(enum ph__packing packing)
{
    return packing >= PH_PACK_ROW_WISE_BF16 && packing <= PH_PACK_BF16_TRANSPOSED ? PH_BF16 : PH_REAL;
}

struct ph__gemm_weight_shape ph__weight_shape(const struct ph__operand *packed, enum ph__packing packing)
{
    return (struct ph__gemm_weight_shape){.out_features = packed->shape.dims[0],
        .in_features = packed->shape.dims[1],
        .is_transposed = packing == PH_PACK_TRANSPOSED || packing == PH_PACK_BF16_TRANSPOSED ||
                         packing == PH_PACK_INT8_TRANSPOSED,
        .is_int8 = packing == PH_PACK_INT8 || packing == PH_PACK_INT8_TRANSPOSED,
        .is_row_wise = packing == PH_PACK_ROW_WISE || packing == PH_PACK_ROW_WISE_BF16,
        .is_bf16 = is_bf16(packed)};
}

static ph_value pack_weight(struct ph_builder *builder, ph_value weight, enum ph__packing packing)
{
    const struct pack_attributes attributes = {packing};
    ph_value packed = ph__builder_find(builder, &ph__op_pack, &attributes, sizeof attributes, 1, &weight, 0);
    if (packed != 0)
        return packed;
    return ph__emit1(builder, &ph__op_pack, NULL, &attributes, sizeof attributes, 1, &weight);
}

/* ---- recipes ---- */

static void add_site(struct ph_builder *builder, ph_value weight)
{
    const struct ph__declaration *parameter = ph__builder_declaration(builder, weight);
    const struct ph_type type = ph_value_type(builder, weight);
    if (parameter == NULL || type.num_dims != 2)
        return;
    const size_t out = type.dims[0].extent, in = type.dims[1].extent;
    ph__builder_add_site(
        builder, &(struct ph_site){parameter->name, out, in, ph__gemm_takes_int8(out, in, false),
                     ph__gemm_takes_int8(out, in, true)});
}

static enum ph__packing packing_of_recipe(enum ph_mode mode, enum ph_recipe recipe, bool is_backward)
{
    if (recipe == PH_RECIPE_INT8)
        return is_backward ? PH_PACK_INT8_TRANSPOSED : PH_PACK_INT8;
    if (mode == PH_INFERENCE)
        return PH_PACK_ROW_WISE_BF16;
    return is_backward ? PH_PACK_BF16_TRANSPOSED : PH_PACK_BF16;
}

/* Returns the packing of a weight for a product, by its recipe; `otherwise` is that of fp32. */
static enum ph__packing packing_by_recipe(
    struct ph_builder *builder, ph_value weight, bool is_backward, enum ph__packing otherwise)
{
    const struct ph__declaration *parameter = ph__builder_declaration(builder, weight);
    const struct ph_type type = ph_value_type(builder, weight);
    bool is_named = false;
    const enum ph_recipe recipe = parameter != NULL
                                      ? ph__builder_recipe(builder, parameter->name, is_backward, &is_named)
                                      : PH_RECIPE_FP32;
    if (recipe == PH_RECIPE_FP32)
        return otherwise;
    if (builder->precision != PH_PRECISION_FP32)
        ph_builder_fail(builder, PH_ERROR_CONFIG, "recipe %s of '%s': it needs the precision fp32",
            ph_recipe_name(recipe), parameter->name);
    if (recipe != PH_RECIPE_INT8 ||
        ph__gemm_takes_int8(type.dims[0].extent, type.dims[1].extent, is_backward))
        return packing_of_recipe(ph_builder_mode(builder), recipe, is_backward);
    if (is_named)
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "recipe int8 of '%s': its %s product has too few outputs, or sums of too many terms; leave it "
            "fp32 or bf16",
            parameter->name, is_backward ? "backward" : "forward");
    return otherwise;
}

/* ---- the input's gradient ---- */

/* Gradient of a linear operator's input, passed on through the activation, or the block norm, that made x, if
 * any: inputs dy (...,M), W (M,K) packed transposed, and x (...,K), the raw product that became it, or none;
 * output dx (...,K) = (dy W) * activation'(x). The fuse rule of the other's backward operator sets these. */

struct backward_data_attributes {
    enum ph_activation activation;
    int is_block_normed;
    enum ph__packing packing;
};

static ph_status backward_data_infer(struct ph__infer *infer)
{
    const struct ph_type *dy = &infer->inputs[PH_LINEAR_BACKWARD_DY],
                         *weight = &infer->inputs[PH_LINEAR_BACKWARD_PACKED];
    if (!ph__type_is_real(dy) || dy->num_dims < 2 || weight->kind != PH_DENSE || weight->num_dims != 2 ||
        !ph__dim_equal(ph__last_dim(dy), weight->dims[0]))
        return ph__infer_fail(infer, "dy (...,M), weight (M,K)");
    infer->outputs[0] = type_with_last(dy, weight->dims[1]);
    return PH_OK;
}

static void backward_data_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)call->inputs[PH_LINEAR_BACKWARD_PACKED].shape.dims[0], cost_out);
}

static struct ph__gemm_weight_shape transposed_shape(const struct ph__call *call)
{
    const struct backward_data_attributes *attributes = call->attributes;
    return ph__weight_shape(&call->inputs[PH_LINEAR_BACKWARD_PACKED], attributes->packing);
}

static size_t backward_data_scratch_bytes(const struct ph__call *call)
{
    const struct ph__gemm_weight_shape shape = transposed_shape(call);
    return ph__gemm_scratch_bytes(call->backend->gemm, &shape);
}

static ph_status backward_data_run(struct ph__call *call)
{
    const struct backward_data_attributes *attributes = call->attributes;
    const struct ph__operand *dy = &call->inputs[PH_LINEAR_BACKWARD_DY],
                             *activated = &call->inputs[PH_LINEAR_BACKWARD_ACTIVATED],
                             *dx = &call->outputs[0];
    const struct ph__gemm_weight_shape shape = transposed_shape(call);
    const struct ph__gemm_args args = {.rows = ph__vectors(dy),
        .x = dy->data,
        .packed = call->inputs[PH_LINEAR_BACKWARD_PACKED].data,
        .activation = attributes->activation,
        .is_block_normed = attributes->is_block_normed,
        .activated = activated->data,
        .is_activated_bf16 = is_bf16(activated),
        .y = dx->data,
        .is_y_bf16 = is_bf16(dx),
        .scratch = call->scratch};
    return ph__gemm_backward_data(call->backend->gemm, &shape, &args);
}

const struct ph__op ph__op_linear_backward_data = {
    .name = "linear_backward_data",
    .traits = PH_OP_CALLS_LIBRARY,
    .bf16_operands = 1 << PH_LINEAR_BACKWARD_DY | 1 << PH_LINEAR_BACKWARD_PACKED,
    .bf16_inputs =
        1 << PH_LINEAR_BACKWARD_DY | 1 << PH_LINEAR_BACKWARD_PACKED | 1 << PH_LINEAR_BACKWARD_ACTIVATED,
    .bf16_outputs = 1,
    .infer = backward_data_infer,
    .cost = backward_data_cost,
    .scratch_bytes = backward_data_scratch_bytes,
    .run = backward_data_run,
};

/* dx = dy W */
static ph_value input_gradient(
    struct ph_builder *builder, ph_value dy, ph_value weight, enum ph__packing packing)
{
    const struct backward_data_attributes attributes = {PH_IDENTITY, false, packing};
    const ph_value inputs[PH_LINEAR_BACKWARD_NUM_INPUTS] = {dy, pack_weight(builder, weight, packing), 0};
    return ph__emit1(builder, &ph__op_linear_backward_data, NULL, &attributes, sizeof attributes,
        PH_LINEAR_BACKWARD_NUM_INPUTS, inputs);
}

bool ph__fuse_activation_backward(struct ph_builder *builder, struct ph__node *node,
    const struct ph__node *producer, enum ph_activation activation, bool is_block_normed)
{
    struct backward_data_attributes attributes = {activation, is_block_normed, PH_PACK_TRANSPOSED};
    if (producer->op != &ph__op_linear_backward_data || producer->inputs[PH_LINEAR_BACKWARD_ACTIVATED] != 0)
        return false;
    attributes.packing = ((const struct backward_data_attributes *)producer->attributes)->packing;
    const ph_value inputs[PH_LINEAR_BACKWARD_NUM_INPUTS] = {producer->inputs[PH_LINEAR_BACKWARD_DY],
        producer->inputs[PH_LINEAR_BACKWARD_PACKED], node->inputs[PH_ACTIVATION_BACKWARD_BY]};
    node->op = &ph__op_linear_backward_data;
    node->name = producer->name;
    node->attributes = ph__builder_copy(builder, &attributes, sizeof attributes);
    node->attributes_size = sizeof attributes;
    node->num_inputs = PH_LINEAR_BACKWARD_NUM_INPUTS;
    node->inputs = ph__builder_copy(builder, inputs, sizeof inputs);
    return true;
}

/* ---- the weight's and the bias's gradients ---- */

/* Gradients of a linear operator's weight and bias: dW = dy^T x, db = sum of the rows of dy. Inputs: dy
 * (...,M), x (...,K), whose rows are all their dimensions but the last; outputs: dW (M,K) and, if there is a
 * bias, db (M). */

enum { WEIGHT_DY, WEIGHT_X };

static ph_status backward_weight_infer(struct ph__infer *infer)
{
    const struct ph_type *dy = &infer->inputs[WEIGHT_DY], *x = &infer->inputs[WEIGHT_X];
    if (!ph__type_is_real(dy) || !ph__type_is_real(x) || x->num_dims < 2)
        return ph__infer_fail(infer, "dy (...,M), x (...,K)");
    const struct ph_dim last[] = {ph__last_dim(dy), ph__last_dim(x)};
    const struct ph_type like_dy = type_with_last(x, last[WEIGHT_DY]);
    if (!ph__type_equal(&like_dy, dy))
        return ph__infer_fail(infer, "dy (...,M), x (...,K)");
    infer->outputs[0] = ph__dense_type(2, last);
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &last[WEIGHT_DY]);
    return PH_OK;
}

static void backward_weight_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)ph__vectors(&call->inputs[WEIGHT_DY]), cost_out);
}

static struct ph__gemm_weight_shape gradient_shape(const struct ph__call *call)
{
    const struct ph__operand *dy = &call->inputs[WEIGHT_DY], *x = &call->inputs[WEIGHT_X];
    return (struct ph__gemm_weight_shape){
        .out_features = ph__row_width(dy), .in_features = ph__row_width(x), .is_bf16 = is_bf16(dy)};
}

static size_t backward_weight_scratch_bytes(const struct ph__call *call)
{
    const struct ph__gemm_weight_shape shape = gradient_shape(call);
    return ph__gemm_weight_scratch_bytes(call->backend->gemm, &shape);
}

static ph_status backward_weight_run(struct ph__call *call)
{
    const struct ph__operand *dy = &call->inputs[WEIGHT_DY], *x = &call->inputs[WEIGHT_X];
    const struct ph__gemm_weight_shape shape = gradient_shape(call);
    ph_real *db = call->num_outputs > 1 ? call->outputs[1].data : NULL;
    return ph__gemm_backward_weight(call->backend->gemm, &shape, ph__vectors(dy), x->data, dy->data,
        call->outputs[0].data, db, call->scratch);
}

const struct ph__op ph__op_linear_backward_weight = {
    .name = "linear_backward_weight",
    .traits = PH_OP_CALLS_LIBRARY,
    .bf16_operands = 1 << WEIGHT_DY | 1 << WEIGHT_X,
    .bf16_inputs = 1 << WEIGHT_DY | 1 << WEIGHT_X,
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};

/* ---- the product ---- */

enum { Y, RAW, NUM_OUTPUTS }; /* RAW: the product alone, which only gradients read */

static ph_status linear_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[PH_LINEAR_X], *weight = &infer->inputs[PH_LINEAR_PACKED],
                         *bias = &infer->inputs[PH_LINEAR_BIAS];
    if (!ph__type_is_real(x) || x->num_dims < 2 || !ph__dim_equal(ph__last_dim(x), weight->dims[1]) ||
        !ph__is_bias(bias, weight->dims[0]))
        return ph__infer_fail(infer, "x (...,K), weight (M,K), bias (M) or none");
    for (size_t i = Y; i < infer->num_outputs; i++)
        infer->outputs[i] = type_with_last(x, weight->dims[0]);
    return PH_OK;
}

/* Returns the weight of a packed value. */
static ph_value weight_of(const struct ph_builder *builder, ph_value packed)
{
    return ph__builder_producer(builder, packed)->inputs[0];
}

/* Returns the gradient by the product. */
static ph_value product_gradient(struct ph_builder *builder, const struct ph__node *node, ph_value dy)
{
    const struct ph__linear_attributes *attributes = node->attributes;
    const bool is_swish = attributes->activation == PH_HARD_SWISH;
    if (attributes->is_block_normed)
        return ph__block_norm_gradient(
            builder, attributes->activation, dy, node->outputs[RAW], node->outputs[Y]);
    return ph__activation_backward(builder, attributes->activation, dy, node->outputs[is_swish ? RAW : Y]);
}

static void linear_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const struct ph__linear_attributes *attributes = node.attributes;
    const ph_value dy = product_gradient(builder, &node, gradient->output_gradients[Y]);
    if (gradient->is_wanted[PH_LINEAR_X])
        gradient->input_gradients[PH_LINEAR_X] = input_gradient(
            builder, dy, weight_of(builder, node.inputs[PH_LINEAR_PACKED]), attributes->backward_packing);
    ph__weight_gradients(gradient, PH_LINEAR_PACKED, PH_LINEAR_BIAS, &ph__op_linear_backward_weight, NULL, 0,
        2, (const ph_value[]){dy, node.inputs[PH_LINEAR_X]});
}

/* Counts a multiplication and an addition for each of K M products of a row. */
static void linear_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)call->inputs[PH_LINEAR_PACKED].shape.dims[1], cost_out);
}

static struct ph__gemm_weight_shape weight_shape(const struct ph__call *call)
{
    const struct ph__linear_attributes *attributes = call->attributes;
    return ph__weight_shape(&call->inputs[PH_LINEAR_PACKED], attributes->packing);
}

static size_t linear_scratch_bytes(const struct ph__call *call)
{
    const struct ph__gemm_weight_shape shape = weight_shape(call);
    return ph__gemm_scratch_bytes(call->backend->gemm, &shape);
}

static ph_status linear_run(struct ph__call *call)
{
    const struct ph__linear_attributes *attributes = call->attributes;
    const struct ph__operand *x = &call->inputs[PH_LINEAR_X], *y = &call->outputs[Y];
    const struct ph__gemm_weight_shape shape = weight_shape(call);
    const struct ph__gemm_args args = {.rows = ph__vectors(x),
        .x = x->data,
        .packed = call->inputs[PH_LINEAR_PACKED].data,
        .bias = call->inputs[PH_LINEAR_BIAS].data,
        .activation = attributes->activation,
        .is_block_normed = attributes->is_block_normed,
        .raw = call->num_outputs > RAW ? call->outputs[RAW].data : NULL,
        .y = y->data,
        .is_y_bf16 = is_bf16(y),
        .scratch = call->scratch};
    return ph__gemm_forward(call->backend->gemm, &shape, &args);
}

const struct ph__op ph__op_linear = {
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

bool ph__is_plain_linear(const struct ph__node *node, uint32_t entry)
{
    const struct ph__linear_attributes *attributes = node->attributes;
    return node->op == &ph__op_linear && node->entry == entry && attributes->activation == PH_IDENTITY &&
           !attributes->is_block_normed;
}

void ph__become_linear(struct ph_builder *builder, struct ph__node *node, const struct ph__node *linear,
    const ph_value inputs[PH_LINEAR_NUM_INPUTS], const struct ph__linear_attributes *attributes)
{
    node->op = &ph__op_linear;
    node->name = linear->name;
    node->attributes = ph__builder_copy(builder, attributes, sizeof *attributes);
    node->attributes_size = sizeof *attributes;
    node->num_inputs = PH_LINEAR_NUM_INPUTS;
    node->inputs = ph__builder_copy(builder, inputs, PH_LINEAR_NUM_INPUTS * sizeof *inputs);
}

bool ph__fuse_activation(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer,
    enum ph_activation activation)
{
    const struct ph__linear_attributes *linear = producer->attributes;
    if (producer->op != &ph__op_linear || producer->entry != node->entry || linear->activation != PH_IDENTITY)
        return false;
    struct ph__linear_attributes attributes = *linear;
    attributes.activation = activation;
    ph__become_linear(builder, node, producer, producer->inputs, &attributes);
    return true;
}

static enum ph__packing packing_of(const struct ph_builder *builder)
{
    if (ph_builder_mode(builder) == PH_TRAINING)
        return PH_PACK_FORWARD;
    return builder->precision == PH_PRECISION_BF16 ? PH_PACK_ROW_WISE_BF16 : PH_PACK_ROW_WISE;
}

static ph_value add_linear(struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias,
    enum ph_activation activation, bool is_block_normed)
{
    add_site(builder, weight);
    const enum ph__packing packing = packing_by_recipe(builder, weight, false, packing_of(builder));
    struct ph__linear_attributes attributes = {activation, is_block_normed, packing, PH_PACK_TRANSPOSED};
    if (ph_builder_mode(builder) == PH_TRAINING)
        attributes.backward_packing = packing_by_recipe(builder, weight, true, PH_PACK_TRANSPOSED);
    const ph_value inputs[PH_LINEAR_NUM_INPUTS] = {x, pack_weight(builder, weight, packing), bias};
    const bool has_raw = is_block_normed || activation == PH_HARD_SWISH;
    ph_value outputs[NUM_OUTPUTS] = {0};
    ph__emit(builder, &ph__op_linear, NULL, &attributes, sizeof attributes, PH_LINEAR_NUM_INPUTS, inputs,
        has_raw ? NUM_OUTPUTS : 1, outputs);
    return outputs[Y];
}

/* Returns the node that aggregates x, if its columns are more than the outputs of a product with the weight:
 * then the product comes before it, since both are linear. The bias stays behind: neighbours' factors need
 * not add up to 1. A rewrite at the end would come too late: the gradient reads what was aggregated, too. */
static const struct ph__node *narrowed(const struct ph_builder *builder, ph_value x, ph_value weight)
{
    const struct ph__node *node = x != 0 ? ph__builder_producer(builder, x) : NULL;
    if (node == NULL || node->op != &ph__op_aggregate || weight == 0)
        return NULL;
    const struct ph_type type = ph_value_type(builder, weight);
    return type.num_dims == 2 && type.dims[0].extent < type.dims[1].extent ? node : NULL;
}

/* Aggregates the product as `aggregate` does the rows that it is of. */
static ph_value aggregate_product(struct ph_builder *builder, struct ph__node aggregate, ph_value weight,
    ph_value bias, enum ph_activation activation)
{
    ph_value inputs[] = {ph_linear(builder, aggregate.inputs[0], weight, 0, PH_IDENTITY), aggregate.inputs[1],
        aggregate.inputs[2]};
    ph_value y =
        ph__emit1(builder, aggregate.op, NULL, aggregate.attributes, aggregate.attributes_size, 3, inputs);
    return ph_activate(builder, bias != 0 ? ph_add(builder, y, bias) : y, activation);
}

/* Inference programs have nodes of their own for what follows the product, until they are fused. */
ph_value ph_linear(
    struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias, enum ph_activation activation)
{
    const struct ph__node *aggregate = narrowed(builder, x, weight);
    if (aggregate != NULL)
        return aggregate_product(builder, *aggregate, weight, bias, activation);
    if (activation == PH_HARD_SWISH && ph_builder_mode(builder) != PH_TRAINING)
        return ph_hard_swish(builder, add_linear(builder, x, weight, bias, PH_IDENTITY, false));
    return add_linear(builder, x, weight, bias, activation, false);
}

ph_value ph_linear_block_norm(
    struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias, enum ph_activation activation)
{
    if (ph_builder_mode(builder) != PH_TRAINING)
        return ph_block_norm(builder, add_linear(builder, x, weight, bias, PH_IDENTITY, false), activation);
    return add_linear(builder, x, weight, bias, activation, true);
}
