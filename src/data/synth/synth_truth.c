#include "data/synth/synth_truth.h"

#include <math.h>
#include <stdlib.h>

static int compare_masses(const void *a, const void *b)
{
    double x = ((const struct ph__mass *)a)->probability, y = ((const struct ph__mass *)b)->probability;
    return (x > y) - (x < y);
}

double ph__mass_auc(struct ph__mass *masses, size_t count)
{
    qsort(masses, count, sizeof *masses, compare_masses);
    double wins = 0;            /* pairs won by the positive row; ties count half */
    double negatives_below = 0; /* of rows with a smaller probability */
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

/* Mean cross entropy -y log p - (1-y) log(1-p), and the mean of y. A term with weight 0 is 0. */
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

double ph__synth_entropy(double rate)
{
    return rate <= 0 || rate >= 1 ? (double)NAN : -rate * log(rate) - (1 - rate) * log1p(-rate);
}

void ph__synth_truth(struct ph__mass *masses, size_t count, struct ph_synth_truth *truth_out)
{
    *truth_out = (struct ph_synth_truth){.num_rows = count};
    if (count == 0)
        return;
    truth_out->logloss = cross_entropy(masses, count, &truth_out->base_rate);
    truth_out->ne = truth_out->logloss / ph__synth_entropy(truth_out->base_rate);
    truth_out->auc = ph__mass_auc(masses, count);
    for (size_t i = 0; i < count; i++)
        masses[i].positive = masses[i].probability;
    truth_out->expected_logloss = cross_entropy(masses, count, &truth_out->expected_base_rate);
    truth_out->expected_ne = truth_out->expected_logloss / ph__synth_entropy(truth_out->expected_base_rate);
    truth_out->expected_auc = ph__mass_auc(masses, count);
}
