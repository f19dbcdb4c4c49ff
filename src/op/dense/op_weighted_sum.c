/* sum_i factors[i] * scalars[i]: losses, named and weighted. The attributes are the factors. */
#include "op/operator.h"

static ph_status weighted_sum_infer(struct ph__infer *infer)
{
    for (size_t i = 0; i < infer->num_inputs; i++)
        if (infer->inputs[i].kind != PH_SCALAR)
            return ph__infer_fail(infer, "scalars");
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static void weighted_sum_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const double *factors = node.attributes;
    for (size_t i = 0; i < node.num_inputs; i++)
        if (gradient->is_wanted[i])
            gradient->input_gradients[i] =
                ph_weighted_sum(gradient->builder, 1, &gradient->output_gradients[0], &factors[i]);
}

static void weighted_sum_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->flops = 2.0 * (double)call->num_inputs;
    cost_out->bytes = sizeof(double) * (double)(call->num_inputs + 1);
}

static ph_status weighted_sum_run(struct ph__call *call)
{
    const double *factors = call->attributes;
    double sum = 0;
    for (size_t i = 0; i < call->num_inputs; i++)
        sum += factors[i] * *call->inputs[i].scalar;
    *call->outputs[0].scalar = sum;
    return PH_OK;
}

const struct ph__op ph__op_weighted_sum = {
    .name = "weighted_sum",
    .infer = weighted_sum_infer,
    .gradient = weighted_sum_gradient,
    .cost = weighted_sum_cost,
    .run = weighted_sum_run,
};

ph_value ph_weighted_sum(
    struct ph_builder *builder, size_t num_scalars, const ph_value *scalars, const double *factors)
{
    if (num_scalars == 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "weighted_sum: needs at least one scalar");
    return ph__emit1(
        builder, &ph__op_weighted_sum, NULL, factors, num_scalars * sizeof *factors, num_scalars, scalars);
}
