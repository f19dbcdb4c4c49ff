/* Evaluation: gathers the scores of all ranks, and measures a scorer's metrics over a file, for a trainer
 * that may be told to stop meanwhile. */
#ifndef PH_TRAIN_EVALUATE_H
#define PH_TRAIN_EVALUATE_H

#include "comm/collective/comm.h"
#include "train/job_rows.h"
#include "train/measure/calibration.h"
#include "train/measure/id_coverage.h"

/* ---- scores of a batch from all ranks, gathered on every rank or on the first one alone ---- */

struct ph__gathered_scores {  /* zero-initialised is empty */
    bool are_for_first;       /* the other ranks' batch has no samples; the same on all ranks, set first */
    struct ph_batch batch;    /* labels, mask and groups of all samples; no features */
    ph_real *logits;          /* (B,T) */
    ph_real *sent, *received; /* logits, labels and mask, rank by rank */
    int64_t *groups;
    uint64_t *bytes; /* (world) */
    size_t sent_capacity, received_capacity, groups_capacity, logits_capacity, labels_capacity, mask_capacity,
        bytes_capacity;
    ph_real *labels, *mask;
};

/* Replaces this rank's batch and logits (B,T) by those of all ranks, on the ranks that gather them; comm
 * NULL: leaves them. The new ones are borrowed from `gathered` until the next call. PH_ERROR_MEMORY; errors
 * of ph__comm_wait. */
ph_status ph__gathered_scores_replace(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch **batch, const ph_real **logits);
void ph__gathered_scores_fini(struct ph__gathered_scores *gathered);

/* ---- evaluations ---- */

/* Rows of a file that were skipped. */
struct ph__bad_rows {
    uint64_t count;
    char first[512]; /* place and problem of the first one; "": there is none */
};
struct ph__split_bad_rows {
    struct ph__bad_rows train, valid, test;
};

/* Details that an evaluation gathers beside the metrics, each emptied first; NULL: not wanted. */
struct ph__evaluation_details {
    struct ph__calibration *calibration; /* of the first task; with several ranks, on the first one alone */
    const struct ph__id_coverage *coverage;
    struct ph__id_counts *id_counts; /* (F), with coverage */
};

/* Does ph_scorer_evaluate, but ends between two batches once *stop_signal is not 0 (NULL: never) on any of
 * the ranks that score. Then *signal_out is that signal on all ranks, and metrics_out (T) is unchanged; else
 * *signal_out is 0. With several ranks the first one holds all scores and measures; all get the same metrics.
 * bad_rows_out and details may be NULL. */
ph_status ph__scorer_evaluate(struct ph_scorer *scorer, struct ph__rows_origin rows,
    const volatile int *stop_signal, int *signal_out, struct ph_metrics *metrics_out,
    struct ph__bad_rows *bad_rows_out, const struct ph__evaluation_details *details);

/* Takes the count of bad rows of a pass so far, and the first bad row unless one is known. */
void ph__bad_rows_update(struct ph__bad_rows *bad_rows, struct ph_batches *batches);

#endif
