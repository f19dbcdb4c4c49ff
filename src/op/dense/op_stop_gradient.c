/* Passes its input on, but no gradient; shares the input's memory. */
#include "op/operator.h"

static ph_status stop_gradient_infer(struct ph__infer *infer)
{
    if (infer->inputs[0].kind != PH_DENSE)
        return ph__infer_fail(infer, "an array");
    infer->outputs[0] = infer->inputs[0];
    return PH_OK;
}

static void stop_gradient_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[0] = 0;
}

static void stop_gradient_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){0};
}

const struct ph__op ph__op_stop_gradient = {
    .name = "stop_gradient",
    .traits = PH_OP_ALIAS | PH_OP_STOPS_GRADIENT,
    .infer = stop_gradient_infer,
    .gradient = stop_gradient_gradient,
    .cost = stop_gradient_cost,
};

ph_value ph_stop_gradient(struct ph_builder *builder, ph_value x)
{
    return ph__emit1(builder, &ph__op_stop_gradient, NULL, NULL, 0, 1, &x);
}
