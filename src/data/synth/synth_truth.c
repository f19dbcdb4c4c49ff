#include "data/synth/synth_truth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_masses(const void *a, const void *b)
{
    double x = ((const struct ph__mass *)a)->probability, y = ((const struct ph__mass *)b)->probability;
    return (x > y) - (x < y);
}

/* Returns the exact area under the ROC curve: over pairs of two different rows, each as positive and as
 * negative as its mass, the share of pairs whose positive has the larger probability, ties counting half.
 * Sorts the rows; NaN without positives or negatives. With positive = probability the area is the ratio of
 * the expected counts of pairs over random labels: the expected AUC, except for terms that vanish as 1/n. */
static double mass_auc(struct ph__mass *masses, size_t count)
{
    qsort(masses, count, sizeof *masses, compare_masses);
    double wins = 0;            /* pairs won by the positive row; ties count half */
    double negatives_below = 0; /* negatives of rows with a smaller probability */
    double positives = 0, with_itself = 0;
    for (size_t first = 0, last; first < count; first = last) {
        double tied_positives = 0, tied_negatives = 0, tied_itself = 0;
        for (last = first; last < count && masses[last].probability == masses[first].probability; last++) {
            tied_positives += masses[last].positive;
            tied_negatives += 1 - masses[last].positive;
            tied_itself += masses[last].positive * (1 - masses[last].positive);
        }
        wins += tied_positives * negatives_below + (tied_positives * tied_negatives - tied_itself) / 2;
        negatives_below += tied_negatives;
        positives += tied_positives;
        with_itself += tied_itself;
    }
    double pairs = positives * negatives_below - with_itself;
    return pairs > 0 ? wins / pairs : (double)NAN;
}

/* Returns the mean cross entropy -y log p - (1-y) log(1-p), and gives the mean of y. A term with weight 0 is
 * 0. */
static double cross_entropy(const struct ph__mass *masses, size_t count, double *base_rate_out)
{
    double sum = 0, positives = 0;
    for (size_t i = 0; i < count; i++) {
        double y = masses[i].positive, p = masses[i].probability;
        positives += y;
        sum -= (y > 0 ? y * log(p) : 0) + (y < 1 ? (1 - y) * log1p(-p) : 0);
    }
    *base_rate_out = positives / (double)count;
    return sum / (double)count;
}

double ph__synth_sigmoid(double logit)
{
    return logit >= 0 ? 1 / (1 + exp(-logit)) : exp(logit) / (1 + exp(logit));
}

/* Returns the entropy of a label that is 1 at this rate, in nats; NaN for a certain label. */
static double entropy_of(double rate)
{
    return rate <= 0 || rate >= 1 ? (double)NAN : -rate * log(rate) - (1 - rate) * log1p(-rate);
}

void ph__synth_truth(struct ph__mass *masses, size_t count, struct ph_synth_truth *truth_out)
{
    *truth_out = (struct ph_synth_truth){.num_rows = count};
    if (count == 0)
        return;
    truth_out->logloss = cross_entropy(masses, count, &truth_out->base_rate);
    truth_out->ne = truth_out->logloss / entropy_of(truth_out->base_rate);
    truth_out->auc = mass_auc(masses, count);
    for (size_t i = 0; i < count; i++)
        masses[i].positive = masses[i].probability;
    truth_out->expected_logloss = cross_entropy(masses, count, &truth_out->expected_base_rate);
    truth_out->expected_ne = truth_out->expected_logloss / entropy_of(truth_out->expected_base_rate);
    truth_out->expected_auc = mass_auc(masses, count);
}

/* ---- models without the highest orders ---- */

#define MAX_COLUMNS (1 + PH_SYNTH_MAX_STEPS)
#define MAX_STEPS 50
#define TOLERANCE 1e-10 /* least change of the logit's coefficients for which Newton's method goes on */

struct fit {
    const struct ph__mass *masses;
    const double *components;
    size_t stride, count, num_columns; /* 1 + num_components: the constant first */
    double coefficients[MAX_COLUMNS];
};

static double logit_of(const struct fit *fit, size_t row)
{
    double logit = fit->coefficients[0];
    for (size_t i = 1; i < fit->num_columns; i++)
        logit += fit->coefficients[i] * fit->components[row * fit->stride + i - 1];
    return logit;
}

/* Returns -y log sigmoid(z) - (1-y) log(1 - sigmoid(z)). */
static double logit_entropy(double logit, double positive)
{
    return fmax(logit, 0) + log1p(exp(-fabs(logit))) - positive * logit;
}

