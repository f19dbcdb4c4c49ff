#include "train/probe/cholesky.h"

#include <math.h>

double ph__dot(size_t count, const double *a, const double *b)
{
    double sums[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < count; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double ph__mean_variance(size_t size, const double *covariance)
{
    double sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += covariance[i * size + i];
    return sum / (double)size;
}

void ph__cholesky(size_t size, const double *covariance, double eps, double *lower)
{
    const double ridge = eps * fmax(ph__mean_variance(size, covariance), 1e-300);
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j <= i; j++) {
            const double *row = lower + i * size, *other = lower + j * size;
            const double rest = covariance[i * size + j] + (i == j ? ridge : 0) - ph__dot(j, row, other);
            lower[i * size + j] = i == j ? sqrt(fmax(rest, ridge)) : rest / other[j];
        }
}
