/* One aggregation over a graph, run as its operator runs it, and in its parts. */
#ifndef PH_BENCH_AGGREGATION_RUN_H
#define PH_BENCH_AGGREGATION_RUN_H

#include "graph/graph.h"
#include "graph_case.h"
#include "op/sequence/aggregation.h"

struct aggregation_run {
    const struct graph_case *graph;
    struct ph_aggregate_options options;
    struct ph_type types[4];
    struct ph__operand inputs[3], output;
    struct ph__node node;
    struct ph__call call;
    size_t scratch_bytes;
    uint32_t *offsets, *slots; /* the whole graph's list */
    ph_real *scales;
};

/* x and y (num_nodes, dim) and weights (num_items), or NULL, are borrowed. */
void aggregation_run_init(struct aggregation_run *run, const struct ph_backend *backend,
    const struct graph_case *graph, size_t dim, ph_real *x, ph_real *weights, ph_real *y,
    const struct ph_sampling *sampling);
void aggregation_run_fini(struct aggregation_run *run);

/* Return the seconds that they take. */
double aggregation_run_whole(struct aggregation_run *run);
double aggregation_run_lists(struct aggregation_run *run);  /* sampling alone */
double aggregation_run_listed(struct aggregation_run *run); /* what a list of the whole graph names */

#endif
