/* share_of_batch: a micro-batch's share of its batch's objective: x * own / whole, 0 where whole is 0; host
 * scalars. x and the weights are those of ph__share_of_batch (accumulation.h). The weights are constants:
 * only x has a gradient. */
#include "op/update/accumulation.h"

enum { X, OWN, WHOLE, NUM_INPUTS };

static ph_status share_infer(struct ph__infer *infer)
{
    for (size_t i = 0; i < NUM_INPUTS; i++)
        if (infer->inputs[i].kind != PH_SCALAR)
            return ph__infer_fail(infer, "three scalars");
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static ph_value emit_share(struct ph_builder *builder, ph_value x, ph_value own, ph_value whole)
{
    const ph_value inputs[NUM_INPUTS] = {x, own, whole};
    return ph__emit1(builder, &ph__op_share_of_batch, NULL, NULL, 0, NUM_INPUTS, inputs);
}

static void share_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    gradient->input_gradients[X] =
        emit_share(gradient->builder, gradient->output_gradients[0], node.inputs[OWN], node.inputs[WHOLE]);
}

static void share_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph__cost){.flops = 2, .bytes = 4 * sizeof(double)};
}

static ph_status share_run(struct ph__call *call)
{
    const double own = *call->inputs[OWN].scalar, whole = *call->inputs[WHOLE].scalar;
    *call->outputs[0].scalar = whole > 0 ? *call->inputs[X].scalar * (own / whole) : 0;
    return PH_OK;
}

const struct ph__op ph__op_share_of_batch = {
    .name = "share_of_batch",
    .infer = share_infer,
    .gradient = share_gradient,
    .cost = share_cost,
    .run = share_run,
};

ph_value ph__share_of_batch(
    struct ph_builder *builder, ph_value objective, ph_value loss, ph_value whole, ph_value *weight_out)
{
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    if (!ph__losses_weigh_alike(builder))
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "the model cannot be trained in micro-batches: its losses are means over different labels");
    *weight_out = ph__builder_producer(builder, loss)->outputs[1];
    return emit_share(builder, objective, *weight_out, whole);
}

ph_value ph__share_of_loss(struct ph_builder *builder, ph_value loss, ph_value whole)
{
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    return emit_share(builder, loss, ph__builder_producer(builder, loss)->outputs[1], whole);
}
