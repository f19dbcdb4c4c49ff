#include "ids.h"

#include <math.h>
#include <stdlib.h>

#include "figures.h"

static const struct {
    double ids, reuse;
} reuse_points[] = {{2048, 1.31}, {20480, 1.74}, {40960, 1.99}};
enum { NUM_POINTS = sizeof reuse_points / sizeof *reuse_points };

double bench_reuse(size_t num_ids)
{
    const double n = (double)num_ids;
    size_t last = 1; /* second of the two points of the line, in the logarithm of the ids */
    while (last + 1 < NUM_POINTS && reuse_points[last].ids < n)
        last++;
    const double from = log(reuse_points[last - 1].ids), to = log(reuse_points[last].ids);
    const double slope = (reuse_points[last].reuse - reuse_points[last - 1].reuse) / (to - from);
    return fmax(1, reuse_points[last - 1].reuse + slope * (log(n) - from));
}

/* Returns sum_r 1 - (1 - p_r)^n for weights r^-exponent. */
static double expected_distinct(size_t rows, double exponent, size_t num_ids)
{
    double total = 0, distinct = 0;
    for (size_t r = 1; r <= rows; r++)
        total += pow((double)r, -exponent);
    for (size_t r = 1; r <= rows; r++)
        distinct -= expm1((double)num_ids * log1p(-pow((double)r, -exponent) / total));
    return distinct;
}

static double fitting_exponent(size_t rows, size_t num_ids, double reuse)
{
    double low = 0, high = 3;
    while (high - low > 1e-3) {
        const double middle = (low + high) / 2;
        if (expected_distinct(rows, middle, num_ids) > (double)num_ids / reuse)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void bench_ids_init(struct bench_ids *ids, size_t rows, size_t num_ids, double reuse)
{
    struct ph__rng_sequence rng = {.key = {.seed = 11}};
    *ids =
        (struct bench_ids){.rows = rows, .exponent = reuse > 0 ? fitting_exponent(rows, num_ids, reuse) : 0};
    ids->cumulative = malloc(rows * sizeof *ids->cumulative);
    ids->row_of_rank = malloc(rows * sizeof *ids->row_of_rank);
    if (ids->cumulative == NULL || ids->row_of_rank == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: the ranks of %zu rows", rows));
    double total = 0;
    for (size_t r = 0; r < rows; r++) {
        total += pow((double)(r + 1), -ids->exponent);
        ids->cumulative[r] = total;
        ids->row_of_rank[r] = (uint32_t)r;
    }
    for (size_t r = 0; r < rows; r++)
        ids->cumulative[r] /= total;
    ph__rng_shuffle(&rng, ids->row_of_rank, rows);
}

void bench_ids_fini(struct bench_ids *ids)
{
    free(ids->cumulative);
    free(ids->row_of_rank);
    *ids = (struct bench_ids){0};
}

uint32_t bench_ids_draw(const struct bench_ids *ids, struct ph__rng_sequence *rng)
{
    const double uniform = ph__rng_next_uniform(rng);
    size_t low = 0, high = ids->rows - 1;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (ids->cumulative[middle] < uniform)
            low = middle + 1;
        else
            high = middle;
    }
    return ids->row_of_rank[low];
}
