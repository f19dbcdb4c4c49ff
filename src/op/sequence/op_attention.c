/* Multi-head scaled dot-product attention (Vaswani et al. 2017): for each sample and head
 *   y = softmax(scale q k^T) v,
 * the head's columns of q, k, v and y side by side with the other heads'. A sample's keys are m rows of k
 * (B,m,K), or its bag's rows of k (I,K); its queries n rows of q (B,n,K), or, within a history, the bag's
 * rows again.
 *
 * A training program keeps the log of the sum of exponentials of each query and head, (H,n) per sample; the
 * gradient computes the probabilities again from it. No sample looks beyond its own rows. */
#include <math.h>

#include "base/memory/caller.h"
#include "op/attributes.h"

/* ---- samples ---- */

/* The samples of a call whose q, k, v and bags, which may be absent, are at `inputs`. */
struct attention_samples {
    size_t num_samples;
    const uint32_t *bags; /* (num_samples + 1): the keys of each; NULL: each has args.num_keys */
    bool is_self; /* set when the queries are the bags' items, too; else each sample has args.num_queries */
    struct ph__attention_args args; /* common to all samples; the arrays are those of all */
};

static struct attention_samples describe_samples(
    const struct ph__operand *inputs, const struct ph_attention_options *options)
{
    const struct ph__operand *q = &inputs[PH_ATTENTION_Q], *k = &inputs[PH_ATTENTION_K];
    const struct ph__operand *v = &inputs[PH_ATTENTION_V], *bags = &inputs[PH_ATTENTION_BAGS];
    const bool has_bags = bags->type->kind == PH_JAGGED, is_self = q->shape.num_dims == 2;
    return (struct attention_samples){.num_samples = ph__rows(has_bags ? bags : q),
        .bags = has_bags ? bags->index : NULL,
        .is_self = is_self,
        .args = {.num_queries = is_self ? 0 : q->shape.dims[1],
            .num_keys = has_bags ? 0 : k->shape.dims[1],
            .num_heads = options->num_heads,
            .key_dim = ph__row_width(q) / options->num_heads,
            .value_dim = ph__row_width(v) / options->num_heads,
            .scale = (ph_real)options->scale,
            .q = q->data,
            .k = k->data,
            .v = v->data}};
}

/* Counts pairs of a query and a key, over all samples and heads. Histories that attend to themselves count as
 * equally long. */
static double num_pairs(const struct ph__operand *inputs, const struct ph_attention_options *options)
{
    const struct ph__operand *q = &inputs[PH_ATTENTION_Q], *k = &inputs[PH_ATTENTION_K];
    const struct ph__operand *bags = &inputs[PH_ATTENTION_BAGS];
    const double heads = (double)options->num_heads, rows = (double)ph__rows(k);
    if (q->shape.num_dims == 3)
        return heads * (double)q->shape.dims[1] * rows *
               (k->shape.num_dims == 3 ? (double)k->shape.dims[1] : 1);
    return ph__rows(bags) > 0 ? heads * rows * rows / (double)ph__rows(bags) : 0;
}

struct job {
    const struct attention_samples *samples;
    void (*kernel)(const struct ph__attention_args *args);
};

/* Moves the arrays to query `query` and key `key`. A sample's sums, (H,n), lie where its queries do. */
static void move(struct ph__attention_args *args, size_t query, size_t key)
{
    const size_t key_row = args->num_heads * args->key_dim, value_row = args->num_heads * args->value_dim;
    args->q += query * key_row;
    args->k += key * key_row;
    args->v += key * value_row;
    args->log_sum += args->log_sum != NULL ? query * args->num_heads : 0;
    args->y += args->y != NULL ? query * value_row : 0;
    if (args->dy != NULL) {
        args->dy += query * value_row;
        args->dq += query * key_row;
        args->dk += key * key_row;
        args->dv += key * value_row;
    }
}

static void run_samples(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct job *job = argument;
    const struct attention_samples *samples = job->samples;
    for (size_t b = first; b < last; b++) {
        struct ph__attention_args args = samples->args;
        size_t key = b * args.num_keys, query = b * args.num_queries;
        if (samples->bags != NULL) {
            key = samples->bags[b];
            args.num_keys = samples->bags[b + 1] - key;
        }
        if (samples->is_self) {
            query = key;
            args.num_queries = args.num_keys;
        }
        move(&args, query, key);
        job->kernel(&args);
    }
}

/* Runs the kernel on each sample. */
static void run_kernel(const struct ph_backend *backend, const struct attention_samples *samples,
    void (*kernel)(const struct ph__attention_args *args))
{
    enum { BLOCK_SAMPLES = 8 };
    struct job job = {samples, kernel};
    ph__for_blocks(backend, samples->num_samples, BLOCK_SAMPLES, run_samples, &job);
}

/* ---- forward ---- */

enum { Y, LOG_SUM, NUM_OUTPUTS };

static bool is_array_of_heads(const struct ph_type *type, uint32_t num_dims, size_t num_heads)
{
    if (!ph__type_is_real_of_dims(type, num_dims))
        return false;
    const struct ph_dim columns = type->dims[num_dims - 1];
    return columns.symbol == 0 && columns.extent > 0 && columns.extent % num_heads == 0 &&
           (num_dims == 2 || type->dims[1].symbol == 0);
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
           ph__dim_equal(q->dims[0], bags->dims[q->num_dims == 2 ? 1 : 0]) &&
           ph__dim_equal(q->dims[q->num_dims - 1], k->dims[1]);
}

