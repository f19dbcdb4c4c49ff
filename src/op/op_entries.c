/* entries: what is summed into the gradient of each merged slot.
 *
 * slots jagged u32 (F*B bags, N), order jagged u32 (U bags, N) of merge, id weights (N) or none
 *   -> rows (N) u32: entry e is position p = order[e]; if that lies in the bag of sample b and feature f, its row of the
 *      lookup's gradient, seen as (B*F, D), is b F + f
 *   -> coefficients (N), unless pooling is a plain sum: weight of p, over the bag's length for mean pooling */
#include "op/attributes.h"
#include "op/op_table.h"

enum { SLOTS, ORDER, WEIGHTS, NUM_INPUTS };
enum { BLOCK_BAGS = 4096, BLOCK_ENTRIES = 16384 };

static ph_status entries_infer(struct ph_infer *infer)
{
    const struct ph_type *slots = &infer->inputs[SLOTS];
    infer->outputs[0] = ph__dense_type(1, &slots->dims[1]);
    infer->outputs[0].dtype = PH_U32;
    if (infer->num_outputs > 1)
        infer->outputs[1] = ph__dense_type(1, &slots->dims[1]);
    return PH_OK;
}

static void entries_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const struct ph_shape *slots = &call->inputs[SLOTS].shape;
    const double entries = (double)slots->dims[1];
    cost_out->bytes = (double)slots->dims[0] * sizeof(uint32_t) + 2 * entries * sizeof(uint32_t);
    if (call->num_outputs > 1)
        cost_out->bytes += 2 * entries * sizeof(ph_real);
}

/* The row of each position. */
static size_t entries_scratch_bytes(const struct ph_call *call)
{
    return call->inputs[SLOTS].shape.dims[1] * sizeof(uint32_t);
}

static void list_rows(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph_call *call = argument;
    const struct ph_operand *slots = &call->inputs[SLOTS];
    const size_t num_features = slots->type->dims[0].extent,
                 num_samples = slots->shape.dims[0] / num_features;
    uint32_t *row_of_position = call->scratch;
    size_t sample = first % num_samples, feature = first / num_samples;
    (void)worker;
    for (size_t bag = first; bag < last; bag++, sample++) {
        if (sample == num_samples) {
            sample = 0;
            feature++;
        }
        const uint32_t row = (uint32_t)(sample * num_features + feature);
        for (uint32_t p = slots->index[bag]; p < slots->index[bag + 1]; p++)
            row_of_position[p] = row;
    }
}

static ph_real coefficient_of(const struct ph_call *call, uint32_t position, uint32_t row)
{
    const struct ph_embedding_bag_attributes *attributes = call->attributes;
    const struct ph_operand *slots = &call->inputs[SLOTS];
    const ph_real *weights = call->inputs[WEIGHTS].data;
    const ph_real weight = weights != NULL ? weights[position] : 1;
    if (attributes->pooling != PH_POOL_MEAN)
        return weight;
    const size_t num_features = slots->type->dims[0].extent,
                 num_samples = slots->shape.dims[0] / num_features;
    const size_t bag = row % num_features * num_samples + row / num_features;
    return weight * (1 / (ph_real)(slots->index[bag + 1] - slots->index[bag]));
}

static void list_entries(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph_call *call = argument;
    const uint32_t *order = call->inputs[ORDER].data, *row_of_position = call->scratch;
    uint32_t *rows = call->outputs[0].data;
    ph_real *coefficients = call->num_outputs > 1 ? call->outputs[1].data : NULL;
    (void)worker;
    for (size_t e = first; e < last; e++)
        rows[e] = row_of_position[order[e]];
    if (coefficients != NULL)
        for (size_t e = first; e < last; e++)
            coefficients[e] = coefficient_of(call, order[e], rows[e]);
}

static ph_status entries_run(struct ph_call *call)
{
    const struct ph_shape *slots = &call->inputs[SLOTS].shape;
    ph__for_blocks(call->backend, slots->dims[0], BLOCK_BAGS, list_rows, call);
    ph__for_blocks(call->backend, slots->dims[1], BLOCK_ENTRIES, list_entries, call);
    return PH_OK;
}

const struct ph_op ph__op_entries = {
    .name = "entries",
    .infer = entries_infer,
    .cost = entries_cost,
    .scratch_bytes = entries_scratch_bytes,
    .run = entries_run,
};

void ph__entries(struct ph_builder *builder, ph_value slots, ph_value order, ph_value weights,
    enum ph_pooling pooling, ph_value *rows_out, ph_value *coefficients_out)
{
    const struct ph_embedding_bag_attributes attributes = {.pooling = pooling};
    const ph_value inputs[NUM_INPUTS] = {slots, order, weights};
    const size_t num_outputs = pooling == PH_POOL_SUM && weights == 0 ? 1 : 2;
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
