/* feature_bags: the bags of some features of a batch, as jagged ids of their own.
 *
 * ids jagged (F*B bags, N) -> jagged (S*B bags, M): the bags of the S selected features, in ascending order.
 * Their number of items, M, is known at run time. feature_weights selects the weights of these ids: (N) ->
 * (M), and ones where the batch has no weights. A feature's ids stand side by side in the batch, so each
 * feature is one copy. */
#include <string.h>

#include "op/table/op_table.h"

struct selection_attributes {
    size_t count;
    size_t features[]; /* (count), ascending */
};

/* Positions [first, last) of a selected feature in the batch, and their start in the selection. */
struct selected_range {
    size_t first, last, begin;
};

static struct selected_range range_of(const struct ph__call *call, size_t selected)
{
    const struct selection_attributes *attributes = call->attributes;
    const struct ph__operand *ids = &call->inputs[0];
    const size_t num_samples = ids->shape.dims[0] / ids->type->dims[0].extent;
    struct selected_range range = {0};
    for (size_t i = 0; i <= selected; i++) {
        const uint32_t *offsets = ids->index + attributes->features[i] * num_samples;
        range.begin += range.last - range.first;
        range.first = offsets[0];
        range.last = offsets[num_samples];
    }
    return range;
}

/* ---- feature_bags ---- */

static ph_status feature_bags_infer(struct ph__infer *infer)
{
    const struct selection_attributes *attributes = infer->attributes;
    const struct ph_type *ids = &infer->inputs[0];
    const uint32_t symbol = ph__builder_symbol(infer->builder, "items", ids->dims[1].symbol, 1, SIZE_MAX);
    infer->outputs[0] = *ids;
    infer->outputs[0].dims[0] = ph__dim_of(attributes->count, ids->dims[0].symbol);
    infer->outputs[0].dims[1] = ph__dim_of(1, symbol);
    return ph_builder_status(infer->builder);
}

static void feature_bags_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph_shape *bags = &call->outputs[0].shape;
    cost_out->bytes =
        2 * ((double)bags->dims[0] * sizeof(uint32_t) + (double)bags->dims[1] * sizeof(int64_t));
}

static void copy_bags(void *argument, size_t selected, size_t worker)
{
    const struct ph__call *call = argument;
    const struct selection_attributes *attributes = call->attributes;
    const struct ph__operand *ids = &call->inputs[0], *bags = &call->outputs[0];
    const size_t num_samples = ids->shape.dims[0] / ids->type->dims[0].extent;
    const struct selected_range range = range_of(call, selected);
    const uint32_t *offsets = ids->index + attributes->features[selected] * num_samples;
    uint32_t *target = bags->index + selected * num_samples;
    (void)worker;
    for (size_t sample = 0; sample < num_samples; sample++)
        target[sample] = (uint32_t)(offsets[sample] - range.first + range.begin);
    if (range.first < range.last)
        memcpy((int64_t *)bags->data + range.begin, (const int64_t *)ids->data + range.first,
            (range.last - range.first) * sizeof(int64_t));
}

static ph_status feature_bags_run(struct ph__call *call)
{
    const struct selection_attributes *attributes = call->attributes;
    const struct ph__operand *bags = &call->outputs[0];
    ph__parallel_for(call->backend->team, attributes->count, copy_bags, call);
    const struct selected_range last = range_of(call, attributes->count - 1);
    const size_t num_items = last.begin + last.last - last.first;
    bags->index[bags->shape.dims[0]] = (uint32_t)num_items;
    call->extents[bags->type->dims[1].symbol] = num_items;
    return PH_OK;
}

const struct ph__op ph__op_feature_bags = {
    .name = "feature_bags",
    .traits = PH_OP_OF_IDS,
    .infer = feature_bags_infer,
    .cost = feature_bags_cost,
    .run = feature_bags_run,
};

static bool are_ascending(size_t count, const size_t *features, size_t num_features)
{
    for (size_t i = 0; i < count; i++)
        if (features[i] >= num_features || (i > 0 && features[i - 1] >= features[i]))
            return false;
    return count > 0;
}

