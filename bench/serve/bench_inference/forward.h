/* Our inference of a case, from batch to probabilities, with what each of its operators takes and costs. */
#ifndef PH_BENCH_FORWARD_H
#define PH_BENCH_FORWARD_H

#include "dlrm_case.h"
#include "graph/op.h"

struct forward;

/* Weights, initial ones, are in store and state, which several share; data is borrowed too until destroy. */
struct forward *forward_create(const struct dlrm_data *data, enum ph_precision precision,
    struct ph_store *store, struct ph_state *state, size_t threads);
void forward_destroy(struct forward *forward);

/* Scores the next batch. */
void forward_call(struct forward *forward);

/* Runs calls that are profiled, which forward_call's are not: mean seconds and cost of a node in one of them.
 */
void forward_profile(struct forward *forward, size_t calls);
size_t forward_num_nodes(const struct forward *forward);
const char *forward_node_name(const struct forward *forward, size_t node);
double forward_seconds(const struct forward *forward, size_t node);
const struct ph__cost *forward_cost(const struct forward *forward, size_t node);

struct ph__team *forward_team(const struct forward *forward);
ph_real *forward_table(const struct forward *forward); /* the embedding table, (tables * rows, dim) */

#endif
