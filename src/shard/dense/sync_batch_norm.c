/* sync_batch_norm: op/dense/op_batch_norm.c with the statistics of the global batch, of which each rank has
 * some rows, or none.
 *
 * Every rank sends the others, for each column, the mean and the sum of squared deviations of its rows, in
 * double. All combine them in the order of the ranks (Chan, Golub, LeVeque, COMPSTAT 1982, section 2), for n
 * and m rows:
 *
 *     d = mean_m - mean_n
 *     mean = mean_n + d m / (n + m)
 *     squares = squares_n + squares_m + d^2 n m / (n + m)
 *
 * So every rank has the same bits, and running statistics move alike on all ranks.
 *
 * Backward, dx uses the sums of dy and of dy xhat over all ranks; dgamma and dbeta are this rank's own share,
 * since they are reduced with the gradients of all dense parameters (gradient_reduce.c). */
#include "shard/dense/dense_passes.h"

#include <string.h>

#include "base/memory/absent.h"
#include "op/dense/batch_norm.h"
#include "shard/exchange_nodes.h"

struct sync_attributes {
    struct ph_batch_norm_options options;
    struct ph__sharding *sharding;
    const char *what, *what_gradient;
};

/* Counts the numbers of a rank's message: its number of rows, then two numbers a column. */
static size_t message_numbers(size_t columns)
{
    return 1 + 2 * columns;
}

/* ---- forward; scratch: own message, numbers of all ranks, room to compute moments ---- */

static const struct ph__op sync_batch_norm_backward; /* below */

static void sync_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value inputs[PH_BATCH_NORM_BACKWARD_INPUTS] = {gradient->output_gradients[PH_BATCH_NORM_Y],
        node.inputs[PH_BATCH_NORM_X], node.outputs[PH_BATCH_NORM_MEAN], node.outputs[PH_BATCH_NORM_INV_STD],
        node.inputs[PH_BATCH_NORM_GAMMA]};
    ph__emit(gradient->builder, &sync_batch_norm_backward, NULL, node.attributes, node.attributes_size,
        PH_BATCH_NORM_BACKWARD_INPUTS, inputs, PH_BATCH_NORM_BACKWARD_OUTPUTS, gradient->input_gradients);
}

static size_t sync_scratch_bytes(const struct ph__call *call)
{
    const struct sync_attributes *attributes = call->attributes;
    const size_t count = message_numbers(call->inputs[PH_BATCH_NORM_X].shape.dims[1]);
    return count * sizeof(double) + ph__gather_numbers_bytes(attributes->sharding, count) +
           ph__batch_norm_moments_bytes(call);
}

/* Writes this rank's message: rows, means and sums of squared deviations; without rows zeros. */
static void describe_rows(const struct ph__call *call, double *scratch, double *own)
{
    const size_t *dims = call->inputs[PH_BATCH_NORM_X].shape.dims;
    double *squares = own + 1 + dims[1];
    memset(own, 0, message_numbers(dims[1]) * sizeof *own);
    if (dims[0] == 0 || ph__memory_is_absent(call->inputs[PH_BATCH_NORM_X].data))
        return;
    own[0] = (double)dims[0];
    ph__batch_norm_moments(call, scratch, own + 1);
    for (size_t j = 0; j < dims[1]; j++)
        squares[j] *= own[0];
}

/* Adds one rank's message to `sum`, a message too. */
static void add_rows(size_t columns, const double *rank, double *sum)
{
    const double rows = sum[0] + rank[0], share = rank[0] / rows;
    double *mean = sum + 1, *squares = mean + columns;
    for (size_t j = 0; j < columns; j++) {
        const double distance = rank[1 + j] - mean[j];
        mean[j] += distance * share;
        squares[j] += rank[1 + columns + j] + distance * distance * (sum[0] * share);
    }
    sum[0] = rows;
}

/* Combines the messages of all ranks into rows, means and variances. */
static void combine(const struct ph__sharding *sharding, size_t columns, const double *all, double *sum)
{
    const size_t count = message_numbers(columns);
    memset(sum, 0, count * sizeof *sum);
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        if (all[rank * count] > 0)
            add_rows(columns, all + rank * count, sum);
    for (size_t j = 0; j < columns && sum[0] > 0; j++)
        sum[1 + columns + j] /= sum[0];
}

