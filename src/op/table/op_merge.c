/* merge: the distinct slots of a batch, and the positions of each.
 *
 * slots jagged u32 (F*B bags, N) -> unique (U) u32, ascending, and order jagged u32 (U bags, N): the
 * positions of each distinct slot, ascending, so that sums over them have a fixed order. U is known at run
 * time.
 *
 * The features of one slice are a group; groups are sorted in parallel, each by itself, into scratch, and a
 * second sweep packs the results. Groups ascend with their slices, so the packed slots ascend too. A group of
 * one feature is sorted straight from the batch; the slots of a larger group are first gathered. */
#include <stdlib.h>
#include <string.h>

#include "op/table/op_table.h"

/* Attributes: the F features in the order of their slices, and within a slice in their own order. */
struct merge_feature {
    struct ph__slot_range range;
    size_t feature, group; /* groups are counted from 0 */
};

struct merge_group {
    size_t first_feature; /* of the attributes */
    size_t begin;         /* of its positions in `order` */
    size_t num_unique;    /* later the start of its slots in the output */
};

struct merge_job {
    const struct ph__call *call;
    const struct merge_feature *features;
    size_t num_features, num_samples, num_groups;
    struct merge_group *groups; /* (num_groups + 1) */
    uint64_t *items;            /* (2N), for the sorts */
    size_t worker_positions;    /* see ph__worker_positions */
    /* (N) each, a group from its begin on: sorted slots and starts; slots gathered where slices are shared */
    uint32_t *unique, *starts, *gathered;
};

static ph_status merge_infer(struct ph__infer *infer)
{
    const struct ph_type *slots = &infer->inputs[0];
    const struct merge_feature *features = infer->attributes;
    size_t most = 0;
    for (size_t i = 0; i < slots->dims[0].extent; i++)
        if (i == 0 || features[i].group != features[i - 1].group)
            most += (size_t)features[i].range.num_rows;
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

static void merge_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double positions = (double)call->inputs[0].shape.dims[1];
    const double unique = (double)call->outputs[0].shape.dims[0];
    cost_out->bytes = (2 * positions + 2 * unique) * sizeof(uint32_t);
}

static size_t features_of(const struct ph__call *call)
{
    return call->inputs[0].type->dims[0].extent;
}

