/* entries: the terms of each merged slot's gradient.
 *
 * slots jagged u32 (F*B bags, N), order jagged u32 (U bags, N) of merge, id weights (N) or none
 *   -> rows (N) u32: entry e is position p = order[e]; if p lies in the bag of sample b and feature f, its
 *      row of the lookup's gradient, seen as (B*F, D), is b F + f; in a lookup of items, whose gradient is
 *      (N,D), it is p
 *   -> coefficients (N), unless all are one: weight of p, over the bag's length for mean pooling
 *
 * Where the slices of the features ascend, merged slots ascend with the features: a feature's entries lie
 * where its positions do, and one task lists both, while the rows of its positions are in a cache. Where
 * features share a slice, the rows of all positions are listed before all entries. */
#include "base/memory/absent.h"
#include "op/attributes.h"
#include "op/table/op_table.h"

enum { SLOTS, ORDER, WEIGHTS, NUM_INPUTS };

struct entries_attributes {
    enum ph__lookup_shape shape;
    int is_ascending; /* set when the slices of the features ascend */
};

enum { BLOCK_ENTRIES = 4096 };

static ph_status entries_infer(struct ph__infer *infer)
{
    const struct ph_type *slots = &infer->inputs[SLOTS];
    infer->outputs[0] = ph__dense_type(1, &slots->dims[1]);
    infer->outputs[0].dtype = PH_U32;
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &slots->dims[1]);
    return PH_OK;
}

static void entries_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph_shape *slots = &call->inputs[SLOTS].shape;
    const double entries = (double)slots->dims[1];
    cost_out->bytes = (double)slots->dims[0] * sizeof(uint32_t) + 2 * entries * sizeof(uint32_t);
    if (call->num_outputs > 1)
        cost_out->bytes += 2 * entries * sizeof(ph_real);
}

struct entries_job {
    const struct ph__call *call;
    enum ph__lookup_shape shape;
    size_t num_features, num_samples;
    size_t worker_positions; /* see ph__worker_positions */
};

/* Counts a row for each position. */
static size_t entries_scratch_bytes(const struct ph__call *call)
{
    return call->inputs[SLOTS].shape.dims[1] * sizeof(uint32_t);
}

static void list_rows(const struct entries_job *job, size_t feature, uint32_t *row_of_position)
{
    const uint32_t *offsets = job->call->inputs[SLOTS].index + feature * job->num_samples;
    for (size_t sample = 0; sample < job->num_samples; sample++) {
        const uint32_t row = (uint32_t)(sample * job->num_features + feature);
        for (uint32_t p = offsets[sample]; p < offsets[sample + 1]; p++)
            row_of_position[p - offsets[0]] = row;
    }
}

static ph_real coefficient_of(const struct entries_job *job, uint32_t position, uint32_t row)
{
    const uint32_t *offsets = job->call->inputs[SLOTS].index;
    const ph_real *weights = job->call->inputs[WEIGHTS].data;
    const ph_real weight = weights != NULL ? weights[position] : 1;
    if (job->shape != PH_LOOKUP_MEANS)
        return weight;
    const size_t bag = row % job->num_features * job->num_samples + row / job->num_features;
    return weight * (1 / (ph_real)(offsets[bag + 1] - offsets[bag]));
}

/* Lists entries [first, last). row_of_position holds the rows of positions from `begin` on. */
static void list_entries(
    const struct entries_job *job, size_t first, size_t last, const uint32_t *row_of_position, size_t begin)
{
    const struct ph__call *call = job->call;
    const uint32_t *order = call->inputs[ORDER].data;
    uint32_t *rows = call->outputs[0].data;
    const bool has_coefficients = call->num_outputs > 1 && !ph__memory_is_absent(call->outputs[1].data);
    ph_real *coefficients = has_coefficients ? call->outputs[1].data : NULL;
    for (size_t e = first; e < last; e++)
        rows[e] = job->shape == PH_LOOKUP_ITEMS ? order[e] : row_of_position[order[e] - begin];
    if (coefficients != NULL)
        for (size_t e = first; e < last; e++)
            coefficients[e] = coefficient_of(job, order[e], rows[e]);
}

