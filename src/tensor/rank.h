/* Rank statistics of scores. */
#ifndef PH_TENSOR_RANK_H
#define PH_TENSOR_RANK_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"
#include "phloem/tensor.h"

/* Exact area under the ROC curve: the share of (positive, negative) pairs in which the positive has the larger score,
 * ties counting half. A label above .5 is positive. NaN when either class is missing or a score is NaN. n < 2^32.
 * PH_ERROR_MEMORY only. */
ph_status ph__auc(size_t n, const ph_real *scores, const ph_real *labels, double *auc_out);

/* Mean over groups of their AUC, weighted by group size; groups of one class are left out. NaN when none is left. */
ph_status ph__grouped_auc(
    size_t n, const ph_real *scores, const ph_real *labels, const int64_t *groups, double *auc_out);

#endif
