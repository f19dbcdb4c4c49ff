/* Encodes a run of rows column by column (arrow_rows.h).
 *
 * Most columns are numbers that become floats, or ids: integers, dictionaries or texts. These have loops of
 * their own. An id's word follows from the id alone, so that integers and dictionaries need the vocabulary
 * for ids that a memo does not hold. All other cells, blank ones too, go the way of single rows. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "data/source/arrow_rows.h"

#define MIN_LOG2_SLOTS 8
#define MAX_LOG2_SLOTS 16 /* a megabyte */

struct run {
    struct ph__row_encoder *row;
    size_t start;  /* first word of the run */
    int64_t first; /* row of the batch */
    size_t num_rows;
};

/* Returns word `place` of row i of the run. */
static uint32_t *word_at(const struct run *run, size_t place, size_t i)
{
    return run->row->rows->words + run->start + i * run->row->encoder->num_fixed_words + place;
}

static bool is_null(const struct ph__arrow_column *from, int64_t at)
{
    return from->validity != NULL && ph__arrow_is_null(from, at);
}

static ph_status encode_one(const struct run *run, struct ph__arrow_cell *cell, size_t i)
{
    ph__row_go(run->row, run->start, i);
    PH_TRY(ph__arrow_cell_encode(cell, run->row, run->first + (int64_t)i));
    return ph__row_look_up(run->row);
}

static ph_status encode_cells(const struct run *run, struct ph__arrow_cell *cell)
{
    for (size_t i = 0; i < run->num_rows; i++)
        PH_TRY(encode_one(run, cell, i));
    return PH_OK;
}

/* ---- floats ---- */

static ph_status encode_floats(const struct run *run, struct ph__arrow_cell *cell)
{
    const struct ph__arrow_column *from = cell->from;
    const size_t place = run->row->encoder->dense_word + cell->column->slot;
    const bool is_double = from->code == 'g';
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        const unsigned char *value = from->values + (size_t)(from->offset + at) * (is_double ? 8 : 4);
        double number;
        float single;
        if (is_double)
            memcpy(&number, value, sizeof number);
        else
            memcpy(&single, value, sizeof single);
        single = is_double ? (float)number : single;
        if (isfinite(single) && !is_null(from, at))
            *word_at(run, place, i) = ph__word_from_float(single);
        else
            PH_TRY(encode_one(run, cell, i));
    }
    return PH_OK;
}

/* ---- integers ---- */

static int64_t integer_at(const struct ph__arrow_column *from, int64_t at)
{
    const size_t place = (size_t)(from->offset + at);
    int64_t wide;
    int32_t narrow;
    switch (from->code) {
    case 'l':
        memcpy(&wide, from->values + place * sizeof wide, sizeof wide);
        return wide;
    case 'i':
        memcpy(&narrow, from->values + place * sizeof narrow, sizeof narrow);
        return narrow;
    default:
        return ph__arrow_integer(from, at);
    }
}

static ph_status encode_labels(const struct run *run, struct ph__arrow_cell *cell)
{
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        const int64_t label = is_null(cell->from, at) ? -1 : integer_at(cell->from, at);
        if (label == 0 || label == 1)
            *word_at(run, cell->column->slot, i) = ph__word_from_float((float)label);
        else
            PH_TRY(encode_one(run, cell, i));
    }
    return PH_OK;
}

/* ---- ids by memo ---- */

void ph__arrow_memo_forget(struct ph__arrow_memo *memo)
{
    free(memo->slots);
    *memo = (struct ph__arrow_memo){0};
}

/* Gives the memo about two slots for each row of the table. */
static ph_status make_memo(struct ph__arrow_memo *memo, const struct ph__column *column)
{
    int log2_slots = MIN_LOG2_SLOTS;
    while (log2_slots < MAX_LOG2_SLOTS && (uint64_t)1 << log2_slots < 2 * column->num_rows)
        log2_slots++;
    memo->log2_slots = log2_slots;
    memo->slots = calloc((size_t)1 << log2_slots, sizeof *memo->slots);
    return memo->slots != NULL ? PH_OK : ph__out_of_memory("ids of '%s'", column->name);
}

