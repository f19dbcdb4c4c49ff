/* Measures what sets of tables cost this machine: milliseconds of lookup, gradient and update on one rank.
 *
 * Design: one store holds a large table for each dim, written once. Each table of a set has a run of its
 * rows, so that a set needs no memory of its own; a run that is longer than the table wraps. The tables of a
 * dim share one lookup, as they do in a model. The time includes a sum of the pooled vectors and its
 * gradient, which stand for the exchange that reads and writes them. All runs of a set repeat one batch.
 *
 * Other work on the machine, and on the host below it, makes the same run take twice as long from one moment
 * to the next. So each run of a set is followed by one of a *reference* set, which the same work disturbs.
 * The median of the set's times counts, each divided by how much longer the reference took than when little
 * disturbs it, to a power that was fitted. Used by one thread at a time. */
#ifndef PH_TRAIN_COST_MEASURE_H
#define PH_TRAIN_COST_MEASURE_H

#include "phloem/op.h"
#include "plan/search/cost_label.h"
#include "train/cost/cost_tables.h"

enum { PH_COST_MOST_MEASURED = 64 }; /* tables of a set */

struct ph__cost_measure_options {
    size_t batch_size; /* that the tables were generated for */
    size_t num_threads;
    size_t num_runs; /* of a set, and of the reference; at least 1 */
    uint64_t arena_bytes;
    enum ph_optimizer_kind optimizer;
};

struct ph__cost_measure;

/* PH_ERROR_CONFIG: the arena is too small for a row of each dim; PH_ERROR_MEMORY, errors of
 * ph_backend_create. */
ph_status ph__cost_measure_open(
    const struct ph__cost_measure_options *options, struct ph__cost_measure **measure_out);
void ph__cost_measure_close(struct ph__cost_measure *measure);

/* Measures 1 to PH_COST_MOST_MEASURED tables, whose dims are of ph__cost_dims, with ids of this seed. Gives
 * the milliseconds, and how much longer than undisturbed the reference took, as a share. */
ph_status ph__cost_measure_set(struct ph__cost_measure *measure, const struct ph__cost_table *tables,
    size_t count, uint64_t seed, double *ms_out, double *disturbance_out);

/* Returns the store of the arena, whose tables are "arena.<dim>". Borrowed. */
const struct ph_store *ph__cost_measure_store(const struct ph__cost_measure *measure);

/* Describes a table, of these accesses (borrowed), as planners do. */
struct ph__cost_part ph__cost_measure_part(
    const struct ph__cost_measure *measure, const struct ph__cost_table *table, const double *accesses);
/* Returns the share of lookups in the time of all sets so far; 0 before the first one. */
double ph__cost_measure_lookup_share(const struct ph__cost_measure *measure);

#endif
