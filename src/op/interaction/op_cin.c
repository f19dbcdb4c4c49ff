/* A layer of the compressed interaction network (xDeepFM, 1803.05170, eq. 6): x (B,h,d), first (B,m,d),
 * weight (k,h*m), bias (k) or absent, y (B,k,d),
 *   y_b = W Z_b + bias,  Z_b[i*m+j,:] = x_b[i,:] * first_b[j,:], element by element.
 * The products Z (op/dense/expansion.h) are computed for some vectors of x at a time, in the cache, and again
 * for the gradients:
 *   dW = sum_b dy_b Z_b^T and db (cin_backward_weight), and from dZ_b = W^T dy_b (cin_backward_data)
 *   dx_b[i,:] = sum_j dZ_b[i*m+j,:] * first_b[j,:],  dfirst_b[j,:] = sum_i dZ_b[i*m+j,:] * x_b[i,:] */
#include "op/dense/expansion.h"

#include <string.h>

enum { X, FIRST, WEIGHT, BIAS, NUM_INPUTS };
enum { CHUNK_ROWS = 64 }; /* about: those of some samples stay in the first cache */

static bool are_vectors(const struct ph_type *x, const struct ph_type *first)
{
    return ph__type_is_real_of_dims(x, 3) && ph__type_is_real_of_dims(first, 3) &&
           ph__dim_equal(x->dims[0], first->dims[0]) && ph__dim_equal(x->dims[2], first->dims[2]) &&
           ph__has_fixed_dims(x, 1) && ph__has_fixed_dims(first, 1);
}

static ph_status cin_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *first = &infer->inputs[FIRST],
                         *weight = &infer->inputs[WEIGHT], *bias = &infer->inputs[BIAS];
    if (!are_vectors(x, first) || !ph__type_is_real_of_dims(weight, 2) || !ph__has_fixed_dims(weight, 0) ||
        !ph__dim_equal(weight->dims[1], ph__dim(x->dims[1].extent * first->dims[1].extent)) ||
        !ph__is_bias(bias, weight->dims[0]))
        return ph__infer_fail(infer, "x (B,h,d), first (B,m,d), weight (k,h*m), bias (k) or none");
    infer->outputs[0] = ph__dense_type(3, (struct ph_dim[]){x->dims[0], weight->dims[0], x->dims[2]});
    return PH_OK;
}

static void cin_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0], x = node.inputs[X], first = node.inputs[FIRST];
    if (gradient->is_wanted[X] || gradient->is_wanted[FIRST]) {
        ph_value outputs[2] = {0, 0};
        ph__emit(builder, &ph__op_cin_backward_data, NULL, NULL, 0, 4,
            (const ph_value[]){dy, x, first, node.inputs[WEIGHT]}, 2, outputs);
        gradient->input_gradients[X] = outputs[0];
        gradient->input_gradients[FIRST] = outputs[1];
    }
    ph__weight_gradients(
        gradient, WEIGHT, BIAS, &ph__op_cin_backward_weight, NULL, 0, 3, (const ph_value[]){dy, x, first});
}

/* ---- the products ---- */

struct vectors {
    size_t num_x, num_first, dim; /* h, m, d */
    const ph_real *x, *first;
    ph_real *dx, *d_first; /* backward data */
};

/* Arrays kept for a block of samples: x (h, count, d) and first (m, count, d) and, for backward data, their
 * gradients. */
struct kept {
    ph_real *x, *first, *dx, *d_first;
};

static struct kept kept_of(const struct vectors *vectors, const struct ph__sample_block *block)
{
    const size_t columns = block->count * vectors->dim;
    ph_real *first = block->kept + vectors->num_x * columns;
    ph_real *dx = first + vectors->num_first * columns;
    return (struct kept){block->kept, first, dx, dx + vectors->num_x * columns};
}

