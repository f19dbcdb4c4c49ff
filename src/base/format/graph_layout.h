/* A directed graph without cycles, and where its nodes stand when it is drawn in layers (svg.h). */
#ifndef PH_BASE_GRAPH_LAYOUT_H
#define PH_BASE_GRAPH_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/arena.h"
#include "phloem/status.h"

struct ph__graph_node {
    const char *label; /* the first line */
    const char *note;  /* the second one, smaller; "" is fine */
    const char *title; /* shown when the pointer rests on it; or NULL */
    size_t color;      /* of its edge: 1 .. 6: --c1 .. --c6 of the page's style, 0: plain */
};

struct ph__graph_edge {
    size_t from, to; /* from < to */
};

struct ph__graph_drawing {
    const char *id;
    const struct ph__graph_node *nodes;
    size_t num_nodes;
    const struct ph__graph_edge *edges; /* twice the same is drawn once */
    size_t num_edges;
};

/* A place in a layer: a node, or a point where an edge passes through on its way to a layer further down. */
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
ph_status ph__graph_layout(const struct ph__graph_drawing *drawing, const double *widths,
    struct ph__arena *arena, struct ph__layout *layout_out);

#endif
