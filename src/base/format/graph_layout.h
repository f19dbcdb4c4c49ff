/* Where the nodes of a graph that is drawn in layers stand (svg_graph.h). */
#ifndef PH_BASE_GRAPH_LAYOUT_H
#define PH_BASE_GRAPH_LAYOUT_H

#include "base/format/svg_graph.h"
#include "base/memory/arena.h"

/* What stands in a layer: a node, or a place where an edge passes through on its way to a layer further down. */
struct ph__layout_place {
    size_t layer;
    double width, x;       /* x: of its middle */
    size_t *above, *below; /* (num_above), (num_below) places of the layers beside */
    size_t num_above, num_below;
    bool is_node;
};

struct ph__layout {
    struct ph__layout_place *places; /* the nodes come first, in their order */
    size_t num_places;
    size_t num_layers;
    size_t **layers;     /* by layer: its places from left to right */
    size_t *layer_sizes; /* (num_layers) */
    double width;
};

/* widths: of the nodes. Everything is the arena's. PH_ERROR_MEMORY. */
ph_status ph__graph_layout(const struct ph_graph_drawing *drawing, const double *widths,
    struct ph_arena *arena, struct ph__layout *layout_out);

#endif
