/* Weighted squared error, the mean over all elements (mean_loss.h):
 *   loss = sum w (y - t)^2 / (B T)
 * and 0 without samples. predictions y and labels t (B,T); weights w (B) may be absent. The gradient is
 * dy = g / (B T) * 2 w (y - t). */
#include "op/loss/mean_loss.h"

static double sum_squares(
    size_t n, const ph_real *predictions, const ph_real *labels, const ph_real *coefficients)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double error = (double)predictions[i] - (double)labels[i];
        sum += (coefficients != NULL ? (double)coefficients[i] : 1) * error * error;
    }
    return sum;
}

static void differentiate(size_t n, const ph_real *predictions, const ph_real *labels,
    const ph_real *coefficients, ph_real scale, ph_real *gradient)
{
    for (size_t i = 0; i < n; i++)
        gradient[i] = 2 * scale * (coefficients != NULL ? coefficients[i] : 1) * (predictions[i] - labels[i]);
}

static void squared_error_gradient(struct ph__gradient *gradient)
{
    ph__mean_loss_gradient(gradient, &ph__op_squared_error_backward, "predictions");
}

/* Counts a difference, two products and a sum. */
static void squared_error_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_copy(call, cost_out);
    cost_out->flops = 4.0 * (double)ph__elements(&call->inputs[PH_LOSS_PREDICTIONS]);
}

static ph_status squared_error_run(struct ph__call *call)
{
    return ph__mean_loss_run(call, sum_squares, PH_MEAN_BY_ELEMENT);
}

const struct ph__op ph__op_squared_error = {
    .name = "squared_error",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = ph__mean_loss_infer,
    .gradient = squared_error_gradient,
    .cost = squared_error_cost,
    .scratch_bytes = ph__mean_loss_scratch_bytes,
    .run = squared_error_run,
};

static void squared_error_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 3, cost_out);
}

static ph_status squared_error_backward_run(struct ph__call *call)
{
    return ph__mean_loss_backward_run(call, differentiate);
}

const struct ph__op ph__op_squared_error_backward = {
    .name = "squared_error_backward",
    .infer = ph__mean_loss_backward_infer,
    .cost = squared_error_backward_cost,
    .scratch_bytes = ph__mean_loss_backward_scratch_bytes,
    .run = squared_error_backward_run,
};

ph_value ph_squared_error(struct ph_builder *builder, ph_value predictions, ph_value labels, ph_value weights)
{
    return ph__mean_loss(builder, &ph__op_squared_error, predictions, labels, 0, weights);
}
