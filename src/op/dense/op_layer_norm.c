/* Layer norm (Ba, Kiros and Hinton 2016) over the last dimension: each row of x (...,K) by its own mean and
 * variance, y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. A training program keeps mean and 1 /
 * std of each row, (...,2), for the gradient, where dgamma and dbeta are sums over all rows: each block of
 * rows is summed on its own, then the blocks in order. */
#include <string.h>

#include "base/sizes.h"
#include "op/attributes.h"
#include "op/operator.h"

enum { BLOCK_ROWS = 128 /* per partial sum */ };
enum { X, GAMMA, BETA, NUM_INPUTS };
enum { Y, STATISTICS, NUM_OUTPUTS };

static ph_status norm_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X];
    bool is_right = ph__type_is_real(x) && x->num_dims >= 2 && ph__has_fixed_dims(x, x->num_dims - 1);
    for (size_t i = GAMMA; i < NUM_INPUTS && is_right; i++)
        is_right = ph__type_is_real_of_dims(&infer->inputs[i], 1) &&
                   ph__dim_equal(infer->inputs[i].dims[0], ph__last_dim(x));
    if (!is_right)
        return ph__infer_fail(infer, "x (...,K) of rank 2 at least, gamma (K), beta (K)");
    infer->outputs[Y] = *x;
    if (infer->num_outputs > STATISTICS) {
        infer->outputs[STATISTICS] = *x;
        infer->outputs[STATISTICS].dims[x->num_dims - 1] = ph__dim(2);
    }
    return PH_OK;
}

static void norm_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value inputs[] = {
        gradient->output_gradients[Y], node.inputs[X], node.outputs[STATISTICS], node.inputs[GAMMA]};
    ph__emit(gradient->builder, &ph__op_layer_norm_backward, NULL, NULL, 0, 4, inputs, NUM_INPUTS,
        gradient->input_gradients);
}

/* Counts a sum; subtraction, square, sum; subtraction, two products, addition. */
static void norm_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 8, cost_out);
}

static void norm_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct ph__call *call = argument;
    const struct ph__layer_norm_attributes *attributes = call->attributes;
    const struct ph__operand *x = &call->inputs[X];
    const size_t columns = ph__row_width(x), offset = first * columns;
    ph_real *statistics =
        call->num_outputs > STATISTICS ? (ph_real *)call->outputs[STATISTICS].data + 2 * first : NULL;
    call->backend->kernels->layer_norm(last - first, columns, (const ph_real *)x->data + offset,
        call->inputs[GAMMA].data, call->inputs[BETA].data, attributes->epsilon,
        (ph_real *)call->outputs[Y].data + offset, statistics);
}

static ph_status norm_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[X];
    ph__for_blocks(call->backend, ph__vectors(x), ph__block_rows(ph__row_width(x)), norm_rows, call);
    return PH_OK;
}

const struct ph__op ph__op_layer_norm = {
    .name = "layer_norm",
    .traits = PH_OP_IN_PLACE,
    .infer = norm_infer,
    .gradient = norm_gradient,
    .cost = norm_cost,
    .run = norm_run,
};

/* ---- inputs: dy (...,K), x, statistics (...,2), gamma; outputs: dx, dgamma (K), dbeta (K) ---- */

enum { BACKWARD_DY, BACKWARD_X, BACKWARD_STATISTICS, BACKWARD_GAMMA };

struct backward_call {
    const struct ph__call *call;
    size_t columns;
    ph_real *partials; /* (blocks, 2, K): dgamma and dbeta of a block */
};

static ph_status backward_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[BACKWARD_X];
    if (!ph__type_is_real(x) || !ph__type_equal(x, &infer->inputs[BACKWARD_DY]))
        return ph__infer_fail(infer, "dy (...,K), x (...,K), statistics (...,2), gamma (K)");
    const struct ph_dim columns = ph__last_dim(x);
    infer->outputs[X] = *x;
    infer->outputs[GAMMA] = infer->outputs[BETA] = ph__dense_type(1, &columns);
    return PH_OK;
}

/* Counts xhat twice, g twice, two sums over g, two of the parameters'; two subtractions and two products. */
static void backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 16, cost_out);
}

static size_t num_blocks(const struct ph__operand *x)
{
    return ph__divide_up(ph__vectors(x), BLOCK_ROWS);
}

/* Counts totals (2,K) and partials. */
static size_t backward_scratch_bytes(const struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[BACKWARD_X];
    return (1 + num_blocks(x)) * 2 * ph__row_width(x) * sizeof(ph_real);
}

static void backward_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct backward_call *backward = argument;
    const struct ph__operand *inputs = backward->call->inputs;
    const size_t columns = backward->columns, offset = first * columns;
    ph_real *partial = backward->partials + first / BLOCK_ROWS * 2 * columns;
    memset(partial, 0, 2 * columns * sizeof *partial);
    backward->call->backend->kernels->layer_norm_backward(last - first, columns,
        (const ph_real *)inputs[BACKWARD_X].data + offset, (const ph_real *)inputs[BACKWARD_DY].data + offset,
        (const ph_real *)inputs[BACKWARD_STATISTICS].data + 2 * first, inputs[BACKWARD_GAMMA].data,
        (ph_real *)backward->call->outputs[X].data + offset, partial, partial + columns);
}

static ph_status backward_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[BACKWARD_X];
    const size_t columns = ph__row_width(x);
    ph_real *totals = call->scratch;
    struct backward_call backward = {call, columns, totals + 2 * columns};
    ph__for_blocks(call->backend, ph__vectors(x), BLOCK_ROWS, backward_block, &backward);
    memset(totals, 0, 2 * columns * sizeof *totals);
    call->backend->kernels->add_rows(num_blocks(x), 2 * columns, backward.partials, totals);
    memcpy(call->outputs[GAMMA].data, totals, columns * sizeof *totals);
    memcpy(call->outputs[BETA].data, totals + columns, columns * sizeof *totals);
    return PH_OK;
}

const struct ph__op ph__op_layer_norm_backward = {
    .name = "layer_norm_backward",
    .traits = PH_OP_IN_PLACE,
    .infer = backward_infer,
    .cost = backward_cost,
    .scratch_bytes = backward_scratch_bytes,
    .run = backward_run,
};

ph_value ph_layer_norm(struct ph_builder *builder, ph_value x, ph_value gamma, ph_value beta, double epsilon)
{
    const struct ph__layer_norm_attributes attributes = {epsilon};
    const ph_value inputs[NUM_INPUTS] = {x, gamma, beta};
    const size_t num_outputs = ph_builder_mode(builder) == PH_TRAINING ? NUM_OUTPUTS : 1;
    ph_value outputs[NUM_OUTPUTS] = {0};
    if (!(epsilon > 0))
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "layer norm: epsilon %g must be positive", epsilon);
    ph__emit(builder, &ph__op_layer_norm, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs,
        num_outputs, outputs);
    return outputs[Y];
}
