/* Joins arrays along one axis after the batch. The gradient of each array is its slice of dy. */
#include "op/attributes.h"
#include "op/operator.h"

static bool agree_but_axis(const struct ph_type *a, const struct ph_type *b, size_t axis)
{
    for (uint32_t i = 0; i < a->num_dims; i++)
        if (i != axis && !ph__dim_equal(a->dims[i], b->dims[i]))
            return false;
    return a->num_dims == b->num_dims;
}

static ph_status concat_infer(struct ph__infer *infer)
{
    const struct ph__concat_attributes *attributes = infer->attributes;
    struct ph_type joined = infer->inputs[0];
    size_t extent = 0;
    for (size_t i = 0; i < infer->num_inputs; i++) {
        const struct ph_type *x = &infer->inputs[i];
        if (!ph__axis_is_valid(x, attributes->axis) || x->num_dims != joined.num_dims ||
            !agree_but_axis(x, &joined, attributes->axis))
            return ph__infer_fail(infer, "arrays that agree but in the joined dimension, not the first");
        extent += x->dims[attributes->axis].extent;
    }
    joined.dims[attributes->axis] = ph__dim(extent);
    infer->outputs[0] = joined;
    return PH_OK;
}

static void concat_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const struct ph__concat_attributes *attributes = node.attributes;
    size_t begin = 0;
    for (size_t i = 0; i < node.num_inputs; i++) {
        size_t extent = ph_value_type(builder, node.inputs[i]).dims[attributes->axis].extent;
        if (gradient->is_wanted[i])
            gradient->input_gradients[i] =
                ph_slice(builder, gradient->output_gradients[0], attributes->axis, begin, extent);
        begin += extent;
    }
}

static ph_status concat_run(struct ph__call *call)
{
    const struct ph__concat_attributes *attributes = call->attributes;
    const struct ph__operand *y = &call->outputs[0];
    const struct ph__axis_view view = ph__axis_view(&y->shape, attributes->axis);
    const size_t stride = y->shape.dims[attributes->axis] * view.inner;
    ph_real *target = y->data;
    if (view.rows == 0)
        return PH_OK;
    for (size_t i = 0; i < call->num_inputs; i++) {
        size_t columns = call->inputs[i].shape.dims[attributes->axis] * view.inner;
        ph__copy_columns(call->backend, view.rows, columns, call->inputs[i].data, columns, target, stride);
        target += columns;
    }
    return PH_OK;
}

const struct ph__op ph__op_concat = {
    .name = "concat",
    .infer = concat_infer,
    .gradient = concat_gradient,
    .cost = ph__cost_copy,
    .run = concat_run,
};

ph_value ph_concat(struct ph_builder *builder, size_t num_values, const ph_value *values, size_t axis)
{
    const struct ph__concat_attributes attributes = {axis};
    if (num_values == 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "concat: needs at least one array");
    return ph__emit1(builder, &ph__op_concat, NULL, &attributes, sizeof attributes, num_values, values);
}
