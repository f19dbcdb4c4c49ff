/* Errors of a product in fewer bits, against sums in double of its operands in fp32.
 *
 *     mere        mean of |out - ref| / |ref|, the paper's; it grows with the number of outputs, since they
 * are about zero error       mean of |out - ref| / max(|ref|, .01 rms of ref): decisions are made by it
 *     frobenius   |out - ref| / |ref| of the whole matrix
 *
 * bf16 and int8 round both operands, int8 with a scale a row of either; the recipes of eight-bit floats are
 * those of float8_recipe.h. Source: LoKA (arXiv 2605.10886), the probe; the floor is ours. */
#ifndef PH_TRAIN_PRODUCT_ERROR_H
#define PH_TRAIN_PRODUCT_ERROR_H

#include "kernel/kernel.h"
#include "phloem/status.h"
#include "train/probe/float8_recipe.h"

/* X(NAME, name): arithmetics that are compared. */
#define PH_ARITHMETICS(X)          \
    X(BF16, bf16)                  \
    X(INT8, int8)                  \
    X(E4M3_TENSOR, e4m3_tensor)    \
    X(E4M3_ROW, e4m3_row)          \
    X(E4M3_ROW_GW, e4m3_row_gw_hp) \
    X(E4M3_BLOCK, e4m3_block)

enum ph__arithmetic {
#define X(name, text) PH_ARITHMETIC_##name,
    PH_ARITHMETICS(X)
#undef X
        PH_ARITHMETIC_COUNT
};
const char *ph__arithmetic_name(enum ph__arithmetic arithmetic);

/* Operands of a product: out (rows, outputs) = x w^T. */
struct ph__probed_product {
    size_t rows, terms, outputs;
    const ph_real *x; /* (rows, terms): rows, or gradients where is_backward */
    const ph_real *w; /* (outputs, terms): the weight, or its transpose where is_backward */
    bool is_backward;
};

struct ph__product_error {
    double mere, error, frobenius;
};

/* Gives the errors of all arithmetics: errors_out (PH_ARITHMETIC_COUNT). PH_ERROR_MEMORY. */
ph_status ph__product_errors(const struct ph__probed_product *product, const struct ph__kernels *kernels,
    struct ph__product_error *errors_out);

#endif
