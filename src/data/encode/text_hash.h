/* A seeded 64-bit hash of short texts, for vocabularies, hashed ids and groups.
 *
 * The text is read as 64-bit little-endian words, the last one padded with zeros; h = mix(h ^ word) over
 * them, mix being a bijection with full avalanche (two multiplications between xor-shifts). For texts of at
 * most 8 bytes without a NUL the hash is therefore injective, and the vocabulary relies on that. Saved
 * encoders depend on the values: a change needs a new version of the encoder's file. */
#ifndef PH_DATA_TEXT_HASH_H
#define PH_DATA_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t ph__text_mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

/* Reads eight bytes, the first one lowest; compilers make one load of this form. */
static inline uint64_t ph__text_full_word(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

static inline uint64_t ph__text_word(const char *text, size_t length)
{
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++)
        word |= (uint64_t)(unsigned char)text[i] << (8 * i);
    return word;
}

/* Returns the state that all hashes of one seed start from. */
static inline uint64_t ph__text_hash_start(uint64_t seed)
{
    return ph__text_mix(seed + 0x9e3779b97f4a7c15u);
}

static inline uint64_t ph__text_hash_from(uint64_t start, const char *text, size_t length)
{
    uint64_t hash = start;
    for (; length > 8; text += 8, length -= 8)
        hash = ph__text_mix(hash ^ ph__text_full_word(text));
    return ph__text_mix(hash ^ (length == 8 ? ph__text_full_word(text) : ph__text_word(text, length)));
}

static inline uint64_t ph__text_hash(const char *text, size_t length, uint64_t seed)
{
    return ph__text_hash_from(ph__text_hash_start(seed), text, length);
}

/* Scales a hash to [0, bound): the high word of hash * bound, without a division. */
static inline uint64_t ph__text_hash_below(uint64_t hash, uint64_t bound)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)hash * bound) >> 64);
}

#endif
