/* The gradient of batch norm with the batch's own statistics. xhat = (x - mean) inv_std:
 *   dgamma = sum_b dy xhat,  dbeta = sum_b dy,
 *   dx = gamma inv_std (dy - dbeta / B - xhat dgamma / B).
 * inputs: dy (B,K), x (B,K), mean, inv_std, gamma (K); outputs: dx, dgamma, dbeta. */
#include "op/batch_norm.h"

#include <string.h>

enum { DY, X, MEAN, INV_STD, GAMMA, NUM_INPUTS };
enum { DX, D_GAMMA, D_BETA, NUM_OUTPUTS };

struct backward_call {
    const struct ph_call *call;
    size_t columns;
    ph_real *mean_dy, *mean_dy_xhat; /* (K) */
    double *partials;                /* (blocks, 2, K) */
};

static ph_status backward_infer(struct ph_infer *infer)
{
    const struct ph_type *x = &infer->inputs[X];
    if (!ph__type_is_real_of_rank(x, 2) || !ph__type_equal(x, &infer->inputs[DY]))
        return ph__infer_fail(infer, "dy (B,K), x (B,K), mean (K), inv_std (K), gamma (K)");
    infer->outputs[DX] = *x;
    infer->outputs[D_GAMMA] = infer->outputs[D_BETA] = ph__dense_type(1, &x->dims[1]);
    return PH_OK;
}

/* xhat twice, its product with dy and two sums; then two products, two subtractions, two scalings */
static void backward_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 12, cost_out);
}

/* totals (2,K) and partials (blocks, 2, K) in double, the means (2,K) in real */
static size_t backward_scratch_bytes(const struct ph_call *call)
{
    const size_t *dims = call->inputs[X].shape.dims;
    return dims[1] * (2 * (1 + ph__batch_norm_blocks(dims[0])) * sizeof(double) + 2 * sizeof(ph_real));
}

static void sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct backward_call *backward = argument;
    const struct ph_operand *inputs = backward->call->inputs;
    const size_t columns = backward->columns, offset = first * columns;
    double *partial = backward->partials + first / PH_BATCH_NORM_ROWS * 2 * columns;
    memset(partial, 0, 2 * columns * sizeof *partial);
    backward->call->backend->kernels->batch_norm_gradient_sums(last - first, columns,
        (const ph_real *)inputs[X].data + offset, (const ph_real *)inputs[DY].data + offset,
        inputs[MEAN].data, inputs[INV_STD].data, partial, partial + columns);
}

static void backward_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct backward_call *backward = argument;
    const struct ph_operand *inputs = backward->call->inputs;
    const size_t offset = first * backward->columns;
    backward->call->backend->kernels->batch_norm_backward(last - first, backward->columns,
        (const ph_real *)inputs[X].data + offset, (const ph_real *)inputs[DY].data + offset,
        inputs[MEAN].data, inputs[INV_STD].data, inputs[GAMMA].data, backward->mean_dy,
        backward->mean_dy_xhat, (ph_real *)backward->call->outputs[DX].data + offset);
}

static ph_status backward_run(struct ph_call *call)
{
    const size_t rows = call->inputs[X].shape.dims[0], columns = call->inputs[X].shape.dims[1];
    const size_t num_blocks = ph__batch_norm_blocks(rows);
    double *totals = call->scratch, *partials = totals + 2 * columns;
    ph_real *means = (ph_real *)(partials + 2 * columns * num_blocks);
    ph_real *d_gamma = call->outputs[D_GAMMA].data, *d_beta = call->outputs[D_BETA].data;
    struct backward_call backward = {call, columns, means, means + columns, partials};
    ph__for_blocks(call->backend, rows, PH_BATCH_NORM_ROWS, sum_block, &backward);
    ph__batch_norm_combine(num_blocks, 2 * columns, partials, totals);
    const double divisor = rows > 0 ? (double)rows : 1;
    for (size_t j = 0; j < columns; j++) {
        d_beta[j] = (ph_real)totals[j];
        d_gamma[j] = (ph_real)totals[columns + j];
        backward.mean_dy[j] = (ph_real)(totals[j] / divisor);
        backward.mean_dy_xhat[j] = (ph_real)(totals[columns + j] / divisor);
    }
    ph__for_blocks(call->backend, rows, PH_BATCH_NORM_ROWS, backward_block, &backward);
    return PH_OK;
}

const struct ph_op ph__op_batch_norm_backward = {
    .name = "batch_norm_backward",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = backward_infer,
    .cost = backward_cost,
    .scratch_bytes = backward_scratch_bytes,
    .run = backward_run,
};
