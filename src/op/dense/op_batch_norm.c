/* Batch norm (Ioffe, Szegedy, ICML'15) over x (B,K): y = (x - mean) / sqrt(variance + epsilon) * gamma +
 * beta. Training takes mean and variance from the batch and moves the running statistics by running +=
 * momentum * (batch - running), with the unbiased variance; a batch of fewer than two samples has no variance
 * and leaves them alone. Inference (op_batch_norm_inference.c) uses the running statistics.
 *
 * The statistics are sums over x - x_0 and its square, x_0 the batch's first row, in double, per block of
 * rows, then over blocks in order. One pass is exact enough: no sample is further than sqrt(B) deviations
 * from the mean, so the shift costs at most B rounding errors of double. */
#include "base/memory/caller.h"
#include "op/dense/batch_norm.h"

#include <math.h>
#include <string.h>

/* ---- training and inference ---- */

static size_t num_blocks_of(size_t rows)
{
    return (rows + PH_BATCH_NORM_ROWS - 1) / PH_BATCH_NORM_ROWS;
}

void ph__batch_norm_combine(size_t num_blocks, size_t n, const double *partials, double *totals)
{
    memset(totals, 0, n * sizeof *totals);
    for (size_t block = 0; block < num_blocks; block++)
        for (size_t i = 0; i < n; i++)
            totals[i] += partials[block * n + i];
}

ph_status ph__batch_norm_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[PH_BATCH_NORM_X];
    bool is_right = ph__type_is_real_of_dims(x, 2) && x->dims[1].symbol == 0;
    for (size_t i = PH_BATCH_NORM_GAMMA; i < PH_BATCH_NORM_NUM_INPUTS && is_right; i++)
        is_right = ph__type_is_real_of_dims(&infer->inputs[i], 1) &&
                   ph__dim_equal(infer->inputs[i].dims[0], x->dims[1]);
    if (!is_right)
        return ph__infer_fail(infer, "x (B,K), gamma (K), beta (K)");
    infer->outputs[0] = *x;
    for (size_t i = 1; i < infer->num_outputs; i++)
        infer->outputs[i] = ph__dense_type(1, &x->dims[1]);
    return PH_OK;
}

struct apply {
    const struct ph__call *call;
    size_t columns;
    const ph_real *mean, *inv_std;
};

static void apply_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct apply *apply = argument;
    const struct ph__operand *inputs = apply->call->inputs;
    const size_t offset = first * apply->columns;
    apply->call->backend->kernels->batch_norm_apply(last - first, apply->columns,
        (const ph_real *)inputs[PH_BATCH_NORM_X].data + offset, apply->mean, apply->inv_std,
        inputs[PH_BATCH_NORM_GAMMA].data, inputs[PH_BATCH_NORM_BETA].data,
        (ph_real *)apply->call->outputs[0].data + offset);
}

void ph__batch_norm_apply(const struct ph__call *call, const ph_real *mean, const ph_real *inv_std)
{
    const struct ph__operand *x = &call->inputs[PH_BATCH_NORM_X];
    struct apply apply = {call, ph__row_elements(x), mean, inv_std};
    ph__for_blocks(call->backend, ph__rows(x), PH_BATCH_NORM_ROWS, apply_block, &apply);
}

/* ---- training ---- */

struct sums_call {
    const struct ph__call *call;
    size_t columns;
    const double *shift; /* (K) */
    double *partials;    /* (blocks, 2, K) */
};

static void batch_norm_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value inputs[] = {gradient->output_gradients[PH_BATCH_NORM_Y], node.inputs[PH_BATCH_NORM_X],
        node.outputs[PH_BATCH_NORM_MEAN], node.outputs[PH_BATCH_NORM_INV_STD],
        node.inputs[PH_BATCH_NORM_GAMMA]};
    ph__emit(gradient->builder, &ph__op_batch_norm_backward, NULL, NULL, 0, PH_BATCH_NORM_BACKWARD_INPUTS,
        inputs, PH_BATCH_NORM_BACKWARD_OUTPUTS, gradient->input_gradients);
}

