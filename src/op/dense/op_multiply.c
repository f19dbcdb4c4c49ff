/* a * b of one shape; da = dy * b, db = dy * a. Elementwise, so the result may take over a's memory. */
#include "op/operator.h"

static void multiply_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    for (size_t i = 0; i < 2; i++)
        if (gradient->is_wanted[i])
            gradient->input_gradients[i] =
                ph_multiply(gradient->builder, gradient->output_gradients[0], node.inputs[1 - i]);
}

static void multiply_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

static ph_status multiply_run(struct ph__call *call)
{
    return ph__run_binary(call, call->backend->kernels->multiply, 0, 1);
}

const struct ph__op ph__op_multiply = {
    .name = "multiply",
    .traits = PH_OP_IN_PLACE,
    .infer = ph__infer_elementwise,
    .gradient = multiply_gradient,
    .cost = multiply_cost,
    .run = multiply_run,
};

ph_value ph_multiply(struct ph_builder *builder, ph_value a, ph_value b)
{
    const ph_value inputs[] = {a, b};
    return ph__emit1(builder, &ph__op_multiply, NULL, NULL, 0, 2, inputs);
}
