/* Pairwise dot products of the features' vectors (DLRM, Naumov et al. 2019). The vectors are [first, x] with
 * first (B,D), or x (B,F,D) alone; y (B, D + P) is first followed by the P products of the strictly lower
 * triangle in row order, or (B,P). */
#include "op/operator.h"

#include <string.h>

struct dot_call {
    const struct ph__kernels *kernels;
    size_t num_fields; /* of all vectors, first included */
    size_t dim, skip;  /* columns of y before the products: D or 0 */
    size_t stride;     /* of y */
    const ph_real *first, *rest, *dy;
    ph_real *y, *d_first, *d_rest;
};

static size_t num_products(size_t num_fields)
{
    return num_fields * (num_fields - 1) / 2;
}

static ph_status dot_infer(struct ph__infer *infer)
{
    const struct ph_type *first = &infer->inputs[0], *x = &infer->inputs[1];
    const char *wants = "first (B,D) or none, x (B,F,D), at least two vectors";
    bool has_first = first->kind != PH_TOKEN;
    if (!ph__type_is_real_of_dims(x, 3) || x->dims[1].symbol != 0 || x->dims[2].symbol != 0)
        return ph__infer_fail(infer, wants);
    if (has_first && (!ph__type_is_real_of_dims(first, 2) || !ph__dim_equal(first->dims[0], x->dims[0]) ||
                         !ph__dim_equal(first->dims[1], x->dims[2])))
        return ph__infer_fail(infer, wants);
    size_t num_fields = x->dims[1].extent + (has_first ? 1 : 0);
    if (num_fields < 2)
        return ph__infer_fail(infer, wants);
    size_t columns = num_products(num_fields) + (has_first ? x->dims[2].extent : 0);
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){x->dims[0], ph__dim(columns)});
    return PH_OK;
}

static void dot_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value inputs[] = {gradient->output_gradients[0], node.inputs[0], node.inputs[1]};
    ph_value outputs[2] = {0, 0}; /* dx, d_first */
    ph__emit(gradient->builder, &ph__op_dot_interaction_backward, NULL, NULL, 0, 3, inputs,
        node.inputs[0] != 0 ? 2 : 1, outputs);
    gradient->input_gradients[0] = outputs[1];
    gradient->input_gradients[1] = outputs[0];
}

static struct dot_call describe(
    const struct ph__call *call, const struct ph__operand *first, const struct ph__operand *x)
{
    bool has_first = !ph__is_absent(first);
    size_t num_fields = x->shape.dims[1] + (has_first ? 1 : 0), dim = x->shape.dims[2];
    size_t skip = has_first ? dim : 0;
    return (struct dot_call){.kernels = call->backend->kernels,
        .num_fields = num_fields,
        .dim = dim,
        .skip = skip,
        .stride = skip + num_products(num_fields),
        .first = first->data,
        .rest = x->data};
}

static size_t block_rows(const struct dot_call *dot)
{
    return ph__block_rows(dot->num_fields * dot->dim);
}

/* Counts a multiplication and an addition for each of B P D. */
static void dot_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct dot_call dot = describe(call, &call->inputs[0], &call->inputs[1]);
    ph__cost_copy(call, cost_out);
    cost_out->flops =
        2.0 * (double)ph__rows(&call->inputs[1]) * (double)num_products(dot.num_fields) * (double)dot.dim;
}

static void dot_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct dot_call *dot = argument;
    const size_t count = last - first, rest_fields = dot->num_fields - (dot->skip > 0 ? 1 : 0);
    const ph_real *vectors = dot->skip > 0 ? dot->first + first * dot->dim : NULL;
    ph_real *y = dot->y + first * dot->stride;
    for (size_t row = 0; row < count && vectors != NULL; row++)
        memcpy(y + row * dot->stride, vectors + row * dot->dim, dot->dim * sizeof *y);
    dot->kernels->dot_forward(count, dot->num_fields, dot->dim, vectors,
        dot->rest + first * rest_fields * dot->dim, y + dot->skip, dot->stride);
}

static ph_status dot_run(struct ph__call *call)
{
    struct dot_call dot = describe(call, &call->inputs[0], &call->inputs[1]);
    dot.y = call->outputs[0].data;
    ph__for_blocks(call->backend, ph__rows(&call->inputs[1]), block_rows(&dot), dot_rows, &dot);
    return PH_OK;
}

const struct ph__op ph__op_dot_interaction = {
    .name = "dot_interaction",
    .infer = dot_infer,
    .gradient = dot_gradient,
    .cost = dot_cost,
    .run = dot_run,
};

/* inputs: dy (B, D + P), first (B,D) or absent, x (B,F,D); outputs: dx and, with first, d_first */
static ph_status dot_backward_infer(struct ph__infer *infer)
{
    const struct ph_type *first = &infer->inputs[1], *x = &infer->inputs[2];
    if (!ph__type_is_real_of_dims(&infer->inputs[0], 2) || !ph__type_is_real_of_dims(x, 3) ||
        infer->num_outputs != (first->kind == PH_TOKEN ? 1 : 2))
        return ph__infer_fail(infer, "dy (B,D+P), first (B,D) or none, x (B,F,D)");
    infer->outputs[0] = *x;
    if (infer->num_outputs > 1)
        infer->outputs[1] = *first;
    return PH_OK;
}

static void dot_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct dot_call dot = describe(call, &call->inputs[1], &call->inputs[2]);
    ph__cost_copy(call, cost_out);
    cost_out->flops =
        4.0 * (double)ph__rows(&call->inputs[2]) * (double)num_products(dot.num_fields) * (double)dot.dim;
}

static void dot_backward_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct dot_call *dot = argument;
    const size_t count = last - first, rest_fields = dot->num_fields - (dot->skip > 0 ? 1 : 0);
    const size_t rest_offset = first * rest_fields * dot->dim;
    const ph_real *dy = dot->dy + first * dot->stride;
    const ph_real *vectors = dot->skip > 0 ? dot->first + first * dot->dim : NULL;
    ph_real *d_first = dot->skip > 0 ? dot->d_first + first * dot->dim : NULL;
    for (size_t row = 0; row < count && d_first != NULL; row++)
        memcpy(d_first + row * dot->dim, dy + row * dot->stride, dot->dim * sizeof *dy);
    dot->kernels->dot_backward(count, dot->num_fields, dot->dim, vectors, dot->rest + rest_offset,
        dy + dot->skip, dot->stride, 1, d_first, dot->d_rest + rest_offset);
}

static ph_status dot_backward_run(struct ph__call *call)
{
    struct dot_call dot = describe(call, &call->inputs[1], &call->inputs[2]);
    dot.dy = call->inputs[0].data;
    dot.d_rest = call->outputs[0].data;
    dot.d_first = call->num_outputs > 1 ? call->outputs[1].data : NULL;
    ph__for_blocks(call->backend, ph__rows(&call->inputs[2]), block_rows(&dot), dot_backward_rows, &dot);
    return PH_OK;
}

const struct ph__op ph__op_dot_interaction_backward = {
    .name = "dot_interaction_backward",
    .infer = dot_backward_infer,
    .cost = dot_backward_cost,
    .run = dot_backward_run,
};

ph_value ph_dot_interaction(struct ph_builder *builder, ph_value first, ph_value x)
{
    const ph_value inputs[] = {first, x};
    return ph__emit1(builder, &ph__op_dot_interaction, NULL, NULL, 0, 2, inputs);
}