/* Counts shift, square, two sums; then subtraction, two products, addition. */
void ph__batch_norm_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 8, cost_out);
}

/* Counts shift (K) and partials (blocks, 2, K). */
size_t ph__batch_norm_moments_bytes(const struct ph__call *call)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_X].shape.dims;
    return (1 + 2 * num_blocks_of(dims[0])) * dims[1] * sizeof(double);
}

static void sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct sums_call *sums = argument;
    const ph_real *x = sums->call->inputs[PH_BATCH_NORM_X].data;
    double *partial = sums->partials + first / PH_BATCH_NORM_ROWS * 2 * sums->columns;
    memset(partial, 0, 2 * sums->columns * sizeof *partial);
    sums->call->backend->kernels->batch_norm_sums(last - first, sums->columns, x + first * sums->columns,
        sums->shift, partial, partial + sums->columns);
}

void ph__batch_norm_moments(const struct ph__call *call, double *scratch, double *moments)
{
    const struct ph__operand *x = &call->inputs[PH_BATCH_NORM_X];
    const size_t rows = x->shape.dims[0], columns = x->shape.dims[1];
    const ph_real *first_row = x->data;
    double *shift = scratch, *partials = shift + columns;
    for (size_t j = 0; j < columns; j++)
        shift[j] = (double)first_row[j];
    struct sums_call sums = {call, columns, shift, partials};
    ph__for_blocks(call->backend, rows, PH_BATCH_NORM_ROWS, sum_block, &sums);
    ph__batch_norm_combine(num_blocks_of(rows), 2 * columns, partials, moments);
    for (size_t j = 0; j < columns; j++) {
        const double offset = moments[j] / (double)rows;
        moments[j] = shift[j] + offset;
        moments[columns + j] = fmax(moments[columns + j] / (double)rows - offset * offset, 0);
    }
}

static void move_running_statistics(
    const struct ph__call *call, double momentum, double num_rows, const double *moments)
{
    const struct ph__operand *mean = &call->inputs[PH_BATCH_NORM_RUNNING_MEAN];
    const struct ph__operand *variance = &call->inputs[PH_BATCH_NORM_RUNNING_VARIANCE];
    const size_t columns = ph__elements(mean);
    ph_real *means = mean->data, *variances = variance->data;
    for (size_t j = 0; j < columns && num_rows >= 2; j++) {
        const double unbiased = moments[columns + j] * num_rows / (num_rows - 1);
        const double old_mean = (double)means[j], old_variance = (double)variances[j];
        means[j] = (ph_real)(old_mean + momentum * (moments[j] - old_mean));
        variances[j] = (ph_real)(old_variance + momentum * (unbiased - old_variance));
    }
    ++*mean->version;
    ++*variance->version;
}

void ph__batch_norm_finish(const struct ph__call *call, const struct ph_batch_norm_options *options,
    double num_rows, const double *moments)
{
    const size_t columns = call->inputs[PH_BATCH_NORM_X].shape.dims[1];
    ph_real *mean = call->outputs[PH_BATCH_NORM_MEAN].data;
    ph_real *inv_std = call->outputs[PH_BATCH_NORM_INV_STD].data;
    if (num_rows == 0) {
        memset(mean, 0, columns * sizeof *mean);
        memset(inv_std, 0, columns * sizeof *inv_std);
        return;
    }
    for (size_t j = 0; j < columns; j++) {
        mean[j] = (ph_real)moments[j];
        inv_std[j] = (ph_real)(1 / sqrt(moments[columns + j] + options->epsilon));
    }
    move_running_statistics(call, options->momentum, num_rows, moments);
    ph__batch_norm_apply(call, mean, inv_std);
}

/* Counts moments (2,K) and their scratch. */
static size_t batch_norm_scratch_bytes(const struct ph__call *call)
{
    const size_t columns = call->inputs[PH_BATCH_NORM_X].shape.dims[1];
    return 2 * columns * sizeof(double) + ph__batch_norm_moments_bytes(call);
}

