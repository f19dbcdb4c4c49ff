#include "train/probe/product_time.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/statistics.h"
#include "base/thread/clock.h"

enum { ROUNDS = 9 };
#define ROUND_SECONDS 5e-4 /* at least */

struct product {
    struct ph__gemm *gemm;
    struct ph__gemm_weight_shape shape;
    struct ph__gemm_args args;
};

static double time_calls(const struct product *product, size_t calls, ph_status *status)
{
    const double begun_s = ph__clock_seconds();
    for (size_t i = 0; i < calls && *status == PH_OK; i++)
        *status = ph__gemm_forward(product->gemm, &product->shape, &product->args);
    return ph__clock_seconds() - begun_s;
}

static ph_status time_product(const struct product *product, double *seconds_out)
{
    double seconds[ROUNDS];
    ph_status status = PH_OK;
    (void)time_calls(product, 1, &status);
    const double once = time_calls(product, 1, &status);
    const size_t calls = once > ROUND_SECONDS ? 1 : (size_t)(ROUND_SECONDS / (once + 1e-9)) + 1;
    for (size_t round = 0; round < ROUNDS; round++)
        seconds[round] = time_calls(product, calls, &status) / (double)calls;
    PH_TRY(status);
    return ph__median(seconds, ROUNDS, seconds_out);
}

static ph_real *random_numbers(size_t count)
{
    struct ph__rng_sequence random = {.key = {.seed = count}};
    ph_real *numbers = malloc((count + 1) * sizeof *numbers);
    for (size_t i = 0; i < count && numbers != NULL; i++)
        numbers[i] = (ph_real)ph__rng_next_normal(&random);
    return numbers;
}

ph_status ph__product_time(struct ph__gemm *gemm, size_t rows, size_t out_features, size_t in_features,
    enum ph_recipe recipe, double *seconds_out)
{
    const bool is_int8 = recipe == PH_RECIPE_INT8;
    struct product product = {.gemm = gemm,
        .shape = {.out_features = out_features,
            .in_features = in_features,
            .is_row_wise = !is_int8,
            .is_int8 = is_int8}};
    size_t packed_bytes;
    PH_TRY(ph__gemm_packed_bytes(gemm, &product.shape, &packed_bytes));
    ph_real *x = random_numbers(rows * in_features), *weight = random_numbers(out_features * in_features);
    ph_real *y = malloc((rows * out_features + 1) * sizeof *y);
    void *packed = malloc(packed_bytes + 1);
    void *scratch = malloc(ph__gemm_scratch_bytes(gemm, &product.shape) + 1);
    product.args = (struct ph__gemm_args){.rows = rows, .x = x, .packed = packed, .y = y, .scratch = scratch};
    ph_status status = x != NULL && weight != NULL && y != NULL && packed != NULL && scratch != NULL
                           ? ph__gemm_pack(gemm, &product.shape, weight, packed)
                           : ph__out_of_memory("a product");
    if (status == PH_OK)
        status = time_product(&product, seconds_out);
    free(x);
    free(weight);
    free(y);
    free(packed);
    free(scratch);
    return status;
}