static size_t sort_bytes(size_t positions)
{
    const size_t bytes = ph__slot_sort_scratch_bytes(positions);
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

static size_t groups_bytes(const struct ph__call *call)
{
    return (features_of(call) + 1) * sizeof(struct merge_group);
}

static bool has_shared_slices(const struct ph__call *call)
{
    const struct merge_feature *features = call->attributes;
    return features[features_of(call) - 1].group + 1 < features_of(call);
}

static size_t merge_scratch_bytes(const struct ph__call *call)
{
    const size_t positions = call->inputs[0].shape.dims[1];
    const size_t num_arrays = has_shared_slices(call) ? 3 : 2;
    return sort_bytes(positions) + groups_bytes(call) + num_arrays * positions * sizeof(uint32_t);
}

/* Returns the first position of a feature in the batch. */
static size_t first_position(const struct merge_job *job, size_t feature)
{
    return job->call->inputs[0].index[feature * job->num_samples];
}

static size_t num_positions(const struct merge_job *job, const struct merge_feature *feature)
{
    return first_position(job, feature->feature + 1) - first_position(job, feature->feature);
}

/* Lists the groups and their positions; returns the most positions of a group. */
static size_t list_groups(struct merge_job *job)
{
    size_t begin = 0, largest = 0;
    for (size_t i = 0; i < job->num_features; i++) {
        const struct merge_feature *feature = &job->features[i];
        if (feature->group == job->num_groups)
            job->groups[job->num_groups++] = (struct merge_group){.first_feature = i, .begin = begin};
        begin += num_positions(job, feature);
        const size_t here = begin - job->groups[feature->group].begin;
        largest = here > largest ? here : largest;
    }
    job->groups[job->num_groups] = (struct merge_group){.first_feature = job->num_features, .begin = begin};
    return largest;
}

static struct merge_job make_job(const struct ph__call *call)
{
    const size_t positions = call->inputs[0].shape.dims[1];
    struct merge_job job = {.call = call, .features = call->attributes, .num_features = features_of(call)};
    job.num_samples = call->inputs[0].shape.dims[0] / job.num_features;
    job.items = call->scratch;
    job.groups = (void *)((char *)call->scratch + sort_bytes(positions));
    job.unique = (void *)((char *)job.groups + groups_bytes(call));
    job.starts = job.unique + positions;
    job.gathered = job.starts + positions;
    job.worker_positions = ph__worker_positions(call->backend, positions, list_groups(&job));
    return job;
}

/* Copies the slots of several features one after the other. */
static void gather(const struct merge_job *job, const struct merge_group *group, uint32_t *gathered)
{
    const uint32_t *slots = job->call->inputs[0].data;
    for (size_t i = group->first_feature; i < group[1].first_feature; i++) {
        const size_t count = num_positions(job, &job->features[i]);
        memcpy(gathered, slots + first_position(job, job->features[i].feature), count * sizeof *slots);
        gathered += count;
    }
}

/* Turns places among gathered slots into positions in the batch. */
static void place(const struct merge_job *job, const struct merge_group *group, uint32_t *order)
{
    for (size_t e = 0; e < group[1].begin - group->begin; e++) {
        const struct merge_feature *feature = &job->features[group->first_feature];
        size_t at = order[e];
        for (; at >= num_positions(job, feature); feature++)
            at -= num_positions(job, feature);
        order[e] = (uint32_t)(first_position(job, feature->feature) + at);
    }
}

static void sort_group(void *argument, size_t number, size_t worker)
{
    const struct merge_job *job = argument;
    struct merge_group *group = &job->groups[number];
    const struct merge_feature *feature = &job->features[group->first_feature];
    const size_t begin = group->begin, count = group[1].begin - begin;
    const bool is_gathered = group[1].first_feature > group->first_feature + 1;
    const size_t first = is_gathered ? 0 : first_position(job, feature->feature);
    const size_t part = job->worker_positions > 0 ? worker * job->worker_positions : begin;
    const uint32_t *slots = (const uint32_t *)job->call->inputs[0].data + first;
    uint32_t *order = (uint32_t *)job->call->outputs[1].data + begin;
    if (count == 0)
        return;
    if (is_gathered) {
        gather(job, group, job->gathered + begin);
        slots = job->gathered + begin;
    }
    group->num_unique = ph__slot_sort(job->call->backend->kernels, slots, count,
        (uint32_t)feature->range.first_row, (uint32_t)feature->range.num_rows, (uint32_t)first, order,
        job->unique + begin, job->starts + begin, (char *)job->items + ph__slot_sort_scratch_bytes(part));
    if (is_gathered)
        place(job, group, order);
}

/* Turns counts into offsets; returns their sum. */
static size_t sum_counts(struct merge_group *groups, size_t num_groups)
{
    size_t sum = 0;
    for (size_t i = 0; i < num_groups; i++) {
        const size_t here = groups[i].num_unique;
        groups[i].num_unique = sum;
        sum += here;
    }
    groups[num_groups].num_unique = sum;
    return sum;
}

static void pack_group(void *argument, size_t number, size_t worker)
{
    const struct merge_job *job = argument;
    const struct ph__operand *unique = &job->call->outputs[0], *order = &job->call->outputs[1];
    const struct merge_group *group = &job->groups[number];
    const size_t first = group->num_unique, last = group[1].num_unique;
    (void)worker;
    memcpy((uint32_t *)unique->data + first, job->unique + group->begin, (last - first) * sizeof(uint32_t));
    for (size_t i = first; i < last; i++)
        order->index[i] = job->starts[group->begin + i - first] + (uint32_t)group->begin;
}

static ph_status merge_run(struct ph__call *call)
{
    struct merge_job job = make_job(call);
    ph__parallel_for(call->backend->team, job.num_groups, sort_group, &job);
    const size_t num_unique = sum_counts(job.groups, job.num_groups);
    ph__parallel_for(call->backend->team, job.num_groups, pack_group, &job);
    call->outputs[1].index[num_unique] = (uint32_t)call->inputs[0].shape.dims[1];
    call->extents[call->outputs[0].type->dims[0].symbol] = num_unique;
    return PH_OK;
}

const struct ph__op ph__op_merge = {
    .name = "merge",
    .traits = PH_OP_OF_IDS,
    .infer = merge_infer,
    .cost = merge_cost,
    .scratch_bytes = merge_scratch_bytes,
    .run = merge_run,
};

static int compare_slices(const void *left, const void *right)
{
    const struct merge_feature *a = left, *b = right;
    if (a->range.first_row != b->range.first_row)
        return a->range.first_row < b->range.first_row ? -1 : 1;
    if (a->range.num_rows != b->range.num_rows)
        return a->range.num_rows < b->range.num_rows ? -1 : 1;
    return a->feature < b->feature ? -1 : a->feature > b->feature;
}

static bool is_same_slice(const struct merge_feature *a, const struct merge_feature *b)
{
    return a->range.first_row == b->range.first_row && a->range.num_rows == b->range.num_rows;
}

/* Lists the features in the order of their slices, with their groups; NULL after failure. */
static struct merge_feature *list_features(
    struct ph_builder *builder, const struct ph__slot_range *ranges, size_t count)
{
    struct merge_feature *features = ph__arena_alloc_array(&builder->graph.arena, count, sizeof *features);
    if (features == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu features", count);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        features[i] = (struct merge_feature){ranges[i], i, 0};
    qsort(features, count, sizeof *features, compare_slices);
    for (size_t i = 1; i < count; i++)
        features[i].group = features[i - 1].group + !is_same_slice(&features[i], &features[i - 1]);
    return features;
}

void ph__merge_ranges(struct ph_builder *builder, ph_value slots, const struct ph__slot_range *ranges,
    ph_value *unique_out, ph_value *order_out)
{
    ph_value outputs[2] = {0};
    const size_t count = ph_value_type(builder, slots).dims[0].extent;
    const struct merge_feature *features =
        ph_builder_status(builder) == PH_OK ? list_features(builder, ranges, count) : NULL;
    if (features != NULL) {
        const size_t size = count * sizeof *features;
        outputs[0] = ph__builder_find(builder, &ph__op_merge, features, size, 1, &slots, 0);
        outputs[1] = ph__builder_find(builder, &ph__op_merge, features, size, 1, &slots, 1);
        if (outputs[0] == 0)
            ph__emit(builder, &ph__op_merge, NULL, features, size, 1, &slots, 2, outputs);
    }
    *unique_out = outputs[0];
    *order_out = outputs[1];
}

void ph__merge(struct ph_builder *builder, ph_value slots, ph_value *unique_out, ph_value *order_out)
{
    const bool has_failed = ph_builder_status(builder) != PH_OK;
    ph__merge_ranges(builder, slots,
        has_failed ? NULL : ph__slots_ranges(ph__builder_producer(builder, slots)), unique_out, order_out);
}
