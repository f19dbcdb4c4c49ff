/* Deep interest network (Zhou et al., KDD 2018, arXiv 1706.06978): weighs a sample's history by its target.
 * An item h of the history counts by
 *   a(h, t) = MLP([t, h, t - h, t * h]),
 * without a softmax, so that a history of much interest weighs more than one of little. A perceptron reads
 * sum_h a(h, t) h beside the other features' embeddings. Histories and targets come in pairs (items, their
 * categories), which should share their table's rows (data.fields[].shares). */
#include <stdlib.h>

#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

struct din_keys {
    struct ph__text_list targets, histories;
    struct ph__integer_list attention_units;
};

#define FIELD(member) struct din_keys, member

static const struct ph__option options[] = {
    PH_TEXTS_KEY("targets", FIELD(targets), "",
        "Names of id features: the target of each history, in the order of histories."),
    PH_TEXTS_KEY("histories", FIELD(histories), "",
        "Names of id features that are lists, one for each target. Empty: all features are pooled alike, the "
        "paper's base model."),
    PH_INTEGERS_KEY("attention_units", FIELD(attention_units), "32", 1, 1048576,
        "Widths of the hidden layers of the perceptron that weighs an item of a history. hidden_units: the "
        "perceptron on top."),
};

static const struct ph__option_table keys = {
    .section = "model.din",
    .help = "Keys of DIN.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct din_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* Features by their indices. */
struct pairs {
    size_t count;
    size_t targets[PH_LIST_MAX], histories[PH_LIST_MAX];
};

static struct pairs read_pairs(
    struct ph_builder *builder, const struct din_keys *own, const struct ph_model_features *features)
{
    struct pairs pairs = {.count = own->histories.count};
    if (own->targets.count != pairs.count) {
        ph_builder_fail(builder, PH_ERROR_CONFIG,
            "model.din: %zu targets for %zu histories: give one target for each history", own->targets.count,
            pairs.count);
        return (struct pairs){0};
    }
    for (size_t i = 0; i < pairs.count; i++) {
        pairs.targets[i] = ph__feature_find(builder, features, own->targets.items[i]);
        pairs.histories[i] = ph__feature_find(builder, features, own->histories.items[i]);
    }
    for (size_t i = 0; i < pairs.count; i++)
        for (size_t j = 0; j < pairs.count; j++)
            if (pairs.targets[i] == pairs.histories[j])
                ph_builder_fail(builder, PH_ERROR_CONFIG, "model.din: '%s' is both a target and a history",
                    features->sparse[pairs.targets[i]].name);
    return pairs;
}

static bool is_history(const struct pairs *pairs, size_t feature)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->histories[i] == feature)
            return true;
    return false;
}

/* Returns the weights of items h (M,D) for the target (B,D) of their sample: (M,1). */
static ph_value weights_of(struct ph_builder *builder, ph_value target, ph_value items, ph_value bags,
    const struct ph_model_settings *settings)
{
    const struct din_keys *own = settings->own;
    struct ph_model_settings plain =
        *settings; /* items are not samples: their statistics would be histories' lengths */
    plain.batch_norm = plain.block_norm = false;
    ph_value t = ph_repeat_rows(builder, target, bags);
    const ph_value parts[] = {
        t, items, ph_add(builder, t, ph_scale(builder, items, -1)), ph_multiply(builder, t, items)};
    ph_value x = ph_concat(builder, 4, parts, 1); /* (M,4D) */
    x = ph__layer_perceptron(
        builder, "hidden", x, own->attention_units.items, own->attention_units.count, &plain);
    return ph__layer_affine(builder, "output", x, 1, PH_IDENTITY, settings);
}

/* Summarises one history for its target: (B,D). */
static ph_value interest(struct ph_builder *builder, size_t pair, ph_value table, size_t history,
    ph_value target, const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, features->num_sparse), history);
    ph_value id_weights = features->has_id_weights ? ph_input_id_weights(builder) : 0;
    ph_value items = ph_embedding_rows(builder, bags, table, history, id_weights); /* (M,D) */
    ph__layer_push_index(builder, "attention", pair);
    ph_value x = ph_pool_rows(builder, items, bags, weights_of(builder, target, items, bags, settings));
    ph_builder_pop_scope(builder);
    return x;
}

/* Pools the features that are not histories: (B,S,D). others (num_sparse) gets their indices. */
static ph_value pooled(struct ph_builder *builder, const struct pairs *pairs, ph_value table,
    const struct ph_model_settings *settings, const struct ph_model_features *features, size_t *others)
{
    size_t count = 0;
    for (size_t feature = 0; feature < features->num_sparse; feature++)
        if (!is_history(pairs, feature))
            others[count++] = feature;
    ph_value ids = ph_select_features(builder, ph_input_ids(builder, features->num_sparse), count, others);
    ph_value id_weights = features->has_id_weights ? ph_input_id_weights(builder) : 0;
    return ph_embedding_bag(builder, ids, table, settings->pooling, id_weights);
}

/* Returns the vector of one of the pooled features: (B,D). */
static ph_value vector_of(struct ph_builder *builder, ph_value vectors, const size_t *others, size_t feature)
{
    size_t place = 0;
    while (others[place] != feature)
        place++;
    return ph__layer_flatten(builder, ph_slice(builder, vectors, 1, place, 1));
}

/* Returns the inputs of the top perceptron that come from ids: (B, F*D). */
static ph_value lookups(struct ph_builder *builder, const struct pairs *pairs,
    const struct ph_model_settings *settings, const struct ph_model_features *features, size_t *others)
{
    const struct ph_init init = {PH_INIT_NORMAL, settings->embedding_init_std};
    ph_builder_push_scope(builder, "embedding");
    ph_value table = ph_table(builder, "table", features->num_sparse, ph__feature_slices(features),
        (size_t)settings->embedding_dim, init);
    ph_builder_pop_scope(builder);
    ph_value vectors = pooled(builder, pairs, table, settings, features, others);
    ph_name_value(builder, "embeddings", vectors);
    ph_value x = ph__layer_flatten(builder, vectors);
    for (size_t i = 0; i < pairs->count && x != 0; i++) {
        ph_value target = vector_of(builder, vectors, others, pairs->targets[i]);
        x = ph__layer_beside(
            builder, x, interest(builder, i, table, pairs->histories[i], target, settings, features));
    }
    return x;
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct pairs pairs = read_pairs(builder, settings->own, features);
    if (pairs.count == 0 || ph_builder_status(builder) != PH_OK)
        return ph__layer_deep(builder, ph__feature_all(builder, settings, features), settings, features);
    size_t *others = calloc(features->num_sparse, sizeof *others);
    if (others == NULL)
        return ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu features", features->num_sparse);
    ph_value x = lookups(builder, &pairs, settings, features, others);
    free(others);
    if (features->num_dense > 0)
        x = ph__layer_beside(builder, x, ph_input_dense(builder, features->num_dense));
    return ph__layer_deep(builder, x, settings, features); /* (B,T) */
}

const struct ph__model ph__model_din = {
    .description = "DIN, deep interest network: histories pooled with weights that depend on their target",
    .keys = &keys,
    .build = build,
};
