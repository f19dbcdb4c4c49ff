/* From logits to probabilities. */
#ifndef PH_SERVE_PROBABILITY_H
#define PH_SERVE_PROBABILITY_H

#include <stddef.h>

#include "phloem/tensor.h"

double ph__sigmoid(double x);

/* What is added to the logit p was computed from, where training saw all positives but only the share `rate` of the
 * negatives: sampling multiplied the odds by 1 / rate, so q / (1 - q) = rate p / (1 - p), that is
 * q = p / (p + (1 - p) / rate) (He et al., Practical Lessons from Predicting Clicks on Ads at Facebook, ADKDD 2014,
 * section 6.3). 0 for rates 0 and 1: all were seen. */
double ph__negative_rate_shift(double rate);

/* The probability of each logit. Whoever hands probabilities out takes them from here, so that they have the same bits. */
void ph__probabilities(size_t n, const ph_real *logits, float *probabilities);

#endif
