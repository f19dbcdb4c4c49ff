/* Passes its input on, and a multiple of its gradient back; shares the input's memory.
 *
 * Source: Liang et al. 2025 (arXiv 2502.17494, ExFM), gradient scaling of the auxiliary head. */
#include "op/attributes.h"
#include "op/operator.h"

static ph_status scale_gradient_infer(struct ph__infer *infer)
{
    if (infer->inputs[0].kind != PH_DENSE)
        return ph__infer_fail(infer, "an array");
    infer->outputs[0] = infer->inputs[0];
    return PH_OK;
}

static void scale_gradient_gradient(struct ph__gradient *gradient)
{
    const struct ph__scale_attributes attributes =
        *(const struct ph__scale_attributes *)gradient->node->attributes;
    gradient->input_gradients[0] =
        ph_scale(gradient->builder, gradient->output_gradients[0], attributes.factor);
}

static void scale_gradient_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){0};
}

const struct ph__op ph__op_scale_gradient = {
    .name = "scale_gradient",
    .traits = PH_OP_ALIAS,
    .infer = scale_gradient_infer,
    .gradient = scale_gradient_gradient,
    .cost = scale_gradient_cost,
};

ph_value ph_scale_gradient(struct ph_builder *builder, ph_value x, double factor)
{
    const struct ph__scale_attributes attributes = {factor};
    return ph__emit1(builder, &ph__op_scale_gradient, NULL, &attributes, sizeof attributes, 1, &x);
}
