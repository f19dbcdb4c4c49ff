#include "data/synth/zipf.h"

#include <math.h>

/* The integral of x^-s from 1 to x, (x^(1-s) - 1) / (1-s), which is log x at s = 1; and its inverse. */
static double integral(const struct ph__zipf *zipf, double x)
{
    double power = (1 - zipf->exponent) * log(x);
    return fabs(power) < 1e-8 ? log(x) * (1 + power / 2) : expm1(power) / (1 - zipf->exponent);
}

static double integral_inverse(const struct ph__zipf *zipf, double area)
{
    double power = (1 - zipf->exponent) * area;
    if (power < -1)
        power = -1; /* beyond the tail, by rounding */
    return exp(fabs(power) < 1e-8 ? area * (1 - power / 2) : log1p(power) / (1 - zipf->exponent));
}

static double mass(const struct ph__zipf *zipf, double rank)
{
    return exp(-zipf->exponent * log(rank));
}

void ph__zipf_init(struct ph__zipf *zipf, double exponent, uint64_t num_ranks)
{
    zipf->exponent = exponent;
    zipf->num_ranks = (double)num_ranks;
    zipf->first = integral(zipf, 1.5) - 1;
    zipf->last = integral(zipf, zipf->num_ranks + 0.5);
    zipf->accept = 2 - integral_inverse(zipf, integral(zipf, 2.5) - mass(zipf, 2));
}

uint64_t ph__zipf_draw(const struct ph__zipf *zipf, struct ph_rng_sequence *random)
{
    for (;;) {
        double area = zipf->last + ph__rng_next_uniform(random) * (zipf->first - zipf->last);
        double x = integral_inverse(zipf, area);
        double rank = floor(x + 0.5);
        rank = rank < 1 ? 1 : rank > zipf->num_ranks ? zipf->num_ranks : rank;
        if (rank - x <= zipf->accept || area >= integral(zipf, rank + 0.5) - mass(zipf, rank))
            return (uint64_t)rank;
    }
}
