/* keep_lookup: appends a micro-batch's parts of a table's gradient to those of the micro-batches before it.
 *
 * slots jagged u32 (F*B bags, N), id weights (N) or none, gradient of the lookup (B,F,D) or, of items, (N,D),
 * number of micro-batches before (scalar) -> of all micro-batches so far, P positions and S samples or items;
 * they stay from run to run:
 *   slots jagged u32 (K*F bags, P) of K micro-batches at most: a bag for each of them and each feature
 *   rows (P) u32: position p takes that row of the gradient, seen as (S*F, D) or (S,D)
 *   gradient (S,F,D) or (S,D)
 *   coefficients (P), unless all are one: weight of p, over its bag's length for mean pooling */
#include <assert.h>
#include <string.h>

#include "base/memory/absent.h"
#include "op/update/accumulation.h"

/* ---- keep_lookup ---- */

enum { SLOTS, WEIGHTS, GRADIENT, NUM_BEFORE, NUM_INPUTS };

struct keep_attributes {
    enum ph__lookup_shape shape;
    size_t num_micro_batches;
};

/* Returns a dimension with at most num_micro_batches times the extent of `dim`. */
static struct ph_dim kept_dim(const struct ph__infer *infer, const char *name, struct ph_dim dim)
{
    const struct keep_attributes *attributes = infer->attributes;
    const size_t factor = dim.extent * attributes->num_micro_batches;
    return ph__dim_of(1, ph__builder_symbol(infer->builder, name, dim.symbol, factor, SIZE_MAX));
}

static ph_status keep_infer(struct ph__infer *infer)
{
    const struct ph_type *slots = &infer->inputs[SLOTS], *gradient = &infer->inputs[GRADIENT];
    if (slots->kind != PH_JAGGED || !ph__type_is_real(gradient) || gradient->num_dims < 2)
        return ph__infer_fail(infer, "slots, weights or none, the gradient (B,F,D) or (N,D), a scalar");
    const struct ph_dim positions = kept_dim(infer, "kept positions", slots->dims[1]);
    infer->outputs[PH_KEPT_SLOTS] = *slots;
    infer->outputs[PH_KEPT_SLOTS].dims[0] = ph__dim(
        slots->dims[0].extent * ((const struct keep_attributes *)infer->attributes)->num_micro_batches);
    infer->outputs[PH_KEPT_SLOTS].dims[1] = positions;
    infer->outputs[PH_KEPT_ROWS] = ph__dense_type(1, &positions);
    infer->outputs[PH_KEPT_ROWS].dtype = PH_U32;
    infer->outputs[PH_KEPT_GRADIENT] = *gradient;
    infer->outputs[PH_KEPT_GRADIENT].dims[0] = kept_dim(infer, "kept gradients", gradient->dims[0]);
    if (infer->num_outputs > PH_KEPT_COEFFICIENTS)
        infer->outputs[PH_KEPT_COEFFICIENTS] = ph__dense_type(1, &positions);
    return ph_builder_status(infer->builder);
}

static void keep_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double positions = (double)call->inputs[SLOTS].shape.dims[1];
    const double coefficients = call->num_outputs > PH_KEPT_COEFFICIENTS ? positions : 0;
    cost_out->bytes = (double)(call->inputs[SLOTS].shape.dims[0] + 3 * (size_t)positions) * sizeof(uint32_t) +
                      2 * (coefficients + (double)ph__elements(&call->inputs[GRADIENT])) * sizeof(ph_real);
}

struct keep_job {
    const struct ph__call *call;
    enum ph__lookup_shape shape;
    size_t num_features, num_samples;
    size_t first_row, first_position; /* of the micro-batch, among all */
};

