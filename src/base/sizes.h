/* Arithmetic of sizes and counts. */
#ifndef PH_BASE_SIZES_H
#define PH_BASE_SIZES_H

#include <stddef.h>

static inline size_t ph__min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t ph__max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns a / b, rounded up; b > 0, and a + b must not overflow. */
static inline size_t ph__divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Returns the least multiple of b that is not less than a, under the same conditions. */
static inline size_t ph__round_up(size_t a, size_t b)
{
    return ph__divide_up(a, b) * b;
}

/* Returns the start of range `range` when n things are cut into num_ranges even ranges: n range / num_ranges,
 * rounded down, without overflow as long as num_ranges^2 does not overflow. Range num_ranges would begin at
 * n. */
static inline size_t ph__range_start(size_t n, size_t range, size_t num_ranges)
{
    return n / num_ranges * range + n % num_ranges * range / num_ranges;
}

/* Elements of one task of an elementwise loop. Sums over a parameter are added block by block, and sharded
 * dense parameters are cut between blocks, so that shards make the sums of whole parameters. */
#define PH_BLOCK_ELEMENTS 16384u

/* Returns the rows of one block, of row_elements each: about PH_BLOCK_ELEMENTS elements, at least one row. */
static inline size_t ph__block_rows(size_t row_elements)
{
    return ph__max(1, PH_BLOCK_ELEMENTS / ph__max(1, row_elements));
}

#endif
