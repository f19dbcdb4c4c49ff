/* aggregate: sums of the rows of each node's neighbours, or of a sample of them (ES-SpMM, arXiv:2104.10716).
 * phloem/kernel.h has the rules and factors.
 *
 * x (B,F), neighbours jagged (B bags, I) of rows of x, weights (I,1) or none -> y (B,F):
 *   y_i = scale_i sum over the chosen neighbours j of w_ij x_j,   dx_j = sum over i of scale_i w_ij dy_i
 *
 * A block of nodes is sampled into a list in the first cache, which the kernel of pooled lookups then pools.
 * The gradient is the same lookup in the same sample, transposed once a run for all layers that share it. */
#include <stdatomic.h>

#include "base/memory/caller.h"
#include "op/sequence/aggregation.h"
#include "op/table/op_table.h"

enum { X, NEIGHBOURS, WEIGHTS, NUM_INPUTS };
enum { BLOCKS_OF_TASK = 4 };

static ph_status aggregate_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *neighbours = &infer->inputs[NEIGHBOURS];
    if (!ph__type_is_real_of_dims(x, 2) || !ph__type_is_bags(neighbours) || neighbours->dtype != PH_I64 ||
        !ph__dim_equal(x->dims[0], neighbours->dims[0]) || x->dims[1].symbol != 0 ||
        !ph__are_item_weights(&infer->inputs[WEIGHTS], neighbours))
        return ph__infer_fail(infer, "x (B,F), B bags of I ids, weights (I,1) or none");
    infer->outputs[0] = *x;
    return PH_OK;
}

static void aggregate_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    ph_value transposed[2];
    if (gradient->is_wanted[WEIGHTS]) {
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "%s: only x has a gradient; weights that depend on parameters need ph_stop_gradient", node.name);
        return;
    }
    ph__transpose_neighbours(
        builder, node.inputs[NEIGHBOURS], node.inputs[WEIGHTS], node.attributes, transposed);
    const ph_value inputs[] = {gradient->output_gradients[0], transposed[0], transposed[1]};
    gradient->input_gradients[X] = ph__emit1(builder, &ph__op_aggregate_backward, NULL, NULL, 0, 3, inputs);
}

/* Counts num_items rows of x, read as their ids point, with an addition each number, and a multiplication
 * where they have weights. */
static void count(const struct ph__call *call, size_t num_items, bool has_weights, struct ph__cost *cost_out)
{
    const double width = (double)ph__row_width(&call->outputs[0]), items = (double)num_items;
    ph__cost_elementwise(call, 0, cost_out);
    cost_out->bytes -= (double)ph__elements(&call->inputs[X]) * sizeof(ph_real);
    cost_out->flops = (has_weights ? 2 : 1) * items * width;
    cost_out->revisited_bytes = items * width * sizeof(ph_real);
    cost_out->bytes += cost_out->revisited_bytes;
}

/* Counts `width` neighbours, or the share `rate`, of each node where it has more on average. */
static size_t num_chosen(const struct ph__operand *neighbours, const struct ph_sampling *sampling)
{
    const size_t num_nodes = neighbours->shape.dims[0], num_items = neighbours->shape.dims[1];
    if (sampling->strategy == PH_SAMPLING_RATE)
        return (size_t)(sampling->rate * (double)num_items);
    return sampling->width > 0 && sampling->width < num_items / ph__max(1, num_nodes)
               ? sampling->width * num_nodes
               : num_items;
}

static void aggregate_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph_aggregate_options *options = call->attributes;
    const bool has_weights =
        call->inputs[WEIGHTS].data != NULL || options->normalisation == PH_NORMALISE_SYMMETRIC;
    const size_t num_items = num_chosen(&call->inputs[NEIGHBOURS], &options->sampling);
    count(call, num_items, has_weights, cost_out);
    cost_out->bytes += (double)num_items * sizeof(int64_t);
}

static size_t aggregate_scratch_bytes(const struct ph__call *call)
{
    return ph__aggregation_scratch_bytes(&call->inputs[NEIGHBOURS]);
}

/* Sums, by `slots` and their weights, of nodes [first, last). */
static struct ph__embedding_bag_args lookup(const struct ph__call *call, size_t first, size_t last)
{
    const size_t width = ph__row_width(&call->outputs[0]);
    return (struct ph__embedding_bag_args){.table = call->inputs[X].data,
        .format = PH_ROWS_FP32,
        .dim = width,
        .num_samples = last - first,
        .num_features = 1,
        .out_stride = width,
        .out = (ph_real *)call->outputs[0].data + first * width};
}

struct aggregate_job {
    const struct ph__call *call;
    struct ph__aggregation aggregation;
    atomic_bool has_bad_id;
};

/* Sets the ids that the next block lists as coming, unless it leaves out most of their cache lines: it reads
 * those of each node's first ids, or at most one for each id that it chooses. */
