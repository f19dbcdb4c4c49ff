/* Second-order factorisation machine (Rendle, ICDM'10): the sum of all pairwise dot products of the features'
 * vectors, in linear time. x (B,F,D), y (B,1) = 1/2 sum_d ((sum_f x_fd)^2 - sum_f x_fd^2). */
#include "op/operator.h"

struct fm_call {
    const struct ph__kernels *kernels;
    size_t num_fields, dim;
    const ph_real *x, *dy;
    ph_real *result; /* y (B,1) or dx (B,F,D) */
};

static ph_status fm_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[0];
    if (!ph__type_is_real_of_dims(x, 3))
        return ph__infer_fail(infer, "x (B,F,D)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){x->dims[0], ph__dim(1)});
    return PH_OK;
}

static void fm_gradient(struct ph__gradient *gradient)
{
    const ph_value inputs[] = {gradient->output_gradients[0], gradient->node->inputs[0]};
    gradient->input_gradients[0] =
        ph__emit1(gradient->builder, &ph__op_fm_backward, NULL, NULL, 0, 2, inputs);
}

/* Counts two sums and a square for each element of x. */
static void fm_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 3.0 * (double)ph__row_elements(&call->inputs[0]), cost_out);
}

static void fm_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct fm_call *fm = argument;
    fm->kernels->fm_forward(
        last - first, fm->num_fields, fm->dim, fm->x + first * fm->num_fields * fm->dim, fm->result + first);
}

static ph_status fm_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[0];
    struct fm_call fm = {.kernels = call->backend->kernels,
        .num_fields = x->shape.dims[1],
        .dim = x->shape.dims[2],
        .x = x->data,
        .result = call->outputs[0].data};
    ph__for_blocks(call->backend, ph__rows(x), ph__block_rows(ph__row_elements(x)), fm_rows, &fm);
    return PH_OK;
}

const struct ph__op ph__op_fm = {
    .name = "fm",
    .infer = fm_infer,
    .gradient = fm_gradient,
    .cost = fm_cost,
    .run = fm_run,
};

/* inputs: dy (B,1), x (B,F,D); dx_fd = dy (sum_f' x_f'd - x_fd) */
static ph_status fm_backward_infer(struct ph__infer *infer)
{
    if (!ph__type_is_real_of_dims(&infer->inputs[0], 2) || !ph__type_is_real_of_dims(&infer->inputs[1], 3))
        return ph__infer_fail(infer, "dy (B,1), x (B,F,D)");
    infer->outputs[0] = infer->inputs[1];
    return PH_OK;
}

static void fm_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 3, cost_out);
}

static void fm_backward_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct fm_call *fm = argument;
    const size_t offset = first * fm->num_fields * fm->dim;
    fm->kernels->fm_backward(
        last - first, fm->num_fields, fm->dim, fm->x + offset, fm->dy + first, fm->result + offset);
}

static ph_status fm_backward_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[1];
    struct fm_call fm = {.kernels = call->backend->kernels,
        .num_fields = x->shape.dims[1],
        .dim = x->shape.dims[2],
        .x = x->data,
        .dy = call->inputs[0].data,
        .result = call->outputs[0].data};
    ph__for_blocks(call->backend, ph__rows(x), ph__block_rows(ph__row_elements(x)), fm_backward_rows, &fm);
    return PH_OK;
}

const struct ph__op ph__op_fm_backward = {
    .name = "fm_backward",
    .infer = fm_backward_infer,
    .cost = fm_backward_cost,
    .run = fm_backward_run,
};

ph_value ph_fm(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_fm, NULL, NULL, 0, 1, &x);
}
