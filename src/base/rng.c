/* Random numbers on Philox4x32-10; rng.h gives the layout of keys and counters. */
#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586476925286766559

uint64_t ph__hash_bytes(const void *bytes, size_t size)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return ph__hash_mix(hash);
}

uint64_t ph__hash_name(const char *name)
{
    return ph__hash_bytes(name, strlen(name));
}

struct ph__rng_philox ph__rng_philox(const struct ph__rng_key *key)
{
    uint64_t mixed = ph__hash_mix(ph__hash_mix(ph__hash_mix(key->seed) ^ key->stream) ^ (key->step >> 32));
    return (struct ph__rng_philox){{(uint32_t)mixed, (uint32_t)(mixed >> 32)}, (uint32_t)key->step};
}

struct ph__rng_block ph__rng_block(const struct ph__rng_key *key, uint64_t index, uint32_t element_block)
{
    struct ph__rng_philox philox = ph__rng_philox(key);
    return ph__rng_philox_block(&philox, index, element_block);
}

uint32_t ph__rng_word(const struct ph__rng_key *key, uint64_t index, uint32_t element)
{
    return ph__rng_block(key, index, element / 4).word[element % 4];
}

/* Returns the middle of one of 2^32 equal parts of (0, 1). */
static double uniform_of(uint32_t word)
{
    return ((double)word + 0.5) * 0x1p-32;
}

double ph__rng_uniform(const struct ph__rng_key *key, uint64_t index, uint32_t element)
{
    return uniform_of(ph__rng_word(key, index, element));
}

/* Returns sqrt(-2 ln u) cos(2 pi v). */
static double box_muller(double u, double v)
{
    return sqrt(-2.0 * log(u)) * cos(TWO_PI * v);
}

double ph__rng_normal(const struct ph__rng_key *key, uint64_t index, uint32_t element)
{
    struct ph__rng_block block = ph__rng_block(key, index, element / 2);
    const uint32_t *pair = &block.word[2 * (element % 2)];
    return box_muller(uniform_of(pair[0]), uniform_of(pair[1]));
}

static inline uint64_t next_of(const struct ph__rng_philox *philox, uint64_t position)
{
    struct ph__rng_block block = ph__rng_philox_block(philox, position, 0);
    return (uint64_t)block.word[1] << 32 | block.word[0];
}

uint64_t ph__rng_next(struct ph__rng_sequence *sequence)
{
    struct ph__rng_philox philox = ph__rng_philox(&sequence->key);
    return next_of(&philox, sequence->position++);
}

/* Returns the high half of a 128-bit product. Rejects the few low halves that would favour some results
 * (Lemire: "Fast random integer generation in an interval", 2019). */
static inline uint64_t below_of(const struct ph__rng_philox *philox, uint64_t *position, uint64_t bound)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)next_of(philox, (*position)++) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = (0 - bound) % bound;
        while ((uint64_t)product < threshold)
            product = (wide)next_of(philox, (*position)++) * bound;
    }
    return (uint64_t)(product >> 64);
}

uint64_t ph__rng_below(struct ph__rng_sequence *sequence, uint64_t bound)
{
    assert(bound > 0);
    struct ph__rng_philox philox = ph__rng_philox(&sequence->key);
    return below_of(&philox, &sequence->position, bound);
}

/* Uses 52 bits and a half: one more bit would round the largest number up to 1. */
double ph__rng_next_uniform(struct ph__rng_sequence *sequence)
{
    return ((double)(ph__rng_next(sequence) >> 12) + 0.5) * 0x1p-52;
}

double ph__rng_next_normal(struct ph__rng_sequence *sequence)
{
    double u = ph__rng_next_uniform(sequence);
    double v = ph__rng_next_uniform(sequence);
    return box_muller(u, v);
}

void ph__rng_shuffle(struct ph__rng_sequence *sequence, uint32_t *items, size_t count)
{
    struct ph__rng_philox philox = ph__rng_philox(&sequence->key);
    for (size_t left = count; left > 1; left--) {
        size_t chosen = (size_t)below_of(&philox, &sequence->position, left);
        uint32_t last = items[left - 1];
        items[left - 1] = items[chosen];
        items[chosen] = last;
    }
}
