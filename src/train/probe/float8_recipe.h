/* Products of numbers of eight bits as GPUs make them, emulated for the probe: operands are scaled, rounded
 * and scaled back, and multiplied in full. An operand is a matrix of rows of the terms that are summed: X
 * (B,K) and W (N,K) forward, dY (B,N) and W^T (K,N) for the input's gradient.
 *
 *     s = largest of the format / max(amax, 1e-12), rounded down to 2^k where the recipe says;  q = round(x
 * s) / s
 *
 *   recipe       X       W          dY      scale of
 *   tensor       E4M3    E4M3       E5M2    the matrix
 *   row          E4M3    E4M3       E4M3    a row, 2^k
 *   row_gw_hp    E4M3    E4M3       E4M3    a row, 2^k; of W the matrix in the gradient
 *   block        E4M3    E4M3       E4M3    128 terms of a row; of W 128 x 128
 *   delayed      E4M3    E4M3       E5M2    the matrix, amax that of former steps: greater numbers saturate
 *
 * Source: LoKA (arXiv 2605.10886) names them; they are torchao's, DeepGEMM's
 * and TransformerEngine's. */
#ifndef PH_TRAIN_FLOAT8_RECIPE_H
#define PH_TRAIN_FLOAT8_RECIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/tensor.h"

enum ph__float8_recipe {
    PH_FLOAT8_TENSOR,
    PH_FLOAT8_ROW,
    PH_FLOAT8_ROW_GW_HP,
    PH_FLOAT8_BLOCK,
    PH_FLOAT8_DELAYED,
    PH_FLOAT8_COUNT
};

/* Operands of a product. */
enum ph__float8_operand {
    PH_FLOAT8_X,
    PH_FLOAT8_DY,
    PH_FLOAT8_W,
    PH_FLOAT8_W_TRANSPOSED,
    PH_FLOAT8_OPERANDS
};

/* Rounds an operand (rows, terms) as the recipe does: rounded_out (rows, terms), which may be the operand.
 * former_amax: the largest magnitude in former steps, for "delayed"; 0: that of the operand. */
void ph__float8_round_operand(enum ph__float8_recipe recipe, enum ph__float8_operand operand,
    double former_amax, size_t rows, size_t terms, const ph_real *numbers, ph_real *rounded_out);

#endif
