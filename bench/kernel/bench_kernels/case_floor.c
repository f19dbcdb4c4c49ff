/* Measures the parts of a case's floor, in processor time of this thread like the case itself. */
#include <string.h>

#include "cases.h"

enum { PRODUCT_ROWS = 6, PRODUCT_INNER = 96, PRODUCT_COLUMNS = 64, PRODUCTS = 400 };
static const double copy_sample_ns = 5e5;

struct case_floor case_floor_make(const struct ph__kernels *kernels, double bytes)
{
    const size_t copied_bytes = (size_t)(bytes / 2);
    return (struct case_floor){
        .kernels = kernels,
        .copied_bytes = copied_bytes,
        .from = bench_memory(copied_bytes, 1),
        .to = bench_memory(copied_bytes, 1),
        .x = bench_floats((size_t)PRODUCT_ROWS * PRODUCT_INNER),
        .packed = bench_floats((size_t)PRODUCT_INNER * PRODUCT_COLUMNS),
        .y = bench_floats((size_t)PRODUCT_ROWS * PRODUCT_COLUMNS),
    };
}

double case_floor_copy_ns(const struct case_floor *floor)
{
    const double start = bench_clock_ns();
    double elapsed;
    size_t copies = 0;
    do {
        memcpy(floor->to, floor->from, floor->copied_bytes);
        copies++;
        elapsed = bench_clock_ns() - start;
    } while (elapsed < copy_sample_ns);
    return elapsed / (double)copies;
}

double case_floor_product_rate(const struct case_floor *floor)
{
    const struct ph__row_product_args args = {
        .rows = PRODUCT_ROWS,
        .in_features = PRODUCT_INNER,
        .out_features = PRODUCT_COLUMNS,
        .x = floor->x,
        .packed = floor->packed,
        .y = floor->y,
    };
    const double start = bench_clock_ns();
    for (int i = 0; i < PRODUCTS; i++)
        floor->kernels->row_product(&args);
    return 2.0 * PRODUCT_ROWS * PRODUCT_INNER * PRODUCT_COLUMNS * PRODUCTS / (bench_clock_ns() - start);
}
