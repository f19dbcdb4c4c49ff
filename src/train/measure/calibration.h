/* Predicted against observed: samples counted in bins of their scores, for a plot of how far probabilities
 * can be believed.
 *
 * A bin is an eighth wide in log-odds, from -8 to 8, and one more on either side: fine enough at base rates
 * of a thousandth as of a half, and of fixed size, so that an evaluation of any length takes no memory.
 * Whoever shows them merges neighbours until each holds enough samples to say something. */
#ifndef PH_TRAIN_CALIBRATION_H
#define PH_TRAIN_CALIBRATION_H

#include "base/format/json.h"
#include "phloem/tensor.h"

#define PH_CALIBRATION_BINS 130

struct ph__calibration_bin {
    uint64_t count;
    double predicted, observed; /* sums of probabilities and of labels */
};

struct ph__calibration { /* zero-initialised is empty */
    struct ph__calibration_bin bins[PH_CALIBRATION_BINS];
};

/* score: a logit; one that is no number is left out. */
void ph__calibration_add(struct ph__calibration *calibration, ph_real score, ph_real label);

/* Where a bin begins, and the one before it ends, in log-odds: -8 .. 8 for bins 1 .. PH_CALIBRATION_BINS - 1.
 */
double ph__calibration_edge(size_t bin);

uint64_t ph__calibration_count(const struct ph__calibration *calibration);

/* At most max_groups runs of neighbouring bins of about the same number of samples, in order; how many. */
size_t ph__calibration_group(
    const struct ph__calibration *calibration, size_t max_groups, struct ph__calibration_bin *groups_out);

/* Joins each group without a positive with its right neighbour, the last ones with their left one: what a
 * plot by powers of ten can show. In place; how many are left. One of them has a positive, or there is one
 * alone. */
size_t ph__calibration_join(struct ph__calibration_bin *groups, size_t num_groups);

/* The 95% interval of a rate of which `positives` of `count` were seen (Wilson's). count is at least 1. */
void ph__rate_interval(double positives, double count, double *low_out, double *high_out);

/* An array of [bin, count, predicted, observed] of the bins that are not empty, and back: false where it is
 * none. */
struct ph__json *ph__calibration_json(const struct ph__calibration *calibration);
bool ph__calibration_from_json(const struct ph__json *json, struct ph__calibration *calibration_out);

#endif
