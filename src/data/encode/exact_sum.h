/* Sums of floats and of their squares without rounding, so that they depend neither on order nor on grouping.
 *
 * A fixed-point number of 32-bit digits, wide enough for any finite float, its square, and 2^60 of them: digit i counts
 * units of 2^(32 i - 352). A digit is kept in 64 bits, so that many additions need no carry. */
#ifndef PH_DATA_EXACT_SUM_H
#define PH_DATA_EXACT_SUM_H

#include <stdbool.h>
#include <stdint.h>

#define PH_EXACT_SUM_DIGITS 21

struct ph__exact_sum { /* zero-initialised is 0 */
    int64_t digits[PH_EXACT_SUM_DIGITS];
    uint32_t num_additions; /* since the last carry */
};

void ph__exact_sum_add(struct ph__exact_sum *sum, float number);
void ph__exact_sum_add_square(struct ph__exact_sum *sum, float number);
void ph__exact_sum_merge(struct ph__exact_sum *sum, const struct ph__exact_sum *other);
/* Whether bytes that were read can be a sum, so that no merge of 65,536 such overflows. */
bool ph__exact_sum_is_sound(const struct ph__exact_sum *sum);

/* The sum, rounded. */
long double ph__exact_sum_value(const struct ph__exact_sum *sum);

#endif
