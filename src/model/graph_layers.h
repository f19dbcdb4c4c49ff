/* Layers of models whose batch is a graph: samples are nodes, and one list of ids holds each node's
 * neighbours. B nodes, M units. */
#ifndef PH_MODEL_GRAPH_LAYERS_H
#define PH_MODEL_GRAPH_LAYERS_H

#include "base/option/option.h"
#include "phloem/model.h"
#include "phloem/op.h"

/* Keys that all such models have, under model.<kind>. */
struct ph__graph_keys {
    const char *neighbours; /* name of the list of neighbours */
    enum ph_normalisation normalisation;
    int64_t sample_width; /* in inference alone, as are the next */
    enum ph_sampling_strategy sample_strategy;
    double sample_rate;
    int64_t sample_seed;
};

#define PH_NUM_GRAPH_OPTIONS 6
extern const struct ph__option ph__graph_options[PH_NUM_GRAPH_OPTIONS];

/* Returns a (weighted) mean or sum of x (B,M) over each node's neighbours, in inference over a sample. */
ph_value ph__graph_aggregate(struct ph_builder *builder, ph_value x, const struct ph_model_settings *settings,
    const struct ph_model_features *features);

/* Builds layers of the widths hidden_units and then T: the first of the features but the neighbours, each
 * with dropout before it and an activation between. `layer` makes one: of x (B,K), or for the first of the
 * product of the features with its weights, of `num_blocks` times as many columns, and the dense features. */
struct ph__graph_input {
    ph_value product; /* (B, num_blocks M) of the ids' features with weights that are a table; 0: none */
    ph_value x;       /* (B,K); 0: none */
};
typedef ph_value (*ph__graph_layer)(struct ph_builder *builder, const struct ph__graph_input *input,
    size_t units, const struct ph_model_settings *settings, const struct ph_model_features *features);
ph_value ph__graph_build(struct ph_builder *builder, size_t num_blocks, ph__graph_layer layer,
    const struct ph_model_settings *settings, const struct ph_model_features *features);

/* Returns x W^T with the parameter "<name>" (units,K), without a bias. */
ph_value ph__graph_linear(struct ph_builder *builder, const char *name, ph_value x, size_t units);

#endif
