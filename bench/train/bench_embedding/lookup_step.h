/* A training step of embedding tables alone: the lookup of pooled rows, and the update of the rows that it
 * touched. */
#ifndef PH_BENCH_LOOKUP_STEP_H
#define PH_BENCH_LOOKUP_STEP_H

#include "dlrm_case.h"
#include "graph/op.h"

/* The measured operators: the first is the forward pass, all others are backward pass and update. */
enum { LOOKUP_BAG, LOOKUP_SLOTS, LOOKUP_MERGE, LOOKUP_ENTRIES, LOOKUP_UPDATE, LOOKUP_OPERATORS };
extern const char *const lookup_operator_names[LOOKUP_OPERATORS];

struct lookup_profile {
    double seconds;       /* of a step: the median, since a slow step tells about other processes */
    struct ph__cost cost; /* of a step: the mean */
};

/* One program and one set of tables for several backends, at most LOOKUP_MAX_BACKENDS, so that they can take
 * turns. data and backends are borrowed until destroy. */
#define LOOKUP_MAX_BACKENDS 2
struct lookup;
struct lookup *lookup_create(const struct dlrm_data *data, enum ph_optimizer_kind optimizer,
    struct ph_backend *const *backends, size_t num_backends);
void lookup_destroy(struct lookup *lookup);

/* Runs up to LOOKUP_MAX_STEPS steps on the batches in turn. Returns the median seconds of a whole step, with
 * the operators that are not measured. */
#define LOOKUP_MAX_STEPS 200
double lookup_run(
    struct lookup *lookup, size_t backend, size_t steps, struct lookup_profile profile_out[LOOKUP_OPERATORS]);

ph_real *lookup_table(const struct lookup *lookup); /* (tables * rows, dim) */

#endif
