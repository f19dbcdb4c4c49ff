/* Batch norm with the running statistics: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. Behind a linear layer
 * without an activation it melts into that layer's weight and bias (op_fold_batch_norm.c). */
#include "op/attributes.h"
#include "op/dense/batch_norm.h"

#include <math.h>

static size_t inference_scratch_bytes(const struct ph_call *call)
{
    return ph__row_elements(&call->inputs[PH_BATCH_NORM_X]) * sizeof(ph_real);
}

/* subtract, two products, add */
static void inference_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    ph__cost_elementwise(call, 4, cost_out);
}

static ph_status inference_run(struct ph_call *call)
{
    const struct ph_batch_norm_options *options = call->attributes;
    const ph_real *variance = call->inputs[PH_BATCH_NORM_RUNNING_VARIANCE].data;
    const size_t columns = ph__row_elements(&call->inputs[PH_BATCH_NORM_X]);
    ph_real *inv_std = call->scratch;
    for (size_t j = 0; j < columns; j++)
        inv_std[j] = (ph_real)(1 / sqrt((double)variance[j] + options->epsilon));
    ph__batch_norm_apply(call, call->inputs[PH_BATCH_NORM_RUNNING_MEAN].data, inv_std);
    return PH_OK;
}

static bool inference_fuse(struct ph_builder *builder, struct ph_node *node, const struct ph_node *producer)
{
    if (!ph__is_plain_linear(producer, node->entry))
        return false;
    ph_value folded[2];
    ph__fold_batch_norm(builder, node, producer, folded);
    const ph_value inputs[] = {producer->inputs[PH_LINEAR_X], folded[0], folded[1]};
    ph__become_linear(builder, node, producer, inputs, PH_IDENTITY);
    return true;
}

const struct ph_op ph__op_batch_norm_inference = {
    .name = "batch_norm_inference",
    .infer = ph__batch_norm_infer,
    .cost = inference_cost,
    .scratch_bytes = inference_scratch_bytes,
    .run = inference_run,
    .fuse = inference_fuse,
    .fusible_input = PH_BATCH_NORM_X,
};
