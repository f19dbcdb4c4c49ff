/* Helpers of the operator files (operator.h). */
#include "op/operator.h"

#include <stdio.h>
#include <string.h>

bool ph__type_is_real(const struct ph_type *type)
{
    return type->kind == PH_DENSE && type->dtype == PH_REAL && type->num_dims >= 1;
}

bool ph__type_is_real_of_dims(const struct ph_type *type, uint32_t num_dims)
{
    return ph__type_is_real(type) && type->num_dims == num_dims;
}

bool ph__has_fixed_dims(const struct ph_type *type, uint32_t first)
{
    for (uint32_t i = first; i < type->num_dims; i++)
        if (type->dims[i].symbol != 0 || type->dims[i].extent == 0)
            return false;
    return true;
}

bool ph__is_bias(const struct ph_type *bias, struct ph_dim outputs)
{
    return bias->kind == PH_TOKEN ||
           (ph__type_is_real_of_dims(bias, 1) && ph__dim_equal(bias->dims[0], outputs));
}

struct ph_dim ph__last_dim(const struct ph_type *type)
{
    return type->dims[type->num_dims - 1];
}

ph_status ph__infer_fail(const struct ph__infer *infer, const char *wants)
{
    char got[400] = "nothing";
    size_t used = 0;
    for (size_t i = 0; i < infer->num_inputs && used < sizeof got; i++) {
        char text[96];
        int written = snprintf(
            got + used, sizeof got - used, "%s%s", i > 0 ? ", " : "", ph__type_text(&infer->inputs[i], text));
        used += written > 0 ? (size_t)written : 0;
    }
    return ph_fail(PH_ERROR_CONFIG, "%s: needs %s; got %s", infer->name, wants, got);
}

ph_status ph__infer_elementwise(struct ph__infer *infer)
{
    for (size_t i = 0; i < infer->num_inputs; i++)
        if (!ph__type_is_real(&infer->inputs[i]) || !ph__type_equal(&infer->inputs[i], &infer->inputs[0]))
            return ph__infer_fail(
                infer, infer->num_inputs == 1 ? "a real array" : "real arrays of one shape");
    infer->outputs[0] = infer->inputs[0];
    return PH_OK;
}

bool ph__is_absent(const struct ph__operand *operand)
{
    return operand->data == NULL && operand->scalar == NULL;
}

size_t ph__elements(const struct ph__operand *operand)
{
    return ph_shape_elements(&operand->shape);
}

size_t ph__rows(const struct ph__operand *operand)
{
    return operand->shape.dims[0];
}

size_t ph__row_elements(const struct ph__operand *operand)
{
    size_t elements = 1;
    for (size_t i = 1; i < operand->shape.num_dims; i++)
        elements *= operand->shape.dims[i];
    return elements;
}

size_t ph__vectors(const struct ph__operand *operand)
{
    size_t vectors = 1;
    for (size_t i = 0; i + 1 < operand->shape.num_dims; i++)
        vectors *= operand->shape.dims[i];
    return vectors;
}

size_t ph__row_width(const struct ph__operand *operand)
{
    return operand->shape.dims[operand->shape.num_dims - 1];
}

/* Counts bags as their offsets alone: operators that count by elements do not read the items. */
static double operand_bytes(const struct ph__operand *operand)
{
    if (operand->type->kind == PH_JAGGED)
        return (double)(operand->shape.dims[0] + 1) * sizeof *operand->index;
    if (operand->scalar != NULL)
        return sizeof *operand->scalar;
    if (ph__is_absent(operand))
        return 0;
    return (double)ph__elements(operand) * (double)ph_dtype_size(operand->type->dtype);
}

void ph__cost_elementwise(const struct ph__call *call, double flops_per_element, struct ph__cost *cost_out)
{
    cost_out->flops = flops_per_element * (double)ph__elements(&call->outputs[0]);
    cost_out->bytes = 0;
    for (size_t i = 0; i < call->num_inputs; i++)
        cost_out->bytes += operand_bytes(&call->inputs[i]);
    for (size_t i = 0; i < call->num_outputs; i++)
        cost_out->bytes += operand_bytes(&call->outputs[i]);
}

void ph__cost_copy(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 0, cost_out);
}

