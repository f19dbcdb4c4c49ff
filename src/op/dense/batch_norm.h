/* Inputs and steps shared by batch norm's operators: training, inference, backward, and those over ranks
 * (shard/dense/sync_batch_norm.c). */
#ifndef PH_OP_BATCH_NORM_H
#define PH_OP_BATCH_NORM_H

#include "op/operator.h"

#define PH_BATCH_NORM_ROWS 128u /* per partial sum */

/* totals (n) = the sum of the partials (num_blocks, n), in block order. */
void ph__batch_norm_combine(size_t num_blocks, size_t n, const double *partials, double *totals);

/* Training and inference take the same inputs; inference has output Y only. */
enum {
    PH_BATCH_NORM_X,
    PH_BATCH_NORM_GAMMA,
    PH_BATCH_NORM_BETA,
    PH_BATCH_NORM_RUNNING_MEAN,
    PH_BATCH_NORM_RUNNING_VARIANCE,
    PH_BATCH_NORM_NUM_INPUTS
};
enum { PH_BATCH_NORM_Y, PH_BATCH_NORM_MEAN, PH_BATCH_NORM_INV_STD, PH_BATCH_NORM_NUM_OUTPUTS };
ph_status ph__batch_norm_infer(struct ph__infer *infer);
/* Output 0 = (x - mean) inv_std gamma + beta. */
void ph__batch_norm_apply(const struct ph__call *call, const ph_real *mean, const ph_real *inv_std);

/* ---- training ---- */

void ph__batch_norm_cost(const struct ph__call *call, struct ph__cost *cost_out);
/* moments (2,K) = mean and biased variance of x's rows; x has at least one row. */
size_t ph__batch_norm_moments_bytes(const struct ph__call *call); /* of scratch */
void ph__batch_norm_moments(const struct ph__call *call, double *scratch, double *moments);
/* Computes outputs mean and inv_std, the running statistics and y from the moments of num_rows rows. num_rows
 * 0: the outputs are zeros, and there is no row to apply them to. */
void ph__batch_norm_finish(const struct ph__call *call, const struct ph_batch_norm_options *options,
    double num_rows, const double *moments);

/* ---- backward: inputs (B,K) twice and (K), outputs (B,K) and (K) twice ---- */

enum {
    PH_BATCH_NORM_DY,
    PH_BATCH_NORM_BACKWARD_X,
    PH_BATCH_NORM_BACKWARD_MEAN,
    PH_BATCH_NORM_BACKWARD_INV_STD,
    PH_BATCH_NORM_BACKWARD_GAMMA,
    PH_BATCH_NORM_BACKWARD_INPUTS
};
enum { PH_BATCH_NORM_DX, PH_BATCH_NORM_D_GAMMA, PH_BATCH_NORM_D_BETA, PH_BATCH_NORM_BACKWARD_OUTPUTS };

ph_status ph__batch_norm_backward_infer(struct ph__infer *infer);
void ph__batch_norm_backward_cost(const struct ph__call *call, struct ph__cost *cost_out);
/* totals (2,K) = sums of dy and of dy xhat over x's rows, which are dbeta and dgamma. */
size_t ph__batch_norm_gradient_sums_bytes(const struct ph__call *call); /* of scratch */
void ph__batch_norm_gradient_sums(const struct ph__call *call, double *scratch, double *totals);
/* Computes dx from the totals of num_rows rows. means (2,K) is scratch. */
void ph__batch_norm_backward_apply(
    const struct ph__call *call, double num_rows, const double *totals, ph_real *means);

#endif
