/* Encodes a run of rows column by column, or learns from it (arrow_rows.h).
 *
 * Most columns are numbers that become floats, or ids: integers, dictionaries or texts. These have loops of
 * their own. An id's word follows from the id alone, so that integers and dictionaries need the vocabulary
 * for ids that a memo does not hold. All other cells, blank ones too, go the way of single rows.
 *
 * Learning checks the whole run before it counts the first id: of a bad row nothing may be learnt. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "data/encode/fit.h"
#include "data/source/arrow_rows.h"

#define MIN_LOG2_SLOTS 8
#define MAX_LOG2_SLOTS 16 /* a megabyte */

struct run {
    struct ph__row_encoder *row;
    size_t start;  /* first word of the run */
    int64_t first; /* row of the batch */
    size_t num_rows;
};

/* Returns word `place` of the run's first row; a row has `stride_of` words. */
static uint32_t *words_at(const struct run *run, size_t place)
{
    return run->row->rows->words + run->start + place;
}

static size_t stride_of(const struct run *run)
{
    return run->row->encoder->num_fixed_words;
}

static bool is_null(const struct ph__arrow_column *from, int64_t at)
{
    return from->validity != NULL && ph__arrow_is_null(from, at);
}

/* Gives a cell to row i; its ids wait to be looked up or counted. */
static ph_status give_cell(const struct run *run, struct ph__arrow_cell *cell, size_t i)
{
    ph__row_go(run->row, run->start, i);
    return ph__arrow_cell_encode(cell, run->row, run->first + (int64_t)i);
}

static ph_status encode_one(const struct run *run, struct ph__arrow_cell *cell, size_t i)
{
    PH_TRY(give_cell(run, cell, i));
    return ph__row_look_up(run->row);
}

static ph_status encode_cells(const struct run *run, struct ph__arrow_cell *cell)
{
    for (size_t i = 0; i < run->num_rows; i++)
        PH_TRY(encode_one(run, cell, i));
    return PH_OK;
}

/* ---- floats ---- */

static bool is_float(const struct ph__arrow_cell *cell)
{
    return cell->from->kind == PH_ARROW_REAL && (cell->from->code == 'f' || cell->from->code == 'g') &&
           cell->column->transform == PH_TRANSFORM_NONE && !cell->column->has_indicator;
}

static ph_status encode_floats(const struct run *run, struct ph__arrow_cell *cell)
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
        if (isfinite(single) && !is_null(from, run->first + (int64_t)i))
            words[i * stride] = ph__word_from_float(single);
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
    const size_t stride = stride_of(run);
    uint32_t *words = words_at(run, cell->column->slot);
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        const int64_t label = is_null(cell->from, at) ? -1 : integer_at(cell->from, at);
        if (label == 0 || label == 1)
            words[i * stride] = ph__word_from_float((float)label);
        else
            PH_TRY(encode_one(run, cell, i));
    }
    return PH_OK;
}

/* ---- ids by memo ---- */

static bool has_keys(const struct ph__arrow_cell *cell)
{
    return cell->from->kind == PH_ARROW_INTEGER || cell->from->kind == PH_ARROW_DICTIONARY;
}

void ph__arrow_memo_forget(struct ph__arrow_memo *memo)
{
    free(memo->slots);
    *memo = (struct ph__arrow_memo){0};
}

/* Gives the memo about two slots for each row of the table, or the most where the rows are to be learnt. */
static ph_status make_memo(const struct run *run, struct ph__arrow_cell *cell)
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

/* Returns the key's slot, which may hold another key. */
static struct ph__arrow_known *slot_of(const struct ph__arrow_memo *memo, int64_t key)
{
    return &memo->slots[(uint64_t)key * 0x9e3779b97f4a7c15u >> (64 - memo->log2_slots)];
}

static bool knows(const struct ph__arrow_known *slot, int64_t key)
{
    return slot->is_set && slot->key == key;
}

static ph_status encode_known_ids(const struct run *run, struct ph__arrow_cell *cell)
{
    const struct ph__arrow_column *from = cell->from;
    const size_t stride = stride_of(run);
    uint32_t *words = words_at(run, run->row->encoder->sparse_word + cell->column->slot);
    PH_TRY(make_memo(run, cell));
    const struct ph__arrow_memo memo = *cell->memo;
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        if (is_null(from, at)) {
            PH_TRY(encode_one(run, cell, i));
            continue;
        }
        const int64_t key = integer_at(from, at);
        struct ph__arrow_known *slot = slot_of(&memo, key);
        if (!knows(slot, key)) {
            PH_TRY(encode_one(run, cell, i));
            *slot = (struct ph__arrow_known){key, words[i * stride], true};
        }
        words[i * stride] = slot->word;
    }
    return PH_OK;
}

