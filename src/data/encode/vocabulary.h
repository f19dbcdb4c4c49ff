/* The words of one id field, and each word's row in the field's table.
 *
 * A vocabulary counts every id of the training file, then drops the rare ones. Rows are numbered from 1 in
 * the order of first appearance, so that they depend on the file alone. Words that it does not hold share row
 * 0.
 *
 * Open addressing with linear probing over slots of 16 bytes. A slot carries the word's hash and length: for
 * words of at most 8 bytes the hash is injective, so a lookup touches one cache line and never the text. */
#ifndef PH_DATA_VOCABULARY_H
#define PH_DATA_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/encode/text_hash.h"
#include "phloem/status.h"

struct ph__vocabulary_slot {
    uint64_t hash;
    uint32_t row; /* 0: free */
    uint32_t length;
};

struct ph__vocabulary { /* zero-initialised is empty */
    struct ph__vocabulary_slot *slots;
    size_t num_slots; /* a power of two, or 0 */
    size_t num_words; /* word i has row i + 1 */
    char *text;       /* the words one after the other */
    size_t text_size, text_capacity;
    size_t *starts; /* (num_words + 1) into text */
    size_t starts_capacity;
    uint32_t *counts; /* (num_words), while counting */
    size_t counts_capacity;
};

#define PH_LOOKUP_DIGITS 24 /* any 64-bit number as text, with its NUL */

/* A word to look up or to count. */
struct ph__lookup {
    const char *word; /* borrowed from the line being read; NULL: the word is `digits` */
    char digits[PH_LOOKUP_DIGITS];
    size_t length;
    uint64_t hash;
    size_t column; /* index of the column whose vocabulary holds the word */
    size_t target; /* word of the encoded row that gets the table row */
};

struct ph__lookups { /* zero-initialised is empty; free(items) at the end */
    struct ph__lookup *items;
    size_t count, capacity;
};

static inline uint64_t ph__vocabulary_hash(const char *word, size_t length)
{
    return ph__text_hash(word, length, 0);
}

static inline const char *ph__lookup_word(const struct ph__lookup *lookup)
{
    return lookup->word != NULL ? lookup->word : lookup->digits;
}

/* Adds `count` to a word's count, UINT32_MAX at most. *is_new_out (may be NULL) is set when the word is
 * new. */
ph_status ph__vocabulary_count(struct ph__vocabulary *vocabulary, const char *word, size_t length,
    uint32_t count, uint64_t hash, bool *is_new_out);

/* Does so for a word that has a row. */
static inline void ph__vocabulary_count_row(struct ph__vocabulary *vocabulary, uint32_t row, uint32_t count)
{
    uint32_t *total = &vocabulary->counts[row - 1];
    *total = *total > UINT32_MAX - count ? UINT32_MAX : *total + count;
}

/* Ends counting: keeps only words counted at least min_count times. */
ph_status ph__vocabulary_finish(struct ph__vocabulary *vocabulary, uint64_t min_count);

/* Returns the row of a word, 0 when the vocabulary does not hold it. Any number of threads once finished. */
uint32_t ph__vocabulary_row(
    const struct ph__vocabulary *vocabulary, const char *word, size_t length, uint64_t hash);

/* Returns word `index` < num_words, not NUL-terminated, borrowed. */
const char *ph__vocabulary_word(const struct ph__vocabulary *vocabulary, size_t index, size_t *length_out);

void ph__vocabulary_fini(struct ph__vocabulary *vocabulary);

#endif
