/* Encodes a run of rows column by column (arrow_rows.h).
 *
 * Most columns are numbers that become floats, or ids: integers, dictionaries or texts. These have loops of
 * their own. An id's word follows from the id alone, so that integers and dictionaries need the vocabulary
 * for ids that a memo does not hold. All other cells, blank ones too, go the way of single rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "data/source/arrow_run.h"

#define MIN_LOG2_SLOTS 8
#define MAX_LOG2_SLOTS 16 /* a megabyte */

/* Returns word `place` of the run's first row; a row has `stride_of` words. */
static uint32_t *words_at(const struct ph__run *run, size_t place)
{
    return run->row->rows->words + run->start + place;
}

static size_t stride_of(const struct ph__run *run)
{
    return run->row->encoder->num_fixed_words;
}

ph_status ph__run_give_cell(const struct ph__run *run, struct ph__arrow_cell *cell, size_t i)
{
    ph__row_go(run->row, run->start, i);
    return ph__arrow_cell_encode(cell, run->row, run->first + (int64_t)i);
}

static ph_status encode_one(const struct ph__run *run, struct ph__arrow_cell *cell, size_t i)
{
    PH_TRY(ph__run_give_cell(run, cell, i));
    return ph__row_look_up(run->row);
}

static ph_status encode_cells(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    for (size_t i = 0; i < run->num_rows; i++)
        PH_TRY(encode_one(run, cell, i));
    return PH_OK;
}

/* ---- floats ---- */

static bool is_float(const struct ph__arrow_cell *cell)
{
    return cell->from->kind == PH_ARROW_REAL && (cell->from->code == 'f' || cell->from->code == 'g') &&
           ph__column_is_plain(cell->column);
}

static ph_status encode_floats(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    const struct ph__arrow_column *from = cell->from;
    const bool is_double = from->code == 'g';
    const size_t stride = stride_of(run), first = (size_t)(from->offset + run->first);
    uint32_t *words = words_at(run, run->row->encoder->dense_word + cell->column->slot);
    for (size_t i = 0; i < run->num_rows; i++) {
        double number;
        float single;
        if (is_double)
            memcpy(&number, from->values + (first + i) * sizeof number, sizeof number);
        else
            memcpy(&single, from->values + (first + i) * sizeof single, sizeof single);
        single = is_double ? (float)number : single;
        if (isfinite(single) && !ph__run_is_null(from, run->first + (int64_t)i))
            words[i * stride] = ph__word_from_float(single);
        else
            PH_TRY(encode_one(run, cell, i));
    }
    return PH_OK;
}

/* ---- integers ---- */

static ph_status encode_labels(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    const size_t stride = stride_of(run);
    uint32_t *words = words_at(run, cell->column->slot);
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        const int64_t label = ph__run_is_null(cell->from, at) ? -1 : ph__run_integer(cell->from, at);
        if (label == 0 || label == 1)
            words[i * stride] = ph__word_from_float((float)label);
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

/* Gives the memo about two slots for each row of the table, or the most where the rows are to be learnt. */
ph_status ph__run_make_memo(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    const uint64_t num_rows = run->row->fit != NULL ? UINT32_MAX : cell->column->num_rows;
    struct ph__arrow_memo *memo = cell->memo;
    if (memo->slots != NULL)
        return PH_OK;
    memo->log2_slots = MIN_LOG2_SLOTS;
    while (memo->log2_slots < MAX_LOG2_SLOTS && (uint64_t)1 << memo->log2_slots < 2 * num_rows)
        memo->log2_slots++;
    memo->slots = calloc((size_t)1 << memo->log2_slots, sizeof *memo->slots);
    return memo->slots != NULL ? PH_OK : ph__out_of_memory("ids of '%s'", cell->column->name);
}

static ph_status encode_known_ids(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    const struct ph__arrow_column *from = cell->from;
    const size_t stride = stride_of(run);
    uint32_t *words = words_at(run, run->row->encoder->sparse_word + cell->column->slot);
    PH_TRY(ph__run_make_memo(run, cell));
    const struct ph__arrow_memo memo = *cell->memo;
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        if (ph__run_is_null(from, at)) {
            PH_TRY(encode_one(run, cell, i));
            continue;
        }
        const int64_t key = ph__run_integer(from, at);
        struct ph__arrow_known *slot = ph__run_slot(&memo, key);
        if (!ph__run_knows(slot, key)) {
            PH_TRY(encode_one(run, cell, i));
            *slot = (struct ph__arrow_known){key, words[i * stride], true};
        }
        words[i * stride] = slot->word;
    }
    return PH_OK;
}

/* ---- ids by text ---- */

