#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

double ph__mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count > 0 ? sum / (double)count : (double)NAN;
}

double ph__sample_deviation(const double *values, size_t count)
{
    const double mean = ph__mean(values, count);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(sum / (double)(count - 1)) : (double)NAN;
}

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

void ph__sort_numbers(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_numbers);
}

double ph__sorted_median(const double *values, size_t count)
{
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

ph_status ph__median(const double *values, size_t count, double *median_out)
{
    *median_out = (double)NAN;
    if (count == 0)
        return PH_OK;
    double *sorted = calloc(count, sizeof *sorted);
    if (sorted == NULL)
        return ph__out_of_memory("the median of %zu numbers", count);
    memcpy(sorted, values, count * sizeof *sorted);
    ph__sort_numbers(sorted, count);
    *median_out = ph__sorted_median(sorted, count);
    free(sorted);
    return PH_OK;
}

/* ---- Student's t ---- */

/* Returns P(-t < T < t) for t = sqrt(n) tan(angle) and whole degrees of freedom n, by the finite sums of
 * Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4. With s and c for sine and
 * cosine of the angle:
 *     n odd   2/pi (angle + s (c + 2/3 c^3 + 2/3 4/5 c^5 + ... + ... c^(n-2)))
 *     n even  s (1 + 1/2 c^2 + 1/2 3/4 c^4 + ... + ... c^(n-2)) */
static double central_probability(double angle, size_t n)
{
    const double sine = sin(angle), cosine = cos(angle);
    const size_t first = n % 2 == 1 ? 1 : 0;
    double term = first == 1 ? cosine : 1, sum = 0;
    for (size_t power = first; power + 2 <= n; power += 2) {
        sum += term;
        term *= cosine * cosine * (double)(power + 1) / (double)(power + 2);
    }
    return first == 1 ? (angle + sine * sum) / acos(0) : sine * sum;
}

/* Bisects the angle, with which the probability rises, until no number lies between the bounds. */
double ph__student_t_quantile(double probability, size_t degrees_of_freedom)
{
    if (!(probability > 0 && probability < 1) || degrees_of_freedom == 0)
        return (double)NAN;
    const double central = fabs(2 * probability - 1);
    double low = 0, high = acos(0), middle;
    while ((middle = low + (high - low) / 2) > low && middle < high) {
        if (central_probability(middle, degrees_of_freedom) < central)
            low = middle;
        else
            high = middle;
    }
    return copysign(sqrt((double)degrees_of_freedom) * tan(high), probability - 0.5);
}

double ph__mean_half_width(const double *values, size_t count, double confidence)
{
    if (count < 2)
        return (double)NAN;
    const double quantile = ph__student_t_quantile((1 + confidence) / 2, count - 1);
    return quantile * ph__sample_deviation(values, count) / sqrt((double)count);
}
