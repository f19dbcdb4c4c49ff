/* Graphs of a contextual stochastic block model: nodes of equal classes, whose features are their class's
 * centre and noise, and whose edges go mostly to nodes of their own class, by weights that are far from
 * equal. Everything is a function of the settings.
 *
 *     x_i = centre of class c_i, N(0,1)^F, + noise N(0,1)^F;   weight w_i = exp(spread N(0,1))
 *     an edge: one end by weight among all; the other by weight, with chance `own` of the same class
 *
 * Source: Deshpande, Sen, Montanari, Mossel, "Contextual stochastic block models" (arXiv 1807.09596), with
 * degrees that vary; sizes and rates are ours. */
#ifndef PH_DATA_SYNTH_CSBM_H
#define PH_DATA_SYNTH_CSBM_H

#include "base/option/option.h"

struct ph__csbm_settings {
    int64_t num_nodes, num_classes, num_features, edges; /* edges: drawn for each node */
    double noise, spread, own;
    int64_t seed;
};

extern const struct ph__option_table ph__csbm_options;

/* Writes DIR/nodes.csv (node, label, x0 ...), DIR/edges.csv without loops and duplicates, and DIR/synth.yaml.
 * Errors as ph_synth_write. */
ph_status ph__csbm_write(
    const struct ph__csbm_settings *settings, const char *folder, uint64_t *num_edges_out);

#endif
