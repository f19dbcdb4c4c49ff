/* Batch norm with the running statistics: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. After a
 * linear layer without an activation it is folded into that layer's weight and bias (fold_batch_norm). */
#include <math.h>
#include <string.h>

#include "op/attributes.h"
#include "op/dense/batch_norm.h"

/* ---- folding into a linear layer ---- */

/* Weight and bias of a linear layer with the following batch norm folded in, the weight packed. With the
 * scale s_m = gamma_m / sqrt(variance_m + epsilon),
 *   W'_mk = s_m W_mk,   b'_m = (b_m - mean_m) s_m + beta_m.
 * For inference programs; computed again when a parameter or the running statistics have changed. */

enum { WEIGHT, BIAS, GAMMA, BETA, MEAN, VARIANCE, NUM_INPUTS };
enum { PACKED, FOLDED_BIAS, NUM_OUTPUTS };

struct fold_attributes {
    double epsilon;
    enum ph__packing packing;
};

static ph_status fold_infer(struct ph__infer *infer)
{
    const struct fold_attributes *attributes = infer->attributes;
    infer->outputs[PACKED] = infer->inputs[WEIGHT];
    infer->outputs[PACKED].dtype = ph__packed_dtype(attributes->packing);
    infer->outputs[FOLDED_BIAS] = infer->inputs[GAMMA];
    return PH_OK;
}

/* Counts a product for each weight. */
static void fold_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

static struct ph__gemm_weight_shape weight_shape(const struct ph__call *call)
{
    const struct fold_attributes *attributes = call->attributes;
    return ph__weight_shape(&call->outputs[PACKED], attributes->packing);
}

static size_t fold_scratch_bytes(const struct ph__call *call)
{
    return ph__elements(&call->inputs[WEIGHT]) * sizeof(ph_real);
}

static ph_status fold_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const struct ph__gemm_weight_shape shape = weight_shape(call);
    if (output == PACKED)
        return ph__gemm_packed_bytes(call->backend->gemm, &shape, bytes_out);
    *bytes_out = shape.out_features * sizeof(ph_real);
    return PH_OK;
}

static ph_status fold_run(struct ph__call *call)
{
    const struct fold_attributes *attributes = call->attributes;
    const struct ph__gemm_weight_shape shape = weight_shape(call);
    const struct ph__operand *inputs = call->inputs;
    const ph_real *weight = inputs[WEIGHT].data, *bias = inputs[BIAS].data, *gamma = inputs[GAMMA].data;
    const ph_real *beta = inputs[BETA].data, *mean = inputs[MEAN].data, *variance = inputs[VARIANCE].data;
    ph_real *folded = call->scratch, *folded_bias = call->outputs[FOLDED_BIAS].data;
    for (size_t m = 0; m < shape.out_features; m++) {
        const double scale = (double)gamma[m] / sqrt((double)variance[m] + attributes->epsilon);
        const double former = bias != NULL ? (double)bias[m] : 0;
        for (size_t k = m * shape.in_features; k < (m + 1) * shape.in_features; k++)
            folded[k] = (ph_real)(scale * (double)weight[k]);
        folded_bias[m] = (ph_real)((former - (double)mean[m]) * scale + (double)beta[m]);
    }
    return ph__gemm_pack(call->backend->gemm, &shape, folded, call->outputs[PACKED].data);
}

const struct ph__op ph__op_fold_batch_norm = {
    .name = "fold_batch_norm",
    .traits = PH_OP_ONCE_PER_VERSION | PH_OP_CALLS_LIBRARY,
    .infer = fold_infer,
    .cost = fold_cost,
    .scratch_bytes = fold_scratch_bytes,
    .output_bytes = fold_output_bytes,
    .run = fold_run,
};

/* Adds the node that folds `linear` and the inference norm after it into one packed weight and one bias. */
static void add_fold(struct ph_builder *builder, const struct ph__node *norm, const struct ph__node *linear,
    ph_value outputs[2])
{
    const struct ph_batch_norm_options *options = norm->attributes;
    const struct ph__linear_attributes *linear_attributes = linear->attributes;
    struct fold_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.epsilon = options->epsilon;
    attributes.packing = linear_attributes->packing;
    const ph_value inputs[NUM_INPUTS] = {
        [WEIGHT] = ph__builder_producer(builder, linear->inputs[PH_LINEAR_PACKED])->inputs[0],
        [BIAS] = linear->inputs[PH_LINEAR_BIAS],
        [GAMMA] = norm->inputs[PH_BATCH_NORM_GAMMA],
        [BETA] = norm->inputs[PH_BATCH_NORM_BETA],
        [MEAN] = norm->inputs[PH_BATCH_NORM_RUNNING_MEAN],
        [VARIANCE] = norm->inputs[PH_BATCH_NORM_RUNNING_VARIANCE],
    };
    const char *name = ph__arena_printf(&builder->graph.arena, "%s.fold", linear->name);
    ph__emit(builder, &ph__op_fold_batch_norm, name, &attributes, sizeof attributes, NUM_INPUTS, inputs,
        NUM_OUTPUTS, outputs);
}

/* ---- inference ---- */

static size_t inference_scratch_bytes(const struct ph__call *call)
{
    return ph__row_elements(&call->inputs[PH_BATCH_NORM_X]) * sizeof(ph_real);
}

/* Counts a subtraction, two products and an addition. */
static void inference_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 4, cost_out);
}

static ph_status inference_run(struct ph__call *call)
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

static bool inference_fuse(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer)
{
    if (!ph__is_plain_linear(producer, node->entry))
        return false;
    ph_value folded[2];
    add_fold(builder, node, producer, folded);
    const ph_value inputs[] = {producer->inputs[PH_LINEAR_X], folded[0], folded[1]};
    ph__become_linear(builder, node, producer, inputs, producer->attributes);
    return true;
}

const struct ph__op ph__op_batch_norm_inference = {
    .name = "batch_norm_inference",
    .infer = ph__batch_norm_infer,
    .cost = inference_cost,
    .scratch_bytes = inference_scratch_bytes,
    .run = inference_run,
    .fuse = inference_fuse,
    .fusible_input = PH_BATCH_NORM_X,
};
