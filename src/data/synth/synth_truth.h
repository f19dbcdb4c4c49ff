/* Quality of the true model on the rows that it labelled, and of the best models without the highest orders
 * of a staircase.
 *
 * The models of orders up to k have a logit that is a number plus multiples of the components of orders 1, 2
 * .. k:
 *
 *     logit_k = b + sum of c_i part_i, over the orders i <= k
 *
 * The best of them has the least expected cross entropy on the given rows. The problem is convex; Newton's
 * method solves it. With all orders the best is the true model. With fewer orders the multiples are smaller
 * than the true ones, because the orders left out make the label noisier. This is a definition: it ignores
 * relations between components beyond a sum (the size of a term of order 4 follows from terms of order 2). So
 * a model that has both, but is too narrow for exact products, may lie a little below it. */
#ifndef PH_DATA_SYNTH_TRUTH_H
#define PH_DATA_SYNTH_TRUTH_H

#include <stddef.h>

#include "phloem/data.h"

/* True probability of a row, and the share of positives that the row counts for. */
struct ph__mass {
    double probability;
    double positive; /* 0 or 1 for a drawn label; the probability for expected labels */
};

double ph__synth_sigmoid(double logit);

/* Measures the true model on rows with drawn labels; overwrites the rows. */
void ph__synth_truth(struct ph__mass *masses, size_t count, struct ph_synth_truth *truth_out);

/* Fits and measures the best model of the first num_components components: components (count, stride); masses
 * are the rows' true probabilities and drawn labels. Fills all of truth_out except the order. Deterministic.
 * count > 0 and 0 < num_components <= stride <= PH_SYNTH_MAX_STEPS. */
void ph__synth_order_truth(const struct ph__mass *masses, const double *components, size_t stride,
    size_t count, size_t num_components, struct ph_synth_order_truth *truth_out);

#endif
