/* Area under the ROC curve: exact, and by bins. */
#ifndef PH_TENSOR_AUC_H
#define PH_TENSOR_AUC_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"
#include "phloem/tensor.h"

/* Computes the exact area under the ROC curve: the share of (positive, negative) pairs in which the positive
 * has the larger score, ties counting half. A label above .5 is positive. NaN when either class is missing or
 * a score is NaN. n < 2^32. PH_ERROR_MEMORY only. */
ph_status ph__auc(size_t n, const ph_real *scores, const ph_real *labels, double *auc_out);

/* Computes the mean over groups of their AUC, weighted by group size; groups of one class are left out. NaN
 * when none is left. */
ph_status ph__grouped_auc(
    size_t n, const ph_real *scores, const ph_real *labels, const int64_t *groups, double *auc_out);

/* ---- by bins ---- */

/* Area under the ROC curve of any number of scores in fixed memory: counts of positives and negatives in fine
 * bins.
 *
 * A bin is 2^-16 as wide as the score (a logit) is large, from 2^-14 to 2^7; smaller scores share one bin,
 * larger ones one on either side. Scores of one bin count as ties, so the area is off by at most half the
 * share of pairs that meet in a bin. This share is known, and half of it returned as the error: some
 * millionths where scores spread over units. Used by one thread at a time. */

struct ph__score_bins; /* 21 MiB */

ph_status ph__score_bins_create(struct ph__score_bins **bins_out); /* PH_ERROR_MEMORY */
void ph__score_bins_destroy(struct ph__score_bins *bins);

/* Counts scores. A label above .5 is positive. Fewer than 2^32 scores of a class in one bin. */
void ph__score_bins_add(struct ph__score_bins *bins, size_t n, const ph_real *scores, const ph_real *labels);

/* Gives the area, NaN when either class is missing or a score was NaN, and its greatest distance from the
 * exact area. */
void ph__score_bins_auc(const struct ph__score_bins *bins, double *auc_out, double *error_out);

#endif