static void bring_together(const struct ph__expansion *expansion, const struct ph__sample_block *block)
{
    const struct vectors *vectors = expansion->source;
    const struct kept kept = kept_of(vectors, block);
    const size_t h = vectors->num_x, m = vectors->num_first, d = vectors->dim;
    expansion->kernels->interchange(block->count, h, d, vectors->x + block->first * h * d, kept.x);
    expansion->kernels->interchange(block->count, m, d, vectors->first + block->first * m * d, kept.first);
}

/* Z_ij = x_i * first_j for the vectors of x that the rows belong to. */
static const ph_real *multiply_vectors(
    const struct ph__expansion *expansion, const struct ph__sample_block *block, size_t row, size_t num_rows)
{
    const struct vectors *vectors = expansion->source;
    const struct kept kept = kept_of(vectors, block);
    const size_t m = vectors->num_first, columns = block->count * vectors->dim;
    for (size_t done = 0; done < num_rows; done += m)
        expansion->kernels->multiply_rows(&(struct ph__multiply_rows_args){.rows = m,
            .n = columns,
            .a = kept.x + (row + done) / m * columns,
            .b = kept.first,
            .b_stride = columns,
            .y = block->room + done * columns,
            .y_stride = columns});
    return block->room;
}

static struct vectors describe_vectors(const struct ph__operand *x, const struct ph__operand *first)
{
    return (struct vectors){.num_x = x->shape.dims[1],
        .num_first = first->shape.dims[1],
        .dim = x->shape.dims[2],
        .x = x->data,
        .first = first->data};
}

/* Describes the expansion; a chunk has all products of some vectors of x. */
static struct ph__expansion expand_vectors(const struct ph__call *call, const struct vectors *vectors)
{
    const size_t m = vectors->num_first;
    return (struct ph__expansion){.kernels = call->backend->kernels,
        .source = vectors,
        .rows = vectors->num_x * m,
        .width = vectors->dim,
        .chunk_rows = m < CHUNK_ROWS ? CHUNK_ROWS / m * m : m,
        .samples = ph__expansion_samples(vectors->dim),
        .kept_reals = (vectors->num_x + m) * vectors->dim,
        .begin = bring_together,
        .make = multiply_vectors};
}

/* Counts B h m d products: each is made, used `num_uses` times, and multiplied and added for k sums. */
static void cost_of_products(const struct ph__call *call, const struct ph__operand *x,
    const struct ph__operand *first, size_t outputs, double num_uses, struct ph__cost *cost_out)
{
    ph__cost_copy(call, cost_out);
    cost_out->flops =
        (double)ph__elements(x) * (double)first->shape.dims[1] * (num_uses + 2 * (double)outputs);
}

/* ---- forward ---- */

static struct ph__expanded_product describe_cin(const struct ph__call *call, const struct vectors *vectors)
{
    const size_t *weight = call->inputs[WEIGHT].shape.dims;
    return (struct ph__expanded_product){.expansion = expand_vectors(call, vectors),
        .num_samples = ph__rows(&call->inputs[X]),
        .outputs = weight[0],
        .weight = call->inputs[WEIGHT].data,
        .output_stride = weight[1],
        .row_stride = 1,
        .bias = call->inputs[BIAS].data,
        .y = call->outputs[0].data,
        .scratch = call->scratch};
}

static void cin_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_of_products(
        call, &call->inputs[X], &call->inputs[FIRST], call->inputs[WEIGHT].shape.dims[0], 1, cost_out);
}

static size_t cin_scratch_bytes(const struct ph__call *call)
{
    const struct vectors vectors = describe_vectors(&call->inputs[X], &call->inputs[FIRST]);
    const struct ph__expanded_product product = describe_cin(call, &vectors);
    return ph__expanded_scratch_bytes(call->backend, &product);
}

