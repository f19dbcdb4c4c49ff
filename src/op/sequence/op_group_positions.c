/* group_positions: puts kept positions (op_keep_lookup.c) into the order that they would have in one batch:
 * feature by feature, and within a feature sample by sample. Sums over them then have the bits that they have
 * for one batch.
 *
 * slots jagged u32 (K*F bags, P) of K micro-batches at most, number of micro-batches before the last (scalar)
 *   -> slots jagged u32 (F bags, P)
 *   -> positions (P) u32: the place of each among those that were kept */
#include <string.h>

#include "op/update/accumulation.h"

enum { KEPT, NUM_BEFORE, NUM_INPUTS };

struct group_attributes {
    size_t num_features;
};

static size_t features_of(const struct ph__call *call)
{
    return ((const struct group_attributes *)call->attributes)->num_features;
}

static ph_status group_infer(struct ph__infer *infer)
{
    const struct group_attributes *attributes = infer->attributes;
    const struct ph_type *kept = &infer->inputs[KEPT];
    infer->outputs[0] = *kept;
    infer->outputs[0].dims[0] = ph__dim(attributes->num_features);
    infer->outputs[1] = ph__dense_type(1, &kept->dims[1]);
    infer->outputs[1].dtype = PH_U32;
    return PH_OK;
}

static void group_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->bytes = 3 * (double)call->inputs[KEPT].shape.dims[1] * sizeof(uint32_t);
}

static size_t num_micro_batches(const struct ph__call *call)
{
    return (size_t)*call->inputs[NUM_BEFORE].scalar + 1;
}

static void count_positions(const struct ph__call *call)
{
    const uint32_t *kept = call->inputs[KEPT].index;
    uint32_t *index = call->outputs[0].index;
    const size_t num_features = features_of(call);
    index[0] = 0;
    for (size_t f = 0; f < num_features; f++) {
        index[f + 1] = index[f];
        for (size_t bag = f; bag < num_micro_batches(call) * num_features; bag += num_features)
            index[f + 1] += kept[bag + 1] - kept[bag];
    }
}

static void group_feature(void *argument, size_t feature, size_t worker)
{
    const struct ph__call *call = argument;
    const struct ph__operand *kept = &call->inputs[KEPT];
    const size_t num_features = features_of(call);
    uint32_t *slots = (uint32_t *)call->outputs[0].data + call->outputs[0].index[feature];
    uint32_t *positions = (uint32_t *)call->outputs[1].data + call->outputs[0].index[feature];
    (void)worker;
    for (size_t bag = feature; bag < num_micro_batches(call) * num_features; bag += num_features) {
        const uint32_t first = kept->index[bag], count = kept->index[bag + 1] - first;
        memcpy(slots, (const uint32_t *)kept->data + first, count * sizeof *slots);
        for (uint32_t i = 0; i < count; i++)
            positions[i] = first + i;
        slots += count;
        positions += count;
    }
}

static ph_status group_run(struct ph__call *call)
{
    count_positions(call);
    ph__parallel_for(call->backend->team, features_of(call), group_feature, call);
    return PH_OK;
}

const struct ph__op ph__op_group_positions = {
    .name = "group_positions",
    .traits = PH_OP_OF_IDS,
    .infer = group_infer,
    .cost = group_cost,
    .run = group_run,
};

void ph__group_positions(struct ph_builder *builder, const struct ph__accumulation *accumulation,
    ph_value kept, size_t num_features, ph_value outputs_out[2])
{
    const struct group_attributes attributes = {num_features};
    const ph_value inputs[NUM_INPUTS] = {kept, accumulation->num_before};
    ph__emit(builder, &ph__op_group_positions, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs, 2,
        outputs_out);
}
