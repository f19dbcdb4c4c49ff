/* Evaluating: the scores of all ranks together, and a scorer's metrics over a file, for a trainer that may be
 * told to stop meanwhile. */
#ifndef PH_TRAIN_EVALUATE_H
#define PH_TRAIN_EVALUATE_H

#include "comm/collective/comm.h"
#include "train/job_rows.h"
#include "train/measure/calibration.h"
#include "train/measure/id_coverage.h"

/* ---- what all ranks have scored of a batch, on every rank or on the first one alone ---- */

struct ph__gathered_scores {  /* zero-initialised is empty */
    bool are_for_first;       /* the other ranks' batch has no samples; alike on all, from the beginning */
    struct ph_batch batch;    /* labels, mask and groups of all samples; no features */
    ph_real *logits;          /* (B,T) */
    ph_real *sent, *received; /* logits, labels and mask, rank by rank */
    int64_t *groups;
    uint64_t *bytes; /* (world) */
    size_t sent_capacity, received_capacity, groups_capacity, logits_capacity, labels_capacity, mask_capacity,
        bytes_capacity;
    ph_real *labels, *mask;
};

/* Replaces a batch and logits (B,T) that are this rank's by those of all ranks, on the ranks that are to have
 * them; alone (comm NULL) they stay. They are borrowed from `gathered`, until the next call. PH_ERROR_MEMORY;
 * errors of ph__comm_wait. */
ph_status ph__gathered_scores_replace(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch **batch, const ph_real **logits);
void ph__gathered_scores_fini(struct ph__gathered_scores *gathered);

/* ---- evaluations ---- */

/* Rows of a file that were left out. */
struct ph__bad_rows {
    uint64_t count;
    char first[512]; /* its place and what is wrong with it; "": there is none */
};
struct ph__split_bad_rows {
    struct ph__bad_rows train, valid, test;
};

/* What an evaluation gathers beside the metrics: each is emptied first; NULL: not wanted. */
struct ph__evaluation_details {
    struct ph__calibration *calibration; /* of the first task; of several ranks on the first one alone */
    const struct ph__id_coverage *coverage;
    struct ph__id_counts *id_counts; /* (F), with coverage */
};

/* ph_scorer_evaluate that ends between two batches once *stop_signal is not 0 (NULL: never), on any rank
 * where several score: then *signal_out is that signal, on all of them, and metrics_out (T) as it was; else
 * it is 0. The first of several ranks holds all scores and measures; all get the same metrics. bad_rows_out
 * and details may be NULL. */
ph_status ph__scorer_evaluate(struct ph_scorer *scorer, struct ph__job_rows rows,
    const volatile int *stop_signal, int *signal_out, struct ph_metrics *metrics_out,
    struct ph__bad_rows *bad_rows_out, const struct ph__evaluation_details *details);

/* Those of a pass so far; the first stays where it is known. */
void ph__bad_rows_update(struct ph__bad_rows *bad_rows, struct ph_batches *batches);

#endif
