/* Calibration: predicted against observed rates, of samples counted in bins of their scores, for a plot of
 * how far probabilities can be trusted.
 *
 * A bin is an eighth wide in log-odds, from -8 to 8, with one more on either side: fine enough at base rates
 * of a thousandth as of a half. The size is fixed, so that an evaluation of any length takes no memory. Code
 * that plots bins merges neighbours until each holds enough samples. */
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

/* Adds a sample. score: a logit; NaN is left out. */
void ph__calibration_add(struct ph__calibration *calibration, ph_real score, ph_real label);

/* Returns the edge, in log-odds, between a bin and the one before: -8 for bin 1, 8 for the last bin. */
double ph__calibration_edge(size_t bin);

uint64_t ph__calibration_count(const struct ph__calibration *calibration);

/* Merges neighbouring bins, in order, into at most max_groups groups of about the same number of samples;
 * returns how many. */
size_t ph__calibration_group(
    const struct ph__calibration *calibration, size_t max_groups, struct ph__calibration_bin *groups_out);

/* Joins each group without a positive with its right neighbour, the last ones with their left one, as a plot
 * by powers of ten needs. In place; returns how many are left. Each of them has a positive, or only one is
 * left. */
size_t ph__calibration_join(struct ph__calibration_bin *groups, size_t num_groups);

/* Computes Wilson's 95% interval of a rate: `positives` of `count` were seen. count is at least 1. */
void ph__rate_interval(double positives, double count, double *low_out, double *high_out);

/* Convert to and from an array of [bin, count, predicted, observed] of the bins that are not empty; from_json
 * returns false for anything else. */
struct ph__json *ph__calibration_json(const struct ph__calibration *calibration);
bool ph__calibration_from_json(const struct ph__json *json, struct ph__calibration *calibration_out);

#endif
