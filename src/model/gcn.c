/* Graph convolutional network (Kipf, Welling, ICLR 2017, arXiv 1609.02907): layers
 *   H' = activation(A H W^T + b),
 * where A averages or sums a node's neighbours, itself among them where the data say so. Of words, H W^T is a
 * lookup. */
#include "model/graph_layers.h"
#include "model/layers.h"
#include "model/model.h"

static const struct ph__option_table keys = {
    .section = "model.gcn",
    .help = "Keys of GCN.",
    .options = ph__graph_options,
    .num_options = PH_NUM_GRAPH_OPTIONS,
    .settings_size = sizeof(struct ph__graph_keys),
};

static ph_value layer(struct ph_builder *builder, const struct ph__graph_input *input, size_t units,
    const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    ph_value y = input->product;
    if (y != 0)
        y = ph__graph_aggregate(builder, y, settings, features);
    if (input->x == 0)
        return y;
    ph_value x = ph__graph_aggregate(builder, input->x, settings, features);
    x = ph__graph_linear(builder, "weight", x, units);
    return y != 0 ? ph_add(builder, y, x) : x; /* (B,M) */
}

static ph_value build(struct ph_builder *builder, const struct ph_model_settings *settings,
    const struct ph_model_features *features)
{
    return ph__graph_build(builder, 1, layer, settings, features); /* (B,T) */
}

const struct ph__model ph__model_gcn = {
    .description = "GCN, graph convolutional network: layers over the means of a node's neighbours",
    .keys = &keys,
    .build = build,
};
