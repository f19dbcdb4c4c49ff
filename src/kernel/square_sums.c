/* Sums of rows' squares from the sums of their blocks, in the order of kernel.h. These are additions in an order that is
 * written down, so that there is one implementation for all ISAs. */
#include "kernel/kernel.h"

static ph_real sum_row(const struct ph__square_part *parts, size_t num_parts, size_t row)
{
    ph_real sums[PH_SQUARES_SUMS] = {0};
    size_t number = 0; /* of the block in the whole row */
    for (size_t part = 0; part < num_parts; part++) {
        const ph_real *blocks = parts[part].blocks + row * parts[part].num_blocks;
        for (size_t k = 0; k < parts[part].num_blocks; k++, number++)
            sums[number % PH_SQUARES_SUMS] += blocks[k];
    }
    return ph__add_square_sums(sums);
}

void ph__square_sums(
    const struct ph__square_part *parts, size_t num_parts, size_t first, size_t last, ph_real *sums_out)
{
    for (size_t row = first; row < last; row++)
        sums_out[row] = sum_row(parts, num_parts, row);
}
