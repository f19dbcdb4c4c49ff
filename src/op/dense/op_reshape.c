/* The same elements in another shape after the first dimension; shares the input's memory. */
#include "op/operator.h"

#include <string.h>

struct reshape_attributes {
    size_t num_dims;
    size_t dims[PH_MAX_DIMS]; /* the dims after the first */
};

static ph_status reshape_infer(struct ph__infer *infer)
{
    const struct reshape_attributes *attributes = infer->attributes;
    const struct ph_type *x = &infer->inputs[0];
    if (!ph__type_is_real(x))
        return ph__infer_fail(infer, "a real array");
    struct ph_dim dims[PH_MAX_DIMS] = {x->dims[0]};
    for (size_t i = 0; i < attributes->num_dims; i++)
        dims[i + 1] = ph__dim(attributes->dims[i]);
    struct ph_type y = ph__dense_type((uint32_t)attributes->num_dims + 1, dims);
    if (ph__type_elements_from(&y, 1) != ph__type_elements_from(x, 1)) {
        char from[96], to[96];
        return ph_fail(PH_ERROR_CONFIG, "%s: %s and %s have different numbers of elements", infer->name,
            ph__type_text(x, from), ph__type_text(&y, to));
    }
    infer->outputs[0] = y;
    return PH_OK;
}

static void reshape_gradient(struct ph__gradient *gradient)
{
    const struct ph_type x = ph_value_type(gradient->builder, gradient->node->inputs[0]);
    size_t dims[PH_MAX_DIMS] = {0};
    for (uint32_t i = 1; i < x.num_dims; i++)
        dims[i - 1] = x.dims[i].extent;
    gradient->input_gradients[0] =
        ph_reshape(gradient->builder, gradient->output_gradients[0], x.num_dims - 1, dims);
}

static void reshape_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){0};
}

const struct ph__op ph__op_reshape = {
    .name = "reshape",
    .traits = PH_OP_ALIAS,
    .infer = reshape_infer,
    .gradient = reshape_gradient,
    .cost = reshape_cost,
};

ph_value ph_reshape(struct ph_builder *builder, ph_value x, size_t num_dims, const size_t *dims)
{
    struct reshape_attributes attributes = {.num_dims = num_dims};
    if (num_dims >= PH_MAX_DIMS)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "reshape: at most %d dimensions behind the batch, got %zu", PH_MAX_DIMS - 1, num_dims);
    if (num_dims > 0)
        memcpy(attributes.dims, dims, num_dims * sizeof *dims);
    return ph__emit1(builder, &ph__op_reshape, NULL, &attributes, sizeof attributes, 1, &x);
}
