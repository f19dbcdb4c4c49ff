/* Losses that are means over labels: loss = sum c l(y, t) / total, c = mask * weight of the sample.
 * Predictions y and labels t (B,T); mask (B,T) and weights (B) may be absent. Blocks of elements give partial
 * sums in double, added in block order. Outputs: the loss, 0 where the total is 0; and the total, for the
 * gradient. Private to the losses. */
#ifndef PH_OP_MEAN_LOSS_H
#define PH_OP_MEAN_LOSS_H

#include "op/operator.h"

enum { PH_LOSS_PREDICTIONS, PH_LOSS_LABELS, PH_LOSS_MASK, PH_LOSS_WEIGHTS, PH_LOSS_OPERANDS };

enum ph__mean { PH_MEAN_BY_WEIGHT, PH_MEAN_BY_ELEMENT }; /* the total: sum c, or B T */

/* Sums c l over n elements. coefficients NULL: c is 1. */
typedef double (*ph__loss_sum)(
    size_t n, const ph_real *predictions, const ph_real *labels, const ph_real *coefficients);
/* The same where the T elements of a row have one loss, which counts by the sum of their coefficients. */
typedef double (*ph__row_loss_sum)(size_t num_rows, size_t num_tasks, const ph_real *predictions,
    const ph_real *labels, const ph_real *coefficients);
typedef void (*ph__row_loss_differentiate)(size_t num_rows, size_t num_tasks, const ph_real *predictions,
    const ph_real *labels, const ph_real *coefficients, ph_real scale, ph_real *gradient);
/* gradient = scale * c * dl/dy, of n elements. */
typedef void (*ph__loss_differentiate)(size_t n, const ph_real *predictions, const ph_real *labels,
    const ph_real *coefficients, ph_real scale, ph_real *gradient);

ph_value ph__mean_loss(struct ph_builder *builder, const struct ph__op *op, ph_value predictions,
    ph_value labels, ph_value mask, ph_value weights);
ph_status ph__mean_loss_infer(struct ph__infer *infer);
/* Adds `backward`, for the predictions alone. `what` names them in the error. */
void ph__mean_loss_gradient(struct ph__gradient *gradient, const struct ph__op *backward, const char *what);
size_t ph__mean_loss_scratch_bytes(const struct ph__call *call);
ph_status ph__mean_loss_run(struct ph__call *call, ph__loss_sum sum, enum ph__mean mean);
ph_status ph__mean_row_loss_run(struct ph__call *call, ph__row_loss_sum sum);

ph_status ph__mean_loss_backward_infer(struct ph__infer *infer);
size_t ph__mean_loss_backward_scratch_bytes(const struct ph__call *call);
ph_status ph__mean_loss_backward_run(struct ph__call *call, ph__loss_differentiate differentiate);
ph_status ph__mean_row_loss_backward_run(struct ph__call *call, ph__row_loss_differentiate differentiate);

#endif
