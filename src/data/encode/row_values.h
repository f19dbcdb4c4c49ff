/* Inside of the row encoder: what a single value becomes, and where it goes in the row in the making. A cell has been cut
 * and its kind is known (row_cells.c); the row has begun (row_encoder.c). */
#ifndef PH_DATA_ROW_VALUES_H
#define PH_DATA_ROW_VALUES_H

#include "data/encode/row_encoder.h"

/* The row's words; they move when the row grows. */
static inline uint32_t *ph__row_words(const struct ph__row_encoder *row)
{
    return row->rows->words + row->start;
}

/* PH_ERROR_DATA: "field 'price': 'n/a' is not a finite number". */
ph_status ph__fail_cell(
    const struct ph__column *column, const char *cell, size_t length, const char *problem);

/* Numbers, which are finite, or NaN for a blank: of a standardised column the mean, else what `missing` says; an unknown
 * label. */
ph_status ph__encode_dense(struct ph__row_encoder *row, const struct ph__column *column, double number);
void ph__encode_label(struct ph__row_encoder *row, const struct ph__column *column, double label);
void ph__encode_weight(struct ph__row_encoder *row, double weight);

/* Ids. `target` is the word of the row that gets the row of the table: at once, or from a vocabulary at the commit, until
 * when the word must stay. A word is not empty; digits are fewer than PH_LOOKUP_DIGITS and copied. A number
 * is encoded as its decimal text. */
ph_status ph__encode_id(struct ph__row_encoder *row, const struct ph__column *column, const char *word,
    size_t length, size_t target);
ph_status ph__encode_digits(struct ph__row_encoder *row, const struct ph__column *column, const char *text,
    size_t length, size_t target);
ph_status ph__encode_number(
    struct ph__row_encoder *row, const struct ph__column *column, int64_t number, size_t target);
ph_status ph__encode_bucket(
    struct ph__row_encoder *row, const struct ph__column *column, double number, size_t target);

/* The only id of its feature, "" for a blank. */
ph_status ph__encode_single(
    struct ph__row_encoder *row, const struct ph__column *column, const char *word, size_t length);
void ph__encode_group(struct ph__row_encoder *row, const char *cell, size_t length);

/* The word for one more id of a list, followed by its weight's; *target_out is SIZE_MAX when the list is full. */
ph_status ph__row_add_item(
    struct ph__row_encoder *row, const struct ph__column *column, float weight, size_t *target_out);

#endif
