/* DCN-V2 (Wang et al., WWW 2021, arXiv 2008.13535): cross layers x_{l+1} = x_0 * (W_l x_l + b_l) + x_l, W
 * whole or of low rank, W = U V^T; the perceptron runs beside them on the same x_0 (parallel) or on top of
 * them (stacked).
 *
 * With bottom_units a bottom perceptron turns the dense features into one more vector of dimension D, as
 * DLRM's does. Stacked and of low rank this is MLPerf's DLRM-DCNv2. */
#include "model/feature_layers.h"
#include "model/layers.h"
#include "model/model.h"

enum structure { PARALLEL, STACKED };

struct dcn_v2_keys {
    int64_t layers, rank;
    int structure;
};

static const struct ph__option options[] = {
    PH_INTEGER_KEY("layers", struct dcn_v2_keys, layers, "3", 1, 64, "Number of cross layers."),
    PH_INTEGER_KEY("rank", struct dcn_v2_keys, rank, "0", 0, 65536,
        "Rank of the matrix of each cross layer, W = U V^T. 0: W is a full matrix."),
    PH_CHOICE_KEY("structure", struct dcn_v2_keys, structure, "parallel", "parallel|stacked",
        "Place of the perceptron of hidden_units. parallel: beside the cross layers. stacked: on top of "
        "them. Without hidden_units there are cross layers alone."),
};

static const struct ph__option_table keys = {
    .section = "model.dcn_v2",
    .help = "Keys of DCN-V2. With bottom_units, a perceptron turns the dense features into one vector of "
            "embedding_dim.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct dcn_v2_keys),
    .traits = PH_KEY_OF_MODEL,
};

/* Returns (B, D of the bottom + F*D), or all features side by side. */
static ph_value first_of(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    if (settings->num_bottom_units == 0 || features->num_dense == 0)
        return ph__feature_all(builder, settings, features);
    ph_value bottom = ph__feature_bottom(builder, settings, features);
    return ph__layer_beside(
        builder, bottom, ph__layer_flatten(builder, ph__feature_embeddings(builder, settings, features)));
}

/* Returns W x + b, or U (V^T x) + b. */
static ph_value linear_part(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings)
{
    const size_t rank = (size_t)((const struct dcn_v2_keys *)settings->own)->rank;
    const size_t width = ph__layer_extent(builder, x, 1);
    if (rank > 0) {
        ph_value v = ph_parameter(builder, "v", 2, (size_t[]){rank, width}, ph__layer_xavier);
        x = ph_linear(builder, x, v, 0, PH_IDENTITY);
    }
    ph_value weight = ph_parameter(
        builder, rank > 0 ? "u" : "weight", 2, (size_t[]){width, rank > 0 ? rank : width}, ph__layer_xavier);
    return ph_linear(builder, x, weight, ph__layer_bias(builder, width, settings), PH_IDENTITY);
}

static ph_value cross_layers(
    struct ph_builder *builder, ph_value first, const struct ph_model_settings *settings)
{
    const struct dcn_v2_keys *own = settings->own;
    ph_value x = first;
    for (size_t layer = 0; layer < (size_t)own->layers; layer++) {
        ph__layer_push_index(builder, "cross", layer);
        x = ph_cross(builder, first, linear_part(builder, x, settings), x);
        ph_builder_pop_scope(builder);
    }
    return x;
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    const struct dcn_v2_keys *own = settings->own;
    ph_value first = first_of(builder, settings, features); /* (B,K) */
    ph_value x = cross_layers(builder, first, settings);    /* (B,K) */
    if (settings->num_hidden_units > 0 && own->structure == STACKED)
        x = ph__layer_hidden(builder, x, settings);
    else if (settings->num_hidden_units > 0)
        x = ph__layer_beside(builder, x, ph__layer_hidden(builder, first, settings));
    return ph__layer_logits(builder, x, features->num_tasks); /* (B,T) */
}

const struct ph__model ph__model_dcn_v2 = {
    .description =
        "DCN-V2: cross layers of full or low-rank matrices, with a perceptron beside or on top of them",
    .keys = &keys,
    .takes_towers = true,
    .build = build,
};
