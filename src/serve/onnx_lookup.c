/* Table lookups in ONNX. All features that have one id a sample are one Gather from the physical table, at id
 * + first row of the feature's slice; a feature with lists is a Gather of its padded list, whose rows are
 * masked and summed.
 *
 * feature_bags:   nothing: the lookup itself takes the columns and lists of the features that it selects
 * slots:          ids -> "<node>/single" (B,S);
 *                for each list "<node>/<feature>/slots" (B,L), "<node>/<feature>/mask" (B,L,1)
 * embedding_bag:  those -> (B,F,D), the features in their order */
#include "serve/onnx_operators.h"

#include "op/attributes.h"

static size_t num_single(const struct ph_encoder *encoder)
{
    return encoder->num_sparse - encoder->num_lists;
}

static const char *feature_name(const struct ph_encoder *encoder, size_t feature)
{
    return encoder->sparse[feature].name;
}

static const struct ph__node *producer(const struct ph__onnx_walk *walk, ph_value value)
{
    return &walk->graph->nodes[walk->graph->values[value].producer];
}

/* The features of a lookup, in ascending order. */
struct chosen {
    size_t count;
    const size_t *features; /* NULL: all */
    size_t num_single;
};

static size_t feature_of(const struct chosen *chosen, size_t index)
{
    return chosen->features != NULL ? chosen->features[index] : index;
}

static bool is_list(const struct ph__onnx_walk *walk, const struct chosen *chosen, size_t index)
{
    return walk->encoder->sparse_columns[feature_of(chosen, index)]->is_list;
}

/* Returns the features whose ids a slots node reads. */
static struct chosen chosen_by(const struct ph__onnx_walk *walk, const struct ph__node *slots_node)
{
    const ph_value ids = slots_node->inputs[0];
    const bool is_chosen = walk->graph->values[ids].producer != PH_NO_NODE;
    struct chosen chosen = {.count = walk->graph->values[ids].type.dims[0].extent,
        .features = is_chosen ? ph__selected_features(producer(walk, ids)) : NULL};
    for (size_t i = 0; i < chosen.count; i++)
        chosen.num_single += !is_list(walk, &chosen, i);
    return chosen;
}

/* Returns "<node>/<feature>/<suffix>". */
static const char *list_name(
    struct ph__onnx_walk *walk, const struct ph__node *node, size_t feature, const char *suffix)
{
    return ph__onnx_model_text(
        walk->model, "%s/%s/%s", node->name, feature_name(walk->encoder, feature), suffix);
}

static const char *list_integer(struct ph__onnx_walk *walk, const struct ph__node *node, size_t feature,
    const char *suffix, int64_t value)
{
    return ph__onnx_model_integers(walk->model, list_name(walk, node, feature, suffix), 1, &value);
}

/* Adds a node named "<node>/<feature>/<suffix>". */
static const char *list_emit(struct ph__onnx_walk *walk, const struct ph__node *node, size_t feature,
    const char *suffix, const char *operator_name, const char *const *inputs,
    const struct ph__onnx_attribute *attributes)
{
    return ph__onnx_model_node(walk->model, list_name(walk, node, feature, suffix),
        &(struct ph__onnx_node){operator_name, inputs, attributes});
}

/* ---- inputs ---- */

void ph__onnx_add_id_inputs(struct ph__onnx_walk *walk, bool has_weights)
{
    const struct ph_encoder *encoder = walk->encoder;
    const struct ph__onnx_dim single[] = {{0, "batch"}, {num_single(encoder), NULL}};
    if (num_single(encoder) > 0)
        ph__onnx_model_input(walk->model, "ids", PH_ONNX_INT64, 2, single);
    for (size_t i = 0; i < encoder->num_lists; i++) {
        const size_t feature = encoder->lists[i];
        const char *name = feature_name(encoder, feature);
        const struct ph__onnx_dim list[] = {
            {0, "batch"}, {0, ph__onnx_model_text(walk->model, "length.%s", name)}};
        ph__onnx_model_input(
            walk->model, ph__onnx_model_text(walk->model, "ids.%s", name), PH_ONNX_INT64, 2, list);
        if (has_weights && encoder->sparse_columns[feature]->is_weighted)
            ph__onnx_model_input(
                walk->model, ph__onnx_model_text(walk->model, "weights.%s", name), PH_ONNX_REAL, 2, list);
    }
}

/* ---- slots ---- */

