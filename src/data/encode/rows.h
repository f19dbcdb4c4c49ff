/* Encoded rows one after the other, written by sources and read by batches. encoder.h defines their
 * layout. */
#ifndef PH_DATA_ROWS_H
#define PH_DATA_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

/* Rows that own their memory; zero-initialised is empty. Setting num_rows back keeps the memory. */
struct ph__rows {
    uint32_t *words;
    size_t words_capacity;
    size_t *starts; /* (num_rows + 1) into words once there is a row */
    size_t starts_capacity;
    size_t num_rows;
};

/* Makes room for num_rows more rows of up to num_words words each; *start_out is their first word. */
ph_status ph__rows_reserve(struct ph__rows *rows, size_t num_rows, size_t num_words, size_t *start_out);
/* Makes reserved rows, of `num_words` words each, part of the rows. */
void ph__rows_commit(struct ph__rows *rows, size_t num_rows, size_t num_words);

/* Appends a copy of row `index` of `from`. */
ph_status ph__rows_append(struct ph__rows *rows, const struct ph__rows *from, size_t index);
size_t ph__rows_num_words(const struct ph__rows *rows);
void ph__rows_fini(struct ph__rows *rows);

/* Returns the bytes that num_rows rows with num_words words in all take of a window: words, starts and places
 * in an order. */
static inline uint64_t ph__rows_bytes(uint64_t num_rows, uint64_t num_words)
{
    return num_words * sizeof(uint32_t) + num_rows * (sizeof(uint64_t) + sizeof(uint32_t));
}

static inline uint32_t ph__word_from_float(float number)
{
    union {
        float number;
        uint32_t word;
    } bits = {.number = number};
    return bits.word;
}

static inline float ph__word_as_float(uint32_t word)
{
    union {
        uint32_t word;
        float number;
    } bits = {.word = word};
    return bits.number;
}

#endif
