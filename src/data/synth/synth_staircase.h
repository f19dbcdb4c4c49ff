/* Planted interactions of orders 1, 2, 4 and 8, each the product of two interactions that are planted, too.
 *
 * Id x of planted field f has a weight a_f(x) and a vector v_f(x) of K numbers. Over the ids that rows have,
 * these 1 + K numbers have mean 0, variance 1 and covariance 0, exactly: a random number and a random
 * direction, orthonormalised under the power law of ids. A bag of n ids has the ids' sums divided by sqrt(n),
 * with the same moments.
 *
 * A round is an arrangement of the P planted fields. Neighbours in it make terms, from the bottom up:
 *
 *     order 2:   s_ab = v_a . v_b / sqrt(K)                         P/2 terms
 *     order 2k:  the product of two neighbouring terms of order k   P/2k terms
 *
 *     component 1 = sum_f a_f / sqrt(P)
 *     component k = sum of all rounds' terms of order k / sqrt(their number)
 *
 * Given all but one of its fields a term has mean 0, and no two terms of an order have the same fields. So
 * each component has variance 1, the components are uncorrelated, and component k is an interaction of
 * exactly k fields (a component of the analysis of variance): sums of functions of fewer fields contain
 * nothing of it.
 *
 * Why products of planted interactions: from a product of eight hidden signs alone, a parity, gradient
 * descent learns nothing until it has all eight. Here every factor is in the logit too, so each order is
 * learnt from the one below. Source: Abbe, Boix-Adsera, Brennan, Bresler, Nagaraj, "The staircase property"
 * (2108.10573), and Abbe, Boix-Adsera, Misiakiewicz, "The merged-staircase property" (2202.08658). */
#ifndef PH_DATA_SYNTH_STAIRCASE_H
#define PH_DATA_SYNTH_STAIRCASE_H

#include <stddef.h>
#include <stdint.h>

#include "data/synth/synth_options.h"
#include "phloem/data.h"

struct ph__staircase {
    size_t num_fields, num_rounds, latent_dim; /* P, rounds, K */
    size_t num_steps;                          /* orders 1, 2, 4 .. 2^(steps - 1) */
    uint32_t rounds[PH_SYNTH_MAX_ROUNDS][PH_SYNTH_MAX_FIELDS];
    double *numbers[PH_SYNTH_MAX_FIELDS]; /* (table_rows, 1 + K) numbers of a field's ids, owned */
    double weights[PH_SYNTH_MAX_STEPS];   /* in the logit, times scale: the squares add up to scale^2 */
};

/* PH_ERROR_CONFIG where settings contradict each other. Each field has table_rows ids; `scatter` turns a
 * drawn item into an id: id = item * scatter % table_rows. On failure there is nothing to free. */
ph_status ph__staircase_init(struct ph__staircase *staircase, const struct ph_synth_settings *settings,
    const uint64_t *table_rows, const uint64_t *scatter);
void ph__staircase_fini(struct ph__staircase *staircase);

/* Writes component 2^i of a row into components_out[i], (num_steps). ids: field after field, bag_sizes[f] ids
 * of field f. */
void ph__staircase_components(const struct ph__staircase *staircase, const uint64_t *ids,
    const size_t *bag_sizes, double *components_out);

#endif
