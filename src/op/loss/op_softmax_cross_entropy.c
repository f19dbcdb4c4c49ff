/* Softmax cross entropy, the mean over rows with known labels (mean_loss.h):
 *   l = lse(z) sum_t y_t - sum_t y_t z_t,  lse(z) = max_t z_t + log sum_t exp(z_t - max_t z_t)
 * logits z and labels y (B,T); a row counts by the sum of its elements' coefficients. The gradient is
 * dz_t = g / total * sum_t c_t * (softmax(z)_t sum_t y_t - y_t). */
#include <math.h>

#include "op/loss/mean_loss.h"

struct row {
    double max, sum; /* of exp(z - max) */
    double labels;   /* sum of the row's labels */
    double weight;   /* sum of its coefficients */
};

static struct row read_row(
    size_t num_tasks, const ph_real *logits, const ph_real *labels, const ph_real *coefficients)
{
    struct row row = {.max = (double)logits[0], .weight = coefficients == NULL ? (double)num_tasks : 0};
    for (size_t t = 1; t < num_tasks; t++)
        row.max = (double)logits[t] > row.max ? (double)logits[t] : row.max;
    for (size_t t = 0; t < num_tasks; t++) {
        row.sum += exp((double)logits[t] - row.max);
        row.labels += (double)labels[t];
        row.weight += coefficients != NULL ? (double)coefficients[t] : 0;
    }
    return row;
}

static double sum_rows(size_t num_rows, size_t num_tasks, const ph_real *logits, const ph_real *labels,
    const ph_real *coefficients)
{
    double sum = 0;
    for (size_t first = 0; first < num_rows * num_tasks; first += num_tasks) {
        const ph_real *z = logits + first, *y = labels + first;
        const struct row row = read_row(num_tasks, z, y, coefficients != NULL ? coefficients + first : NULL);
        double loss = (row.max + log(row.sum)) * row.labels;
        for (size_t t = 0; t < num_tasks; t++)
            loss -= (double)y[t] * (double)z[t];
        sum += row.weight > 0 ? row.weight * loss : 0;
    }
    return sum;
}

static void differentiate_rows(size_t num_rows, size_t num_tasks, const ph_real *logits,
    const ph_real *labels, const ph_real *coefficients, ph_real scale, ph_real *gradient)
{
    for (size_t first = 0; first < num_rows * num_tasks; first += num_tasks) {
        const ph_real *z = logits + first, *y = labels + first;
        const struct row row = read_row(num_tasks, z, y, coefficients != NULL ? coefficients + first : NULL);
        const double factor = (double)scale * row.weight;
        for (size_t t = 0; t < num_tasks; t++) {
            const double share = exp((double)z[t] - row.max) / row.sum * row.labels;
            gradient[first + t] = factor != 0 ? (ph_real)(factor * (share - (double)y[t])) : 0;
        }
    }
}

static void softmax_gradient(struct ph__gradient *gradient)
{
    ph__mean_loss_gradient(gradient, &ph__op_softmax_cross_entropy_backward, "logits");
}

/* Counts max, subtraction, exp, sum, product with the label, and the weighing. */
static void softmax_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_copy(call, cost_out);
    cost_out->flops = 7.0 * (double)ph__elements(&call->inputs[PH_LOSS_PREDICTIONS]);
}

static ph_status softmax_run(struct ph__call *call)
{
    return ph__mean_row_loss_run(call, sum_rows);
}

const struct ph__op ph__op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .traits = PH_OP_MIXES_SAMPLES,
    .infer = ph__mean_loss_infer,
    .gradient = softmax_gradient,
    .cost = softmax_cost,
    .scratch_bytes = ph__mean_loss_scratch_bytes,
    .run = softmax_run,
};

static void softmax_backward_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 8, cost_out);
}

static ph_status softmax_backward_run(struct ph__call *call)
{
    return ph__mean_row_loss_backward_run(call, differentiate_rows);
}

const struct ph__op ph__op_softmax_cross_entropy_backward = {
    .name = "softmax_cross_entropy_backward",
    .infer = ph__mean_loss_backward_infer,
    .cost = softmax_backward_cost,
    .scratch_bytes = ph__mean_loss_backward_scratch_bytes,
    .run = softmax_backward_run,
};

ph_value ph_softmax_cross_entropy(
    struct ph_builder *builder, ph_value logits, ph_value labels, ph_value mask, ph_value weights)
{
    return ph__mean_loss(builder, &ph__op_softmax_cross_entropy, logits, labels, mask, weights);
}
