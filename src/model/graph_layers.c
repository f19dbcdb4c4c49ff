#include "model/graph_layers.h"

#include <string.h>

#include "model/feature_layers.h"
#include "model/layers.h"

#define FIELD(member) struct ph__graph_keys, member

#define X(NAME, text) "|" #text
static const char normalisations[] = PH_NORMALISATIONS(X);
static const char strategies[] = PH_SAMPLINGS(X);
#undef X

const struct ph__option ph__graph_options[PH_NUM_GRAPH_OPTIONS] = {
    PH_TEXT_KEY("neighbours", FIELD(neighbours), "",
        "Name of the list of ids that holds a node's neighbours, as numbers of the batch's rows. Empty: "
        "nodes have none, and layers are those of a perceptron.",
        .traits = PH_KEY_OF_MODEL),
    PH_CHOICE_KEY("normalisation", FIELD(normalisation), "mean", normalisations + 1,
        "Factors of a node's neighbours. sum: 1. mean: 1 / their number. symmetric: 1 / sqrt(d d'), with the "
        "numbers of neighbours of both nodes.",
        .traits = PH_KEY_OF_MODEL),
    PH_INTEGER_KEY("sample_width", FIELD(sample_width), "0", 0, 1e6,
        "Most neighbours of a node that scoring reads, of those that it has; training reads all. 0: all.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("sample_strategy", FIELD(sample_strategy), "stride", strategies + 1,
        "Choice of these neighbours. bucket: the first ones. stride, residue: by arithmetic on their "
        "places. rate: a share of them (sample_rate), by stride. aes: runs of them. even: at even "
        "distances.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_NUMBER_KEY("sample_rate", FIELD(sample_rate), "0", 0, 1,
        "Share of the neighbours for sample_strategy rate, which requires sample_width: 0.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_INTEGER_KEY("sample_seed", FIELD(sample_seed), "0", 0, 4294967295.0,
        "Seed of the strategies stride, rate and residue.", .traits = PH_KEY_MAY_CHANGE),
};

/* ---- neighbours ---- */

/* Returns the sampling of the keys; all neighbours in training, and where neither width nor rate is set. */
static struct ph_sampling sampling_of(const struct ph_builder *builder, const struct ph__graph_keys *keys)
{
    const bool is_sampled = keys->sample_width > 0 || keys->sample_rate > 0;
    if (!is_sampled || ph_builder_mode(builder) == PH_TRAINING)
        return (struct ph_sampling){0};
    return (struct ph_sampling){.width = (size_t)keys->sample_width,
        .rate = keys->sample_rate,
        .strategy = keys->sample_strategy,
        .seed = (uint32_t)keys->sample_seed};
}

ph_value ph__graph_aggregate(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct ph__graph_keys *keys = settings->own;
    if (keys->neighbours[0] == '\0')
        return x;
    const struct ph_aggregate_options options = {
        .size = sizeof options, .sampling = sampling_of(builder, keys), .normalisation = keys->normalisation};
    const size_t feature = ph__feature_find(builder, features, keys->neighbours);
    ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, features->num_sparse), feature);
    return ph_aggregate(builder, x, bags, 0, &options);
}

/* ---- layers ---- */

ph_value ph__graph_linear(struct ph_builder *builder, const char *name, ph_value x, size_t units)
{
    const size_t dims[] = {units, ph__layer_extent(builder, x, 1)};
    return ph_linear(builder, x, ph_parameter(builder, name, 2, dims, ph__layer_xavier), 0, PH_IDENTITY);
}

/* Multiplies the ids' features, all but the neighbours, with weights that are the rows of a table. */
static ph_value product_of_ids(struct ph_builder *builder, size_t units,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    const struct ph__graph_keys *keys = settings->own;
    struct ph_model_settings wide = *settings;
    struct ph__text_list names = {.count = 0};
    for (size_t i = 0; i < features->num_sparse; i++) {
        if (strcmp(features->sparse[i].name, keys->neighbours) == 0)
            continue;
        if (names.count == PH_LIST_MAX)
            return ph_builder_fail(
                builder, PH_ERROR_CONFIG, "a graph model takes %d id features at most", PH_LIST_MAX);
        names.items[names.count++] = features->sparse[i].name;
    }
    if (names.count == 0)
        return 0;
    wide.embedding_dim = (int64_t)units;
    ph_builder_push_scope(builder, "embedding"); /* a feature may be called weight */
    ph_value vectors = ph__feature_named_embeddings(builder, &names, &wide, features);
    ph_builder_pop_scope(builder);
    return names.count == 1 ? ph_reshape(builder, vectors, 1, &units) : ph_sum_features(builder, vectors);
}

static ph_value first_layer(struct ph_builder *builder, size_t num_blocks, size_t units,
    ph__graph_layer layer, const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    struct ph__graph_input input = {
        .product = product_of_ids(builder, num_blocks * units, settings, features)};
    if (input.product != 0)
        input.product = ph__layer_drop(builder, input.product, settings);
    if (features->num_dense > 0)
        input.x = ph__layer_drop(builder, ph_input_dense(builder, features->num_dense), settings);
    if (input.product == 0 && input.x == 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "the nodes have no feature beside their neighbours");
    return layer(builder, &input, units, settings, features);
}

ph_value ph__graph_build(struct ph_builder *builder, size_t num_blocks, ph__graph_layer layer,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    ph_value x = 0;
    for (size_t i = 0; i <= settings->num_hidden_units; i++) {
        const bool is_last = i == settings->num_hidden_units;
        const size_t units = is_last ? features->num_tasks : (size_t)settings->hidden_units[i];
        ph__layer_push_index(builder, "layer", i);
        if (i == 0) {
            x = first_layer(builder, num_blocks, units, layer, settings, features);
        } else {
            const struct ph__graph_input input = {.x = ph__layer_drop(builder, x, settings)};
            x = layer(builder, &input, units, settings, features);
        }
        x = ph_add(builder, x, ph_parameter(builder, "bias", 1, &units, ph__layer_zeros));
        x = is_last ? x : ph_activate(builder, x, settings->activation);
        ph_builder_pop_scope(builder);
        if (i + 1 == settings->num_hidden_units)
            ph_name_value(builder, "hidden", x);
    }
    return x;
}
