/* Multi-head scaled dot-product attention (Vaswani et al. 2017): for each sample and head
 *   y = softmax(scale q k^T) v,
 * the head's columns of q, k, v and y side by side with the other heads'. A sample's keys are m rows of k (B,m,K), or its
 * bag's rows of k (I,K); its queries n rows of q (B,n,K), or, within a history, the bag's rows again.
 *
 * A training program keeps the log of the sum of exponentials of each query and head, (H,n) a sample: the gradient makes the
 * probabilities anew from it. No sample looks beyond its own rows. */
#include "op/sequence/attention.h"

#include <math.h>

enum { Y, LOG_SUM, NUM_OUTPUTS };

static bool is_array_of_heads(const struct ph_type *type, uint32_t rank, size_t num_heads)
{
    if (!ph__type_is_real_of_rank(type, rank))
        return false;
    const struct ph_dim columns = type->dims[rank - 1];
    return columns.symbol == 0 && columns.extent > 0 && columns.extent % num_heads == 0 &&
           (rank == 2 || type->dims[1].symbol == 0);
}

static bool is_dense(const struct ph_type inputs[PH_ATTENTION_NUM_INPUTS], size_t num_heads)
{
    const struct ph_type *q = &inputs[PH_ATTENTION_Q], *k = &inputs[PH_ATTENTION_K];
    const struct ph_type *v = &inputs[PH_ATTENTION_V];
    for (size_t i = PH_ATTENTION_Q; i <= PH_ATTENTION_V; i++)
        if (!is_array_of_heads(&inputs[i], 3, num_heads) || !ph__dim_equal(inputs[i].dims[0], q->dims[0]))
            return false;
    return ph__dim_equal(k->dims[1], v->dims[1]) && ph__dim_equal(q->dims[2], k->dims[2]);
}

static bool is_jagged(const struct ph_type inputs[PH_ATTENTION_NUM_INPUTS], size_t num_heads)
{
    const struct ph_type *q = &inputs[PH_ATTENTION_Q], *k = &inputs[PH_ATTENTION_K];
    const struct ph_type *v = &inputs[PH_ATTENTION_V], *bags = &inputs[PH_ATTENTION_BAGS];
    if (bags->kind != PH_JAGGED || !is_array_of_heads(k, 2, num_heads) ||
        !is_array_of_heads(v, 2, num_heads) ||
        !(is_array_of_heads(q, 2, num_heads) || is_array_of_heads(q, 3, num_heads)))
        return false;
    return ph__dim_equal(k->dims[0], bags->dims[1]) && ph__dim_equal(v->dims[0], bags->dims[1]) &&
           ph__dim_equal(q->dims[0], bags->dims[q->rank == 2 ? 1 : 0]) &&
           ph__dim_equal(q->dims[q->rank - 1], k->dims[1]);
}

static ph_status attention_infer(struct ph_infer *infer)
{
    const struct ph_attention_options *options = infer->attributes;
    const struct ph_type *q = &infer->inputs[PH_ATTENTION_Q], *v = &infer->inputs[PH_ATTENTION_V];
    const bool has_bags = infer->inputs[PH_ATTENTION_BAGS].kind != PH_TOKEN;
    if (!has_bags && !is_dense(infer->inputs, options->num_heads))
        return ph__infer_fail(
            infer, "q (B,n,K), k (B,m,K), v (B,m,M), no bags; K and M divisible by the heads");
    if (has_bags && !is_jagged(infer->inputs, options->num_heads))
        return ph__infer_fail(
            infer, "q (B,n,K) or (I,K), k (I,K), v (I,M), B bags of I items; K and M divisible by the heads");
    infer->outputs[Y] = *q;
    infer->outputs[Y].dims[q->rank - 1] = v->dims[v->rank - 1];
    if (infer->num_outputs > LOG_SUM) {
        const struct ph_dim dims[] = {q->dims[0], ph__dim(options->num_heads), q->dims[1]};
        infer->outputs[LOG_SUM] = ph__dense_type(q->rank, dims);
    }
    return PH_OK;
}

static void attention_gradient(struct ph_gradient *gradient)
{
    const struct ph_node node = *gradient->node;
    const ph_value inputs[] = {gradient->output_gradients[Y], node.outputs[LOG_SUM],
        node.inputs[PH_ATTENTION_Q], node.inputs[PH_ATTENTION_K], node.inputs[PH_ATTENTION_V],
        node.inputs[PH_ATTENTION_BAGS]};
    ph__emit(gradient->builder, &ph__op_attention_backward, NULL, node.attributes, node.attributes_size, 6,
        inputs, 3, gradient->input_gradients);
}

/* two products: a multiplication and an addition for each number of a pair's key and value */
static void attention_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const struct ph_attention_samples samples = ph__attention_samples(call->inputs, call->attributes);
    ph__cost_copy(call, cost_out);
    cost_out->flops = 2 * ph__attention_pairs(call->inputs, call->attributes) *
                      (double)(samples.args.key_dim + samples.args.value_dim);
}

static ph_status attention_run(struct ph_call *call)
{
    struct ph_attention_samples samples = ph__attention_samples(call->inputs, call->attributes);
    samples.args.y = call->outputs[Y].data;
    samples.args.log_sum = call->num_outputs > LOG_SUM ? call->outputs[LOG_SUM].data : NULL;
    ph__attention_run(call->backend, &samples, call->backend->kernels->attention_forward);
    return PH_OK;
}

const struct ph_op ph__op_attention = {
    .name = "attention",
    .infer = attention_infer,
    .gradient = attention_gradient,
    .cost = attention_cost,
    .run = attention_run,
};

ph_value ph_attention(struct ph_builder *builder, ph_value q, ph_value k, ph_value v, ph_value bags,
    struct ph_attention_options options)
{
    const ph_value inputs[PH_ATTENTION_NUM_INPUTS] = {q, k, v, bags};
    const size_t num_outputs = ph_builder_mode(builder) == PH_TRAINING ? NUM_OUTPUTS : 1;
    ph_value outputs[NUM_OUTPUTS] = {0};
    if (options.num_heads == 0 || !(options.scale >= 0 && isfinite(options.scale)))
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "attention: %zu heads, scale %g: wants a head, and a finite scale that is not negative",
            options.num_heads, options.scale);
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const struct ph_type type = ph_value_type(builder, q);
    if (options.scale == 0 && type.rank > 0) /* without columns it is refused by the shape rule */
        options.scale = sqrt((double)options.num_heads / (double)type.dims[type.rank - 1].extent);
    ph__emit(builder, &ph__op_attention, NULL, &options, sizeof options, PH_ATTENTION_NUM_INPUTS, inputs,
        num_outputs, outputs);
    return outputs[Y];
}