static void list_feature(void *argument, size_t feature, size_t worker)
{
    const struct entries_job *job = argument;
    const uint32_t *offsets = job->call->inputs[SLOTS].index;
    const size_t first = offsets[feature * job->num_samples];
    const size_t last = offsets[(feature + 1) * job->num_samples];
    uint32_t *row_of_position =
        (uint32_t *)job->call->scratch + (job->worker_positions > 0 ? worker * job->worker_positions : first);
    if (job->shape != PH_LOOKUP_ITEMS)
        list_rows(job, feature, row_of_position);
    list_entries(job, first, last, row_of_position, first);
}

/* ---- features that share a slice ---- */

static void list_positions(void *argument, size_t feature, size_t worker)
{
    const struct entries_job *job = argument;
    const size_t first = job->call->inputs[SLOTS].index[feature * job->num_samples];
    (void)worker;
    list_rows(job, feature, (uint32_t *)job->call->scratch + first);
}

static void list_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct entries_job *job = argument;
    (void)worker;
    list_entries(job, first, last, job->call->scratch, 0);
}

static size_t largest_feature(const struct entries_job *job)
{
    const uint32_t *offsets = job->call->inputs[SLOTS].index;
    size_t largest = 0;
    for (size_t feature = 0; feature < job->num_features; feature++) {
        const size_t here = offsets[(feature + 1) * job->num_samples] - offsets[feature * job->num_samples];
        largest = here > largest ? here : largest;
    }
    return largest;
}

static ph_status entries_run(struct ph__call *call)
{
    const struct entries_attributes *attributes = call->attributes;
    const struct ph__operand *slots = &call->inputs[SLOTS];
    struct entries_job job = {
        .call = call, .shape = attributes->shape, .num_features = slots->type->dims[0].extent};
    job.num_samples = slots->shape.dims[0] / job.num_features;
    if (attributes->is_ascending) {
        job.worker_positions =
            ph__worker_positions(call->backend, slots->shape.dims[1], largest_feature(&job));
        ph__parallel_for(call->backend->team, job.num_features, list_feature, &job);
        return PH_OK;
    }
    ph__parallel_for(call->backend->team, job.num_features, list_positions, &job);
    ph__for_blocks(call->backend, slots->shape.dims[1], BLOCK_ENTRIES, list_block, &job);
    return PH_OK;
}

const struct ph__op ph__op_entries = {
    .name = "entries",
    .traits = PH_OP_OF_IDS,
    .infer = entries_infer,
    .cost = entries_cost,
    .scratch_bytes = entries_scratch_bytes,
    .run = entries_run,
};

static bool has_ascending_slices(const struct ph_builder *builder, ph_value slots)
{
    const struct ph__slot_range *ranges = ph__slots_ranges(ph__builder_producer(builder, slots));
    for (size_t i = 1; i < ph_value_type(builder, slots).dims[0].extent; i++)
        if (ranges[i].first_row <= ranges[i - 1].first_row)
            return false;
    return true;
}

void ph__entries(struct ph_builder *builder, ph_value slots, ph_value order, ph_value weights,
    enum ph__lookup_shape shape, ph_value *rows_out, ph_value *coefficients_out)
{
    *rows_out = *coefficients_out = 0;
    if (ph_builder_status(builder) != PH_OK)
        return;
    const struct entries_attributes attributes = {shape, has_ascending_slices(builder, slots)};
    const ph_value inputs[NUM_INPUTS] = {slots, order, weights};
    const size_t num_outputs = shape != PH_LOOKUP_MEANS && weights == 0 ? 1 : 2;
    ph_value outputs[2] = {0, 0};
    for (size_t i = 0; i < num_outputs; i++)
        outputs[i] =
            ph__builder_find(builder, &ph__op_entries, &attributes, sizeof attributes, NUM_INPUTS, inputs, i);
    if (outputs[0] == 0)
        ph__emit(builder, &ph__op_entries, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs,
            num_outputs, outputs);
    *rows_out = outputs[0];
    *coefficients_out = outputs[1];
}

struct ph__lookup_entries ph__lookup_entries(const struct ph__node *node)
{
    const struct entries_attributes *attributes = node->attributes;
    return (struct ph__lookup_entries){node->inputs[SLOTS], node->inputs[WEIGHTS], attributes->shape};
}