static void keep_bag(const struct keep_job *job, size_t feature, size_t sample)
{
    const struct ph__call *call = job->call;
    const uint32_t *offsets = call->inputs[SLOTS].index + feature * job->num_samples + sample;
    const ph_real *weights = call->inputs[WEIGHTS].data;
    uint32_t *rows = (uint32_t *)call->outputs[PH_KEPT_ROWS].data + job->first_position;
    const size_t row = job->first_row + sample * job->num_features + feature;
    for (size_t p = offsets[0]; p < offsets[1]; p++)
        rows[p] = (uint32_t)(job->shape == PH_LOOKUP_ITEMS ? job->first_row + p : row);
    if (call->num_outputs <= PH_KEPT_COEFFICIENTS ||
        ph__memory_is_absent(call->outputs[PH_KEPT_COEFFICIENTS].data))
        return;
    ph_real *coefficients = (ph_real *)call->outputs[PH_KEPT_COEFFICIENTS].data + job->first_position;
    const ph_real factor = job->shape == PH_LOOKUP_MEANS ? 1 / (ph_real)(offsets[1] - offsets[0]) : 1;
    for (size_t p = offsets[0]; p < offsets[1]; p++)
        coefficients[p] = (weights != NULL ? weights[p] : 1) * factor;
}

static void keep_feature(void *argument, size_t feature, size_t worker)
{
    const struct keep_job *job = argument;
    (void)worker;
    for (size_t sample = 0; sample < job->num_samples; sample++)
        keep_bag(job, feature, sample);
}

static uint64_t *extent_of(const struct ph__call *call, size_t output, size_t dim)
{
    return &call->extents[call->outputs[output].type->dims[dim].symbol];
}

static void keep_slots(const struct keep_job *job)
{
    const struct ph__call *call = job->call;
    const struct ph__operand *slots = &call->inputs[SLOTS], *kept = &call->outputs[PH_KEPT_SLOTS];
    const size_t count = slots->shape.dims[1];
    uint32_t *index = kept->index + (size_t)*call->inputs[NUM_BEFORE].scalar * job->num_features;
    memcpy((uint32_t *)kept->data + job->first_position, slots->data, count * sizeof(uint32_t));
    for (size_t f = 0; f <= job->num_features; f++)
        index[f] = (uint32_t)(job->first_position + slots->index[f * job->num_samples]);
    *extent_of(call, PH_KEPT_SLOTS, 1) = job->first_position + count;
}

static void keep_gradient(const struct ph__call *call, size_t first)
{
    const struct ph__operand *gradient = &call->inputs[GRADIENT];
    const size_t count = ph__rows(gradient), elements = ph__row_elements(gradient);
    if (!ph__memory_is_absent(gradient->data))
        ph__copy_columns(call->backend, count, elements, gradient->data, elements,
            (ph_real *)call->outputs[PH_KEPT_GRADIENT].data + first * elements, elements);
    *extent_of(call, PH_KEPT_GRADIENT, 0) = first + count;
}

/* Checks that positions and rows can be counted in 32 bits. */
static ph_status check_counts(const struct keep_job *job)
{
    const uint64_t num_positions = (uint64_t)job->first_position + job->call->inputs[SLOTS].shape.dims[1];
    const uint64_t num_rows = (uint64_t)job->first_row + ph__vectors(&job->call->inputs[GRADIENT]);
    if (num_positions <= UINT32_MAX && num_rows <= UINT32_MAX)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA,
        "the micro-batches of a step have %llu ids in %llu bags, more than 2^32 - 1",
        (unsigned long long)num_positions, (unsigned long long)num_rows);
}

static ph_status keep_run(struct ph__call *call)
{
    const struct keep_attributes *attributes = call->attributes;
    const struct ph__operand *slots = &call->inputs[SLOTS], *gradient = &call->inputs[GRADIENT];
    const bool is_first = *call->inputs[NUM_BEFORE].scalar == 0;
    const size_t first = is_first ? 0 : (size_t)*extent_of(call, PH_KEPT_GRADIENT, 0);
    assert(*call->inputs[NUM_BEFORE].scalar < (double)attributes->num_micro_batches);
    struct keep_job job = {.call = call,
        .shape = attributes->shape,
        .num_features = slots->type->dims[0].extent,
        .first_row = first * (ph__row_elements(gradient) / ph__row_width(gradient)),
        .first_position = is_first ? 0 : (size_t)*extent_of(call, PH_KEPT_SLOTS, 1)};
    job.num_samples = slots->shape.dims[0] / job.num_features;
    PH_TRY(check_counts(&job));
    ph__parallel_for(call->backend->team, job.num_features, keep_feature, &job);
    keep_slots(&job);
    keep_gradient(call, first);
    return PH_OK;
}