static ph_status encode_known_ids(const struct run *run, struct ph__arrow_cell *cell)
{
    const struct ph__arrow_column *from = cell->from;
    const size_t place = run->row->encoder->sparse_word + cell->column->slot;
    if (cell->memo->slots == NULL)
        PH_TRY(make_memo(cell->memo, cell->column));
    struct ph__arrow_known *slots = cell->memo->slots;
    const int shift = 64 - cell->memo->log2_slots;
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        if (is_null(from, at)) {
            PH_TRY(encode_one(run, cell, i));
            continue;
        }
        const int64_t key = integer_at(from, at);
        struct ph__arrow_known *slot = &slots[(uint64_t)key * 0x9e3779b97f4a7c15u >> shift];
        if (!slot->is_set || slot->key != key) {
            PH_TRY(encode_one(run, cell, i));
            *slot = (struct ph__arrow_known){key, *word_at(run, place, i), true};
        }
        *word_at(run, place, i) = slot->word;
    }
    return PH_OK;
}

/* ---- ids by text ---- */

/* Hashes all texts of the run before it looks the first one up, so that slots are there when they are read.
 */
static ph_status encode_texts(const struct run *run, struct ph__arrow_cell *cell)
{
    const struct ph_encoder *encoder = run->row->encoder;
    const struct ph__vocabulary *vocabulary = &encoder->columns[cell->column->owner].vocabulary;
    const size_t place = encoder->sparse_word + cell->column->slot;
    struct {
        const char *text;
        size_t length;
        uint64_t hash;
    } ids[PH_ARROW_RUN_ROWS];
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        ids[i].length = 0;
        if (!is_null(cell->from, at))
            PH_TRY(ph__arrow_text(cell->from, at, &ids[i].text, &ids[i].length));
        if (ids[i].length == 0)
            continue;
        ids[i].hash = ph__vocabulary_hash(ids[i].text, ids[i].length);
        __builtin_prefetch(&vocabulary->slots[ids[i].hash & (vocabulary->num_slots - 1)]);
    }
    for (size_t i = 0; i < run->num_rows; i++) {
        if (ids[i].length == 0)
            continue; /* a blank, as the row has begun */
        const uint32_t found = ph__vocabulary_row(vocabulary, ids[i].text, ids[i].length, ids[i].hash);
        if (found == 0)
            PH_TRY(ph__encoder_check_word(cell->column, ids[i].text, ids[i].length));
        *word_at(run, place, i) = found;
    }
    return PH_OK;
}

/* ---- runs ---- */

static ph_status encode_column(const struct run *run, struct ph__arrow_cell *cell)
{
    const struct ph__column *column = cell->column;
    const struct ph__arrow_column *from = cell->from;
    const bool is_float = from->kind == PH_ARROW_REAL && (from->code == 'f' || from->code == 'g');
    const bool is_id = column->kind == PH_FIELD_ID && !column->is_group;
    if (column->kind == PH_FIELD_DENSE && is_float && column->transform == PH_TRANSFORM_NONE &&
        !column->has_indicator)
        return encode_floats(run, cell);
    if (column->kind == PH_FIELD_LABEL && from->kind == PH_ARROW_INTEGER)
        return encode_labels(run, cell);
    if (is_id && (from->kind == PH_ARROW_INTEGER || from->kind == PH_ARROW_DICTIONARY))
        return encode_known_ids(run, cell);
    if (is_id && from->kind == PH_ARROW_TEXT && column->encoding == PH_ENCODING_VOCABULARY &&
        column->component == PH_TIME_WHOLE &&
        run->row->encoder->columns[column->owner].vocabulary.num_slots > 0)
        return encode_texts(run, cell);
    return encode_cells(run, cell);
}

ph_status ph__arrow_rows_encode_run(struct ph__arrow_rows *rows, struct ph__row_encoder *row,
    struct ph__rows *encoded, uint64_t first, size_t num_rows)
{
    PH_TRY(ph__row_begin_run(row, encoded, num_rows));
    const struct run run = {.row = row, .start = row->start, .first = (int64_t)first, .num_rows = num_rows};
    for (size_t i = 0; i < rows->num_cells; i++)
        PH_TRY(encode_column(&run, &rows->cells[i]));
    ph__row_commit_run(row, num_rows);
    return PH_OK;
}
