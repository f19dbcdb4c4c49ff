/* Statistics of few measured numbers: their middle, their spread, and the confidence in a mean. NaN where a
 * figure is not defined for so few numbers. */
#ifndef PH_BASE_STATISTICS_H
#define PH_BASE_STATISTICS_H

#include <stddef.h>

#include "phloem/status.h"

double ph__mean(const double *values, size_t count);
double ph__sample_deviation(const double *values, size_t count); /* over count - 1; from two numbers on */
void ph__sort_numbers(double *values, size_t count);             /* ascending */
double ph__sorted_median(const double *values, size_t count); /* of one or more numbers in ascending order */
/* Gives the median and keeps the values' order. PH_ERROR_MEMORY. */
ph_status ph__median(const double *values, size_t count, double *median_out);

/* Returns the number that Student's t stays below with this probability, 0 < probability < 1. */
double ph__student_t_quantile(double probability, size_t degrees_of_freedom);

/* Returns half the width of the interval about the mean that covers the true mean with this confidence (.95),
 * by Student's t, for independent, normally distributed numbers. From two numbers on. */
double ph__mean_half_width(const double *values, size_t count, double confidence);

#endif
