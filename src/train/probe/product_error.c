#include "train/probe/product_error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "tensor/float16.h"

const char *ph__arithmetic_name(enum ph__arithmetic arithmetic)
{
    static const char *const names[] = {
#define X(name, text) #text,
        PH_ARITHMETICS(X)
#undef X
    };
    return names[arithmetic];
}

/* ---- rounding ---- */

static void round_to_bf16(size_t count, const ph_real *numbers, ph_real *rounded)
{
    for (size_t i = 0; i < count; i++)
        rounded[i] = (ph_real)ph__float_from_bfloat(ph__bfloat_from_float((float)numbers[i]));
}

/* Rounds rows to levels. levels (terms) is scratch. */
static void round_to_int8(const struct ph__kernels *kernels, size_t rows, size_t terms,
    const ph_real *numbers, ph_real *rounded, int8_t *levels)
{
    for (size_t r = 0; r < rows; r++) {
        const float scale = kernels->int8_narrow(terms, numbers + r * terms, levels);
        for (size_t k = 0; k < terms; k++)
            rounded[r * terms + k] = (ph_real)((float)levels[k] * scale);
    }
}

ph_status ph__product_round(const struct ph__probed_product *product, enum ph__arithmetic arithmetic,
    const struct ph__kernels *kernels, bool is_weight, ph_real *rounded)
{
    const size_t rows = is_weight ? product->outputs : product->rows, terms = product->terms;
    const ph_real *numbers = is_weight ? product->w : product->x;
    static const enum ph__float8_operand operands[2][2] = {
        {PH_FLOAT8_X, PH_FLOAT8_W}, {PH_FLOAT8_DY, PH_FLOAT8_W_TRANSPOSED}};
    if (arithmetic >= PH_ARITHMETIC_E4M3_TENSOR) {
        ph__float8_round_operand((enum ph__float8_recipe)(arithmetic - PH_ARITHMETIC_E4M3_TENSOR),
            operands[product->is_backward][is_weight], is_weight ? 0 : product->former_amax, rows, terms,
            numbers, rounded);
        return PH_OK;
    }
    if (arithmetic == PH_ARITHMETIC_BF16) {
        round_to_bf16(rows * terms, numbers, rounded);
        return PH_OK;
    }
    int8_t *levels = malloc(terms + 1);
    if (levels == NULL)
        return ph__out_of_memory("the levels of a row");
    round_to_int8(kernels, rows, terms, numbers, rounded, levels);
    free(levels);
    return PH_OK;
}

/* ---- errors ---- */

static double dot(size_t count, const ph_real *a, const ph_real *b)
{
    double sums[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += (double)a[i + k] * (double)b[i + k];
    for (; i < count; i++)
        sums[0] += (double)a[i] * (double)b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double ph__product_at(const struct ph__probed_product *product, size_t place)
{
    const size_t terms = product->terms, outputs = product->outputs;
    return dot(terms, product->x + place / outputs * terms, product->w + place % outputs * terms);
}

/* Memory to compare one product by all arithmetics in. */
struct comparison {
    const struct ph__probed_product *product;
    const struct ph_backend *backend;
    ph_real *x, *w, *y; /* rounded operands, and their product */
    double *reference;
    void *packed, *scratch;
};

static struct ph__gemm_weight_shape shape_of(const struct ph__probed_product *product)
{
    return (struct ph__gemm_weight_shape){
        .out_features = product->outputs, .in_features = product->terms, .is_row_wise = true};
}

/* Multiplies the rounded operands in fp32: sums of products round by some 1e-6, which is nothing beside the
 * rounding of operands. */
static ph_status multiply_rounded(struct comparison *comparison)
{
    const struct ph__gemm_weight_shape shape = shape_of(comparison->product);
    const struct ph__gemm_args args = {.rows = comparison->product->rows,
        .x = comparison->x,
        .packed = comparison->packed,
        .y = comparison->y,
        .scratch = comparison->scratch};
    PH_TRY(ph__gemm_pack(comparison->backend->gemm, &shape, comparison->w, comparison->packed));
    return ph__gemm_forward(comparison->backend->gemm, &shape, &args);
}

static struct ph__product_error compare(size_t count, const ph_real *y, const double *reference)
{
    double squares = 0, error_squares = 0, mere = 0, floored = 0;
    for (size_t i = 0; i < count; i++)
        squares += reference[i] * reference[i];
    const double floor = .01 * sqrt(squares / (double)count);
    for (size_t i = 0; i < count; i++) {
        const double difference = fabs((double)y[i] - reference[i]);
        error_squares += difference * difference;
        mere += reference[i] != 0 ? difference / fabs(reference[i]) : 0;
        floored += difference / fmax(fabs(reference[i]), floor);
    }
    return (struct ph__product_error){
        mere / (double)count, floored / (double)count, sqrt(error_squares / squares)};
}

static ph_status open_comparison(
    struct comparison *comparison, const struct ph__probed_product *product, const struct ph_backend *backend)
{
    const size_t rows = product->rows, terms = product->terms, outputs = product->outputs;
    const struct ph__gemm_weight_shape shape = shape_of(product);
    size_t packed_bytes;
    PH_TRY(ph__gemm_packed_bytes(backend->gemm, &shape, &packed_bytes));
    *comparison = (struct comparison){.product = product,
        .backend = backend,
        .x = malloc((rows * terms + 1) * sizeof(ph_real)),
        .w = malloc((outputs * terms + 1) * sizeof(ph_real)),
        .y = malloc((rows * outputs + 1) * sizeof(ph_real)),
        .reference = malloc((rows * outputs + 1) * sizeof(double)),
        .packed = malloc(packed_bytes + 1),
        .scratch = malloc(ph__gemm_scratch_bytes(backend->gemm, &shape) + 1)};
    return comparison->x != NULL && comparison->w != NULL && comparison->y != NULL &&
                   comparison->reference != NULL && comparison->packed != NULL && comparison->scratch != NULL
               ? PH_OK
               : ph__out_of_memory("the operands of a product");
}

static void close_comparison(struct comparison *comparison)
{
    free(comparison->x);
    free(comparison->w);
    free(comparison->y);
    free(comparison->reference);
    free(comparison->packed);
    free(comparison->scratch);
}

static ph_status compare_all(struct comparison *comparison, struct ph__product_error *errors_out)
{
    const struct ph__probed_product *product = comparison->product;
    const struct ph__kernels *kernels = comparison->backend->kernels;
    const size_t count = product->rows * product->outputs;
    for (size_t i = 0; i < count; i++)
        comparison->reference[i] = ph__product_at(product, i);
    for (enum ph__arithmetic arithmetic = 0; arithmetic < PH_ARITHMETIC_COUNT; arithmetic++) {
        PH_TRY(ph__product_round(product, arithmetic, kernels, false, comparison->x));
        PH_TRY(ph__product_round(product, arithmetic, kernels, true, comparison->w));
        PH_TRY(multiply_rounded(comparison));
        errors_out[arithmetic] = compare(count, comparison->y, comparison->reference);
    }
    return PH_OK;
}

ph_status ph__product_errors(const struct ph__probed_product *product, const struct ph_backend *backend,
    struct ph__product_error *errors_out)
{
    struct comparison comparison = {.product = product};
    ph_status status = open_comparison(&comparison, product, backend);
    if (status == PH_OK)
        status = compare_all(&comparison, errors_out);
    close_comparison(&comparison);
    return status;
}
