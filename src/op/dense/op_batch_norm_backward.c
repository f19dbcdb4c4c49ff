/* The gradient of batch norm with the batch's own statistics. xhat = (x - mean) inv_std:
 *   dgamma = sum_b dy xhat,  dbeta = sum_b dy,
 *   dx = gamma inv_std (dy - dbeta / B - xhat dgamma / B).
 * inputs: dy (B,K), x (B,K), mean, inv_std, gamma (K); outputs: dx, dgamma, dbeta. */
#include "op/dense/batch_norm.h"

#include <string.h>

struct sums_call {
    const struct ph_call *call;
    size_t columns;
    double *partials; /* (blocks, 2, K) */
};

ph_status ph__batch_norm_backward_infer(struct ph_infer *infer)
{
    const struct ph_type *x = &infer->inputs[PH_BATCH_NORM_BACKWARD_X];
    if (!ph__type_is_real_of_rank(x, 2) || !ph__type_equal(x, &infer->inputs[PH_BATCH_NORM_DY]))
        return ph__infer_fail(infer, "dy (B,K), x (B,K), mean (K), inv_std (K), gamma (K)");
    infer->outputs[PH_BATCH_NORM_DX] = *x;
    infer->outputs[PH_BATCH_NORM_D_GAMMA] = infer->outputs[PH_BATCH_NORM_D_BETA] =
        ph__dense_type(1, &x->dims[1]);
    return PH_OK;
}

/* xhat twice, its product with dy and two sums; then two products, two subtractions, two scalings */
void ph__batch_norm_backward_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 12, cost_out);
}

/* partials (blocks, 2, K) */
size_t ph__batch_norm_gradient_sums_bytes(const struct ph_call *call)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    return 2 * ph__batch_norm_blocks(dims[0]) * dims[1] * sizeof(double);
}

static void sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct sums_call *sums = argument;
    const struct ph_operand *inputs = sums->call->inputs;
    const size_t columns = sums->columns, offset = first * columns;
    double *partial = sums->partials + first / PH_BATCH_NORM_ROWS * 2 * columns;
    memset(partial, 0, 2 * columns * sizeof *partial);
    sums->call->backend->kernels->batch_norm_gradient_sums(last - first, columns,
        (const ph_real *)inputs[PH_BATCH_NORM_BACKWARD_X].data + offset,
        (const ph_real *)inputs[PH_BATCH_NORM_DY].data + offset, inputs[PH_BATCH_NORM_BACKWARD_MEAN].data,
        inputs[PH_BATCH_NORM_BACKWARD_INV_STD].data, partial, partial + columns);
}

void ph__batch_norm_gradient_sums(const struct ph_call *call, double *scratch, double *totals)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    ph_real *d_gamma = call->outputs[PH_BATCH_NORM_D_GAMMA].data;
    ph_real *d_beta = call->outputs[PH_BATCH_NORM_D_BETA].data;
    struct sums_call sums = {call, dims[1], scratch};
    ph__for_blocks(call->backend, dims[0], PH_BATCH_NORM_ROWS, sum_block, &sums);
    ph__batch_norm_combine(ph__batch_norm_blocks(dims[0]), 2 * dims[1], scratch, totals);
    for (size_t j = 0; j < dims[1]; j++) {
        d_beta[j] = (ph_real)totals[j];
        d_gamma[j] = (ph_real)totals[dims[1] + j];
    }
}

struct apply_call {
    const struct ph_call *call;
    size_t columns;
    const ph_real *means; /* (2,K): of dy and of dy xhat */
};

static void apply_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct apply_call *apply = argument;
    const struct ph_operand *inputs = apply->call->inputs;
    const size_t columns = apply->columns, offset = first * columns;
    apply->call->backend->kernels->batch_norm_backward(last - first, columns,
        (const ph_real *)inputs[PH_BATCH_NORM_BACKWARD_X].data + offset,
        (const ph_real *)inputs[PH_BATCH_NORM_DY].data + offset, inputs[PH_BATCH_NORM_BACKWARD_MEAN].data,
        inputs[PH_BATCH_NORM_BACKWARD_INV_STD].data, inputs[PH_BATCH_NORM_BACKWARD_GAMMA].data, apply->means,
        apply->means + columns, (ph_real *)apply->call->outputs[PH_BATCH_NORM_DX].data + offset);
}

void ph__batch_norm_backward_apply(
    const struct ph_call *call, double num_rows, const double *totals, ph_real *means)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    for (size_t j = 0; j < 2 * dims[1]; j++)
        means[j] = (ph_real)(totals[j] / (num_rows > 0 ? num_rows : 1));
    struct apply_call apply = {call, dims[1], means};
    ph__for_blocks(call->backend, dims[0], PH_BATCH_NORM_ROWS, apply_block, &apply);
}

/* totals (2,K) and what they are made in, and the means (2,K) in real */
static size_t backward_scratch_bytes(const struct ph_call *call)
{
    const size_t columns = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims[1];
    return 2 * columns * (sizeof(double) + sizeof(ph_real)) + ph__batch_norm_gradient_sums_bytes(call);
}

static ph_status backward_run(struct ph_call *call)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    double *totals = call->scratch, *partials = totals + 2 * dims[1];
    ph_real *means = (ph_real *)(partials + 2 * dims[1] * ph__batch_norm_blocks(dims[0]));
    ph__batch_norm_gradient_sums(call, partials, totals);
    ph__batch_norm_backward_apply(call, (double)dims[0], totals, means);
    return PH_OK;
}

const struct ph_op ph__op_batch_norm_backward = {
    .name = "batch_norm_backward",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = ph__batch_norm_backward_infer,
    .cost = ph__batch_norm_backward_cost,
    .scratch_bytes = backward_scratch_bytes,
    .run = backward_run,
};
