/* clip_factor: min(1, max_norm / (norm + 1e-6)), norm^2 the sum of all gradients' squares
 * (op_squared_norm.c). A NaN norm stays NaN, so that updates cannot hide it; 1 without gradients. */
#include <math.h>

#include "op/update/op_update.h"

struct clip_attributes {
    double max_norm;
};

static ph_status clip_factor_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static void clip_factor_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.flops = 4, .bytes = 2 * sizeof(double)};
}

static ph_status clip_factor_run(struct ph__call *call)
{
    const struct clip_attributes *attributes = call->attributes;
    const double sum = call->inputs[0].scalar != NULL ? *call->inputs[0].scalar : 0;
    const double factor = attributes->max_norm / (sqrt(sum) + 1e-6);
    *call->outputs[0].scalar = factor > 1 ? 1 : factor;
    return PH_OK;
}

const struct ph__op ph__op_clip_factor = {
    .name = "clip_factor",
    .infer = clip_factor_infer,
    .cost = clip_factor_cost,
    .run = clip_factor_run,
};

/* Adds this gradient's squares to the sum so far; returns `sum` where there is nothing to add. */
static ph_value add_squares(struct ph_builder *builder, ph_value parameter, ph_value gradient,
    const struct ph_optimizer *optimizer, ph_value sum)
{
    const struct ph__declaration *declaration = ph__builder_declaration(builder, parameter);
    if (declaration == NULL)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "clip_factor: '%s' is not a parameter",
            ph_value_name(builder, parameter));
    const struct ph__norm_attributes attributes = {
        .l2 = optimizer->l2,
        .is_table = declaration->is_table,
        .is_every_row = declaration->is_table && optimizer->is_whole_table && optimizer->l2 != 0,
    };
    const bool acts_alone = optimizer->l2 != 0 && (!declaration->is_table || attributes.is_every_row);
    if (gradient == 0 && !acts_alone)
        return sum;
    const ph_value inputs[PH_NORM_INPUTS] = {parameter, gradient, sum};
    return ph__emit1(
        builder, &ph__op_squared_norm, NULL, &attributes, sizeof attributes, PH_NORM_INPUTS, inputs);
}

ph_value ph_clip_factor(struct ph_builder *builder, size_t num_gradients, const ph_value *parameters,
    const ph_value *gradients, const struct ph_optimizer *optimizers, double max_norm)
{
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    if (!(max_norm > 0))
        return ph_builder_fail(
            builder, PH_ERROR_CONFIG, "clip_factor: max_norm %g must be positive", max_norm);
    ph_value sum = 0;
    for (size_t i = 0; i < num_gradients && ph_builder_status(builder) == PH_OK; i++)
        sum = add_squares(builder, parameters[i], gradients[i], &optimizers[i], sum);
    const struct clip_attributes attributes = {max_norm};
    return ph__emit1(builder, &ph__op_clip_factor, NULL, &attributes, sizeof attributes, 1, &sum);
}
