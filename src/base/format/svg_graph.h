/* A directed graph without cycles, drawn as SVG onto a page from top to bottom: nodes in layers by their longest way from
 * a source, ordered so that few edges cross (Sugiyama, Tagawa, Toda: Methods for Visual Understanding of Hierarchical
 * System Structures, 1981), and moved towards their neighbours. */
#ifndef PH_BASE_SVG_GRAPH_H
#define PH_BASE_SVG_GRAPH_H

#include "base/format/html.h"

struct ph_graph_node {
    const char *label; /* the first line */
    const char *note;  /* the second one, smaller; "" is fine */
    const char *title; /* shown when the pointer rests on it; or NULL */
    size_t color;      /* of its edge: 1 .. 6: --c1 .. --c6 of the page's style, 0: plain */
};

struct ph_graph_edge {
    size_t from, to; /* from < to */
};

struct ph_graph_drawing {
    const char *id;
    const struct ph_graph_node *nodes;
    size_t num_nodes;
    const struct ph_graph_edge *edges; /* twice the same is drawn once */
    size_t num_edges;
};

/* All is borrowed for the call. Takes time as nodes times edges and as edges squared, and memory as edges times layers: fine for
 * some hundreds of either. */
void ph__html_graph(struct ph_html *html, const struct ph_graph_drawing *drawing);

#endif
