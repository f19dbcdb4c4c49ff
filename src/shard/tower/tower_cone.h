/* The part of a graph that makes a tower: one lookup, and the layers from its vectors to the value that the
 * model has named "tower.<name>". */
#ifndef PH_SHARD_TOWER_CONE_H
#define PH_SHARD_TOWER_CONE_H

#include "graph/graph.h"

struct ph__tower_cone {
    uint32_t lookup, last; /* nodes: the embedding_bag, and the one that makes the output */
    const bool *is_inside; /* (num_nodes) nodes that the output needs, the two included */
};

/* Returns the name of the tower that a model's named value is; NULL: it is no tower. */
const char *ph__tower_name(const char *value_name);
/* Finds the nodes behind a named value, in the arena. PH_ERROR_CONFIG: they read anything but one lookup of
 * pooled vectors and parameters, or mix samples. PH_ERROR_MEMORY. */
ph_status ph__tower_cone_find(const struct ph__graph *graph, const struct ph__named_value *named,
    struct ph__arena *arena, struct ph__tower_cone *cone_out);

#endif
