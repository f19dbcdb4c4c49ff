/* Inverted dropout, the specification: which elements are kept is the same on every ISA, bit for bit. */
#include "kernel/kernel_list.h"

#include <math.h>

/* Element j of sample r is kept when ph__rng_word(key, first_sample + r, j) >= rate 2^32. */
void ph__dropout_ref(const struct ph__rng_key *key, uint64_t first_sample, size_t rows, size_t n, double rate,
    const ph_real *x, ph_real *y, uint8_t *mask)
{
    const struct ph__rng_philox philox = ph__rng_philox(key);
    const uint64_t threshold = (uint64_t)llrint(rate * 4294967296.0);
    const ph_real factor = (ph_real)(1 / (1 - rate));
    for (size_t r = 0; r < rows; r++) {
        struct ph__rng_block block = {{0}};
        for (size_t j = 0; j < n; j++) {
            const size_t i = r * n + j;
            if (j % 4 == 0)
                block = ph__rng_philox_block(&philox, first_sample + r, (uint32_t)(j / 4));
            mask[i] = block.word[j % 4] >= threshold;
            y[i] = mask[i] ? factor * x[i] : 0;
        }
    }
}

void ph__dropout_backward_ref(size_t n, double rate, const uint8_t *mask, const ph_real *dy, ph_real *dx)
{
    const ph_real factor = (ph_real)(1 / (1 - rate));
    for (size_t i = 0; i < n; i++)
        dx[i] = mask[i] ? factor * dy[i] : 0;
}
