/* Covariances (size, size) and their Cholesky factors, row by row, in double. */
#ifndef PH_TRAIN_CHOLESKY_H
#define PH_TRAIN_CHOLESKY_H

#include <stddef.h>

double ph__dot(size_t count, const double *a, const double *b);
double ph__mean_variance(size_t size, const double *covariance);

/* Factors covariance + eps I = L L^T, eps in mean variances: the lower half of L is written. A pivot that
 * rounding has made negative becomes eps. */
void ph__cholesky(size_t size, const double *covariance, double eps, double *lower);

#endif
