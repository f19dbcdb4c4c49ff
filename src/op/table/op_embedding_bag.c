/* embedding_bag: the pooled rows of every bag, all features in one operator.
 *
 * slots jagged u32 (F*B bags, N), table (rows, D), id weights (N) or none -> (B,F,D):
 *   out[b,f,:] = sum over the bag of w_j table[slot_j,:], over its length for mean pooling; empty bag: 0.
 * The gradient by the table is sparse_rows: merged slots, one row each (op_merge.c,
 * op_embedding_gradient.c). */
#include "op/table/op_table.h"

/* Bags of many ids are looked up feature by feature, so that rows named again are still in a cache; bags of
 * few ids sample by sample, so that the output, as large as the rows read, is written from end to end. */
enum { MANY_IDS = 4 /* per bag, on average */, FEATURE_SAMPLES = 256, ALL_SAMPLES = 32 };

static ph_status embedding_bag_infer(struct ph__infer *infer)
{
    const struct ph_type *slots = &infer->inputs[PH_EMBEDDING_SLOTS];
    PH_TRY(ph__embedding_check(infer));
    const struct ph_dim dims[] = {ph__dim_of(1, slots->dims[0].symbol), ph__dim(slots->dims[0].extent),
        infer->inputs[PH_EMBEDDING_TABLE].dims[1]};
    infer->outputs[0] = ph__dense_type(3, dims);
    return PH_OK;
}

static void embedding_bag_gradient(struct ph__gradient *gradient)
{
    const struct ph__embedding_bag_attributes *attributes = gradient->node->attributes;
    ph__embedding_gradient(gradient, attributes->pooling == PH_POOL_MEAN ? PH_LOOKUP_MEANS : PH_LOOKUP_SUMS);
}

struct lookup {
    const struct ph__call *call;
    bool is_by_feature;
};

/* Looks up the bags of `block` samples from `first` on, of num_features features from `feature` on. */
static void look_up(
    const struct ph__call *call, size_t first, size_t block, size_t feature, size_t num_features)
{
    const struct ph__embedding_bag_attributes *attributes = call->attributes;
    const struct ph__operand *output = &call->outputs[0];
    const size_t num_samples = output->shape.dims[0], dim = output->shape.dims[2];
    struct ph__embedding_bag_args args = ph__embedding_args(call);
    args.offsets = call->inputs[PH_EMBEDDING_SLOTS].index + feature * num_samples + first;
    args.num_samples = first + block < num_samples ? block : num_samples - first;
    args.num_features = num_features;
    args.feature_stride = num_samples;
    args.out_stride = output->shape.dims[1] * dim;
    args.is_mean = attributes->pooling == PH_POOL_MEAN;
    args.out = (ph_real *)output->data + first * args.out_stride + feature * dim;
    call->backend->kernels->embedding_bag(&args);
}

static void embedding_bag_task(void *argument, size_t task, size_t worker)
{
    const struct lookup *lookup = argument;
    const size_t num_features = lookup->call->outputs[0].shape.dims[1];
    (void)worker;
    if (lookup->is_by_feature)
        look_up(lookup->call, task / num_features * FEATURE_SAMPLES, FEATURE_SAMPLES, task % num_features, 1);
    else
        look_up(lookup->call, task * ALL_SAMPLES, ALL_SAMPLES, 0, num_features);
}

static ph_status embedding_bag_run(struct ph__call *call)
{
    const struct ph_shape *shape = &call->outputs[0].shape, *slots = &call->inputs[PH_EMBEDDING_SLOTS].shape;
    struct lookup lookup = {call, slots->dims[1] >= MANY_IDS * slots->dims[0]};
    const size_t block = lookup.is_by_feature ? FEATURE_SAMPLES : ALL_SAMPLES;
    const size_t num_blocks = (shape->dims[0] + block - 1) / block;
    ph__parallel_for(call->backend->team, lookup.is_by_feature ? num_blocks * shape->dims[1] : num_blocks,
        embedding_bag_task, &lookup);
    return PH_OK;
}

const struct ph__op ph__op_embedding_bag = {
    .name = "embedding_bag",
    .traits = PH_OP_READS_ROW_FORMATS,
    .infer = embedding_bag_infer,
    .gradient = embedding_bag_gradient,
    .cost = ph__embedding_cost,
    .run = embedding_bag_run,
};

ph_value ph_embedding_bag(
    struct ph_builder *builder, ph_value ids, ph_value table, enum ph_pooling pooling, ph_value id_weights)
{
    const struct ph__embedding_bag_attributes attributes = {
        .pooling = pooling, .reads_all = ph_builder_mode(builder) == PH_INFERENCE};
    const struct ph__declaration *declaration = ph__lookup_table(builder, "embedding_bag", ids, table);
    if (declaration == NULL)
        return 0;
    const struct ph__feature_list list = ph__feature_list(builder, ids);
    const size_t num_features = declaration->num_features;
    const bool is_of_selected = num_features == ph_value_type(builder, ids).dims[0].extent;
    if (num_features == 0 || (num_features != list.num_features && !is_of_selected))
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "embedding_bag: table '%s' has %zu features, but the ids have %zu", declaration->name,
            num_features, list.num_features);
    const ph_value slots = ph__slots(builder, ids, declaration, is_of_selected ? NULL : list.selected);
    const ph_value inputs[PH_EMBEDDING_INPUTS] = {
        slots, table, ph__selected_weights(builder, ids, id_weights)};
    return ph__emit1(
        builder, &ph__op_embedding_bag, NULL, &attributes, sizeof attributes, PH_EMBEDDING_INPUTS, inputs);
}
