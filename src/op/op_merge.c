/* merge: the distinct slots of a batch, and where each of them occurs.
 *
 * slots jagged u32 (F*B bags, N) -> unique (U) u32, ascending, and order jagged u32 (U bags, N): the positions of each
 * distinct slot, ascending, so that whoever sums over them does so in a fixed order. U is decided at run time.
 *
 * Each feature is sorted by itself, in parallel, into scratch; a second sweep packs the results. The slices of a table
 * ascend with the features, so that the packed slots ascend too. */
#include <string.h>

#include "op/op_table.h"

/* Attributes: F ranges of rows. */

struct merge_job {
    const struct ph_call *call;
    size_t num_features, num_samples;
    uint32_t *unique, *starts; /* (N) each, as sorted: feature f begins where its positions begin */
    uint64_t *items;           /* (2N), of the sorts */
    size_t worker_positions;   /* see ph__worker_positions */
    size_t *num_unique;        /* (F + 1), then where each feature's slots begin in the output */
};

static ph_status merge_infer(struct ph_infer *infer)
{
    const struct ph_type *slots = &infer->inputs[0];
    const struct ph_slot_range *ranges = infer->attributes;
    size_t most = 0;
    for (size_t feature = 0; feature < slots->dims[0].extent; feature++)
        most += (size_t)ranges[feature].num_rows;
    const uint32_t symbol = ph__builder_symbol(infer->builder, "unique", slots->dims[1].symbol, 1, most);
    if (symbol == 0)
        return ph_builder_status(infer->builder);
    const struct ph_dim unique = ph__dim_of(1, symbol);
    infer->outputs[0] = ph__dense_type(1, &unique);
    infer->outputs[0].dtype = PH_U32;
    infer->outputs[1] = *slots;
    infer->outputs[1].dims[0] = unique;
    return PH_OK;
}

static void merge_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const double positions = (double)call->inputs[0].shape.dims[1];
    const double unique = (double)call->outputs[0].shape.dims[0];
    cost_out->bytes = (2 * positions + 2 * unique) * sizeof(uint32_t);
}

static size_t features_of(const struct ph_call *call)
{
    return call->inputs[0].type->dims[0].extent;
}

static size_t sort_bytes(size_t positions)
{
    const size_t bytes = ph__slot_sort_scratch_bytes(positions);
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

static size_t merge_scratch_bytes(const struct ph_call *call)
{
    const size_t positions = call->inputs[0].shape.dims[1];
    return sort_bytes(positions) + (features_of(call) + 1) * sizeof(size_t) +
           2 * positions * sizeof(uint32_t);
}

static struct merge_job make_job(const struct ph_call *call)
{
    const size_t positions = call->inputs[0].shape.dims[1];
    struct merge_job job = {.call = call, .num_features = features_of(call)};
    job.num_samples = call->inputs[0].shape.dims[0] / job.num_features;
    job.items = call->scratch;
    job.num_unique = (size_t *)(void *)((char *)call->scratch + sort_bytes(positions));
    job.unique = (uint32_t *)(void *)(job.num_unique + job.num_features + 1);
    job.starts = job.unique + positions;
    job.worker_positions = ph__worker_positions(call->backend, &call->inputs[0]);
    return job;
}

static void sort_feature(void *argument, size_t feature, size_t worker)
{
    const struct merge_job *job = argument;
    const struct ph_operand *slots = &job->call->inputs[0];
    const struct ph_slot_range range = ((const struct ph_slot_range *)job->call->attributes)[feature];
    const uint32_t first = slots->index[feature * job->num_samples];
    const uint32_t last = slots->index[(feature + 1) * job->num_samples];
    const size_t part = job->worker_positions > 0 ? worker * job->worker_positions : first;
    job->num_unique[feature] = 0;
    if (first == last)
        return;
    job->num_unique[feature] = ph__slot_sort(job->call->backend->kernels,
        (const uint32_t *)slots->data + first, last - first, (uint32_t)range.first_row,
        (uint32_t)range.num_rows, first, (uint32_t *)job->call->outputs[1].data + first, job->unique + first,
        job->starts + first, (char *)job->items + ph__slot_sort_scratch_bytes(part));
}

/* Counts become offsets; returns their sum. */
static size_t sum_counts(size_t *counts, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t here = counts[i];
        counts[i] = sum;
        sum += here;
    }
    return sum;
}

static void pack_feature(void *argument, size_t feature, size_t worker)
{
    const struct merge_job *job = argument;
    const struct ph_operand *unique = &job->call->outputs[0], *order = &job->call->outputs[1];
    const uint32_t first = job->call->inputs[0].index[feature * job->num_samples];
    const size_t begin = job->num_unique[feature], end = job->num_unique[feature + 1];
    (void)worker;
    memcpy((uint32_t *)unique->data + begin, job->unique + first, (end - begin) * sizeof(uint32_t));
    for (size_t i = begin; i < end; i++)
        order->index[i] = job->starts[first + i - begin] + first;
}

static ph_status merge_run(struct ph_call *call)
{
    struct merge_job job = make_job(call);
    ph__parallel_for(call->backend->team, job.num_features, sort_feature, &job);
    const size_t num_unique = sum_counts(job.num_unique, job.num_features);
    job.num_unique[job.num_features] = num_unique;
    ph__parallel_for(call->backend->team, job.num_features, pack_feature, &job);
    call->outputs[1].index[num_unique] = (uint32_t)call->inputs[0].shape.dims[1];
    call->extents[call->outputs[0].type->dims[0].symbol] = num_unique;
    return PH_OK;
}

const struct ph_op ph__op_merge = {
    .name = "merge",
    .infer = merge_infer,
    .cost = merge_cost,
    .scratch_bytes = merge_scratch_bytes,
    .run = merge_run,
};

void ph__merge(struct ph_builder *builder, ph_value slots, ph_value *unique_out, ph_value *order_out)
{
    ph_value outputs[2] = {0};
    if (ph_builder_status(builder) == PH_OK) {
        const struct ph_slot_range *ranges = ph__slots_ranges(ph__builder_producer(builder, slots));
        const size_t size = ph_value_type(builder, slots).dims[0].extent * sizeof *ranges;
        outputs[0] = ph__builder_find(builder, &ph__op_merge, ranges, size, 1, &slots, 0);
        outputs[1] = ph__builder_find(builder, &ph__op_merge, ranges, size, 1, &slots, 1);
        if (outputs[0] == 0)
            ph__emit(builder, &ph__op_merge, NULL, ranges, size, 1, &slots, 2, outputs);
    }
    *unique_out = outputs[0];
    *order_out = outputs[1];
}