/* ---- Newton's method ---- */

struct curvature {
    double sum; /* sum of cross entropies */
    double gradient[MAX_COLUMNS];
    double hessian[MAX_COLUMNS][MAX_COLUMNS]; /* the lower triangle */
};

/* Adds a row's derivatives of -p log q - (1-p) log(1-q): (q - p) x and q (1-q) x x'. */
static void add_row(const struct fit *fit, size_t row, struct curvature *sum)
{
    double x[MAX_COLUMNS] = {1};
    memcpy(x + 1, fit->components + row * fit->stride, (fit->num_columns - 1) * sizeof *x);
    double logit = logit_of(fit, row), probability = ph__synth_sigmoid(logit);
    double error = probability - fit->masses[row].probability;
    double weight = probability * (1 - probability);
    sum->sum += logit_entropy(logit, fit->masses[row].probability);
    for (size_t i = 0; i < fit->num_columns; i++) {
        sum->gradient[i] += error * x[i];
        for (size_t j = 0; j <= i; j++)
            sum->hessian[i][j] += weight * x[i] * x[j];
    }
}

/* Replaces the Hessian by its Cholesky factor, and the gradient by the solution. Directions without curvature
 * get no step. */
static void solve(size_t size, struct curvature *system)
{
    double(*factor)[MAX_COLUMNS] = system->hessian, *x = system->gradient;
    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0; j <= i; j++) {
            for (size_t k = 0; k < j; k++)
                factor[i][j] -= factor[i][k] * factor[j][k];
            if (j < i)
                factor[i][j] = factor[j][j] > 0 ? factor[i][j] / factor[j][j] : 0;
        }
        factor[i][i] = factor[i][i] > 0 ? sqrt(factor[i][i]) : 0;
    }
    for (size_t i = 0; i < size; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= factor[i][k] * x[k];
        x[i] = factor[i][i] > 0 ? x[i] / factor[i][i] : 0;
    }
    for (size_t i = size; i-- > 0;) {
        for (size_t k = i + 1; k < size; k++)
            x[i] -= factor[k][i] * x[k];
        x[i] = factor[i][i] > 0 ? x[i] / factor[i][i] : 0;
    }
}

static void add_rows(const struct fit *fit, struct curvature *sum_out)
{
    *sum_out = (struct curvature){0};
    for (size_t row = 0; row < fit->count; row++)
        add_row(fit, row, sum_out);
}

/* Minimises the cross entropy by Newton's method; halves a step until it makes nothing worse. */
static void minimise(struct fit *fit)
{
    struct curvature here, there;
    add_rows(fit, &here);
    double longest = 1;
    for (int step = 0; step < MAX_STEPS && longest > TOLERANCE; step++) {
        solve(fit->num_columns, &here);
        double share = 1;
        struct fit trial = *fit;
        do {
            longest = 0;
            for (size_t i = 0; i < fit->num_columns; i++) {
                double change = share * here.gradient[i];
                trial.coefficients[i] = fit->coefficients[i] - change;
                longest = fmax(longest, fabs(change));
            }
            add_rows(&trial, &there);
            share /= 2;
        } while (there.sum > here.sum && longest > TOLERANCE);
        if (there.sum <= here.sum)
            *fit = trial;
        here = there;
    }
}

/* ---- measuring ---- */

static void measure(const struct fit *fit, struct ph_synth_order_truth *truth_out)
{
    double drawn = 0, expected = 0, positives = 0, probabilities = 0;
    for (size_t row = 0; row < fit->count; row++) {
        const struct ph__mass *mass = &fit->masses[row];
        double logit = logit_of(fit, row);
        drawn += logit_entropy(logit, mass->positive);
        expected += logit_entropy(logit, mass->probability);
        positives += mass->positive;
        probabilities += mass->probability;
    }
    double count = (double)fit->count;
    truth_out->logloss = drawn / count;
    truth_out->expected_logloss = expected / count;
    truth_out->ne = truth_out->logloss / entropy_of(positives / count);
    truth_out->expected_ne = truth_out->expected_logloss / entropy_of(probabilities / count);
}

void ph__synth_order_truth(const struct ph__mass *masses, const double *components, size_t stride,
    size_t count, size_t num_components, struct ph_synth_order_truth *truth_out)
{
    struct fit fit = {.masses = masses,
        .components = components,
        .stride = stride,
        .count = count,
        .num_columns = 1 + num_components};
    minimise(&fit);
    measure(&fit, truth_out);
}