/* Returns the ids of the chosen features that have one a sample: (B,S). */
static const char *single_ids(
    struct ph__onnx_walk *walk, const struct ph__node *node, const struct chosen *chosen, int64_t *scratch)
{
    size_t count = 0, column = 0;
    for (size_t i = 0, feature = 0; feature < walk->encoder->num_sparse; feature++) {
        const bool is_chosen = i < chosen->count && feature_of(chosen, i) == feature;
        i += is_chosen;
        if (walk->encoder->sparse_columns[feature]->is_list)
            continue;
        if (is_chosen)
            scratch[count++] = (int64_t)column;
        column++;
    }
    if (count == column)
        return "ids";
    const char *columns =
        ph__onnx_model_integers(walk->model, ph__onnx_name(walk, node, "columns"), count, scratch);
    return ph__onnx_emit(
        walk, node, "ids", "Gather", PH_ONNX_INPUTS("ids", columns), PH_ONNX_ATTRIBUTE("axis", 1));
}

static void add_single_slots(
    struct ph__onnx_walk *walk, const struct ph__node *node, const struct chosen *chosen)
{
    const struct ph__slot_range *ranges = ph__slots_ranges(node);
    int64_t *numbers = ph__arena_alloc_array(&walk->model->arena, chosen->count + 1, sizeof *numbers);
    if (numbers == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu features", chosen->count);
        return;
    }
    const char *ids = single_ids(walk, node, chosen, numbers);
    size_t count = 0;
    for (size_t i = 0; i < chosen->count; i++)
        if (!is_list(walk, chosen, i))
            numbers[count++] = (int64_t)ranges[i].first_row;
    const char *constant =
        ph__onnx_model_integers(walk->model, ph__onnx_name(walk, node, "offsets"), count, numbers);
    ph__onnx_emit(walk, node, "single", "Add", PH_ONNX_INPUTS(ids, constant), NULL);
}

/* Adds the slots and the mask of a list. A padded position has slot 0 of its feature, and the mask 0. */
static void add_list_slots(
    struct ph__onnx_walk *walk, const struct ph__node *node, size_t feature, int64_t base)
{
    const char *ids = ph__onnx_model_text(walk->model, "ids.%s", feature_name(walk->encoder, feature));
    const char *zero = list_integer(walk, node, feature, "zero", 0);
    const char *offset = list_integer(walk, node, feature, "offset", base);
    const char *axis = list_integer(walk, node, feature, "axis", 2);
    const char *known = list_emit(walk, node, feature, "known", "Max", PH_ONNX_INPUTS(ids, zero), NULL);
    list_emit(walk, node, feature, "slots", "Add", PH_ONNX_INPUTS(known, offset), NULL);
    const char *is_id =
        list_emit(walk, node, feature, "is_id", "GreaterOrEqual", PH_ONNX_INPUTS(ids, zero), NULL);
    const char *ones = list_emit(
        walk, node, feature, "ones", "Cast", PH_ONNX_INPUTS(is_id), PH_ONNX_ATTRIBUTE("to", PH_ONNX_REAL));
    list_emit(walk, node, feature, "mask", "Unsqueeze", PH_ONNX_INPUTS(ones, axis), NULL);
}

static void slots(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct chosen chosen = chosen_by(walk, node);
    if (chosen.num_single > 0)
        add_single_slots(walk, node, &chosen);
    for (size_t i = 0; i < chosen.count; i++)
        if (is_list(walk, &chosen, i))
            add_list_slots(walk, node, feature_of(&chosen, i), (int64_t)ph__slots_ranges(node)[i].first_row);
}

static void feature_bags(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    (void)walk;
    (void)node;
}

/* ---- embedding_bag ---- */

enum { SLOTS, TABLE, WEIGHTS };

/* Returns the factors of a list's rows, (B,L,1): the mask, or the weights of the ids where there are any.
 * Padding has factor 0 whatever its weight: NaN times a mask of 0 would stay. */
static const char *list_factors(struct ph__onnx_walk *walk, const struct ph__node *node, size_t feature)
{
    const struct ph__node *slots_node = producer(walk, node->inputs[SLOTS]);
    if (node->inputs[WEIGHTS] == 0 || !walk->encoder->sparse_columns[feature]->is_weighted)
        return list_name(walk, slots_node, feature, "mask");
    const char *is_id = list_name(walk, slots_node, feature, "is_id"); /* (B,L) */
    const char *name = ph__onnx_model_text(walk->model, "weights.%s", feature_name(walk->encoder, feature));
    const char *nothing =
        ph__onnx_model_real(walk->model, list_name(walk, node, feature, "no_weight"), (ph_real)0);
    const char *axis = list_integer(walk, node, feature, "weight_axis", 2);
    const char *weights =
        list_emit(walk, node, feature, "weights", "Where", PH_ONNX_INPUTS(is_id, name, nothing), NULL);
    return list_emit(walk, node, feature, "factors", "Unsqueeze", PH_ONNX_INPUTS(weights, axis), NULL);
}