static void expect_block(const struct aggregate_job *job, size_t first, size_t last, size_t num_chosen,
    struct ph__embedding_bag_args *args)
{
    enum { IDS_OF_LINE = 8, MOST_OF_READ = 2 };
    const struct ph__neighbours *neighbours = &job->aggregation.neighbours;
    const size_t begin = neighbours->offsets[first], num_ids = neighbours->offsets[last] - begin;
    const size_t lines_read = neighbours->sampling.strategy == PH_SAMPLING_BUCKET
                                  ? num_chosen / IDS_OF_LINE + (last - first)
                                  : num_chosen;
    if (num_ids / IDS_OF_LINE > MOST_OF_READ * lines_read)
        return;
    args->coming = neighbours->ids + begin;
    args->coming_bytes = num_ids * sizeof *neighbours->ids;
}

/* Lists and sums a few blocks, of which each prefetches the next one's ids. */
static void aggregate_blocks(void *argument, size_t first, size_t last, size_t worker)
{
    struct aggregate_job *job = argument;
    struct ph__block_list block;
    for (size_t end; first < last; first = end) {
        end = ph__min(first + job->aggregation.block, last);
        if (!ph__aggregation_list(&job->aggregation, first, end, worker, &block)) {
            atomic_store_explicit(&job->has_bad_id, true, memory_order_relaxed);
            return;
        }
        struct ph__embedding_bag_args args = lookup(job->call, first, end);
        args.offsets = block.list.offsets;
        args.slots = block.list.slots;
        args.weights = block.list.weights;
        args.scales = block.list.scales;
        expect_block(
            job, end, ph__min(end + job->aggregation.block, last), block.offsets[end - first], &args);
        job->call->backend->kernels->embedding_bag(&args);
    }
}

static ph_status aggregate_run(struct ph__call *call)
{
    struct aggregate_job job = {.call = call,
        .aggregation =
            ph__aggregation(call, &call->inputs[NEIGHBOURS], &call->inputs[WEIGHTS], call->attributes)};
    ph__for_blocks(call->backend, ph__rows(&call->outputs[0]), BLOCKS_OF_TASK * job.aggregation.block,
        aggregate_blocks, &job);
    return atomic_load_explicit(&job.has_bad_id, memory_order_relaxed)
               ? ph__report_bad_neighbour(call, &call->inputs[NEIGHBOURS])
               : PH_OK;
}

const struct ph__op ph__op_aggregate = {
    .name = "aggregate",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = aggregate_infer,
    .gradient = aggregate_gradient,
    .cost = aggregate_cost,
    .scratch_bytes = aggregate_scratch_bytes,
    .run = aggregate_run,
};

static bool is_share(double rate)
{
    return rate > 0 && rate <= 1;
}

ph_value ph_aggregate(struct ph_builder *builder, ph_value x, ph_value neighbours, ph_value weights,
    const struct ph_aggregate_options *options)
{
    struct ph_aggregate_options own;
    if (ph__options_copy(&own, sizeof own, options, "ph_aggregate_options") != PH_OK)
        return ph_builder_fail(builder, PH_ERROR_USAGE, "%s", ph_error_text());
    const struct ph_sampling *sampling = &own.sampling;
    const bool is_rate = sampling->strategy == PH_SAMPLING_RATE;
    const ph_value inputs[NUM_INPUTS] = {x, neighbours, weights};
    if ((unsigned)sampling->strategy > PH_SAMPLING_EVEN ||
        (unsigned)own.normalisation > PH_NORMALISE_SYMMETRIC)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "aggregate: unknown strategy %d or normalisation %d",
            (int)sampling->strategy, (int)own.normalisation);
    if (is_rate ? !is_share(sampling->rate) || sampling->width != 0 : sampling->rate != 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "aggregate: width %zu, rate %g: strategy 'rate' needs a rate in (0,1] and no width, others no "
            "rate",
            sampling->width, sampling->rate);
    if (own.bias > (own.normalisation == PH_NORMALISE_MEAN))
        return ph_builder_fail(
            builder, PH_ERROR_CONFIG, "aggregate: bias %u: needs 0, or 1 with means", own.bias);
    return ph__emit1(builder, &ph__op_aggregate, NULL, &own, sizeof own, NUM_INPUTS, inputs);
}

/* ---- backward: dy (B,F), sources jagged u32 (B bags, M), coefficients (M) or none -> dx (B,F) ---- */

enum { DY, SOURCES, COEFFICIENTS };

static ph_status backward_infer(struct ph__infer *infer)
{
    infer->outputs[0] = infer->inputs[DY];
    return PH_OK;
}

static void backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const size_t num_items = call->inputs[SOURCES].shape.dims[1];
    count(call, num_items, call->inputs[COEFFICIENTS].data != NULL, cost_out);
    cost_out->bytes += (double)num_items * sizeof(uint32_t);
}

static void backward_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    struct ph__embedding_bag_args args = lookup(call, first, last);
    (void)worker;
    args.offsets = call->inputs[SOURCES].index + first;
    args.slots = call->inputs[SOURCES].data;
    args.weights = call->inputs[COEFFICIENTS].data;
    call->backend->kernels->embedding_bag(&args);
}

static ph_status backward_run(struct ph__call *call)
{
    const struct ph_shape *sources = &call->inputs[SOURCES].shape;
    ph__for_blocks(call->backend, sources->dims[0], ph__aggregation_block(sources->dims[1], sources->dims[0]),
        backward_block, call);
    return PH_OK;
}

const struct ph__op ph__op_aggregate_backward = {
    .name = "aggregate_backward",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = backward_infer,
    .cost = backward_cost,
    .run = backward_run,
};
