/* Part of int8_product_simd.c, included once for each way to sum products of bytes. Before:
 *   PH_WAY(name)          the way's functions zero, load, spread, add, finish and types sums, levels, terms
 *   PH_WAY_TARGET         attribute of functions that use its instructions
 *   PH_WAY_ROWS           rows of a block at most
 *   PH_WAY_BLOCKS(X)      X(rows, vectors) for every size of block
 *   PH_WAY_VECTORS(rows)  vectors that so many rows take at once
 * It defines PH_WAY(run). */

/* Computes outputs [column, column + vectors * VF_WIDTH), as far as they exist, of rows [row, row + rows);
 * rows and vectors are constants. */
PH_WAY_TARGET PH_INLINE void PH_WAY(block)(
    const struct ph__int8_product_args *args, size_t row, size_t rows, size_t column, size_t vectors)
{
    const struct ph__int8_weight weight =
        ph__int8_weight(args->out_features, args->in_features, args->packed);
    const size_t stride = ph__int8_stride(args->in_features);
    const int8_t *levels[MOST_VECTORS];
    PH_WAY(sums) sums[MOST_ROWS][MOST_VECTORS];
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        levels[v] = weight.levels + ph__int8_place(args->in_features, column + v * VF_WIDTH);
        PH_UNROLL
        for (size_t r = 0; r < rows; r++)
            sums[r][v] = PH_WAY(zero)();
    }
    const int8_t *x = args->x + row * stride;
    for (size_t k = 0; k < stride; k += PH_INT8_TOGETHER, x += PH_INT8_TOGETHER) {
        PH_WAY(levels) four[MOST_VECTORS];
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            four[v] = PH_WAY(load)(levels[v] + k * PH_INT8_PANEL);
        PH_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const PH_WAY(terms) terms = PH_WAY(spread)(x + r * stride);
            PH_UNROLL
            for (size_t v = 0; v < vectors; v++)
                sums[r][v] = PH_WAY(add)(sums[r][v], terms, four[v]);
        }
    }
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        const size_t first = column + v * VF_WIDTH;
        PH_UNROLL
        for (size_t r = 0; r < rows; r++)
            store_outputs(args, &weight, row + r, first, PH_WAY(finish)(sums[r][v], weight.offsets + first));
    }
}

#define PH_WAY_CASE(rows, vectors)                       \
    case 16 * (rows) + (vectors):                        \
        PH_WAY(block)(args, row, rows, column, vectors); \
        break;

PH_WAY_TARGET static void PH_WAY(run_block)(
    const struct ph__int8_product_args *args, size_t row, size_t rows, size_t column, size_t vectors)
{
    switch (16 * rows + vectors) {
        PH_WAY_BLOCKS(PH_WAY_CASE)
    }
}

/* Runs blocks that differ by a row at most. Panels have a whole number of the widest block's vectors, or of
 * half of them. */
static void PH_WAY(run)(const struct ph__int8_product_args *args)
{
    const size_t num_blocks = (args->rows + PH_WAY_ROWS - 1) / PH_WAY_ROWS;
    const size_t num_panels = (args->out_features + PH_INT8_PANEL - 1) / PH_INT8_PANEL;
    const size_t end = num_panels * PH_INT8_PANEL;
    const size_t most = num_blocks > 0 ? PH_WAY_VECTORS((args->rows + num_blocks - 1) / num_blocks) : 1;
    size_t width;
    for (size_t column = 0; column < end; column += width) {
        width = most * VF_WIDTH;
        if (width > end - column)
            width /= 2;
        for (size_t b = 0; b < num_blocks; b++) {
            const size_t row = args->rows * b / num_blocks;
            PH_WAY(run_block)(args, row, args->rows * (b + 1) / num_blocks - row, column, width / VF_WIDTH);
        }
    }
}

#undef PH_WAY
#undef PH_WAY_TARGET
#undef PH_WAY_ROWS
#undef PH_WAY_BLOCKS
#undef PH_WAY_VECTORS
#undef PH_WAY_CASE
