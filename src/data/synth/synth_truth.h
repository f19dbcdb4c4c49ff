/* What the true model reaches on the rows it labelled, and what is to be had without the highest orders of a
 * staircase.
 *
 * The models of orders up to k are those whose logit is a number plus multiples of the components of orders
 * 1, 2 .. k:
 *
 *     logit_k = b + sum of c_i part_i, over the orders i <= k
 *
 * and the best of them is the one with the least expected cross entropy on the rows at hand. The problem is
 * convex; it is solved by Newton's method. With all orders it is the true model. Below that the multiples are
 * smaller than the true ones, as what is left out makes the label noisier. This is a definition: what the
 * components say of the label beyond a sum (the size of a term of order 4 follows from terms of order 2) is
 * not used, so that a model which has both, but is too narrow for exact products, may lie a little below it.
 */
#ifndef PH_DATA_SYNTH_TRUTH_H
#define PH_DATA_SYNTH_TRUTH_H

#include <stddef.h>

#include "phloem/data.h"

/* A row's true probability and the share of positives it counts for. */
struct ph__mass {
    double probability;
    double positive; /* 0 or 1 for a label as drawn; the probability itself in expectation */
};

double ph__synth_sigmoid(double logit);

/* Everything about rows with drawn labels; overwrites them. */
void ph__synth_truth(struct ph__mass *masses, size_t count, struct ph_synth_truth *truth_out);

/* Fits and measures the best model of the first num_components components: components (count, stride); masses
 * are the rows' true probabilities and their labels as drawn. Fills all of truth_out but the order.
 * Deterministic. count > 0 and 0 < num_components <= stride <= PH_SYNTH_MAX_STEPS. */
void ph__synth_order_truth(const struct ph__mass *masses, const double *components, size_t stride,
    size_t count, size_t num_components, struct ph_synth_order_truth *truth_out);

#endif