struct elementwise {
    ph__unary_kernel unary;
    ph__binary_kernel binary;
    const ph_real *a, *b;
    ph_real *y;
};

static void run_elements(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct elementwise *loop = argument;
    if (loop->unary != NULL)
        loop->unary(last - first, loop->a + first, loop->y + first);
    else
        loop->binary(last - first, loop->a + first, loop->b + first, loop->y + first);
}

ph_status ph__run_unary(struct ph__call *call, ph__unary_kernel kernel)
{
    struct elementwise loop = {.unary = kernel, .a = call->inputs[0].data, .y = call->outputs[0].data};
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), PH_BLOCK_ELEMENTS, run_elements, &loop);
    return PH_OK;
}

ph_status ph__run_binary(struct ph__call *call, ph__binary_kernel kernel, size_t a, size_t b)
{
    struct elementwise loop = {
        .binary = kernel, .a = call->inputs[a].data, .b = call->inputs[b].data, .y = call->outputs[0].data};
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), PH_BLOCK_ELEMENTS, run_elements, &loop);
    return PH_OK;
}

struct copy {
    size_t columns, source_stride, target_stride;
    const ph_real *source;
    ph_real *target;
};

static void copy_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct copy *copy = argument;
    for (size_t row = first; row < last; row++)
        memcpy(copy->target + row * copy->target_stride, copy->source + row * copy->source_stride,
            copy->columns * sizeof *copy->source);
}

void ph__copy_columns(const struct ph_backend *backend, size_t rows, size_t columns, const ph_real *source,
    size_t source_stride, ph_real *target, size_t target_stride)
{
    struct copy copy = {columns, source_stride, target_stride, source, target};
    ph__for_blocks(backend, rows, ph__block_rows(columns), copy_rows, &copy);
}

void ph__weight_gradients(struct ph__gradient *gradient, size_t weight, size_t bias,
    const struct ph__op *backward, const void *attributes, size_t attributes_size, size_t num_inputs,
    const ph_value *inputs)
{
    if (!gradient->is_wanted[weight] && !gradient->is_wanted[bias])
        return;
    ph_value outputs[2] = {0, 0};
    const size_t num_outputs = gradient->node->inputs[bias] != 0 ? 2 : 1;
    ph__emit(gradient->builder, backward, NULL, attributes, attributes_size, num_inputs, inputs, num_outputs,
        outputs);
    gradient->input_gradients[weight] = outputs[0];
    gradient->input_gradients[bias] = outputs[1];
}

ph_value ph_activate(struct ph_builder *builder, ph_value x, enum ph_activation activation)
{
    switch (activation) {
    case PH_RELU:
        return ph_relu(builder, x);
    case PH_SIGMOID:
        return ph_sigmoid(builder, x);
    case PH_HARD_SWISH:
        return ph_hard_swish(builder, x);
    default:
        return x;
    }
}

ph_value ph__activation_backward(
    struct ph_builder *builder, enum ph_activation activation, ph_value dy, ph_value by)
{
    const ph_value inputs[] = {dy, by};
    switch (activation) {
    case PH_RELU:
        return ph__emit1(builder, &ph__op_relu_backward, NULL, NULL, 0, 2, inputs);
    case PH_SIGMOID:
        return ph__emit1(builder, &ph__op_sigmoid_backward, NULL, NULL, 0, 2, inputs);
    case PH_HARD_SWISH:
        return ph__emit1(builder, &ph__op_hard_swish_backward, NULL, NULL, 0, 2, inputs);
    case PH_IDENTITY:
        break;
    }
    return dy;
}

/* ---- one axis ---- */

struct ph__axis_view ph__axis_view(const struct ph_shape *shape, size_t axis)
{
    struct ph__axis_view view = {1, 1};
    for (size_t i = 0; i < axis; i++)
        view.rows *= shape->dims[i];
    for (size_t i = axis + 1; i < shape->num_dims; i++)
        view.inner *= shape->dims[i];
    return view;
}

bool ph__axis_is_valid(const struct ph_type *x, size_t axis)
{
    return ph__type_is_real(x) && axis >= 1 && axis < x->num_dims && x->dims[axis].symbol == 0;
}
