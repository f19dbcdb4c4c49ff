#include "serve/probability.h"

#include <math.h>

double ph__sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double ph__negative_rate_shift(double rate)
{
    return rate > 0 && rate < 1 ? log(rate) : 0;
}

void ph__probabilities(size_t n, const ph_real *logits, float *probabilities)
{
    for (size_t i = 0; i < n; i++)
        probabilities[i] = (float)ph__sigmoid((double)logits[i]);
}

/* logit(q) = log(q / (1 - q)) = log(p / (1 - p) * kept_share) */
double ph__recalibration_shift(double kept_share)
{
    return log(kept_share);
}
