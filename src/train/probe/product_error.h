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

#include "graph/op.h"
#include "phloem/status.h"
#include "train/probe/float8_recipe.h"

/* X(NAME, name): arithmetics that are compared. */
#define PH_ARITHMETICS(X)          \
    X(BF16, bf16)                  \
    X(INT8, int8)                  \
    X(E4M3_TENSOR, e4m3_tensor)    \
    X(E4M3_ROW, e4m3_row)          \
    X(E4M3_ROW_GW, e4m3_row_gw_hp) \
    X(E4M3_BLOCK, e4m3_block)      \
    X(E4M3_DELAYED, e4m3_delayed)

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
    double former_amax; /* largest magnitude in rows of former steps; 0: not known */
};

struct ph__product_error {
    double mere, error, frobenius;
};

/* Rounds the rows, or the weight: rounded_out, of its size, which may be the operand. PH_ERROR_MEMORY. */
ph_status ph__product_round(const struct ph__probed_product *product, enum ph__arithmetic arithmetic,
    const struct ph__kernels *kernels, bool is_weight, ph_real *rounded_out);
/* Returns number `place` of the product (rows, outputs), summed in double. */
double ph__product_at(const struct ph__probed_product *product, size_t place);

/* Gives the errors of all arithmetics: errors_out (PH_ARITHMETIC_COUNT). PH_ERROR_MEMORY. */
ph_status ph__product_errors(const struct ph__probed_product *product, const struct ph_backend *backend,
    struct ph__product_error *errors_out);

#endif
