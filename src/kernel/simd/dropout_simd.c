/* Inverted dropout. Philox4x32-10 runs in every lane at once: a vector of counters gives the words of
 * VF_WIDTH blocks, 4 VF_WIDTH elements; interleaving orders them by element. Same bits as ref. */
#include <math.h>
#include <string.h>

#include "kernel/simd/simd.h"

enum { CHUNK = 4 * VF_WIDTH };

/* Makes the words of elements 4 block .. 4 block + CHUNK of one sample, in order. */
PH_INLINE void random_words(const struct ph__rng_philox *philox, uint64_t sample, uint32_t block, vu word[4])
{
    uint32_t key0 = philox->key[0];
    uint32_t key1 = philox->key[1];
    word[0] = vu_set1((uint32_t)sample);
    word[1] = vu_set1((uint32_t)(sample >> 32));
    word[2] = vu_add(vu_set1(block), vu_block_numbers());
    word[3] = vu_set1(philox->step);
    for (int round = 0; round < PH_PHILOX_ROUNDS; round++) {
        vu high0, high1;
        const vu low0 = vu_multiply(word[0], vu_set1(PH_PHILOX_MULTIPLIER_0), &high0);
        const vu low1 = vu_multiply(word[2], vu_set1(PH_PHILOX_MULTIPLIER_1), &high1);
        word[0] = vu_xor3(high1, word[1], vu_set1(key0));
        word[1] = low1;
        word[2] = vu_xor3(high0, word[3], vu_set1(key1));
        word[3] = low0;
        key0 += PH_PHILOX_WEYL_0;
        key1 += PH_PHILOX_WEYL_1;
    }
    vu_interleave(word);
}

struct dropout {
    struct ph__rng_philox philox;
    vu threshold;
    vf factor;
};

PH_INLINE void drop_chunk(
    const struct dropout *dropout, uint64_t sample, size_t j, const float *x, float *y, uint8_t *mask)
{
    vu word[4];
    random_words(&dropout->philox, sample, (uint32_t)(j / 4), word);
    PH_UNROLL
    for (size_t k = 0; k < 4; k++) {
        const size_t at = k * VF_WIDTH;
        const vf value = vf_mul(dropout->factor, vf_load(x + at));
        vf_store(y + at, vf_keep_from(word[k], dropout->threshold, value, mask + at));
    }
}

static void drop_row(
    const struct dropout *dropout, uint64_t sample, size_t n, const float *x, float *y, uint8_t *mask)
{
    size_t j = 0;
    for (; j + CHUNK <= n; j += CHUNK)
        drop_chunk(dropout, sample, j, x + j, y + j, mask + j);
    if (j < n) {
        float buffer[CHUNK] = {0};
        uint8_t bytes[CHUNK];
        memcpy(buffer, x + j, (n - j) * sizeof *x);
        drop_chunk(dropout, sample, j, buffer, buffer, bytes);
        memcpy(y + j, buffer, (n - j) * sizeof *y);
        memcpy(mask + j, bytes, n - j);
    }
}

void PH_SIMD(dropout)(const struct ph__rng_key *key, uint64_t first_sample, size_t rows, size_t n,
    double rate, const float *x, float *y, uint8_t *mask)
{
    const uint64_t threshold = (uint64_t)llrint(rate * 4294967296.0);
    if (threshold > UINT32_MAX) { /* nothing is kept; no 32-bit threshold says that */
        ph__dropout_ref(key, first_sample, rows, n, rate, x, y, mask);
        return;
    }
    const struct dropout dropout = {
        .philox = ph__rng_philox(key),
        .threshold = vu_set1((uint32_t)threshold),
        .factor = vf_set1((float)(1 / (1 - rate))),
    };
    for (size_t r = 0; r < rows; r++)
        drop_row(&dropout, first_sample + r, n, x + r * n, y + r * n, mask + r * n);
}

void PH_SIMD(dropout_backward)(size_t n, double rate, const uint8_t *mask, const float *dy, float *dx)
{
    const vf factor = vf_set1((float)(1 / (1 - rate)));
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(dx + i, vf_keep_bytes(mask + i, vf_mul(factor, vf_load(dy + i))));
    ph__dropout_backward_ref(n - i, rate, mask + i, dy + i, dx + i);
}