static ph_status sync_run(struct ph__call *call)
{
    const struct sync_attributes *attributes = call->attributes;
    const struct ph__comm_call named = {PH_CHANNEL_STATISTICS, attributes->what};
    const struct ph__sharding *sharding = attributes->sharding;
    const size_t columns = call->inputs[PH_BATCH_NORM_X].shape.dims[1], count = message_numbers(columns);
    double *own = call->scratch, *gathered = own + count;
    const double *all;
    describe_rows(call, gathered + ph__gather_numbers_bytes(sharding, count) / sizeof *gathered, own);
    PH_TRY(ph__gather_numbers(sharding, &named, count, own, gathered, &all));
    if (ph__memory_is_absent(call->outputs[PH_BATCH_NORM_Y].data))
        return PH_OK;
    combine(sharding, columns, all, own);
    ph__batch_norm_finish(call, &attributes->options, own[0], own + 1);
    return PH_OK;
}

static const struct ph__op sync_batch_norm = {
    .name = "sync_batch_norm",
    .traits = PH_OP_MIXES_SAMPLES | PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = ph__batch_norm_infer,
    .gradient = sync_gradient,
    .cost = ph__batch_norm_cost,
    .scratch_bytes = sync_scratch_bytes,
    .run = sync_run,
};

/* ---- backward; scratch: own message, numbers of all ranks, means in real, room to compute sums ---- */

static size_t backward_scratch_bytes(const struct ph__call *call)
{
    const struct sync_attributes *attributes = call->attributes;
    const size_t columns = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims[1];
    const size_t count = message_numbers(columns);
    return count * sizeof(double) + ph__gather_numbers_bytes(attributes->sharding, count) +
           2 * columns * sizeof(ph_real) + ph__batch_norm_gradient_sums_bytes(call);
}

static ph_status backward_run(struct ph__call *call)
{
    const struct sync_attributes *attributes = call->attributes;
    const struct ph__comm_call named = {PH_CHANNEL_STATISTICS_GRADIENTS, attributes->what_gradient};
    const struct ph__sharding *sharding = attributes->sharding;
    const size_t *dims = call->inputs[PH_BATCH_NORM_BACKWARD_X].shape.dims;
    const size_t count = message_numbers(dims[1]);
    double *own = call->scratch, *gathered = own + count;
    ph_real *means = (ph_real *)(gathered + ph__gather_numbers_bytes(sharding, count) / sizeof *gathered);
    const double *all;
    const bool is_absent = ph__memory_is_absent(call->inputs[PH_BATCH_NORM_BACKWARD_X].data);
    own[0] = (double)dims[0];
    if (!is_absent)
        ph__batch_norm_gradient_sums(call, (double *)(means + 2 * dims[1]), own + 1);
    PH_TRY(ph__gather_numbers(sharding, &named, count, own, gathered, &all));
    if (is_absent)
        return PH_OK;
    ph__batch_norm_combine(sharding->world_size, count, all, own);
    ph__batch_norm_backward_apply(call, own[0], own + 1, means);
    return PH_OK;
}

/* Has an effect: other ranks wait for its sums. */
static const struct ph__op sync_batch_norm_backward = {
    .name = "sync_batch_norm_backward",
    .traits = PH_OP_MIXES_SAMPLES | PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = ph__batch_norm_backward_infer,
    .cost = ph__batch_norm_backward_cost,
    .scratch_bytes = backward_scratch_bytes,
    .run = backward_run,
};

/* ---- the pass ---- */

static void synchronise(struct ph__sharding *sharding, struct ph_builder *builder, struct ph__node *node)
{
    struct ph__arena *arena = &builder->graph.arena;
    const struct sync_attributes attributes = {
        .options = *(const struct ph_batch_norm_options *)node->attributes,
        .sharding = sharding,
        .what = ph__arena_printf(arena, "statistics of %s", node->name),
        .what_gradient = ph__arena_printf(arena, "gradients of %s", node->name)};
    const void *copy = ph__builder_copy(builder, &attributes, sizeof attributes);
    if (copy == NULL || attributes.what == NULL || attributes.what_gradient == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: a pass over batch norms");
        return;
    }
    node->op = &sync_batch_norm;
    node->attributes = copy;
    node->attributes_size = sizeof attributes;
}

void ph__sync_batch_norms(struct ph__sharding *sharding, struct ph_builder *builder)
{
    const struct ph__graph *graph = &builder->graph;
    for (size_t i = 0; ph_builder_status(builder) == PH_OK && i < graph->num_nodes; i++) {
        struct ph__node *node = &graph->nodes[i];
        if (node->op == &ph__op_batch_norm)
            synchronise(sharding, builder, node);
        else if ((node->op->traits & PH_OP_MIXES_SAMPLES) != 0 && !ph__is_mean_loss(node->op))
            ph_builder_fail(builder, PH_ERROR_CONFIG,
                "'%s': operator %s mixes samples, which is not supported where ranks share a batch",
                node->name, node->op->name);
    }
}
