/* The sum of the features' vectors: x (B,F,D), y (B,D). The gradient of every feature is dy. */
#include "op/operator.h"

#include <string.h>

struct spread_attributes {
    size_t num_features;
};

struct sum_call {
    const struct ph__kernels *kernels;
    size_t num_features, dim;
    const ph_real *source;
    ph_real *target;
};

static ph_status sum_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[0];
    if (!ph__type_is_real_of_dims(x, 3) || x->dims[1].symbol != 0)
        return ph__infer_fail(infer, "x (B,F,D)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){x->dims[0], x->dims[2]});
    return PH_OK;
}

static void sum_gradient(struct ph__gradient *gradient)
{
    struct ph_type x = ph_value_type(gradient->builder, gradient->node->inputs[0]);
    const struct spread_attributes attributes = {x.dims[1].extent};
    gradient->input_gradients[0] = ph__emit1(gradient->builder, &ph__op_sum_features_backward, NULL,
        &attributes, sizeof attributes, 1, &gradient->output_gradients[0]);
}

static void sum_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, (double)call->inputs[0].shape.dims[1], cost_out);
}

static void sum_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct sum_call *sum = argument;
    memset(sum->target + first * sum->dim, 0, (last - first) * sum->dim * sizeof *sum->target);
    for (size_t row = first; row < last; row++)
        sum->kernels->add_rows(sum->num_features, sum->dim, sum->source + row * sum->num_features * sum->dim,
            sum->target + row * sum->dim);
}

static ph_status sum_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[0];
    struct sum_call sum = {
        call->backend->kernels, x->shape.dims[1], x->shape.dims[2], x->data, call->outputs[0].data};
    ph__for_blocks(call->backend, ph__rows(x), ph__block_rows(ph__row_elements(x)), sum_rows, &sum);
    return PH_OK;
}

const struct ph__op ph__op_sum_features = {
    .name = "sum_features",
    .infer = sum_infer,
    .gradient = sum_gradient,
    .cost = sum_cost,
    .run = sum_run,
};

/* inputs: dy (B,D); dx (B,F,D) with dx_f = dy */
static ph_status spread_infer(struct ph__infer *infer)
{
    const struct spread_attributes *attributes = infer->attributes;
    const struct ph_type *dy = &infer->inputs[0];
    if (!ph__type_is_real_of_dims(dy, 2))
        return ph__infer_fail(infer, "dy (B,D)");
    infer->outputs[0] =
        ph__dense_type(3, (struct ph_dim[]){dy->dims[0], ph__dim(attributes->num_features), dy->dims[1]});
    return PH_OK;
}

static void spread_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct sum_call *spread = argument;
    ph_real *target = spread->target + first * spread->num_features * spread->dim;
    for (size_t row = first; row < last; row++)
        for (size_t feature = 0; feature < spread->num_features; feature++, target += spread->dim)
            memcpy(target, spread->source + row * spread->dim, spread->dim * sizeof *target);
}

static ph_status spread_run(struct ph__call *call)
{
    const struct ph__operand *dx = &call->outputs[0];
    struct sum_call spread = {
        call->backend->kernels, dx->shape.dims[1], dx->shape.dims[2], call->inputs[0].data, dx->data};
    ph__for_blocks(call->backend, ph__rows(dx), ph__block_rows(ph__row_elements(dx)), spread_rows, &spread);
    return PH_OK;
}

const struct ph__op ph__op_sum_features_backward = {
    .name = "sum_features_backward",
    .infer = spread_infer,
    .cost = ph__cost_copy,
    .run = spread_run,
};

ph_value ph_sum_features(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_sum_features, NULL, NULL, 0, 1, &x);
}
