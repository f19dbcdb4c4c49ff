/* embedding_bag: the pooled rows of every bag, all features in one operator.
 *
 * slots jagged u32 (F*B bags, N), table (rows, D), id weights (N) or none -> (B,F,D):
 *   out[b,f,:] = sum over the bag of w_j table[slot_j,:], over its length for mean pooling; an empty bag is 0.
 * The table's rows may be in any row format (tensor/row_format.h). Of bf16_split a training program reads the high words
 * alone, an inference program all of a number: what is measured in training is then what the saved model scores.
 * The gradient by the table is sparse_rows: merged slots, one row each (op_merge.c, op_embedding_gradient.c). */
#include "op/attributes.h"
#include "op/op_table.h"
#include "tensor/row_format.h"

enum { SLOTS, TABLE, WEIGHTS, NUM_INPUTS };

/* Bags of many ids are looked up feature by feature, so that rows that are named again are still in a cache; bags of few,
 * sample by sample, so that the output, as large as what is read, is written from end to end. */
enum { MANY_IDS = 4 /* of a bag, on average */, FEATURE_SAMPLES = 256, ALL_SAMPLES = 32 };

static ph_status embedding_bag_infer(struct ph_infer *infer)
{
    const struct ph_type *slots = &infer->inputs[SLOTS], *table = &infer->inputs[TABLE],
                         *weights = &infer->inputs[WEIGHTS];
    const bool are_weights_right =
        weights->kind == PH_TOKEN ||
        (ph__type_is_real_of_rank(weights, 1) && ph__dim_equal(weights->dims[0], slots->dims[1]));
    if (slots->kind != PH_JAGGED || slots->dtype != PH_U32 || !ph__type_is_real_of_rank(table, 2) ||
        !are_weights_right)
        return ph__infer_fail(infer, "slots, a table (rows,D), weights (N) or none");
    const struct ph_dim dims[] = {
        ph__dim_of(1, slots->dims[0].symbol), ph__dim(slots->dims[0].extent), table->dims[1]};
    infer->outputs[0] = ph__dense_type(3, dims);
    return PH_OK;
}

static void embedding_bag_gradient(struct ph_gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph_node node = *gradient->node;
    const struct ph_embedding_bag_attributes *attributes = node.attributes;
    if (gradient->is_wanted[WEIGHTS]) {
        ph__builder_fail(
            builder, PH_ERROR_CONFIG, "'%s': no gradient flows into the weights of ids", node.name);
        return;
    }
    if (!gradient->is_wanted[TABLE])
        return;
    ph_value lookup[PH_LOOKUP_INPUTS] = {0};
    ph__merge(builder, node.inputs[SLOTS], ph__builder_declaration(builder, node.inputs[TABLE]),
        &lookup[PH_LOOKUP_UNIQUE], &lookup[PH_LOOKUP_ORDER]);
    ph__entries(builder, node.inputs[SLOTS], lookup[PH_LOOKUP_ORDER], node.inputs[WEIGHTS],
        attributes->pooling, &lookup[PH_LOOKUP_ROWS], &lookup[PH_LOOKUP_COEFFICIENTS]);
    lookup[PH_LOOKUP_GRADIENT] = gradient->output_gradients[0];
    gradient->input_gradients[TABLE] =
        ph__emit1(builder, &ph__op_embedding_gradient, NULL, NULL, 0, PH_LOOKUP_INPUTS, lookup);
}

static enum ph_row_format row_format(const struct ph_call *call)
{
    return call->inputs[TABLE].parameter->row_format;
}

/* The low words that are read; NULL: none. */
static const uint16_t *low_words(const struct ph_call *call)
{
    const struct ph_embedding_bag_attributes *attributes = call->attributes;
    return attributes->reads_all ? call->inputs[TABLE].parameter->low : NULL;
}

/* a multiplication and an addition for each number of each row that is read */
static void embedding_bag_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const double positions = (double)call->inputs[SLOTS].shape.dims[1];
    const size_t dim = call->inputs[TABLE].shape.dims[1];
    const double weights = call->inputs[WEIGHTS].data != NULL ? positions : 0;
    cost_out->flops = 2 * positions * (double)dim;
    const size_t row_bytes = low_words(call) != NULL ? ph__table_bytes(row_format(call), 1, dim)
                                                     : ph__row_bytes(row_format(call), dim);
    cost_out->gathered_bytes = positions * (double)row_bytes;
    cost_out->bytes = cost_out->gathered_bytes +
                      (weights + (double)ph__elements(&call->outputs[0])) * sizeof(ph_real) +
                      (positions + (double)call->inputs[SLOTS].shape.dims[0]) * sizeof(uint32_t);
}

