/* Encodes the cells of one row (encoder.h). Cells of text, of arrays and of a serving program all go through
 * this code.
 *
 * Between ph__row_begin and ph__row_commit each column gets at most one cell, in any order; a list may get
 * its ids in pieces. Beginning a row without a commit drops the row before it. A wrong cell gives
 * PH_ERROR_DATA naming field and cell; the caller prepends the place. One thread at a time per row
 * encoder. */
#ifndef PH_DATA_ROW_ENCODER_H
#define PH_DATA_ROW_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/encode/encoder.h"
#include "data/encode/rows.h"

/* Place of a piece of a list, until the lists are put in order. */
struct ph__list_piece {
    uint32_t slot;  /* sparse */
    uint32_t count; /* ids */
    size_t start;   /* index into the row's words: ids, or ids each followed by its weight */
};

struct ph__fit;

struct ph__row_encoder {
    const struct ph_encoder *encoder;
    struct ph__fit *fit; /* gathers ids and values instead of looking ids up; NULL: none */
    struct ph__rows *rows;
    size_t start;     /* index of the row in rows->words */
    size_t num_words; /* words of the row so far */
    struct ph__lookups lookups;
    struct ph__list_piece *pieces;
    size_t num_pieces, pieces_capacity;
    uint32_t *scratch; /* holds the lists while they are put in order */
    size_t scratch_capacity;
    size_t *places; /* (num_sparse) places of each list's next id in the scratch */
    size_t places_capacity;
    const char *split; /* rows of other splits get no labels; NULL: all rows are of the split. Borrowed */
    bool is_outside;   /* the row in the making is of another split */
};

/* Returns the words of the row in the making; they move when the row grows. */
static inline uint32_t *ph__row_words(const struct ph__row_encoder *row)
{
    return row->rows->words + row->start;
}

/* Sets up a row encoder that borrows encoder and fit; takes no memory before the first row. */
void ph__row_encoder_init(struct ph__row_encoder *row, const struct ph_encoder *encoder, struct ph__fit *fit);
void ph__row_encoder_fini(struct ph__row_encoder *row);

/* Begins a row after those in `rows`: labels unknown, weights 1, everything else blank. */
ph_status ph__row_begin(struct ph__row_encoder *row, struct ph__rows *rows);
ph_status ph__row_commit(struct ph__row_encoder *row);

/* Begins num_rows rows of an encoder without lists, of which the first is in the making.
 * ph__row_go takes another one into the making, by its number; all are committed at once. */
ph_status ph__row_begin_run(struct ph__row_encoder *row, struct ph__rows *rows, size_t num_rows);
static inline void ph__row_go(struct ph__row_encoder *row, size_t first_start, size_t number)
{
    row->start = first_start + number * row->encoder->num_fixed_words;
}
void ph__row_commit_run(struct ph__row_encoder *row, size_t num_rows);

/* Looks up the ids of the row that wait for the commit. PH_ERROR_DATA for one that no vocabulary can hold. */
ph_status ph__row_look_up(struct ph__row_encoder *row);

/* Makes room for one more id of a list. *target_out is the word of the row that the id's table row goes to,
 * SIZE_MAX when the list is full. */
ph_status ph__row_add_item(
    struct ph__row_encoder *row, const struct ph__column *column, float weight, size_t *target_out);

/* ---- cells (row_cells.c) ---- */

/* Adds an id to a list, with its weight where the list is weighted (else ignored). */
ph_status ph__row_item(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, float weight);
ph_status ph__row_integer_item(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, float weight);

/* Adds an id to a weighted list, as "id:weight"; without a colon the weight is 1. */
ph_status ph__row_weighted_item(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length);

/* Encodes a cell given as text: exactly `length` bytes at `cell`, which must stay until the commit. */
ph_status ph__row_text(
    struct ph__row_encoder *row, const struct ph__column *column, const char *cell, size_t length);

/* Encodes a dense value, a label, a weight or a number for a bucket; NaN is a blank. An id must be a whole
 * number. */
ph_status ph__row_real(struct ph__row_encoder *row, const struct ph__column *column, double number);

/* Encode a number as ph__row_text encodes its decimal text; a list gets one more id. */
ph_status ph__row_integer(struct ph__row_encoder *row, const struct ph__column *column, int64_t number);
ph_status ph__row_unsigned(struct ph__row_encoder *row, const struct ph__column *column, uint64_t number);

/* Encodes a cell of one of the public kinds. */
ph_status ph__row_cell(
    struct ph__row_encoder *row, const struct ph__column *column, const struct ph_cell *cell);

#endif