static ph_status batch_norm_run(struct ph__call *call)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_X].shape.dims;
    double *moments = call->scratch;
    if (dims[0] > 0)
        ph__batch_norm_moments(call, moments + 2 * dims[1], moments);
    ph__batch_norm_finish(call, call->attributes, (double)dims[0], moments);
    return PH_OK;
}

const struct ph__op ph__op_batch_norm = {
    .name = "batch_norm",
    .traits = PH_OP_MIXES_SAMPLES | PH_OP_HAS_EFFECT,
    .infer = ph__batch_norm_infer,
    .gradient = batch_norm_gradient,
    .cost = ph__batch_norm_cost,
    .scratch_bytes = batch_norm_scratch_bytes,
    .run = batch_norm_run,
};

ph_value ph_batch_norm(struct ph_builder *builder, ph_value x, ph_value gamma, ph_value beta,
    const char *name, const struct ph_batch_norm_options *options)
{
    struct ph_batch_norm_options own;
    if (ph__options_copy(&own, sizeof own, options, "ph_batch_norm_options") != PH_OK)
        return ph_builder_fail(builder, PH_ERROR_USAGE, "%s", ph_error_text());
    if (!(own.epsilon > 0) || !(own.momentum >= 0 && own.momentum <= 1))
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "batch norm %s: epsilon %g must be positive and momentum %g in [0,1]", name, own.epsilon,
            own.momentum);
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const struct ph_type type = ph_value_type(builder, x);
    const size_t columns =
        type.num_dims == 2 ? type.dims[1].extent : 1; /* the shape rule refuses other dims */
    const bool is_training = ph_builder_mode(builder) == PH_TRAINING;
    ph_value outputs[PH_BATCH_NORM_NUM_OUTPUTS] = {0};
    ph_builder_push_scope(builder, name);
    const ph_value inputs[PH_BATCH_NORM_NUM_INPUTS] = {x, gamma, beta,
        ph_state_value(builder, "mean", columns, 0), ph_state_value(builder, "variance", columns, 1)};
    ph__emit(builder, is_training ? &ph__op_batch_norm : &ph__op_batch_norm_inference, NULL, &own, sizeof own,
        PH_BATCH_NORM_NUM_INPUTS, inputs, is_training ? PH_BATCH_NORM_NUM_OUTPUTS : 1, outputs);
    ph_builder_pop_scope(builder);
    return outputs[PH_BATCH_NORM_Y];
}

/* ---- backward ---- */

/* The gradient of batch norm with the batch's own statistics. xhat = (x - mean) inv_std:
 *   dgamma = sum_b dy xhat,  dbeta = sum_b dy,
 *   dx = gamma inv_std (dy - dbeta / B - xhat dgamma / B).
 * inputs: dy (B,K), x (B,K), mean, inv_std, gamma (K); outputs: dx, dgamma, dbeta. */

struct gradient_sums_call {
    const struct ph__call *call;
    size_t columns;
    double *partials; /* (blocks, 2, K) */
};

ph_status ph__batch_norm_backward_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[PH_BATCH_NORM_BACKWARD_X];
    if (!ph__type_is_real_of_dims(x, 2) || !ph__type_equal(x, &infer->inputs[PH_BATCH_NORM_DY]))
        return ph__infer_fail(infer, "dy (B,K), x (B,K), mean (K), inv_std (K), gamma (K)");
    infer->outputs[PH_BATCH_NORM_DX] = *x;
    infer->outputs[PH_BATCH_NORM_D_GAMMA] = infer->outputs[PH_BATCH_NORM_D_BETA] =
        ph__dense_type(1, &x->dims[1]);
    return PH_OK;
}

/* Counts xhat twice, its product with dy and two sums; then two products, two subtractions, two scalings. */
void ph__batch_norm_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 12, cost_out);
}

/* Counts partials (blocks, 2, K). */
size_t ph__batch_norm_gradient_sums_bytes(const struct ph__call *call)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    return 2 * num_blocks_of(dims[0]) * dims[1] * sizeof(double);
}

