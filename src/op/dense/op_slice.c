/* A range of one axis after the batch: y = x[.., begin : begin + size, ..]. dx is dy between zeros. */
#include "op/attributes.h"
#include "op/operator.h"

#include <string.h>

static ph_status slice_infer(struct ph__infer *infer)
{
    const struct ph__slice_attributes *attributes = infer->attributes;
    const struct ph_type *x = &infer->inputs[0];
    if (!ph__axis_is_valid(x, attributes->axis))
        return ph__infer_fail(infer, "an array with a fixed dimension to cut, not the first");
    if (attributes->size == 0 || attributes->begin > attributes->full ||
        attributes->size > attributes->full - attributes->begin)
        return ph_fail(PH_ERROR_CONFIG, "%s: [%zu, %zu + %zu) of dimension %zu lies outside its %zu elements",
            infer->name, attributes->begin, attributes->begin, attributes->size, attributes->axis,
            attributes->full);
    infer->outputs[0] = *x;
    infer->outputs[0].dims[attributes->axis] = ph__dim(attributes->size);
    return PH_OK;
}

static void slice_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    gradient->input_gradients[0] = ph__emit1(gradient->builder, &ph__op_slice_backward, NULL, node.attributes,
        node.attributes_size, 1, &gradient->output_gradients[0]);
}

/* Counts the range alone: nothing else is read. */
static void slice_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->flops = 0;
    cost_out->bytes = 2.0 * (double)ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

static ph_status slice_run(struct ph__call *call)
{
    const struct ph__slice_attributes *attributes = call->attributes;
    const struct ph__axis_view view = ph__axis_view(&call->inputs[0].shape, attributes->axis);
    const ph_real *x = call->inputs[0].data;
    if (view.rows > 0)
        ph__copy_columns(call->backend, view.rows, attributes->size * view.inner,
            x + attributes->begin * view.inner, attributes->full * view.inner, call->outputs[0].data,
            attributes->size * view.inner);
    return PH_OK;
}

const struct ph__op ph__op_slice = {
    .name = "slice",
    .infer = slice_infer,
    .gradient = slice_gradient,
    .cost = slice_cost,
    .run = slice_run,
};

static ph_status slice_backward_infer(struct ph__infer *infer)
{
    const struct ph__slice_attributes *attributes = infer->attributes;
    if (!ph__axis_is_valid(&infer->inputs[0], attributes->axis))
        return ph__infer_fail(infer, "the gradient of a slice");
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dims[attributes->axis] = ph__dim(attributes->full);
    return PH_OK;
}

struct pad {
    size_t before, columns, full; /* reals of a row: zeros, dy, all */
    const ph_real *dy;
    ph_real *dx;
};

static void pad_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct pad *pad = argument;
    const size_t end = pad->before + pad->columns;
    for (size_t row = first; row < last; row++) {
        ph_real *dx = pad->dx + row * pad->full;
        memset(dx, 0, pad->before * sizeof *dx);
        memcpy(dx + pad->before, pad->dy + row * pad->columns, pad->columns * sizeof *dx);
        memset(dx + end, 0, (pad->full - end) * sizeof *dx);
    }
}

static ph_status slice_backward_run(struct ph__call *call)
{
    const struct ph__slice_attributes *attributes = call->attributes;
    const struct ph__axis_view view = ph__axis_view(&call->outputs[0].shape, attributes->axis);
    struct pad pad = {attributes->begin * view.inner, attributes->size * view.inner,
        attributes->full * view.inner, call->inputs[0].data, call->outputs[0].data};
    ph__for_blocks(call->backend, view.rows, ph__block_rows(pad.full), pad_rows, &pad);
    return PH_OK;
}

const struct ph__op ph__op_slice_backward = {
    .name = "slice_backward",
    .infer = slice_backward_infer,
    .cost = ph__cost_copy,
    .run = slice_backward_run,
};

ph_value ph_slice(struct ph_builder *builder, ph_value x, size_t axis, size_t begin, size_t size)
{
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    struct ph_type type = ph_value_type(builder, x);
    size_t full = axis < type.num_dims ? type.dims[axis].extent : 0;
    const struct ph__slice_attributes attributes = {axis, begin, size, full};
    return ph__emit1(builder, &ph__op_slice, NULL, &attributes, sizeof attributes, 1, &x);
}