/* ---- ids by text ---- */

struct text {
    const char *text;
    size_t length; /* 0: a blank */
    uint64_t hash;
};

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
    const struct ph__arrow_column *from, size_t place, bool is_large, int64_t end, struct text *text)
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
static ph_status read_texts(const struct run *run, const struct ph__arrow_cell *cell,
    const struct ph__vocabulary *vocabulary, struct text texts[PH_ARROW_RUN_ROWS])
{
    const struct ph__arrow_column *from = cell->from;
    const bool is_large = from->code == 'U' || from->code == 'Z', is_view = from->code == 'v';
    const size_t first = (size_t)(from->offset + run->first);
    const int64_t end =
        is_view ? 0 : offset_at(from->values, (size_t)(from->offset + from->length), is_large);
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        struct text *text = &texts[i];
        text->length = 0;
        if (is_null(from, at))
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

static ph_status encode_texts(const struct run *run, struct ph__arrow_cell *cell)
{
    const struct ph_encoder *encoder = run->row->encoder;
    const struct ph__vocabulary *vocabulary = &encoder->columns[cell->column->owner].vocabulary;
    const size_t stride = stride_of(run);
    uint32_t *words = words_at(run, encoder->sparse_word + cell->column->slot);
    struct text texts[PH_ARROW_RUN_ROWS];
    PH_TRY(read_texts(run, cell, vocabulary, texts));
    for (size_t i = 0; i < run->num_rows; i++) {
        const struct text *text = &texts[i];
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

static bool is_vocabulary_of_texts(const struct ph__arrow_cell *cell)
{
    return cell->from->kind == PH_ARROW_TEXT && cell->column->encoding == PH_ENCODING_VOCABULARY &&
           cell->column->component == PH_TIME_WHOLE;
}

static ph_status encode_column(const struct run *run, struct ph__arrow_cell *cell)
{
    const struct ph__column *column = cell->column;
    const bool is_id = column->kind == PH_FIELD_ID && !column->is_group;
    if (column->kind == PH_FIELD_DENSE && is_float(cell))
        return encode_floats(run, cell);
    if (column->kind == PH_FIELD_LABEL && cell->from->kind == PH_ARROW_INTEGER)
        return encode_labels(run, cell);
    if (is_id && has_keys(cell))
        return encode_known_ids(run, cell);
    if (is_id && is_vocabulary_of_texts(cell))
        return encode_texts(run, cell);
    return encode_cells(run, cell);
}

/* ---- learning ---- */

/* Returns true when ids of the cell are counted in a vocabulary. */
static bool is_counted(const struct ph__arrow_cell *cell)
{
    return cell->column->kind == PH_FIELD_ID && cell->column->encoding == PH_ENCODING_VOCABULARY;
}

/* Returns true when a run of the cell teaches what its rows teach one by one: not where values are
 * gathered. */
static bool may_learn(const struct ph__arrow_cell *cell)
{
    const struct ph__column *column = cell->column;
    if (is_counted(cell))
        return !column->is_group && (has_keys(cell) || is_vocabulary_of_texts(cell));
    return !(column->kind == PH_FIELD_DENSE && ph__column_is_standardised(column)) &&
           !(column->kind == PH_FIELD_ID && column->num_buckets > 0);
}

static struct ph__vocabulary *learnt_vocabulary(const struct run *run, const struct ph__arrow_cell *cell)
{
    return &run->row->fit->columns[cell->column->owner].vocabulary;
}

static ph_status check_texts(
    const struct run *run, const struct ph__arrow_cell *cell, const struct text texts[PH_ARROW_RUN_ROWS])
{
    const struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    for (size_t i = 0; i < run->num_rows; i++)
        if (texts[i].length > 0 &&
            ph__vocabulary_row(vocabulary, texts[i].text, texts[i].length, texts[i].hash) == 0)
            PH_TRY(ph__encoder_check_word(cell->column, texts[i].text, texts[i].length));
    return PH_OK;
}

/* Checks values of a dictionary that have not been counted. */
static ph_status check_keys(const struct run *run, struct ph__arrow_cell *cell)
{
    struct ph__lookups *lookups = &run->row->lookups;
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        const int64_t key = is_null(cell->from, at) ? 0 : integer_at(cell->from, at);
        if (is_null(cell->from, at) || knows(slot_of(cell->memo, key), key))
            continue;
        lookups->count = 0;
        PH_TRY(give_cell(run, cell, i));
        if (lookups->count > 0)
            PH_TRY(ph__encoder_check_word(
                cell->column, ph__lookup_word(&lookups->items[0]), lookups->items[0].length));
    }
    return PH_OK;
}

static ph_status check_column(const struct run *run, struct ph__arrow_cell *cell)
{
    struct text texts[PH_ARROW_RUN_ROWS];
    if (!is_counted(cell))
        return encode_column(run, cell);
    if (cell->from->kind == PH_ARROW_TEXT) {
        PH_TRY(read_texts(run, cell, learnt_vocabulary(run, cell), texts));
        return check_texts(run, cell, texts);
    }
    PH_TRY(make_memo(run, cell));
    return cell->from->kind == PH_ARROW_DICTIONARY ? check_keys(run, cell) : PH_OK;
}

static ph_status count_texts(const struct run *run, struct ph__arrow_cell *cell)
{
    struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    struct text texts[PH_ARROW_RUN_ROWS];
    PH_TRY(read_texts(run, cell, vocabulary, texts));
    for (size_t i = 0; i < run->num_rows; i++)
        if (texts[i].length > 0)
            PH_TRY(ph__vocabulary_count(vocabulary, texts[i].text, texts[i].length, 1, texts[i].hash, NULL));
    return PH_OK;
}

/* Counts an id that the memo does not hold. *row_out: its row, 0 for a blank. */
static ph_status count_new(const struct run *run, struct ph__arrow_cell *cell, size_t i, uint32_t *row_out)
{
    struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    run->row->lookups.count = 0;
    PH_TRY(give_cell(run, cell, i));
    *row_out = 0;
    if (run->row->lookups.count == 0)
        return PH_OK;
    const struct ph__lookup *lookup = &run->row->lookups.items[0];
    const char *word = ph__lookup_word(lookup);
    PH_TRY(ph__vocabulary_count(vocabulary, word, lookup->length, 1, lookup->hash, NULL));
    *row_out = ph__vocabulary_row(vocabulary, word, lookup->length, lookup->hash);
    return PH_OK;
}

static ph_status count_keys(const struct run *run, struct ph__arrow_cell *cell)
{
    struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        if (is_null(cell->from, at))
            continue;
        const int64_t key = integer_at(cell->from, at);
        struct ph__arrow_known *slot = slot_of(cell->memo, key);
        if (knows(slot, key)) {
            if (slot->word > 0)
                ph__vocabulary_count_row(vocabulary, slot->word, 1);
            continue;
        }
        uint32_t row;
        PH_TRY(count_new(run, cell, i, &row));
        *slot = (struct ph__arrow_known){key, row, true};
    }
    return PH_OK;
}

static ph_status learn_run(struct ph__arrow_rows *rows, const struct run *run)
{
    for (size_t i = 0; i < rows->num_cells; i++)
        PH_TRY(check_column(run, &rows->cells[i]));
    for (size_t i = 0; i < rows->num_cells; i++) {
        struct ph__arrow_cell *cell = &rows->cells[i];
        if (is_counted(cell))
            PH_TRY(cell->from->kind == PH_ARROW_TEXT ? count_texts(run, cell) : count_keys(run, cell));
    }
    run->row->fit->num_rows += run->num_rows;
    return PH_OK;
}

/* ---- runs ---- */

/* Returns true when columns share a vocabulary, whose words come in the order of the rows. */
static bool has_shared_words(const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].kind == PH_FIELD_ID && encoder->columns[i].shares != NULL)
            return true;
    return false;
}

bool ph__arrow_rows_may_run(const struct ph__arrow_rows *rows, const struct ph__row_encoder *row)
{
    if (row->encoder->num_lists > 0 || rows->batch->validity != NULL)
        return false;
    if (row->fit == NULL)
        return true;
    for (size_t i = 0; i < rows->num_cells; i++)
        if (!may_learn(&rows->cells[i]))
            return false;
    return !has_shared_words(row->encoder);
}

ph_status ph__arrow_rows_encode_run(struct ph__arrow_rows *rows, struct ph__row_encoder *row,
    struct ph__rows *encoded, uint64_t first, size_t num_rows)
{
    PH_TRY(ph__row_begin_run(row, encoded, num_rows));
    const struct run run = {.row = row, .start = row->start, .first = (int64_t)first, .num_rows = num_rows};
    if (row->fit != NULL)
        return learn_run(rows, &run);
    for (size_t i = 0; i < rows->num_cells; i++)
        PH_TRY(encode_column(&run, &rows->cells[i]));
    ph__row_commit_run(row, num_rows);
    return PH_OK;
}
