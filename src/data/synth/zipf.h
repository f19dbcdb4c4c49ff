/* Ranks drawn by a bounded power law: P(k) in proportion to k^-s for k = 1 .. n, s >= 0, exactly and without tables.
 *
 * Source: Hoermann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions"
 * (ACM TOMACS 6(3), 1996): invert the integral of the continuous hat x^-s, round, and reject the little that the
 * hat has too much. */
#ifndef PH_DATA_ZIPF_H
#define PH_DATA_ZIPF_H

#include <stdint.h>

#include "base/rng.h"

struct ph__zipf {
    double exponent;
    double num_ranks;
    double first, last; /* of the hat's integral */
    double accept;      /* a rank this near to its x needs no test */
};

void ph__zipf_init(struct ph__zipf *zipf, double exponent, uint64_t num_ranks);

/* In [1, num_ranks]. */
uint64_t ph__zipf_draw(const struct ph__zipf *zipf, struct ph_rng_sequence *random);

#endif
