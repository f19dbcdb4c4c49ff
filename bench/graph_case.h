/* Graphs to aggregate over: pages of Facebook, and a random one of classes. Neighbours ascend. */
#ifndef PH_BENCH_GRAPH_CASE_H
#define PH_BENCH_GRAPH_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph_case {
    const char *name; /* static */
    size_t num_nodes, num_items;
    uint32_t *offsets; /* (num_nodes + 1) */
    int64_t *ids;      /* (num_items) neighbours of each node */
};

/* Reads facebook_pages/edges.csv.zst under $PHLOEM_DATA, or ../shared/data: both directions, without loops.
 * Returns false, and prints why, when the file is missing. */
bool graph_case_facebook(struct graph_case *graph);
/* Draws a contextual stochastic block model of 20 classes and 245 edges a node before duplicates and loops
 * are dropped: ends by weight, lognormal(0,1), the second one of the own class with probability .7. */
void graph_case_csbm(struct graph_case *graph, size_t num_nodes);
/* Shuffles each node's neighbours, and renames the graph: the first ones are then a random sample. */
void graph_case_shuffle(struct graph_case *graph, const char *name);
void graph_case_fini(struct graph_case *graph);

/* Returns num_items / sum of min(d, width): the most that reading fewer edges can save. width 0: 1. */
double graph_case_ceiling(const struct graph_case *graph, size_t width);

/* Writes offsets.i64, ids.i64, x.f32 (num_nodes, dim) and case.json for peers. */
void graph_case_write(const struct graph_case *graph, size_t dim, const float *x, const char *folder);

#endif
