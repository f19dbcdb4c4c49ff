/* Our inference of a case, from batch to probabilities, with the time and cost of each operator. */
#ifndef PH_BENCH_FORWARD_H
#define PH_BENCH_FORWARD_H

#include "dlrm_case.h"
#include "graph/op.h"

struct forward;

/* Creates an inference. Initial weights are in store and state, which several inferences share; these and
 * data are borrowed until destroy. */
struct forward *forward_create(const struct dlrm_data *data, enum ph_precision precision,
    struct ph_store *store, struct ph_state *state, size_t threads);
void forward_destroy(struct forward *forward);

/* Scores the next batch. */
void forward_call(struct forward *forward);

/* Runs profiled calls (forward_call's are not), for the mean seconds and the cost of a node in one call. */
void forward_profile(struct forward *forward, size_t calls);
size_t forward_num_nodes(const struct forward *forward);
const char *forward_node_name(const struct forward *forward, size_t node);
double forward_seconds(const struct forward *forward, size_t node);
const struct ph__cost *forward_cost(const struct forward *forward, size_t node);

struct ph__team *forward_team(const struct forward *forward);
ph_real *forward_table(const struct forward *forward); /* the embedding table, (tables * rows, dim) */

#endif
