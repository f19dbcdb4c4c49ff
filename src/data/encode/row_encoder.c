/* Rows in the making: begins and ends rows, and puts their lists in order. row_cells.c encodes the cells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "data/encode/fit.h"
#include "data/encode/row_encoder.h"

void ph__row_encoder_init(struct ph__row_encoder *row, const struct ph_encoder *encoder, struct ph__fit *fit)
{
    *row = (struct ph__row_encoder){.encoder = encoder, .fit = fit};
}

void ph__row_encoder_fini(struct ph__row_encoder *row)
{
    free(row->lookups.items);
    free(row->pieces);
    free(row->scratch);
    free(row->places);
    *row = (struct ph__row_encoder){0};
}

/* ---- lists ---- */

static ph_status reserve_words(struct ph__row_encoder *row, size_t num_words)
{
    size_t wanted = row->start + row->num_words + num_words;
    if (wanted <= row->rows->words_capacity)
        return PH_OK;
    return ph__array_reserve(
        (void **)&row->rows->words, &row->rows->words_capacity, wanted, sizeof *row->rows->words);
}

/* Gives the piece that takes the list's next id: the last piece, or a new one. */
static ph_status piece_for(
    struct ph__row_encoder *row, const struct ph__column *column, struct ph__list_piece **piece_out)
{
    if (row->num_pieces > 0 && row->pieces[row->num_pieces - 1].slot == column->slot) {
        *piece_out = &row->pieces[row->num_pieces - 1];
        return PH_OK;
    }
    if (row->num_pieces == row->pieces_capacity)
        PH_TRY(ph__array_reserve(
            (void **)&row->pieces, &row->pieces_capacity, row->num_pieces + 1, sizeof *row->pieces));
    *piece_out = &row->pieces[row->num_pieces++];
    **piece_out = (struct ph__list_piece){.slot = (uint32_t)column->slot, .start = row->num_words};
    return PH_OK;
}

ph_status ph__row_add_item(
    struct ph__row_encoder *row, const struct ph__column *column, float weight, size_t *target_out)
{
    struct ph__list_piece *piece;
    uint32_t *length = &ph__row_words(row)[row->encoder->sparse_word + column->slot];
    *target_out = SIZE_MAX;
    if (*length >= column->max_length)
        return PH_OK;
    ++*length;
    PH_TRY(piece_for(row, column, &piece));
    PH_TRY(reserve_words(row, 2));
    piece->count++;
    *target_out = row->num_words++;
    if (column->is_weighted)
        ph__row_words(row)[row->num_words++] = ph__word_from_float(weight);
    return PH_OK;
}

static bool are_lists_in_order(const struct ph__row_encoder *row)
{
    if (row->encoder->has_id_weights && row->num_pieces > 0)
        return false;
    for (size_t i = 1; i < row->num_pieces; i++)
        if (row->pieces[i - 1].slot >= row->pieces[i].slot)
            return false;
    return true;
}

/* Sets the place of each list in the scratch, by slot: first all its ids, then all its weights. */
static void place_lists(struct ph__row_encoder *row)
{
    const struct ph_encoder *encoder = row->encoder;
    const uint32_t *lengths = ph__row_words(row) + encoder->sparse_word;
    size_t place = 0;
    for (size_t i = 0; i < encoder->num_lists; i++) {
        const size_t slot = encoder->lists[i];
        row->places[slot] = place;
        place += lengths[slot] * (encoder->sparse_columns[slot]->is_weighted ? (size_t)2 : 1);
    }
}

/* Copies a piece to its list's place in the scratch. */
static void place_piece(struct ph__row_encoder *row, const struct ph__list_piece *piece)
{
    const bool is_weighted = row->encoder->sparse_columns[piece->slot]->is_weighted;
    const size_t stride = is_weighted ? 2 : 1;
    const size_t length = ph__row_words(row)[row->encoder->sparse_word + piece->slot];
    const uint32_t *from = ph__row_words(row) + piece->start;
    uint32_t *to = row->scratch + row->places[piece->slot];
    for (size_t i = 0; i < piece->count; i++) {
        to[i] = from[stride * i];
        if (is_weighted)
            to[length + i] = from[stride * i + 1];
    }
    row->places[piece->slot] += piece->count;
}

