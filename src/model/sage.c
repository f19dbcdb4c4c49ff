/* GraphSAGE with means (Hamilton, Ying, Leskovec, NeurIPS 2017, arXiv 1706.02216): layers
 *   H' = activation(H W_own^T + A H W_near^T + b),
 * where A averages a node's neighbours. Of words both products are one lookup, side by side. */
#include "model/graph_layers.h"
#include "model/layers.h"
#include "model/model.h"

static const struct ph__option_table keys = {
    .section = "model.sage",
    .help = "Keys of GraphSAGE.",
    .options = ph__graph_options,
    .num_options = PH_NUM_GRAPH_OPTIONS,
    .settings_size = sizeof(struct ph__graph_keys),
};

static ph_value layer(struct ph_builder *builder, const struct ph__graph_input *input, size_t units,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    ph_value y = 0;
    if (input->product != 0) {
        ph_value near = ph_slice(builder, input->product, 1, units, units);
        near = ph__graph_aggregate(builder, near, settings, features);
        y = ph_add(builder, ph_slice(builder, input->product, 1, 0, units), near);
    }
    if (input->x == 0)
        return y;
    ph_value own = ph__graph_linear(builder, "own", input->x, units);
    ph_value near = ph__graph_aggregate(builder, input->x, settings, features);
    near = ph__graph_linear(builder, "near", near, units);
    ph_value x = ph_add(builder, own, near);
    return y != 0 ? ph_add(builder, y, x) : x; /* (B,M) */
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    return ph__graph_build(builder, 2, layer, settings, features); /* (B,T) */
}

const struct ph__model ph__model_sage = {
    .description = "GraphSAGE: layers over a node and the mean of its neighbours",
    .keys = &keys,
    .build = build,
};
