/* Binary cross entropy with logits, the mean over the known labels (mean_loss.h):
 *   loss = sum c l / sum c,  l = max(z,0) - z y + log(1 + exp(-|z|)),  c = mask * weight of the sample
 * and 0 when no label is known. logits z and labels y (B,T), y in [0,1]; mask (B,T) and weights (B) may be
 * absent. The gradient is dz = g / sum c * c (sigmoid(z) - y). */
#include "op/loss/mean_loss.h"

static void bce_gradient(struct ph__gradient *gradient)
{
    ph__mean_loss_gradient(gradient, &ph__op_bce_with_logits_backward, "logits");
}

/* Counts max, multiplications, additions, exp and log (each as one), and the weighing. */
static void bce_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_copy(call, cost_out);
    cost_out->flops = 10.0 * (double)ph__elements(&call->inputs[PH_LOSS_PREDICTIONS]);
}

static ph_status bce_run(struct ph__call *call)
{
    return ph__mean_loss_run(call, call->backend->kernels->bce, PH_MEAN_BY_WEIGHT);
}

const struct ph__op ph__op_bce_with_logits = {
    .name = "bce_with_logits",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = ph__mean_loss_infer,
    .gradient = bce_gradient,
    .cost = bce_cost,
    .scratch_bytes = ph__mean_loss_scratch_bytes,
    .run = bce_run,
};

static void bce_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 7, cost_out);
}

static ph_status bce_backward_run(struct ph__call *call)
{
    return ph__mean_loss_backward_run(call, call->backend->kernels->bce_backward);
}

const struct ph__op ph__op_bce_with_logits_backward = {
    .name = "bce_with_logits_backward",
    .infer = ph__mean_loss_backward_infer,
    .cost = bce_backward_cost,
    .scratch_bytes = ph__mean_loss_backward_scratch_bytes,
    .run = bce_backward_run,
};

ph_value ph_bce_with_logits(
    struct ph_builder *builder, ph_value logits, ph_value labels, ph_value mask, ph_value weights)
{
    return ph__mean_loss(builder, &ph__op_bce_with_logits, logits, labels, mask, weights);
}