ph_value ph_select_features(
    struct ph_builder *builder, ph_value ids, size_t num_features, const size_t *features)
{
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const struct ph_type type = ph_value_type(builder, ids);
    if (type.kind != PH_JAGGED || type.dtype != PH_I64 || ph__feature_list(builder, ids).selected != NULL)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "feature_bags: '%s' is not the ids of a batch",
            ph_value_name(builder, ids));
    if (!are_ascending(num_features, features, type.dims[0].extent))
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "feature_bags: features must ascend and be below %zu", type.dims[0].extent);
    struct selection_attributes *attributes;
    const size_t size = sizeof *attributes + num_features * sizeof *features;
    attributes = ph__arena_alloc(&builder->graph.arena, size);
    if (attributes == NULL)
        return ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu features", num_features);
    attributes->count = num_features;
    memcpy(attributes->features, features, num_features * sizeof *features);
    const ph_value known = ph__builder_find(builder, &ph__op_feature_bags, attributes, size, 1, &ids, 0);
    return known != 0 ? known : ph__emit1(builder, &ph__op_feature_bags, NULL, attributes, size, 1, &ids);
}

ph_value ph_feature_bags(struct ph_builder *builder, ph_value ids, size_t feature)
{
    return ph_select_features(builder, ids, 1, &feature);
}

/* Returns the node that selected these ids; NULL: they are the batch's own. */
static const struct ph__node *selection_of(const struct ph_builder *builder, ph_value ids)
{
    const struct ph__node *producer = ph__builder_producer(builder, ids);
    return producer != NULL && producer->op == &ph__op_feature_bags ? producer : NULL;
}

struct ph__feature_list ph__feature_list(const struct ph_builder *builder, ph_value ids)
{
    const struct ph__node *selection = selection_of(builder, ids);
    if (selection == NULL)
        return (struct ph__feature_list){ph_value_type(builder, ids).dims[0].extent, NULL};
    const struct selection_attributes *attributes = selection->attributes;
    return (struct ph__feature_list){
        ph_value_type(builder, selection->inputs[0]).dims[0].extent, attributes->features};
}

const size_t *ph__selected_features(const struct ph__node *node)
{
    const struct selection_attributes *attributes = node->attributes;
    return attributes->features;
}

/* ---- feature_weights ---- */

enum { IDS, BAGS, WEIGHTS, NUM_INPUTS };

static ph_status feature_weights_infer(struct ph__infer *infer)
{
    const struct ph_type *weights = &infer->inputs[WEIGHTS];
    if (!ph__type_is_real_of_dims(weights, 1) || !ph__dim_equal(weights->dims[0], infer->inputs[IDS].dims[1]))
        return ph__infer_fail(infer, "ids, some of their bags, weights (N)");
    infer->outputs[0] = ph__dense_type(1, &infer->inputs[BAGS].dims[1]);
    return PH_OK;
}

static void copy_weights(void *argument, size_t selected, size_t worker)
{
    const struct ph__call *call = argument;
    const struct selected_range range = range_of(call, selected);
    const ph_real *weights = call->inputs[WEIGHTS].data;
    ph_real *target = (ph_real *)call->outputs[0].data + range.begin;
    (void)worker;
    for (size_t p = range.first; p < range.last; p++)
        target[p - range.first] = weights != NULL ? weights[p] : 1;
}

static ph_status feature_weights_run(struct ph__call *call)
{
    const struct selection_attributes *attributes = call->attributes;
    ph__parallel_for(call->backend->team, attributes->count, copy_weights, call);
    return PH_OK;
}

static void feature_weights_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->bytes = 2 * (double)ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

const struct ph__op ph__op_feature_weights = {
    .name = "feature_weights",
    .infer = feature_weights_infer,
    .cost = feature_weights_cost,
    .run = feature_weights_run,
};

ph_value ph__selected_weights(struct ph_builder *builder, ph_value ids, ph_value weights)
{
    const struct ph__node *selection = selection_of(builder, ids);
    if (weights == 0 || selection == NULL)
        return weights;
    const ph_value inputs[NUM_INPUTS] = {selection->inputs[0], ids, weights};
    const void *attributes = selection->attributes;
    const size_t size = selection->attributes_size;
    const ph_value known =
        ph__builder_find(builder, &ph__op_feature_weights, attributes, size, NUM_INPUTS, inputs, 0);
    return known != 0
               ? known
               : ph__emit1(builder, &ph__op_feature_weights, NULL, attributes, size, NUM_INPUTS, inputs);
}

ph_value ph__unselected(const struct ph_builder *builder, ph_value value)
{
    const struct ph__node *producer = ph__builder_producer(builder, value);
    if (producer != NULL && producer->op == &ph__op_feature_bags)
        return producer->inputs[0];
    return producer != NULL && producer->op == &ph__op_feature_weights ? producer->inputs[WEIGHTS] : value;
}
