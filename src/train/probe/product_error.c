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

static ph_status round_operand(const struct ph__probed_product *product, enum ph__arithmetic arithmetic,
    const struct ph__kernels *kernels, bool is_weight, ph_real *rounded)
{
    const size_t rows = is_weight ? product->outputs : product->rows, terms = product->terms;
    const ph_real *numbers = is_weight ? product->w : product->x;
    static const enum ph__float8_operand operands[2][2] = {
        {PH_FLOAT8_X, PH_FLOAT8_W}, {PH_FLOAT8_DY, PH_FLOAT8_W_TRANSPOSED}};
    if (arithmetic >= PH_ARITHMETIC_E4M3_TENSOR) {
        ph__float8_round_operand((enum ph__float8_recipe)(arithmetic - PH_ARITHMETIC_E4M3_TENSOR),
            operands[product->is_backward][is_weight], rows, terms, numbers, rounded);
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

/* Fills the reference (rows, outputs). */
static void multiply(const struct ph__probed_product *product, double *reference)
{
    const size_t terms = product->terms, outputs = product->outputs;
    for (size_t i = 0; i < product->rows * outputs; i++)
        reference[i] = dot(terms, product->x + i / outputs * terms, product->w + i % outputs * terms);
}

/* Compares products of the rounded operands x and w with the reference. */
static struct ph__product_error compare(
    const struct ph__probed_product *product, const ph_real *x, const ph_real *w, const double *reference)
{
    const size_t terms = product->terms, outputs = product->outputs, count = product->rows * outputs;
    double squares = 0, error_squares = 0, mere = 0, floored = 0;
    for (size_t i = 0; i < count; i++)
        squares += reference[i] * reference[i];
    const double floor = .01 * sqrt(squares / (double)count);
    for (size_t i = 0; i < count; i++) {
        const double difference =
            fabs(dot(terms, x + i / outputs * terms, w + i % outputs * terms) - reference[i]);
        error_squares += difference * difference;
        mere += reference[i] != 0 ? difference / fabs(reference[i]) : 0;
        floored += difference / fmax(fabs(reference[i]), floor);
    }
    return (struct ph__product_error){
        mere / (double)count, floored / (double)count, sqrt(error_squares / squares)};
}

ph_status ph__product_errors(const struct ph__probed_product *product, const struct ph__kernels *kernels,
    struct ph__product_error *errors_out)
{
    ph_real *x = malloc((product->rows * product->terms + 1) * sizeof *x);
    ph_real *w = malloc((product->outputs * product->terms + 1) * sizeof *w);
    double *reference = malloc((product->rows * product->outputs + 1) * sizeof *reference);
    ph_status status =
        x != NULL && w != NULL && reference != NULL ? PH_OK : ph__out_of_memory("the operands of a product");
    if (status == PH_OK)
        multiply(product, reference);
    for (enum ph__arithmetic arithmetic = 0; arithmetic < PH_ARITHMETIC_COUNT && status == PH_OK;
         arithmetic++) {
        status = round_operand(product, arithmetic, kernels, false, x);
        if (status == PH_OK)
            status = round_operand(product, arithmetic, kernels, true, w);
        if (status == PH_OK)
            errors_out[arithmetic] = compare(product, x, w, reference);
    }
    free(x);
    free(w);
    free(reference);
    return status;
}