static ph_status cin_run(struct ph__call *call)
{
    const struct vectors vectors = describe_vectors(&call->inputs[X], &call->inputs[FIRST]);
    const struct ph__expanded_product product = describe_cin(call, &vectors);
    ph__expanded_forward(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_cin = {
    .name = "cin",
    .infer = cin_infer,
    .gradient = cin_gradient,
    .cost = cin_cost,
    .scratch_bytes = cin_scratch_bytes,
    .run = cin_run,
};

/* ---- dx and dfirst: inputs dy (B,k,d), x (B,h,d), first (B,m,d), weight (k,h*m) ---- */

enum { DY, DATA_X, DATA_FIRST, DATA_WEIGHT };

static ph_status backward_data_infer(struct ph__infer *infer)
{
    if (!ph__type_is_real_of_dims(&infer->inputs[DY], 3) ||
        !are_vectors(&infer->inputs[DATA_X], &infer->inputs[DATA_FIRST]) || infer->num_outputs != 2)
        return ph__infer_fail(infer, "dy (B,k,d), x (B,h,d), first (B,m,d), weight (k,h*m)");
    infer->outputs[0] = infer->inputs[DATA_X];
    infer->outputs[1] = infer->inputs[DATA_FIRST];
    return PH_OK;
}

static void begin_gradients(const struct ph__expansion *expansion, const struct ph__sample_block *block)
{
    const struct vectors *vectors = expansion->source;
    const struct kept kept = kept_of(vectors, block);
    bring_together(expansion, block);
    memset(kept.dx, 0, (vectors->num_x + vectors->num_first) * block->count * vectors->dim * sizeof *kept.dx);
}

/* dx_i += sum_j dZ_ij * first_j,  dfirst_j += dZ_ij * x_i */
static void take_gradients(const struct ph__expansion *expansion, const struct ph__sample_block *block,
    size_t row, size_t num_rows, ph_real *gradient)
{
    const struct vectors *vectors = expansion->source;
    const struct kept kept = kept_of(vectors, block);
    const size_t m = vectors->num_first, columns = block->count * vectors->dim;
    for (size_t done = 0; done < num_rows; done += m) {
        const size_t i = (row + done) / m;
        struct ph__multiply_rows_args args = {.rows = m,
            .n = columns,
            .a = gradient + done * columns,
            .a_stride = columns,
            .b = kept.first,
            .b_stride = columns,
            .y = kept.dx + i * columns,
            .is_added = true};
        expansion->kernels->multiply_rows(&args);
        args.b = kept.x + i * columns;
        args.b_stride = 0;
        args.y = kept.d_first;
        args.y_stride = columns;
        expansion->kernels->multiply_rows(&args);
    }
}

static void end_gradients(const struct ph__expansion *expansion, const struct ph__sample_block *block)
{
    const struct vectors *vectors = expansion->source;
    const struct kept kept = kept_of(vectors, block);
    const size_t h = vectors->num_x, m = vectors->num_first, d = vectors->dim;
    expansion->kernels->interchange(h, block->count, d, kept.dx, vectors->dx + block->first * h * d);
    expansion->kernels->interchange(
        m, block->count, d, kept.d_first, vectors->d_first + block->first * m * d);
}

static struct ph__expanded_product describe_backward_data(
    const struct ph__call *call, const struct vectors *vectors)
{
    const size_t *weight = call->inputs[DATA_WEIGHT].shape.dims;
    struct ph__expanded_product product = {.expansion = expand_vectors(call, vectors),
        .num_samples = ph__rows(&call->inputs[DY]),
        .outputs = weight[0],
        .weight = call->inputs[DATA_WEIGHT].data,
        .output_stride = weight[1],
        .row_stride = 1,
        .dy = call->inputs[DY].data,
        .scratch = call->scratch};
    product.expansion.kept_reals *= 2;
    product.expansion.begin = begin_gradients;
    product.expansion.take = take_gradients;
    product.expansion.end = end_gradients;
    return product;
}

/* Counts each number of dZ twice: it is used for both gradients. */
static void backward_data_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_of_products(call, &call->inputs[DATA_X], &call->inputs[DATA_FIRST],
        call->inputs[DATA_WEIGHT].shape.dims[0], 4, cost_out);
}

static size_t backward_data_scratch_bytes(const struct ph__call *call)
{
    const struct vectors vectors = describe_vectors(&call->inputs[DATA_X], &call->inputs[DATA_FIRST]);
    const struct ph__expanded_product product = describe_backward_data(call, &vectors);
    return ph__expanded_scratch_bytes(call->backend, &product);
}

static ph_status backward_data_run(struct ph__call *call)
{
    struct vectors vectors = describe_vectors(&call->inputs[DATA_X], &call->inputs[DATA_FIRST]);
    vectors.dx = call->outputs[0].data;
    vectors.d_first = call->outputs[1].data;
    const struct ph__expanded_product product = describe_backward_data(call, &vectors);
    ph__expanded_backward_data(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_cin_backward_data = {
    .name = "cin_backward_data",
    .infer = backward_data_infer,
    .cost = backward_data_cost,
    .scratch_bytes = backward_data_scratch_bytes,
    .run = backward_data_run,
};

/* ---- dW and db: inputs dy (B,k,d), x (B,h,d), first (B,m,d) ---- */

static ph_status backward_weight_infer(struct ph__infer *infer)
{
    const struct ph_type *dy = &infer->inputs[DY], *x = &infer->inputs[DATA_X],
                         *first = &infer->inputs[DATA_FIRST];
    if (!ph__type_is_real_of_dims(dy, 3) || !are_vectors(x, first))
        return ph__infer_fail(infer, "dy (B,k,d), x (B,h,d), first (B,m,d)");
    const struct ph_dim products = ph__dim(x->dims[1].extent * first->dims[1].extent);
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){dy->dims[1], products});
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &dy->dims[1]);
    return PH_OK;
}

