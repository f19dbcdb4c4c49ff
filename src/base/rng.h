/* Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11).
 *
 * A number is a pure function of (seed, step, logical name, sample, element): never of threads, ranks or the
 * order of calls. `stream` is the hash of the logical name of the operator or parameter. */
#ifndef PH_BASE_RNG_H
#define PH_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct ph_rng_key {
    uint64_t seed;
    uint64_t step;
    uint64_t stream; /* ph__hash_name() of the logical name */
};

struct ph_rng_block {
    uint32_t word[4];
};

uint64_t ph__hash_name(const char *name); /* FNV-1a 64, then mixed */

/* Four words at counter (index, element_block): `index` is a global sample index or row. */
struct ph_rng_block ph__rng_block(const struct ph_rng_key *key, uint64_t index, uint32_t element_block);

/* One word, uniform in [0, 2^32), for element `element` of `index` (block element / 4, lane element % 4). */
uint32_t ph__rng_word(const struct ph_rng_key *key, uint64_t index, uint32_t element);
double ph__rng_uniform(const struct ph_rng_key *key, uint64_t index, uint32_t element); /* (0, 1) */
double ph__rng_normal(
    const struct ph_rng_key *key, uint64_t index, uint32_t element); /* N(0, 1), Box-Muller */

/* Sequential use on top of the same generator, for shuffling and synthetic data: position advances. */
struct ph_rng_sequence {
    struct ph_rng_key key;
    uint64_t position;
};
uint64_t ph__rng_next(struct ph_rng_sequence *sequence);                  /* 64 bits */
uint64_t ph__rng_below(struct ph_rng_sequence *sequence, uint64_t bound); /* unbiased in [0, bound) */
double ph__rng_next_uniform(struct ph_rng_sequence *sequence);            /* (0, 1), 53 bits */
double ph__rng_next_normal(struct ph_rng_sequence *sequence);
void ph__rng_shuffle(struct ph_rng_sequence *sequence, uint32_t *items, size_t count); /* Fisher-Yates */

#endif
