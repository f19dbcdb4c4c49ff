/* The gradient of attention, by the formulas of kernel.h: the probabilities are made anew from what the forward pass kept.
 * inputs: dy, log_sum, q, k, v, bags or none; outputs: dq, dk, dv. */
#include "op/sequence/attention.h"

enum { DY, LOG_SUM, FORWARD_INPUTS };
enum { DQ, DK, DV, NUM_OUTPUTS };

static ph_status backward_infer(struct ph_infer *infer)
{
    const struct ph_type *forward = &infer->inputs[FORWARD_INPUTS];
    if (!ph__type_is_real_of_rank(&infer->inputs[DY], forward[PH_ATTENTION_Q].rank))
        return ph__infer_fail(infer, "dy, log_sum, and the inputs of its attention");
    infer->outputs[DQ] = forward[PH_ATTENTION_Q];
    infer->outputs[DK] = forward[PH_ATTENTION_K];
    infer->outputs[DV] = forward[PH_ATTENTION_V];
    return PH_OK;
}

/* five products: scores, dq and dk over the numbers of a pair's key, the probabilities' gradient and dv over its value's */
static void backward_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const struct ph_operand *forward = &call->inputs[FORWARD_INPUTS];
    const struct ph_attention_samples samples = ph__attention_samples(forward, call->attributes);
    ph__cost_copy(call, cost_out);
    cost_out->flops = 2 * ph__attention_pairs(forward, call->attributes) *
                      (double)(3 * samples.args.key_dim + 2 * samples.args.value_dim);
}

static ph_status backward_run(struct ph_call *call)
{
    struct ph_attention_samples samples =
        ph__attention_samples(&call->inputs[FORWARD_INPUTS], call->attributes);
    samples.args.dy = call->inputs[DY].data;
    samples.args.log_sum = call->inputs[LOG_SUM].data;
    samples.args.dq = call->outputs[DQ].data;
    samples.args.dk = call->outputs[DK].data;
    samples.args.dv = call->outputs[DV].data;
    ph__attention_run(call->backend, &samples, call->backend->kernels->attention_backward);
    return PH_OK;
}

const struct ph_op ph__op_attention_backward = {
    .name = "attention_backward",
    .infer = backward_infer,
    .cost = backward_cost,
    .run = backward_run,
};