static ph_status attention_infer(struct ph__infer *infer)
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
    infer->outputs[Y].dims[q->num_dims - 1] = v->dims[v->num_dims - 1];
    if (infer->num_outputs > LOG_SUM) {
        const struct ph_dim dims[] = {q->dims[0], ph__dim(options->num_heads), q->dims[1]};
        infer->outputs[LOG_SUM] = ph__dense_type(q->num_dims, dims);
    }
    return PH_OK;
}

static void attention_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value inputs[] = {gradient->output_gradients[Y], node.outputs[LOG_SUM],
        node.inputs[PH_ATTENTION_Q], node.inputs[PH_ATTENTION_K], node.inputs[PH_ATTENTION_V],
        node.inputs[PH_ATTENTION_BAGS]};
    ph__emit(gradient->builder, &ph__op_attention_backward, NULL, node.attributes, node.attributes_size, 6,
        inputs, 3, gradient->input_gradients);
}

/* Counts two products: a multiplication and an addition for each number of a pair's key and value. */
static void attention_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct attention_samples samples = describe_samples(call->inputs, call->attributes);
    ph__cost_copy(call, cost_out);
    cost_out->flops = 2 * num_pairs(call->inputs, call->attributes) *
                      (double)(samples.args.key_dim + samples.args.value_dim);
}

static ph_status attention_run(struct ph__call *call)
{
    struct attention_samples samples = describe_samples(call->inputs, call->attributes);
    samples.args.y = call->outputs[Y].data;
    samples.args.log_sum = call->num_outputs > LOG_SUM ? call->outputs[LOG_SUM].data : NULL;
    run_kernel(call->backend, &samples, call->backend->kernels->attention_forward);
    return PH_OK;
}

const struct ph__op ph__op_attention = {
    .name = "attention",
    .infer = attention_infer,
    .gradient = attention_gradient,
    .cost = attention_cost,
    .run = attention_run,
};

ph_value ph_attention(struct ph_builder *builder, ph_value q, ph_value k, ph_value v, ph_value bags,
    const struct ph_attention_options *options)
{
    struct ph_attention_options own;
    if (ph__options_copy(&own, sizeof own, options, "ph_attention_options") != PH_OK)
        return ph_builder_fail(builder, PH_ERROR_USAGE, "%s", ph_error_text());
    const ph_value inputs[PH_ATTENTION_NUM_INPUTS] = {q, k, v, bags};
    const size_t num_outputs = ph_builder_mode(builder) == PH_TRAINING ? NUM_OUTPUTS : 1;
    ph_value outputs[NUM_OUTPUTS] = {0};
    if (own.num_heads == 0 || !(own.scale >= 0 && isfinite(own.scale)))
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "attention: %zu heads, scale %g: needs at least one head, and a finite scale that is not "
            "negative",
            own.num_heads, own.scale);
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const struct ph_type type = ph_value_type(builder, q);
    if (own.scale == 0 && type.num_dims > 0) /* the shape rule refuses an array without columns */
        own.scale = sqrt((double)own.num_heads / (double)type.dims[type.num_dims - 1].extent);
    ph__emit(builder, &ph__op_attention, NULL, &own, sizeof own, PH_ATTENTION_NUM_INPUTS, inputs, num_outputs,
        outputs);
    return outputs[Y];
}

/* ---- backward ---- */

/* Gradient of attention, by the formulas of kernel.h: the probabilities are computed again from log_sum.
 * Inputs: dy, log_sum, q, k, v, bags or none; outputs: dq, dk, dv. */

enum { BACKWARD_DY, BACKWARD_LOG_SUM, FORWARD_INPUTS };
enum { DQ, DK, DV };

static ph_status backward_infer(struct ph__infer *infer)
{
    const struct ph_type *forward = &infer->inputs[FORWARD_INPUTS];
    if (!ph__type_is_real_of_dims(&infer->inputs[BACKWARD_DY], forward[PH_ATTENTION_Q].num_dims))
        return ph__infer_fail(infer, "dy, log_sum, and the inputs of its attention");
    infer->outputs[DQ] = forward[PH_ATTENTION_Q];
    infer->outputs[DK] = forward[PH_ATTENTION_K];
    infer->outputs[DV] = forward[PH_ATTENTION_V];
    return PH_OK;
}

/* Counts five products: scores, dq and dk over the numbers of a pair's key; the probabilities' gradient and
 * dv over its value's. */
static void backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__operand *forward = &call->inputs[FORWARD_INPUTS];
    const struct attention_samples samples = describe_samples(forward, call->attributes);
    ph__cost_copy(call, cost_out);
    cost_out->flops = 2 * num_pairs(forward, call->attributes) *
                      (double)(3 * samples.args.key_dim + 2 * samples.args.value_dim);
}

static ph_status backward_run(struct ph__call *call)
{
    struct attention_samples samples = describe_samples(&call->inputs[FORWARD_INPUTS], call->attributes);
    samples.args.dy = call->inputs[BACKWARD_DY].data;
    samples.args.log_sum = call->inputs[BACKWARD_LOG_SUM].data;
    samples.args.dq = call->outputs[DQ].data;
    samples.args.dk = call->outputs[DK].data;
    samples.args.dv = call->outputs[DV].data;
    run_kernel(call->backend, &samples, call->backend->kernels->attention_backward);
    return PH_OK;
}

const struct ph__op ph__op_attention_backward = {
    .name = "attention_backward",
    .infer = backward_infer,
    .cost = backward_cost,
    .run = backward_run,
};