const struct ph__op ph__op_keep_lookup = {
    .name = "keep_lookup",
    .traits = PH_OP_KEEPS_OUTPUTS | PH_OP_OF_IDS,
    .infer = keep_infer,
    .cost = keep_cost,
    .run = keep_run,
};

void ph__keep_lookup(struct ph_builder *builder, const struct ph__accumulation *accumulation,
    const struct ph__lookup_entries *lookup, ph_value gradient, ph_value outputs_out[PH_KEPT_OUTPUTS])
{
    const struct keep_attributes attributes = {lookup->shape, accumulation->num_micro_batches};
    const ph_value inputs[NUM_INPUTS] = {lookup->slots, lookup->weights, gradient, accumulation->num_before};
    const bool has_coefficients = lookup->shape == PH_LOOKUP_MEANS || lookup->weights != 0;
    memset(outputs_out, 0, PH_KEPT_OUTPUTS * sizeof *outputs_out);
    ph__emit(builder, &ph__op_keep_lookup, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs,
        has_coefficients ? PH_KEPT_OUTPUTS : PH_KEPT_COEFFICIENTS, outputs_out);
}

/* ---- kept_entries ---- */

/* kept_entries: the terms of each merged slot's gradient, for positions that were kept.
 *
 * order jagged u32 (U bags, P) of merge, positions (P) u32 of group_positions, rows (P) u32,
 * coefficients (P) or none
 *   -> rows (P) u32 and, unless absent, coefficients (P): entry e is kept position positions[order[e]]. */

enum { ORDER, POSITIONS, ROWS, COEFFICIENTS };
enum { BLOCK_ENTRIES = 4096 };

static ph_status kept_entries_infer(struct ph__infer *infer)
{
    infer->outputs[0] = infer->inputs[ROWS];
    if (infer->num_outputs > 1)
        infer->outputs[1] = infer->inputs[COEFFICIENTS];
    return PH_OK;
}

static void kept_entries_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double entries = (double)call->inputs[ORDER].shape.dims[1];
    cost_out->bytes = 4 * entries * sizeof(uint32_t);
    if (call->num_outputs > 1)
        cost_out->bytes += 2 * entries * sizeof(ph_real);
}

static void list_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const uint32_t *order = call->inputs[ORDER].data, *positions = call->inputs[POSITIONS].data;
    const uint32_t *rows = call->inputs[ROWS].data;
    const ph_real *coefficients = call->inputs[COEFFICIENTS].data;
    (void)worker;
    for (size_t e = first; e < last; e++)
        ((uint32_t *)call->outputs[0].data)[e] = rows[positions[order[e]]];
    const bool has_coefficients = call->num_outputs > 1 && !ph__memory_is_absent(call->outputs[1].data);
    for (size_t e = first; e < last && has_coefficients; e++)
        ((ph_real *)call->outputs[1].data)[e] = coefficients[positions[order[e]]];
}

static ph_status kept_entries_run(struct ph__call *call)
{
    ph__for_blocks(call->backend, call->inputs[ORDER].shape.dims[1], BLOCK_ENTRIES, list_block, call);
    return PH_OK;
}

const struct ph__op ph__op_kept_entries = {
    .name = "kept_entries",
    .traits = PH_OP_OF_IDS,
    .infer = kept_entries_infer,
    .cost = kept_entries_cost,
    .run = kept_entries_run,
};