static void gradient_sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct gradient_sums_call *sums = argument;
    const struct ph__operand *inputs = sums->call->inputs;
    const size_t columns = sums->columns, offset = first * columns;
    double *partial = sums->partials + first / PH_BATCH_NORM_ROWS * 2 * columns;
    memset(partial, 0, 2 * columns * sizeof *partial);
    sums->call->backend->kernels->batch_norm_gradient_sums(last - first, columns,
        (const ph_real *)inputs[PH_BATCH_NORM_BACKWARD_X].data + offset,
        (const ph_real *)inputs[PH_BATCH_NORM_DY].data + offset, inputs[PH_BATCH_NORM_BACKWARD_MEAN].data,
        inputs[PH_BATCH_NORM_BACKWARD_INV_STD].data, partial, partial + columns);
}

void ph__batch_norm_gradient_sums(const struct ph__call *call, double *scratch, double *totals)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    ph_real *d_gamma = call->outputs[PH_BATCH_NORM_D_GAMMA].data;
    ph_real *d_beta = call->outputs[PH_BATCH_NORM_D_BETA].data;
    struct gradient_sums_call sums = {call, dims[1], scratch};
    ph__for_blocks(call->backend, dims[0], PH_BATCH_NORM_ROWS, gradient_sum_block, &sums);
    ph__batch_norm_combine(num_blocks_of(dims[0]), 2 * dims[1], scratch, totals);
    for (size_t j = 0; j < dims[1]; j++) {
        d_beta[j] = (ph_real)totals[j];
        d_gamma[j] = (ph_real)totals[dims[1] + j];
    }
}

struct gradient_call {
    const struct ph__call *call;
    size_t columns;
    const ph_real *means; /* (2,K): means of dy and of dy xhat */
};

static void gradient_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct gradient_call *apply = argument;
    const struct ph__operand *inputs = apply->call->inputs;
    const size_t columns = apply->columns, offset = first * columns;
    apply->call->backend->kernels->batch_norm_backward(last - first, columns,
        (const ph_real *)inputs[PH_BATCH_NORM_BACKWARD_X].data + offset,
        (const ph_real *)inputs[PH_BATCH_NORM_DY].data + offset, inputs[PH_BATCH_NORM_BACKWARD_MEAN].data,
        inputs[PH_BATCH_NORM_BACKWARD_INV_STD].data, inputs[PH_BATCH_NORM_BACKWARD_GAMMA].data, apply->means,
        apply->means + columns, (ph_real *)apply->call->outputs[PH_BATCH_NORM_DX].data + offset);
}

void ph__batch_norm_backward_apply(
    const struct ph__call *call, double num_rows, const double *totals, ph_real *means)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    for (size_t j = 0; j < 2 * dims[1]; j++)
        means[j] = (ph_real)(totals[j] / (num_rows > 0 ? num_rows : 1));
    struct gradient_call apply = {call, dims[1], means};
    ph__for_blocks(call->backend, dims[0], PH_BATCH_NORM_ROWS, gradient_block, &apply);
}

/* Counts totals (2,K) and their scratch, and the means (2,K) in real. */
static size_t backward_scratch_bytes(const struct ph__call *call)
{
    const size_t columns = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims[1];
    return 2 * columns * (sizeof(double) + sizeof(ph_real)) + ph__batch_norm_gradient_sums_bytes(call);
}

static ph_status backward_run(struct ph__call *call)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    double *totals = call->scratch, *partials = totals + 2 * dims[1];
    ph_real *means = (ph_real *)(partials + 2 * dims[1] * num_blocks_of(dims[0]));
    ph__batch_norm_gradient_sums(call, partials, totals);
    ph__batch_norm_backward_apply(call, (double)dims[0], totals, means);
    return PH_OK;
}

const struct ph__op ph__op_batch_norm_backward = {
    .name = "batch_norm_backward",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = ph__batch_norm_backward_infer,
    .cost = ph__batch_norm_backward_cost,
    .scratch_bytes = backward_scratch_bytes,
    .run = backward_run,
};
