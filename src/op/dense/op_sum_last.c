/* Sums over the last dimension: x (...,K) -> (...), of at least 3 dims. dx repeats dy K times. */
#include "op/operator.h"

static ph_status sum_last_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[0];
    if (!ph__type_is_real(x) || x->num_dims < 3)
        return ph__infer_fail(infer, "x (B,...,K)");
    infer->outputs[0] = ph__dense_type(x->num_dims - 1, x->dims);
    return PH_OK;
}

struct repeat_attributes {
    size_t columns; /* K */
};

/* Passes K on as an attribute, so that the backward operator does not read x. */
static void sum_last_gradient(struct ph__gradient *gradient)
{
    const struct ph_type x = ph_value_type(gradient->builder, gradient->node->inputs[0]);
    const struct repeat_attributes attributes = {ph__last_dim(&x).extent};
    gradient->input_gradients[0] = ph__emit1(gradient->builder, &ph__op_sum_last_backward, NULL, &attributes,
        sizeof attributes, 1, &gradient->output_gradients[0]);
}

static void sum_last_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, (double)ph__row_width(&call->inputs[0]), cost_out);
}

struct last_call {
    const struct ph__kernels *kernels;
    size_t columns;
    const ph_real *from, *ones;
    ph_real *to;
};

static size_t sum_last_scratch_bytes(const struct ph__call *call)
{
    return ph__row_width(&call->inputs[0]) * sizeof(ph_real);
}

/* Sums rows as their product with ones, for which there is a kernel. */
static void sum_last_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct last_call *sum = argument;
    sum->kernels->narrow_product(
        last - first, sum->columns, 1, sum->from + first * sum->columns, sum->ones, NULL, sum->to + first);
}

static ph_status sum_last_run(struct ph__call *call)
{
    const size_t columns = ph__row_width(&call->inputs[0]);
    ph_real *ones = call->scratch;
    for (size_t i = 0; i < columns; i++)
        ones[i] = 1;
    struct last_call sum = {
        call->backend->kernels, columns, call->inputs[0].data, ones, call->outputs[0].data};
    ph__for_blocks(
        call->backend, ph__elements(&call->outputs[0]), ph__block_rows(columns), sum_last_block, &sum);
    return PH_OK;
}

const struct ph__op ph__op_sum_last = {
    .name = "sum_last",
    .infer = sum_last_infer,
    .gradient = sum_last_gradient,
    .cost = sum_last_cost,
    .scratch_bytes = sum_last_scratch_bytes,
    .run = sum_last_run,
};

static ph_status sum_last_backward_infer(struct ph__infer *infer)
{
    const struct ph_type *dy = &infer->inputs[0];
    const struct repeat_attributes *attributes = infer->attributes;
    if (!ph__type_is_real(dy) || dy->num_dims == PH_MAX_DIMS)
        return ph__infer_fail(infer, "dy (B,...)");
    struct ph_type dx = *dy;
    dx.dims[dx.num_dims++] = ph__dim(attributes->columns);
    infer->outputs[0] = dx;
    return PH_OK;
}

static void repeat_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct last_call *repeat = argument;
    for (size_t i = first; i < last; i++)
        for (size_t column = 0; column < repeat->columns; column++)
            repeat->to[i * repeat->columns + column] = repeat->from[i];
}

static ph_status sum_last_backward_run(struct ph__call *call)
{
    const struct repeat_attributes *attributes = call->attributes;
    struct last_call repeat = {
        .columns = attributes->columns, .from = call->inputs[0].data, .to = call->outputs[0].data};
    ph__for_blocks(call->backend, ph__elements(&call->inputs[0]), ph__block_rows(attributes->columns),
        repeat_block, &repeat);
    return PH_OK;
}

const struct ph__op ph__op_sum_last_backward = {
    .name = "sum_last_backward",
    .infer = sum_last_backward_infer,
    .cost = ph__cost_copy,
    .run = sum_last_backward_run,
};

ph_value ph_sum_last(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_sum_last, NULL, NULL, 0, 1, &x);
}
