/* A scorer's metrics over a file, for a trainer that may be told to stop meanwhile. */
#ifndef PH_TRAIN_EVALUATE_H
#define PH_TRAIN_EVALUATE_H

#include "train/job_rows.h"
#include "train/measure/calibration.h"
#include "train/measure/id_coverage.h"

/* What an evaluation gathers beside the metrics: each is emptied first; NULL: not wanted. */
struct ph__evaluation_details {
    struct ph__calibration *calibration; /* of the first task; of several ranks on the first one alone */
    const struct ph__id_coverage *coverage;
    struct ph__id_counts *id_counts; /* (F), with coverage */
};

/* ph_scorer_evaluate that ends between two batches once *stop_signal is not 0 (NULL: never), on any rank where several score:
 * then *signal_out is that signal, on all of them, and metrics_out (T) as it was; else it is 0. The first of several ranks holds
 * all scores and measures; all get the same metrics. bad_rows_out and details may be NULL. */
ph_status ph__scorer_evaluate(struct ph_scorer *scorer, struct ph__job_rows rows,
    const volatile int *stop_signal, int *signal_out, struct ph_metrics *metrics_out,
    struct ph_bad_rows *bad_rows_out, const struct ph__evaluation_details *details);

/* Those of a pass so far; the first stays where it is known. */
void ph__bad_rows_update(struct ph_bad_rows *bad_rows, struct ph_batches *batches);

#endif