/* Reads offset `place`, of 64 bits where is_large. */
static int64_t offset_at(const unsigned char *offsets, size_t place, bool is_large)
{
    int64_t wide;
    int32_t narrow;
    if (is_large) {
        memcpy(&wide, offsets + place * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, offsets + place * sizeof narrow, sizeof narrow);
    return narrow;
}

/* Reads a text between offsets if it is there and has at most eight bytes, with bytes of the column behind it
 * to fill eight. Returns false for others. */
static bool read_short_text(
    const struct ph__arrow_column *from, size_t place, bool is_large, int64_t end, struct ph__run_text *text)
{
    const int64_t begins = offset_at(from->values, place, is_large);
    const int64_t length = offset_at(from->values, place + 1, is_large) - begins;
    if (begins < 0 || length < 1 || length > 8 || begins > end - 8 || from->text == NULL)
        return false;
    text->text = (const char *)from->text + begins;
    text->length = (size_t)length;
    const uint64_t word = ph__text_full_word(text->text) & (UINT64_MAX >> (64 - 8 * length));
    text->hash = ph__text_mix(ph__text_hash_start(0) ^ word);
    return true;
}

/* Hashes all texts of the run before the first one is looked up, so that slots are there when they are
 * read. */
ph_status ph__run_read_texts(const struct ph__run *run, const struct ph__arrow_cell *cell,
    const struct ph__vocabulary *vocabulary, struct ph__run_text texts[PH_ARROW_RUN_ROWS])
{
    const struct ph__arrow_column *from = cell->from;
    const bool is_large = from->code == 'U' || from->code == 'Z', is_view = from->code == 'v';
    const size_t first = (size_t)(from->offset + run->first);
    const int64_t end =
        is_view ? 0 : offset_at(from->values, (size_t)(from->offset + from->length), is_large);
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        struct ph__run_text *text = &texts[i];
        text->length = 0;
        if (ph__run_is_null(from, at))
            continue;
        if (is_view || !read_short_text(from, first + i, is_large, end, text)) {
            PH_TRY(ph__arrow_text(from, at, &text->text, &text->length));
            text->hash = ph__vocabulary_hash(text->text, text->length);
        }
        if (vocabulary->num_slots > 0)
            __builtin_prefetch(&vocabulary->slots[text->hash & (vocabulary->num_slots - 1)]);
    }
    return PH_OK;
}

static ph_status encode_texts(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    const struct ph_encoder *encoder = run->row->encoder;
    const struct ph__vocabulary *vocabulary = &encoder->columns[cell->column->owner].vocabulary;
    const size_t stride = stride_of(run);
    uint32_t *words = words_at(run, encoder->sparse_word + cell->column->slot);
    struct ph__run_text texts[PH_ARROW_RUN_ROWS];
    PH_TRY(ph__run_read_texts(run, cell, vocabulary, texts));
    for (size_t i = 0; i < run->num_rows; i++) {
        const struct ph__run_text *text = &texts[i];
        if (text->length == 0)
            continue; /* a blank, as the row has begun */
        const uint32_t found = ph__vocabulary_row(vocabulary, text->text, text->length, text->hash);
        if (found == 0)
            PH_TRY(ph__encoder_check_word(cell->column, text->text, text->length));
        words[i * stride] = found;
    }
    return PH_OK;
}

/* ---- encoding ---- */

ph_status ph__run_encode_column(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    const struct ph__column *column = cell->column;
    const bool is_id = column->kind == PH_FIELD_ID && !column->is_group;
    if (column->class_start > 0)
        return encode_cells(run, cell);
    if (is_float(cell))
        return encode_floats(run, cell);
    if (column->kind == PH_FIELD_LABEL && cell->from->kind == PH_ARROW_INTEGER)
        return encode_labels(run, cell);
    if (is_id && ph__run_has_keys(cell))
        return encode_known_ids(run, cell);
    if (is_id && ph__run_has_words(cell))
        return encode_texts(run, cell);
    return encode_cells(run, cell);
}

/* ---- runs ---- */

bool ph__arrow_rows_may_run(const struct ph__arrow_rows *rows, const struct ph__row_encoder *row)
{
    return row->encoder->num_lists == 0 && rows->batch->validity == NULL &&
           (row->fit == NULL || ph__run_may_learn(rows, row->encoder));
}

ph_status ph__arrow_rows_encode_run(struct ph__arrow_rows *rows, struct ph__row_encoder *row,
    struct ph__rows *encoded, uint64_t first, size_t num_rows)
{
    PH_TRY(ph__row_begin_run(row, encoded, num_rows));
    const struct ph__run run = {
        .row = row, .start = row->start, .first = (int64_t)first, .num_rows = num_rows};
    if (row->fit != NULL)
        return ph__run_learn(rows, &run);
    for (size_t i = 0; i < rows->num_cells; i++)
        PH_TRY(ph__run_encode_column(&run, &rows->cells[i]));
    ph__row_commit_run(row, num_rows);
    return PH_OK;
}
