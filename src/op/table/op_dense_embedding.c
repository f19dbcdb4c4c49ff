/* dense_embedding: a vector for each dense feature, scaled by its value, to stand beside embeddings.
 *
 * x (B,F), vectors (F,D) -> (B,F,D): y[b,f,:] = x[b,f] v[f,:]
 * Its gradients, two operators because seldom both are wanted:
 *   dx[b,f] = <dy[b,f,:], v[f,:]>,   dv[f,:] = sum_b x[b,f] dy[b,f,:] */
#include <string.h>

#include "op/operator.h"

enum { X, VECTORS }; /* inputs of the forward operator */
enum { DY, OTHER };  /* inputs of its gradients; OTHER: vectors, or x */
enum { BLOCK_SAMPLES = 256 };

static ph_status dense_embedding_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *vectors = &infer->inputs[VECTORS];
    if (!ph__type_is_real_of_dims(x, 2) || !ph__type_is_real_of_dims(vectors, 2) ||
        !ph__dim_equal(x->dims[1], vectors->dims[0]))
        return ph__infer_fail(infer, "x (B,F) and vectors (F,D)");
    infer->outputs[0] = ph__dense_type(3, (struct ph_dim[]){x->dims[0], x->dims[1], vectors->dims[1]});
    return PH_OK;
}

static void dense_embedding_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0];
    if (gradient->is_wanted[X])
        gradient->input_gradients[X] = ph__emit1(builder, &ph__op_dense_embedding_dx, NULL, NULL, 0, 2,
            (const ph_value[]){dy, node.inputs[VECTORS]});
    if (gradient->is_wanted[VECTORS])
        gradient->input_gradients[VECTORS] = ph__emit1(
            builder, &ph__op_dense_embedding_dv, NULL, NULL, 0, 2, (const ph_value[]){dy, node.inputs[X]});
}

static void dense_embedding_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

/* Scales rows [first, last) of the B*F rows of D numbers. */
static void scale_vectors(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const size_t num_features = call->outputs[0].shape.dims[1], dim = call->outputs[0].shape.dims[2];
    const ph_real *x = call->inputs[X].data, *vectors = call->inputs[VECTORS].data;
    ph_real *y = call->outputs[0].data;
    (void)worker;
    for (size_t row = first; row < last; row++)
        call->backend->kernels->scale(dim, x[row], vectors + row % num_features * dim, y + row * dim);
}

static ph_status dense_embedding_run(struct ph__call *call)
{
    const struct ph_shape *shape = &call->outputs[0].shape;
    ph__for_blocks(
        call->backend, shape->dims[0] * shape->dims[1], ph__block_rows(shape->dims[2]), scale_vectors, call);
    return PH_OK;
}

const struct ph__op ph__op_dense_embedding = {
    .name = "dense_embedding",
    .infer = dense_embedding_infer,
    .gradient = dense_embedding_gradient,
    .cost = dense_embedding_cost,
    .run = dense_embedding_run,
};

/* ---- dx ---- */

static ph_status dense_embedding_dx_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__dense_type(2, infer->inputs[DY].dims);
    return PH_OK;
}

static void gradient_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 0, cost_out);
    cost_out->flops = 2 * (double)ph__elements(&call->inputs[DY]);
}

static void dot_with_vectors(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const size_t num_features = call->inputs[DY].shape.dims[1], dim = call->inputs[DY].shape.dims[2];
    const ph_real *dy = call->inputs[DY].data, *vectors = call->inputs[OTHER].data;
    ph_real *dx = call->outputs[0].data;
    (void)worker;
    for (size_t row = first; row < last; row++) {
        const ph_real *vector = vectors + row % num_features * dim;
        ph_real sum = 0;
        for (size_t d = 0; d < dim; d++)
            sum += dy[row * dim + d] * vector[d];
        dx[row] = sum;
    }
}

static ph_status dense_embedding_dx_run(struct ph__call *call)
{
    const struct ph_shape *shape = &call->inputs[DY].shape;
    ph__for_blocks(call->backend, shape->dims[0] * shape->dims[1], ph__block_rows(shape->dims[2]),
        dot_with_vectors, call);
    return PH_OK;
}

const struct ph__op ph__op_dense_embedding_dx = {
    .name = "dense_embedding_dx",
    .infer = dense_embedding_dx_infer,
    .cost = gradient_cost,
    .run = dense_embedding_dx_run,
};

/* ---- dv ---- */

static ph_status dense_embedding_dv_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__dense_type(2, infer->inputs[DY].dims + 1);
    return PH_OK;
}

/* Counts the partial sums (F,D): one per block of samples, added in the order of the blocks. */
static size_t num_blocks(const struct ph__call *call)
{
    return (ph__rows(&call->inputs[DY]) + BLOCK_SAMPLES - 1) / BLOCK_SAMPLES;
}

static size_t dense_embedding_dv_scratch_bytes(const struct ph__call *call)
{
    return num_blocks(call) * ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

static void sum_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const size_t num_features = call->inputs[DY].shape.dims[1], dim = call->inputs[DY].shape.dims[2];
    const ph_real *dy = call->inputs[DY].data, *x = call->inputs[OTHER].data;
    ph_real *sums = (ph_real *)call->scratch + first / BLOCK_SAMPLES * num_features * dim;
    (void)worker;
    memset(sums, 0, num_features * dim * sizeof *sums);
    for (size_t row = first * num_features; row < last * num_features; row++) {
        ph_real *sum = sums + row % num_features * dim;
        for (size_t d = 0; d < dim; d++)
            sum[d] += x[row] * dy[row * dim + d];
    }
}

static ph_status dense_embedding_dv_run(struct ph__call *call)
{
    const size_t elements = ph__elements(&call->outputs[0]);
    ph__for_blocks(call->backend, ph__rows(&call->inputs[DY]), BLOCK_SAMPLES, sum_samples, call);
    memset(call->outputs[0].data, 0, elements * sizeof(ph_real));
    call->backend->kernels->add_rows(num_blocks(call), elements, call->scratch, call->outputs[0].data);
    return PH_OK;
}

const struct ph__op ph__op_dense_embedding_dv = {
    .name = "dense_embedding_dv",
    .infer = dense_embedding_dv_infer,
    .cost = gradient_cost,
    .scratch_bytes = dense_embedding_dv_scratch_bytes,
    .run = dense_embedding_dv_run,
};

ph_value ph_dense_embedding(struct ph_builder *builder, ph_value x, ph_value vectors)
{
    const ph_value inputs[] = {x, vectors};
    return ph__emit1(builder, &ph__op_dense_embedding, NULL, NULL, 0, 2, inputs);
}