struct lookup {
    const struct ph_call *call;
    bool is_by_feature;
};

/* The bags of the samples from `first` on, of num_features features from `feature` on. */
static void look_up(
    const struct ph_call *call, size_t first, size_t block, size_t feature, size_t num_features)
{
    const struct ph_embedding_bag_attributes *attributes = call->attributes;
    const struct ph_operand *slots = &call->inputs[SLOTS], *output = &call->outputs[0];
    const size_t num_samples = output->shape.dims[0], dim = output->shape.dims[2];
    const size_t out_stride = output->shape.dims[1] * dim;
    const struct ph_embedding_bag_args args = {
        .table = call->inputs[TABLE].data,
        .format = row_format(call),
        .low = low_words(call),
        .dim = dim,
        .slots = slots->data,
        .weights = call->inputs[WEIGHTS].data,
        .offsets = slots->index + feature * num_samples + first,
        .num_samples = first + block < num_samples ? block : num_samples - first,
        .num_features = num_features,
        .feature_stride = num_samples,
        .out_stride = out_stride,
        .is_mean = attributes->pooling == PH_POOL_MEAN,
        .out = (ph_real *)output->data + first * out_stride + feature * dim,
    };
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

static ph_status embedding_bag_run(struct ph_call *call)
{
    const struct ph_shape *shape = &call->outputs[0].shape, *slots = &call->inputs[SLOTS].shape;
    struct lookup lookup = {call, slots->dims[1] >= MANY_IDS * slots->dims[0]};
    const size_t block = lookup.is_by_feature ? FEATURE_SAMPLES : ALL_SAMPLES;
    const size_t num_blocks = (shape->dims[0] + block - 1) / block;
    ph__parallel_for(call->backend->team, lookup.is_by_feature ? num_blocks * shape->dims[1] : num_blocks,
        embedding_bag_task, &lookup);
    return PH_OK;
}

const struct ph_op ph__op_embedding_bag = {
    .name = "embedding_bag",
    .traits = PH_OP_READS_ROW_FORMATS,
    .infer = embedding_bag_infer,
    .gradient = embedding_bag_gradient,
    .cost = embedding_bag_cost,
    .run = embedding_bag_run,
};

/* The declaration of `table` if its slices are those of the features of `ids`; NULL after failure. */
static const struct ph_declaration *check_table(struct ph_builder *builder, ph_value ids, ph_value table)
{
    if (ph_builder_status(builder) != PH_OK)
        return NULL;
    const struct ph_type type = ph_value_type(builder, ids);
    const struct ph_declaration *declaration = ph__builder_declaration(builder, table);
    if (type.kind != PH_JAGGED || type.dtype != PH_I64) {
        ph__builder_fail(
            builder, PH_ERROR_CONFIG, "embedding_bag: '%s' is not jagged ids", ph_value_name(builder, ids));
        return NULL;
    }
    if (declaration == NULL || !declaration->is_table) {
        ph__builder_fail(
            builder, PH_ERROR_CONFIG, "embedding_bag: '%s' is no table", ph_value_name(builder, table));
        return NULL;
    }
    if (declaration->num_slices == 0 || declaration->num_slices != type.dims[0].extent) {
        ph__builder_fail(builder, PH_ERROR_CONFIG,
            "embedding_bag: table '%s' has %zu slices for %zu features", declaration->name,
            declaration->num_slices, type.dims[0].extent);
        return NULL;
    }
    return declaration;
}

ph_value ph_embedding_bag(
    struct ph_builder *builder, ph_value ids, ph_value table, enum ph_pooling pooling, ph_value id_weights)
{
    const struct ph_embedding_bag_attributes attributes = {
        .pooling = pooling, .reads_all = ph_builder_mode(builder) == PH_INFERENCE};
    const struct ph_declaration *declaration = check_table(builder, ids, table);
    if (declaration == NULL)
        return 0;
    const ph_value inputs[NUM_INPUTS] = {ph__slots(builder, ids, declaration), table, id_weights};
    return ph__emit1(
        builder, &ph__op_embedding_bag, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs);
}
