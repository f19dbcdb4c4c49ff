/* What batch norm's three operators share: training, inference, backward. */
#ifndef PH_OP_BATCH_NORM_H
#define PH_OP_BATCH_NORM_H

#include "op/operator.h"

#define PH_BATCH_NORM_ROWS 128u /* of one partial sum */

size_t ph__batch_norm_blocks(size_t rows);
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
ph_status ph__batch_norm_infer(struct ph_infer *infer);
/* Adds the node that makes the weight, packed, and the bias of `linear` and the inference norm behind it in one. */
void ph__fold_batch_norm(struct ph_builder *builder, const struct ph_node *norm, const struct ph_node *linear,
    ph_value outputs[2]);
/* Output 0 = (x - mean) inv_std gamma + beta. */
void ph__batch_norm_apply(const struct ph_call *call, const ph_real *mean, const ph_real *inv_std);

#endif
