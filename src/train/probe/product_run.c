#include "train/probe/product_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/clock.h"
#include "train/probe/product_error.h"

enum { ROUNDS = 15 };
#define ROUND_SECONDS 5e-4 /* at least */

/* A product with its operands. */
struct product {
    const struct ph_backend *backend;
    const struct ph__recipe_product *of;
    struct ph__gemm_weight_shape shape;
    struct ph__gemm_args args;
    size_t terms, outputs;
    ph_real *x, *weight, *y; /* (rows, terms), (out, in), (rows, outputs) */
    uint16_t *converted;     /* x in bf16 */
    void *packed, *scratch;
};

/* Tells whether a training converts the rows to bf16 first. */
static bool is_converted(const struct ph__recipe_product *product)
{
    return product->recipe == PH_RECIPE_BF16 && product->is_backward;
}

/* Returns memory aligned as a program's, where kernels are fast; NULL without memory. Free it. */
static void *allocate(size_t bytes)
{
    return aligned_alloc(PH_ALIGNMENT, (bytes / PH_ALIGNMENT + 1) * PH_ALIGNMENT);
}

static ph_status open_product(struct product *product, const struct ph_backend *backend, size_t rows,
    const struct ph__recipe_product *of)
{
    const size_t out = of->out_features, in = of->in_features;
    *product = (struct product){.backend = backend,
        .of = of,
        .terms = of->is_backward ? out : in,
        .outputs = of->is_backward ? in : out,
        .shape = {.out_features = out,
            .in_features = in,
            .is_transposed = of->is_backward,
            .is_row_wise = of->recipe != PH_RECIPE_INT8 && !of->is_backward,
            .is_bf16 = of->recipe == PH_RECIPE_BF16,
            .is_int8 = of->recipe == PH_RECIPE_INT8}};
    size_t packed_bytes;
    PH_TRY(ph__gemm_packed_bytes(backend->gemm, &product->shape, &packed_bytes));
    product->x = allocate(rows * product->terms * sizeof *product->x);
    product->weight = allocate(out * in * sizeof *product->weight);
    product->y = allocate(rows * product->outputs * sizeof *product->y);
    product->converted = allocate(rows * product->terms * sizeof *product->converted);
    product->packed = allocate(packed_bytes);
    product->scratch = allocate(ph__gemm_scratch_bytes(backend->gemm, &product->shape));
    if (product->x == NULL || product->weight == NULL || product->y == NULL || product->converted == NULL ||
        product->packed == NULL || product->scratch == NULL)
        return ph__out_of_memory("a product");
    product->args = (struct ph__gemm_args){.rows = rows,
        .x = is_converted(of) ? (const void *)product->converted : product->x,
        .packed = product->packed,
        .y = product->y,
        .scratch = product->scratch};
    return PH_OK;
}

static void close_product(struct product *product)
{
    free(product->x);
    free(product->weight);
    free(product->y);
    free(product->converted);
    free(product->packed);
    free(product->scratch);
}

static ph_status pack(const struct product *product)
{
    return ph__gemm_pack(product->backend->gemm, &product->shape, product->weight, product->packed);
}

static ph_status multiply(const struct product *product)
{
    struct ph__gemm *gemm = product->backend->gemm;
    if (is_converted(product->of))
        product->backend->kernels->bf16_narrow(
            product->args.rows * product->terms, product->x, product->converted);
    return product->of->is_backward ? ph__gemm_backward_data(gemm, &product->shape, &product->args)
                                    : ph__gemm_forward(gemm, &product->shape, &product->args);
}

/* ---- times ---- */

static double time_calls(const struct product *product, size_t calls, ph_status *status)
{
    const double begun_s = ph__clock_seconds();
    for (size_t i = 0; i < calls && *status == PH_OK; i++)
        *status = multiply(product);
    return ph__clock_seconds() - begun_s;
}

/* Gives the least of the rounds: others on the machine only make one longer. */
static ph_status time_product(const struct product *product, double *seconds_out)
{
    double least = HUGE_VAL;
    ph_status status = PH_OK;
    (void)time_calls(product, 1, &status);
    const double once = time_calls(product, 1, &status);
    const size_t calls = once > ROUND_SECONDS ? 1 : (size_t)(ROUND_SECONDS / (once + 1e-9)) + 1;
    for (size_t round = 0; round < ROUNDS; round++)
        least = fmin(least, time_calls(product, calls, &status) / (double)calls);
    *seconds_out = least;
    return status;
}

static void fill(size_t count, ph_real *numbers)
{
    struct ph__rng_sequence random = {.key = {.seed = count}};
    for (size_t i = 0; i < count; i++)
        numbers[i] = (ph_real)ph__rng_next_normal(&random);
}

ph_status ph__product_time(
    const struct ph_backend *backend, size_t rows, const struct ph__recipe_product *of, double *seconds_out)
{
    struct product product;
    ph_status status = open_product(&product, backend, rows, of);
    if (status == PH_OK) {
        fill(rows * product.terms, product.x);
        fill(of->out_features * of->in_features, product.weight);
        status = pack(&product);
    }
    if (status == PH_OK)
        status = time_product(&product, seconds_out);
    close_product(&product);
    return status;
}

/* ---- checks ---- */

/* Compares y with the product of operands that are rounded in place. */
static ph_status compare(struct product *product, double *off_out)
{
    const size_t rows = product->args.rows;
    const struct ph__probed_product of = {.rows = rows,
        .terms = product->terms,
        .outputs = product->outputs,
        .x = product->x,
        .w = product->weight,
        .is_backward = product->of->is_backward};
    const enum ph__arithmetic arithmetic =
        product->of->recipe == PH_RECIPE_INT8 ? PH_ARITHMETIC_INT8 : PH_ARITHMETIC_BF16;
    if (product->of->recipe == PH_RECIPE_INT8 || is_converted(product->of))
        PH_TRY(ph__product_round(&of, arithmetic, product->backend->kernels, false, product->x));
    PH_TRY(ph__product_round(&of, arithmetic, product->backend->kernels, true, product->weight));
    double squares = 0, largest = 0;
    for (size_t i = 0; i < rows * product->outputs; i++) {
        const double exact = ph__product_at(&of, i);
        squares += exact * exact;
        largest = fmax(largest, fabs(exact - (double)product->y[i]));
    }
    *off_out = squares > 0 ? largest / sqrt(squares / (double)(rows * product->outputs)) : largest;
    return PH_OK;
}

ph_status ph__product_check(const struct ph_backend *backend, size_t rows,
    const struct ph__recipe_product *of, const ph_real *x, const ph_real *weight, double *off_out)
{
    struct product product;
    const size_t out = of->out_features, in = of->in_features;
    ph_status status = open_product(&product, backend, rows, of);
    if (status == PH_OK) {
        memcpy(product.x, x, rows * product.terms * sizeof *x);
        memcpy(product.weight, weight, out * in * sizeof *weight);
        status = pack(&product);
    }
    if (status == PH_OK)
        status = multiply(&product);
    for (size_t i = 0; status == PH_OK && i < out * in; i++) /* as an operand (outputs, terms) */
        product.weight[i] = of->is_backward ? weight[i % product.terms * in + i / product.terms] : weight[i];
    if (status == PH_OK)
        status = compare(&product, off_out);
    close_product(&product);
    return status;
}
