/* Sums of rows' squares from the sums of their blocks, in the order of kernel.h. The additions' order is
 * fixed, so all ISAs share one implementation. */
#include "kernel/kernel.h"

static ph_real sum_row(const struct ph__square_shard *shards, size_t num_shards, size_t row)
{
    ph_real sums[PH_SQUARES_SUMS] = {0};
    size_t number = 0; /* the block's, in the whole row */
    for (size_t shard = 0; shard < num_shards; shard++) {
        const ph_real *blocks = shards[shard].blocks + row * shards[shard].num_blocks;
        for (size_t k = 0; k < shards[shard].num_blocks; k++, number++)
            sums[number % PH_SQUARES_SUMS] += blocks[k];
    }
    return ph__add_square_sums(sums);
}

void ph__square_sums(
    const struct ph__square_shard *shards, size_t num_shards, size_t first, size_t last, ph_real *sums_out)
{
    for (size_t row = first; row < last; row++)
        sums_out[row] = sum_row(shards, num_shards, row);
}
