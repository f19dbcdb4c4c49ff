/* What the true model reaches on the rows it labelled. */
#ifndef PH_DATA_SYNTH_TRUTH_H
#define PH_DATA_SYNTH_TRUTH_H

#include <stddef.h>

#include "phloem/data.h"

/* A row's true probability and the share of positives it counts for. */
struct ph__mass {
    double probability;
    double positive; /* 0 or 1 for a label as drawn; the probability itself in expectation */
};

/* Exact area under the ROC curve: over pairs of two different rows, each as positive times as negative as its mass
 * says, the share in which the positive has the larger probability, ties counting half. Sorts the rows; NaN without
 * positives or negatives. With positive = probability this is the ratio of the expected counts of pairs over random
 * labels: the expected AUC but for terms that vanish as 1/n. */
double ph__mass_auc(struct ph__mass *masses, size_t count);

double ph__synth_sigmoid(double logit);
double ph__synth_entropy(
    double rate); /* of a label that is 1 at this rate, in nats; NaN where it is certain */

/* Everything about rows with drawn labels; overwrites them. */
void ph__synth_truth(struct ph__mass *masses, size_t count, struct ph_synth_truth *truth_out);

#endif
