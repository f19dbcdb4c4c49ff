/* Few numbers that were measured: their middle, their spread, and how sure a mean is. What is not defined for
 * so few numbers is NaN. */
#ifndef PH_BASE_STATISTICS_H
#define PH_BASE_STATISTICS_H

#include <stddef.h>

#include "phloem/status.h"

double ph__mean(const double *values, size_t count);
double ph__sample_deviation(const double *values, size_t count); /* over count - 1; from two numbers on */
void ph__sort_numbers(double *values, size_t count);             /* ascending */
double ph__sorted_median(
    const double *values, size_t count); /* of numbers in ascending order; there is one at least */
/* PH_ERROR_MEMORY; the values are left in their order. */
ph_status ph__median(const double *values, size_t count, double *median_out);

/* The number that Student's t with so many degrees of freedom stays below with this probability, 0 <
 * probability < 1. */
double ph__student_t_quantile(double probability, size_t degrees_of_freedom);

/* Half the width of the interval about the mean that covers the true mean with this confidence (.95), by
 * Student's t: for numbers that are normally distributed and independent. From two numbers on. */
double ph__mean_half_width(const double *values, size_t count, double confidence);

#endif
