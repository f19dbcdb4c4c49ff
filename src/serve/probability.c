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
