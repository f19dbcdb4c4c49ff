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
 * disturbs it, to a power that was fitted. What disturbs stays for seconds, so that more runs in a row help
 * little: sets are measured twice, long apart. Used by one thread at a time. */
#ifndef PH_TRAIN_COST_MEASURE_H
#define PH_TRAIN_COST_MEASURE_H

#include "base/memory/arena.h"
#include "phloem/op.h"
#include "plan/search/cost_label.h"
#include "train/cost/cost_tables.h"

enum {
    PH_COST_MOST_TABLES = 15,   /* of a set that is drawn */
    PH_COST_MOST_MEASURED = 64, /* of a set that is given */
};

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

struct ph__cost_labels { /* zero-initialised is empty */
    struct ph__arena arena;
    struct ph__cost_label *labels; /* (num_labels): to train on, to validate by, to test by, in this order */
    size_t num_labels;
    struct ph__cost_split counts;  /* of labels */
    size_t num_again, num_dropped; /* sets that were measured a third time; sets without a label */
    double lookup_share;           /* of the time of all sets */
    double repeat_error;           /* mean relative difference of a label from another one of the same set */
};

typedef void (*ph__cost_progress)(void *context, size_t done, size_t count);

/* Measures num_sets sets of 1 to PH_COST_MOST_TABLES tables, at any dim. Of ten sets in a row eight are of
 * the tables to train on, one to validate by, one to test by. All sets are measured twice, long apart, and a
 * third time where the two differ much; labels are medians. Progress may be NULL. Call fini also after a
 * failure. */
ph_status ph__cost_measure_all(struct ph__cost_measure *measure, const struct ph__cost_table *tables,
    const struct ph__cost_split *split, size_t num_sets, uint64_t seed, ph__cost_progress progress,
    void *context, struct ph__cost_labels *labels_out);
void ph__cost_labels_fini(struct ph__cost_labels *labels);

#endif
