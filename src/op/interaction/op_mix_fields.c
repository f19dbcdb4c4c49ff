/* New vectors as weighted sums of a sample's vectors: x (B,n,d), weight (m,n), bias (m) or absent, y (B,m,d),
 *   y_b = W x_b + bias, the bias added to each of the d numbers of a vector.
 * Wukong's linear compression (2403.02545), and the Y^T X of its optimised FM. The gradients:
 *   dx_b = W^T dy_b (mix_fields_backward_data),  dW = sum_b dy_b x_b^T and db (mix_fields_backward_weight).
 * The weight multiplies x itself (op/dense/expansion.h). Where its vectors do not fill the processor's, those
 * of some samples are laid side by side. */
#include "op/dense/expansion.h"

enum { X, WEIGHT, BIAS, NUM_INPUTS };
enum { FULL_REALS = 16 }; /* multiples fill the vectors of every instruction set */

static ph_status mix_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *weight = &infer->inputs[WEIGHT],
                         *bias = &infer->inputs[BIAS];
    if (!ph__type_is_real_of_dims(x, 3) || !ph__has_fixed_dims(x, 1) ||
        !ph__type_is_real_of_dims(weight, 2) || !ph__has_fixed_dims(weight, 0) ||
        !ph__dim_equal(x->dims[1], weight->dims[1]) || !ph__is_bias(bias, weight->dims[0]))
        return ph__infer_fail(infer, "x (B,n,d), weight (m,n), bias (m) or none");
    infer->outputs[0] = ph__dense_type(3, (struct ph_dim[]){x->dims[0], weight->dims[0], x->dims[2]});
    return PH_OK;
}

static void mix_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0];
    if (gradient->is_wanted[X])
        gradient->input_gradients[X] = ph__emit1(builder, &ph__op_mix_fields_backward_data, NULL, NULL, 0, 2,
            (const ph_value[]){dy, node.inputs[WEIGHT]});
    ph__weight_gradients(gradient, WEIGHT, BIAS, &ph__op_mix_fields_backward_weight, NULL, 0, 2,
        (const ph_value[]){dy, node.inputs[X]});
}

/* ---- the expansion: vectors as stored, or of a block of samples (vectors, count, dim) ---- */

struct vectors {
    size_t num_vectors, dim;
    const ph_real *data; /* (B, num_vectors, dim) */
};

static const ph_real *vectors_of(const struct vectors *vectors, const struct ph__sample_block *block)
{
    return vectors->data + block->first * vectors->num_vectors * vectors->dim;
}

static void bring_together(const struct ph__expansion *expansion, const struct ph__sample_block *block)
{
    const struct vectors *vectors = expansion->source;
    if (block->count > 1)
        expansion->kernels->interchange(
            block->count, vectors->num_vectors, vectors->dim, vectors_of(vectors, block), block->kept);
}

static const ph_real *rows_of_vectors(
    const struct ph__expansion *expansion, const struct ph__sample_block *block, size_t row, size_t num_rows)
{
    (void)num_rows;
    const struct vectors *vectors = expansion->source;
    const ph_real *rows = block->count > 1 ? block->kept : vectors_of(vectors, block);
    return rows + row * block->count * vectors->dim;
}

static struct vectors describe_vectors(const struct ph__operand *operand)
{
    return (struct vectors){operand->shape.dims[1], operand->shape.dims[2], operand->data};
}

static struct ph__expansion expand_vectors(const struct ph__call *call, const struct vectors *vectors)
{
    return (struct ph__expansion){.kernels = call->backend->kernels,
        .source = vectors,
        .rows = vectors->num_vectors,
        .width = vectors->dim,
        .chunk_rows = vectors->num_vectors,
        .samples = vectors->dim % FULL_REALS == 0 ? 1 : ph__expansion_samples(vectors->dim),
        .kept_reals = vectors->num_vectors * vectors->dim,
        .begin = bring_together,
        .make = rows_of_vectors};
}

/* ---- forward ---- */

static struct ph__expanded_product describe_mix(const struct ph__call *call, const struct vectors *x)
{
    const size_t *weight = call->inputs[WEIGHT].shape.dims;
    return (struct ph__expanded_product){.expansion = expand_vectors(call, x),
        .num_samples = ph__rows(&call->inputs[X]),
        .outputs = weight[0],
        .weight = call->inputs[WEIGHT].data,
        .output_stride = weight[1],
        .row_stride = 1,
        .bias = call->inputs[BIAS].data,
        .y = call->outputs[0].data,
        .scratch = call->scratch};
}

/* Counts a multiplication and an addition for each of B m d n. */
static void mix_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)call->inputs[X].shape.dims[1], cost_out);
}

static size_t mix_scratch_bytes(const struct ph__call *call)
{
    const struct vectors x = describe_vectors(&call->inputs[X]);
    const struct ph__expanded_product product = describe_mix(call, &x);
    return ph__expanded_scratch_bytes(call->backend, &product);
}

