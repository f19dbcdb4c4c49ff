/* factor * x, factor a constant; dx = factor * dy. Elementwise, so the result may take over x's memory. */
#include "op/attributes.h"
#include "op/operator.h"

static void scale_gradient(struct ph__gradient *gradient)
{
    const struct ph__scale_attributes attributes =
        *(const struct ph__scale_attributes *)gradient->node->attributes;
    gradient->input_gradients[0] =
        ph_scale(gradient->builder, gradient->output_gradients[0], attributes.factor);
}

static void scale_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

struct scale_call {
    const struct ph__kernels *kernels;
    ph_real factor;
    const ph_real *x;
    ph_real *y;
};

static void scale_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct scale_call *scale = argument;
    scale->kernels->scale(last - first, scale->factor, scale->x + first, scale->y + first);
}

static ph_status scale_run(struct ph__call *call)
{
    const struct ph__scale_attributes *attributes = call->attributes;
    struct scale_call scale = {
        call->backend->kernels, (ph_real)attributes->factor, call->inputs[0].data, call->outputs[0].data};
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), PH_BLOCK_ELEMENTS, scale_block, &scale);
    return PH_OK;
}

const struct ph__op ph__op_scale = {
    .name = "scale",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .gradient = scale_gradient,
    .cost = scale_cost,
    .run = scale_run,
};

ph_value ph_scale(struct ph_builder *builder, ph_value x, double factor)
{
    const struct ph__scale_attributes attributes = {factor};
    return ph__emit1(builder, &ph__op_scale, NULL, &attributes, sizeof attributes, 1, &x);
}
