/* Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
 * as 1, 2, 3", SC'11, section 3.3).
 *
 * A number is a pure function of (seed, step, logical name, sample, element), independent of threads, ranks
 * and the order of calls. `stream` is the hash of the logical name of the operator or parameter.
 *
 * Philox's key words are (low, high) of mix(mix(mix(seed) ^ stream) ^ (step >> 32)); its counter words are
 * (index low, index high, element block, step low). ph__rng_philox() derives the part that is constant for a
 * key, struct ph__rng_philox. Kernels that draw many numbers keep it and call ph__rng_philox_block(); a SIMD
 * kernel spreads its words over lanes. All of them give the bits of ph__rng_word(). */
#ifndef PH_BASE_RNG_H
#define PH_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct ph__rng_key {
    uint64_t seed;
    uint64_t step;
    uint64_t stream; /* ph__hash_name() of the logical name */
};

struct ph__rng_block {
    uint32_t word[4];
};

/* Finalises as splitmix64 does (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
 * OOPSLA'14): a bijection. */
static inline uint64_t ph__hash_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t ph__hash_name(const char *name); /* FNV-1a 64, then mixed */
uint64_t ph__hash_bytes(const void *bytes, size_t size);

/* ---- the generator ---- */

/* Part of the generator's input that is the same for all numbers of one ph__rng_key. */
struct ph__rng_philox {
    uint32_t key[2];
    uint32_t step; /* counter word 3 */
};

#define PH_PHILOX_ROUNDS 10
#define PH_PHILOX_MULTIPLIER_0 0xD2511F53u /* times counter word 0 */
#define PH_PHILOX_MULTIPLIER_1 0xCD9E8D57u /* times counter word 2 */
#define PH_PHILOX_WEYL_0 0x9E3779B9u       /* added to key word 0 after each round */
#define PH_PHILOX_WEYL_1 0xBB67AE85u       /* added to key word 1 after each round */

struct ph__rng_philox ph__rng_philox(const struct ph__rng_key *key);

/* Computes Philox4x32-10: the block at `counter` under the key words. */
static inline struct ph__rng_block ph__philox4x32(struct ph__rng_block counter, uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < PH_PHILOX_ROUNDS; round++) {
        uint64_t product0 = (uint64_t)PH_PHILOX_MULTIPLIER_0 * counter.word[0];
        uint64_t product1 = (uint64_t)PH_PHILOX_MULTIPLIER_1 * counter.word[2];
        counter = (struct ph__rng_block){{(uint32_t)(product1 >> 32) ^ counter.word[1] ^ key0,
            (uint32_t)product1, (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key1, (uint32_t)product0}};
        key0 += PH_PHILOX_WEYL_0;
        key1 += PH_PHILOX_WEYL_1;
    }
    return counter;
}

static inline struct ph__rng_block ph__rng_philox_block(
    const struct ph__rng_philox *philox, uint64_t index, uint32_t element_block)
{
    struct ph__rng_block counter = {{(uint32_t)index, (uint32_t)(index >> 32), element_block, philox->step}};
    return ph__philox4x32(counter, philox->key[0], philox->key[1]);
}

/* ---- numbers by position ---- */

/* Returns four words at counter (index, element_block); `index` is a global sample index or row. */
struct ph__rng_block ph__rng_block(const struct ph__rng_key *key, uint64_t index, uint32_t element_block);

/* Returns one word, uniform in [0, 2^32), for element `element` of `index` (block element / 4, lane element %
 * 4). */
uint32_t ph__rng_word(const struct ph__rng_key *key, uint64_t index, uint32_t element);
double ph__rng_uniform(
    const struct ph__rng_key *key, uint64_t index, uint32_t element); /* in (0, 1), from ph__rng_word */

/* Returns a N(0, 1) number by Box-Muller from two words (block element / 2); it depends on ph__rng_word of
 * the same stream. */
double ph__rng_normal(const struct ph__rng_key *key, uint64_t index, uint32_t element);

/* ---- sequences ---- */

/* A sequence of numbers from the same generator, for shuffling and synthetic data; position advances. */
struct ph__rng_sequence {
    struct ph__rng_key key;
    uint64_t position;
};
uint64_t ph__rng_next(struct ph__rng_sequence *sequence); /* 64 bits */
uint64_t ph__rng_below(
    struct ph__rng_sequence *sequence, uint64_t bound);         /* unbiased in [0, bound); bound > 0 */
double ph__rng_next_uniform(struct ph__rng_sequence *sequence); /* (0, 1), 52 bits */
double ph__rng_next_normal(struct ph__rng_sequence *sequence);
void ph__rng_shuffle(struct ph__rng_sequence *sequence, uint32_t *items, size_t count); /* Fisher-Yates */

#endif