/* Joins the pieces of each list, which come in the order of the file, and puts the lists in the order of
 * their slots. Does not sort with qsort, which allocates memory. */
static ph_status order_lists(struct ph__row_encoder *row)
{
    if (are_lists_in_order(row))
        return PH_OK;
    const size_t first = row->encoder->num_fixed_words, num_words = row->num_words - first;
    PH_TRY(
        ph__array_reserve((void **)&row->scratch, &row->scratch_capacity, num_words, sizeof *row->scratch));
    PH_TRY(ph__array_reserve(
        (void **)&row->places, &row->places_capacity, row->encoder->num_sparse, sizeof *row->places));
    place_lists(row);
    for (size_t i = 0; i < row->num_pieces; i++)
        place_piece(row, &row->pieces[i]);
    memcpy(ph__row_words(row) + first, row->scratch, num_words * sizeof *row->scratch);
    return PH_OK;
}

/* ---- rows ---- */

/* Writes blanks, and what else rows say without a cell. */
static void clear_rows(const struct ph_encoder *encoder, uint32_t *words, size_t num_rows)
{
    const size_t stride = encoder->num_fixed_words;
    memset(words, 0, num_rows * stride * sizeof *words);
    for (size_t t = 0; t < encoder->num_tasks + encoder->num_teachers; t++)
        for (size_t i = 0; i < num_rows; i++)
            words[i * stride + t] = ph__word_from_float(NAN);
    for (size_t i = 0; encoder->has_weight && i < num_rows; i++)
        words[i * stride + encoder->weight_word] = ph__word_from_float(1);
}

ph_status ph__row_begin_run(struct ph__row_encoder *row, struct ph__rows *rows, size_t num_rows)
{
    const struct ph_encoder *encoder = row->encoder;
    PH_TRY(ph__rows_reserve(rows, num_rows, encoder->num_fixed_words, &row->start));
    row->rows = rows;
    row->num_words = encoder->num_fixed_words;
    row->num_pieces = 0;
    row->lookups.count = 0;
    row->is_outside = false;
    clear_rows(encoder, ph__row_words(row), num_rows);
    return PH_OK;
}

ph_status ph__row_begin(struct ph__row_encoder *row, struct ph__rows *rows)
{
    if (row->fit != NULL)
        ph__fit_drop_row(row->fit);
    return ph__row_begin_run(row, rows, 1);
}

ph_status ph__row_look_up(struct ph__row_encoder *row)
{
    for (size_t i = 0; i < row->lookups.count; i++) {
        const struct ph__lookup *lookup = &row->lookups.items[i];
        const struct ph__column *column = &row->encoder->columns[lookup->column];
        const char *word = ph__lookup_word(lookup);
        uint32_t found = ph__vocabulary_row(&column->vocabulary, word, lookup->length, lookup->hash);
        if (found == 0)
            PH_TRY(ph__encoder_check_word(column, word, lookup->length));
        ph__row_words(row)[lookup->target] = found;
    }
    row->lookups.count = 0;
    return PH_OK;
}

ph_status ph__row_commit(struct ph__row_encoder *row)
{
    if (row->fit != NULL)
        return ph__fit_row(row->fit, &row->lookups);
    PH_TRY(ph__row_look_up(row));
    PH_TRY(order_lists(row));
    for (size_t t = 0; row->is_outside && t < row->encoder->num_tasks; t++)
        ph__row_words(row)[t] = ph__word_from_float(NAN);
    ph__rows_commit(row->rows, 1, row->num_words);
    return PH_OK;
}

void ph__row_commit_run(struct ph__row_encoder *row, size_t num_rows)
{
    ph__rows_commit(row->rows, num_rows, row->num_words);
}