/* Divides a sum (B,1,D) by the number of ids, or by 1 where there are none. */
static const char *divide_by_length(struct ph__onnx_walk *walk, const struct ph__node *node, size_t feature,
    const char *sum, const char *mask, const char *axis)
{
    const char *one = ph__onnx_model_real(walk->model, list_name(walk, node, feature, "one"), (ph_real)1);
    const char *length = list_emit(walk, node, feature, "length", "ReduceSum", PH_ONNX_INPUTS(mask, axis),
        PH_ONNX_ATTRIBUTE("keepdims", 1)); /* (B,1,1) */
    const char *divisor = list_emit(walk, node, feature, "divisor", "Max", PH_ONNX_INPUTS(length, one), NULL);
    return list_emit(walk, node, feature, "mean", "Div", PH_ONNX_INPUTS(sum, divisor), NULL);
}

/* Sums the rows of the list, over its length for mean pooling: (B,1,D). An empty list gives 0. */
static const char *pool_list(struct ph__onnx_walk *walk, const struct ph__node *node, size_t feature)
{
    const struct ph__embedding_bag_attributes *attributes = node->attributes;
    const struct ph__node *slots_node = producer(walk, node->inputs[SLOTS]);
    const char *slots = list_name(walk, slots_node, feature, "slots");
    const char *mask = list_name(walk, slots_node, feature, "mask");
    const char *axis = list_integer(walk, node, feature, "axis", 1);
    const char *rows = list_emit(walk, node, feature, "rows", "Gather",
        PH_ONNX_INPUTS(walk->names[node->inputs[TABLE]], slots), NULL); /* (B,L,D) */
    const char *masked = list_emit(
        walk, node, feature, "masked", "Mul", PH_ONNX_INPUTS(rows, list_factors(walk, node, feature)), NULL);
    const char *sum = list_emit(walk, node, feature, "sum", "ReduceSum", PH_ONNX_INPUTS(masked, axis),
        PH_ONNX_ATTRIBUTE("keepdims", 1));
    return attributes->pooling == PH_POOL_MEAN ? divide_by_length(walk, node, feature, sum, mask, axis) : sum;
}

/* Puts the parts, single features before lists, into the order of the features: (B,F,D). */
static const char *put_in_order(
    struct ph__onnx_walk *walk, const struct ph__node *node, const struct chosen *chosen, const char *parts)
{
    int64_t *order = ph__arena_alloc_array(&walk->model->arena, chosen->count, sizeof *order);
    if (order == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu features", chosen->count);
        return parts;
    }
    int64_t single = 0, list = (int64_t)chosen->num_single;
    bool is_in_order = true;
    for (size_t i = 0; i < chosen->count; i++) {
        order[i] = is_list(walk, chosen, i) ? list++ : single++;
        is_in_order &= order[i] == (int64_t)i;
    }
    if (is_in_order)
        return parts;
    const char *constant =
        ph__onnx_model_integers(walk->model, ph__onnx_name(walk, node, "order"), chosen->count, order);
    return ph__onnx_emit(
        walk, node, "ordered", "Gather", PH_ONNX_INPUTS(parts, constant), PH_ONNX_ATTRIBUTE("axis", 1));
}

static void embedding_bag(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__node *slots_node = producer(walk, node->inputs[SLOTS]);
    const struct chosen chosen = chosen_by(walk, slots_node);
    const char **parts = ph__arena_alloc_array(&walk->model->arena, chosen.count + 2, sizeof *parts);
    if (parts == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu features", chosen.count);
        return;
    }
    size_t count = 0;
    if (chosen.num_single > 0) {
        const char *slots = ph__onnx_name(walk, slots_node, "single");
        parts[count++] = ph__onnx_emit(walk, node, "single", "Gather",
            PH_ONNX_INPUTS(walk->names[node->inputs[TABLE]], slots), NULL); /* (B,S,D) */
    }
    for (size_t i = 0; i < chosen.count; i++)
        if (is_list(walk, &chosen, i))
            parts[count++] = pool_list(walk, node, feature_of(&chosen, i));
    const char *joined =
        count == 1 ? parts[0]
                   : ph__onnx_emit(walk, node, "joined", "Concat", parts, PH_ONNX_ATTRIBUTE("axis", 1));
    walk->names[node->outputs[0]] = put_in_order(walk, node, &chosen, joined);
}

const struct ph__onnx_entry ph__onnx_lookups[] = {
    {"feature_bags", feature_bags},
    {"feature_weights", feature_bags},
    {"slots", slots},
    {"embedding_bag", embedding_bag},
    {.name = NULL},
};