static ph_status mix_run(struct ph__call *call)
{
    const struct vectors x = describe_vectors(&call->inputs[X]);
    const struct ph__expanded_product product = describe_mix(call, &x);
    ph__expanded_forward(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_mix_fields = {
    .name = "mix_fields",
    .infer = mix_infer,
    .gradient = mix_gradient,
    .cost = mix_cost,
    .scratch_bytes = mix_scratch_bytes,
    .run = mix_run,
};

/* ---- dx: inputs dy (B,m,d), weight (m,n) ---- */

enum { DY };

static ph_status backward_data_infer(struct ph__infer *infer)
{
    const struct ph_type *dy = &infer->inputs[DY], *weight = &infer->inputs[WEIGHT];
    if (!ph__type_is_real_of_dims(dy, 3) || !ph__type_is_real_of_dims(weight, 2) ||
        !ph__dim_equal(dy->dims[1], weight->dims[0]))
        return ph__infer_fail(infer, "dy (B,m,d), weight (m,n)");
    infer->outputs[0] = ph__dense_type(3, (struct ph_dim[]){dy->dims[0], weight->dims[1], dy->dims[2]});
    return PH_OK;
}

/* Describes backward data: a mix again, by the transposed weight. */
static struct ph__expanded_product describe_backward_data(
    const struct ph__call *call, const struct vectors *dy)
{
    const size_t num_fields = call->inputs[WEIGHT].shape.dims[1];
    return (struct ph__expanded_product){.expansion = expand_vectors(call, dy),
        .num_samples = ph__rows(&call->inputs[DY]),
        .outputs = num_fields,
        .weight = call->inputs[WEIGHT].data,
        .output_stride = 1,
        .row_stride = num_fields,
        .y = call->outputs[0].data,
        .scratch = call->scratch};
}

static size_t backward_data_scratch_bytes(const struct ph__call *call)
{
    const struct vectors dy = describe_vectors(&call->inputs[DY]);
    const struct ph__expanded_product product = describe_backward_data(call, &dy);
    return ph__expanded_scratch_bytes(call->backend, &product);
}

static ph_status backward_data_run(struct ph__call *call)
{
    const struct vectors dy = describe_vectors(&call->inputs[DY]);
    const struct ph__expanded_product product = describe_backward_data(call, &dy);
    ph__expanded_forward(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_mix_fields_backward_data = {
    .name = "mix_fields_backward_data",
    .infer = backward_data_infer,
    .cost = mix_cost,
    .scratch_bytes = backward_data_scratch_bytes,
    .run = backward_data_run,
};

/* ---- dW and db: inputs dy (B,m,d), x (B,n,d) ---- */

enum { DATA_X = 1 };

static ph_status backward_weight_infer(struct ph__infer *infer)
{
    const struct ph_type *dy = &infer->inputs[DY], *x = &infer->inputs[DATA_X];
    if (!ph__type_is_real_of_dims(dy, 3) || !ph__type_is_real_of_dims(x, 3) ||
        !ph__dim_equal(dy->dims[0], x->dims[0]) || !ph__dim_equal(dy->dims[2], x->dims[2]))
        return ph__infer_fail(infer, "dy (B,m,d), x (B,n,d)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){dy->dims[1], x->dims[1]});
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &dy->dims[1]);
    return PH_OK;
}

static void backward_weight_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const size_t *dy = call->inputs[DY].shape.dims;
    ph__cost_elementwise(call, 2.0 * (double)dy[0] * (double)dy[2], cost_out);
}

/* Takes samples together even where their vectors are full, so that a sum goes on for longer. */
static struct ph__expanded_product describe_backward_weight(
    const struct ph__call *call, const struct vectors *x)
{
    struct ph__expanded_product product = {.expansion = expand_vectors(call, x),
        .num_samples = ph__rows(&call->inputs[DY]),
        .outputs = call->inputs[DY].shape.dims[1],
        .dy = call->inputs[DY].data,
        .dw = call->outputs[0].data,
        .db = call->num_outputs > 1 ? call->outputs[1].data : NULL,
        .scratch = call->scratch};
    product.expansion.samples = ph__expansion_samples(x->dim);
    return product;
}

static size_t backward_weight_scratch_bytes(const struct ph__call *call)
{
    const struct vectors x = describe_vectors(&call->inputs[DATA_X]);
    const struct ph__expanded_product product = describe_backward_weight(call, &x);
    return ph__expanded_weight_scratch_bytes(call->backend, &product);
}

static ph_status backward_weight_run(struct ph__call *call)
{
    const struct vectors x = describe_vectors(&call->inputs[DATA_X]);
    const struct ph__expanded_product product = describe_backward_weight(call, &x);
    ph__expanded_backward_weight(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_mix_fields_backward_weight = {
    .name = "mix_fields_backward_weight",
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};

ph_value ph_mix_fields(struct ph_builder *builder, ph_value x, ph_value weight, ph_value bias)
{
    const ph_value inputs[NUM_INPUTS] = {x, weight, bias};
    return ph__emit1(builder, &ph__op_mix_fields, NULL, NULL, 0, NUM_INPUTS, inputs);
}
