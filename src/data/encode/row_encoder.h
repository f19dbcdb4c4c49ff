/* From the cells of one row to an encoded row (encoder.h). Whatever the cells come from – text, arrays, a
 * serving program – the same code encodes them.
 *
 * Between ph__row_begin and ph__row_commit each column gets one cell at most, in any order; a list may get
 * its ids in pieces. A row that is begun anew without a commit leaves nothing behind. What is wrong with a
 * cell is PH_ERROR_DATA naming field and cell: whoever knows the place puts it in front. One thread at a time
 * per row encoder. */
#ifndef PH_DATA_ROW_ENCODER_H
#define PH_DATA_ROW_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/encode/encoder.h"
#include "data/encode/rows.h"

/* Where a piece of a list lies, until the lists are put in order. */
struct ph__list_piece {
    uint32_t slot;  /* sparse */
    uint32_t count; /* ids */
    size_t start;   /* into the row's words: ids, or ids each followed by its weight */
};

struct ph__fit;

struct ph__row_encoder {
    const struct ph_encoder *encoder;
    struct ph__fit
        *fit; /* NULL, or gathers what vocabularies and statistics need instead of looking ids up */
    struct ph__rows *rows;
    size_t start;     /* of the row into rows->words */
    size_t num_words; /* so far */
    struct ph__lookups lookups;
    struct ph__list_piece *pieces;
    size_t num_pieces, pieces_capacity;
    uint32_t *scratch; /* the lists, while they are put in order */
    size_t scratch_capacity;
    size_t *places; /* (num_sparse) where a list's next id goes in the scratch */
    size_t places_capacity;
};

/* The words of the row in the making; they move when the row grows. */
static inline uint32_t *ph__row_words(const struct ph__row_encoder *row)
{
    return row->rows->words + row->start;
}

/* Both are borrowed. Zero memory is taken before the first row. */
void ph__row_encoder_init(struct ph__row_encoder *row, const struct ph_encoder *encoder, struct ph__fit *fit);
void ph__row_encoder_fini(struct ph__row_encoder *row);

/* Begins a row behind those in `rows`: labels unknown, weights 1, all else blank. */
ph_status ph__row_begin(struct ph__row_encoder *row, struct ph__rows *rows);
ph_status ph__row_commit(struct ph__row_encoder *row);

/* Makes room for one more id of a list, whose row of the table goes to the word *target_out of the row;
 * SIZE_MAX when the list is full. */
ph_status ph__row_add_item(
    struct ph__row_encoder *row, const struct ph__column *column, float weight, size_t *target_out);

/* ---- cells (row_cells.c) ---- */

/* One more id of a list, with its weight where the list is weighted (else ignored). */
ph_status ph__row_item(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, float weight);
ph_status ph__row_integer_item(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, float weight);

/* One more id of a weighted list, as "id:weight"; without a colon the weight is 1. */
ph_status ph__row_weighted_item(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length);

/* A cell as text: exactly `length` bytes at `cell`, which stay until the commit. */
ph_status ph__row_text(
    struct ph__row_encoder *row, const struct ph__column *column, const char *cell, size_t length);

/* A dense value, label, weight or number to be put in a bucket; NaN is a blank. An id must be a whole number.
 */
ph_status ph__row_real(struct ph__row_encoder *row, const struct ph__column *column, double number);

/* As ph__row_text of the number written in decimal. Of a list it is one more id. */
ph_status ph__row_integer(struct ph__row_encoder *row, const struct ph__column *column, int64_t number);
ph_status ph__row_unsigned(struct ph__row_encoder *row, const struct ph__column *column, uint64_t number);

/* A cell of the public kinds. */
ph_status ph__row_cell(
    struct ph__row_encoder *row, const struct ph__column *column, const struct ph_cell *cell);

#endif
