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
    const struct ph__kernels *kernels;
    const struct ph__timed_product *of;
    struct ph__gemm_weight_shape shape;
    struct ph__gemm_args args;
    const ph_real *x; /* before it is converted */
    uint16_t *converted;
    size_t terms;
};

/* Tells whether a training converts the rows to bf16 first. */
static bool is_converted(const struct ph__timed_product *product)
{
    return product->recipe == PH_RECIPE_BF16 && product->is_backward;
}

static ph_status multiply(const struct product *product)
{
    if (is_converted(product->of))
        product->kernels->bf16_narrow(product->args.rows * product->terms, product->x, product->converted);
    return product->of->is_backward ? ph__gemm_backward_data(product->gemm, &product->shape, &product->args)
                                    : ph__gemm_forward(product->gemm, &product->shape, &product->args);
}

static double time_calls(const struct product *product, size_t calls, ph_status *status)
{
    const double begun_s = ph__clock_seconds();
    for (size_t i = 0; i < calls && *status == PH_OK; i++)
        *status = multiply(product);
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

static void fill(size_t count, ph_real *numbers)
{
    struct ph__rng_sequence random = {.key = {.seed = count}};
    for (size_t i = 0; i < count; i++)
        numbers[i] = (ph_real)ph__rng_next_normal(&random);
}

ph_status ph__product_time(struct ph__gemm *gemm, const struct ph__kernels *kernels, size_t rows,
    const struct ph__timed_product *of, double *seconds_out)
{
    const size_t out = of->out_features, in = of->in_features, widest = out > in ? out : in;
    struct product product = {.gemm = gemm,
        .kernels = kernels,
        .of = of,
        .terms = of->is_backward ? out : in,
        .shape = {.out_features = out,
            .in_features = in,
            .is_transposed = of->is_backward,
            .is_row_wise = of->recipe != PH_RECIPE_INT8 && !of->is_backward,
            .is_bf16 = of->recipe == PH_RECIPE_BF16,
            .is_int8 = of->recipe == PH_RECIPE_INT8}};
    size_t packed_bytes;
    PH_TRY(ph__gemm_packed_bytes(gemm, &product.shape, &packed_bytes));
    ph_real *x = malloc((rows * widest + 1) * sizeof *x), *weight = malloc((out * in + 1) * sizeof *weight);
    ph_real *y = malloc((rows * widest + 1) * sizeof *y);
    void *packed = malloc(packed_bytes + 1);
    void *scratch = malloc(ph__gemm_scratch_bytes(gemm, &product.shape) + 1);
    product.converted = malloc((rows * widest + 1) * sizeof *product.converted);
    ph_status status = x != NULL && weight != NULL && y != NULL && packed != NULL && scratch != NULL &&
                               product.converted != NULL
                           ? PH_OK
                           : ph__out_of_memory("a product");
    if (status == PH_OK) {
        fill(rows * widest, x);
        fill(out * in, weight);
        product.x = x;
        product.args = (struct ph__gemm_args){.rows = rows,
            .x = is_converted(of) ? (const void *)product.converted : x,
            .packed = packed,
            .y = y,
            .scratch = scratch};
        status = ph__gemm_pack(gemm, &product.shape, weight, packed);
    }
    if (status == PH_OK)
        status = time_product(&product, seconds_out);
    free(x);
    free(weight);
    free(y);
    free(packed);
    free(scratch);
    free(product.converted);
    return status;
}
