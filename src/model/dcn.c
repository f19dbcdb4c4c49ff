/* DCN (Wang et al., ADKDD 2017): cross layers x_{l+1} = x_0 (w_l . x_l) + b_l + x_l over all embeddings and
 * dense features side by side, beside a perceptron on the same; one linear layer over both. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

struct dcn_keys {
    int64_t layers;
};

static const struct ph__option options[] = {
    PH_INTEGER_KEY("layers", struct dcn_keys, layers, "3", 1, 64,
        "Number of cross layers. hidden_units: the perceptron beside them; none: cross layers alone."),
};

static const struct ph__option_table keys = {
    .section = "model.dcn",
    .help = "Keys of DCN.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct dcn_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* Returns first (w . x) + b + x. */
static ph_value cross_layer(struct ph_builder *builder, size_t layer, ph_value first, ph_value x)
{
    ph__layer_push_index(builder, "cross", layer);
    const size_t width = ph__layer_extent(builder, x, 1);
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){1, width}, ph__layer_xavier);
    ph_value bias = ph_parameter(builder, "bias", 1, &width, ph__layer_zeros);
    ph_value product = ph_scale_rows(builder, first, ph_linear(builder, x, weight, 0, PH_IDENTITY));
    x = ph_add(builder, ph_add(builder, product, x), bias);
    ph_builder_pop_scope(builder);
    return x;
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct dcn_keys *own = settings->own;
    ph_value first = ph__feature_all(builder, settings, features); /* (B,K) */
    ph_value x = first;
    for (size_t layer = 0; layer < (size_t)own->layers; layer++)
        x = cross_layer(builder, layer, first, x);
    if (settings->num_hidden_units > 0)
        x = ph__layer_beside(builder, x, ph__layer_hidden(builder, first, settings));
    return ph__layer_logits(builder, x, features->num_tasks); /* (B,T) */
}

const struct ph__model ph__model_dcn = {
    .description = "DCN: cross layers with one weight vector each, beside a multi-layer perceptron",
    .keys = &keys,
    .takes_towers = true,
    .build = build,
};