static struct ph__expanded_product describe_backward_weight(
    const struct ph__call *call, const struct vectors *vectors)
{
    return (struct ph__expanded_product){.expansion = expand_vectors(call, vectors),
        .num_samples = ph__rows(&call->inputs[DY]),
        .outputs = call->inputs[DY].shape.dims[1],
        .dy = call->inputs[DY].data,
        .dw = call->outputs[0].data,
        .db = call->num_outputs > 1 ? call->outputs[1].data : NULL,
        .scratch = call->scratch};
}

static void backward_weight_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_of_products(
        call, &call->inputs[DATA_X], &call->inputs[DATA_FIRST], call->inputs[DY].shape.dims[1], 1, cost_out);
}

static size_t backward_weight_scratch_bytes(const struct ph__call *call)
{
    const struct vectors vectors = describe_vectors(&call->inputs[DATA_X], &call->inputs[DATA_FIRST]);
    const struct ph__expanded_product product = describe_backward_weight(call, &vectors);
    return ph__expanded_weight_scratch_bytes(call->backend, &product);
}

static ph_status backward_weight_run(struct ph__call *call)
{
    const struct vectors vectors = describe_vectors(&call->inputs[DATA_X], &call->inputs[DATA_FIRST]);
    const struct ph__expanded_product product = describe_backward_weight(call, &vectors);
    ph__expanded_backward_weight(call->backend, &product);
    return PH_OK;
}

const struct ph__op ph__op_cin_backward_weight = {
    .name = "cin_backward_weight",
    .infer = backward_weight_infer,
    .cost = backward_weight_cost,
    .scratch_bytes = backward_weight_scratch_bytes,
    .run = backward_weight_run,
};

ph_value ph_cin(struct ph_builder *builder, ph_value x, ph_value first, ph_value weight, ph_value bias)
{
    const ph_value inputs[NUM_INPUTS] = {x, first, weight, bias};
    return ph__emit1(builder, &ph__op_cin, NULL, NULL, 0, NUM_INPUTS, inputs);
}
