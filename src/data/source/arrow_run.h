/* The inside of runs, which arrow_run.c encodes and arrow_learn.c learns from. */
#ifndef PH_DATA_ARROW_RUN_H
#define PH_DATA_ARROW_RUN_H

#include <string.h>

#include "data/source/arrow_rows.h"

struct ph__run {
    struct ph__row_encoder *row;
    size_t start;  /* first word of the run */
    int64_t first; /* row of the batch */
    size_t num_rows;
};

/* ---- cells ---- */

static inline bool ph__run_is_null(const struct ph__arrow_column *from, int64_t at)
{
    return from->validity != NULL && ph__arrow_is_null(from, at);
}

static inline bool ph__run_has_keys(const struct ph__arrow_cell *cell)
{
    return cell->from->kind == PH_ARROW_INTEGER || cell->from->kind == PH_ARROW_DICTIONARY;
}

static inline bool ph__run_has_words(const struct ph__arrow_cell *cell)
{
    return cell->from->kind == PH_ARROW_TEXT && cell->column->encoding == PH_ENCODING_VOCABULARY &&
           cell->column->component == PH_TIME_WHOLE;
}

static inline int64_t ph__run_integer(const struct ph__arrow_column *from, int64_t at)
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

/* Gives a cell to row i; its ids wait to be looked up or counted. */
ph_status ph__run_give_cell(const struct ph__run *run, struct ph__arrow_cell *cell, size_t i);
ph_status ph__run_encode_column(const struct ph__run *run, struct ph__arrow_cell *cell);

/* ---- memos ---- */

/* Gives the cell's memo slots, unless it has some. */
ph_status ph__run_make_memo(const struct ph__run *run, struct ph__arrow_cell *cell);

/* Returns the key's slot, which may hold another key. */
static inline struct ph__arrow_known *ph__run_slot(const struct ph__arrow_memo *memo, int64_t key)
{
    return &memo->slots[(uint64_t)key * 0x9e3779b97f4a7c15u >> (64 - memo->log2_slots)];
}

static inline bool ph__run_knows(const struct ph__arrow_known *slot, int64_t key)
{
    return slot->is_set && slot->key == key;
}

/* ---- texts ---- */

struct ph__run_text {
    const char *text;
    size_t length; /* 0: a blank */
    uint64_t hash;
};

/* Reads the texts of the run with their hashes, and prefetches their slots. PH_ERROR_DATA. */
ph_status ph__run_read_texts(const struct ph__run *run, const struct ph__arrow_cell *cell,
    const struct ph__vocabulary *vocabulary, struct ph__run_text texts[PH_ARROW_RUN_ROWS]);

/* ---- learning (arrow_learn.c) ---- */

/* Returns true when runs teach what single rows teach. */
bool ph__run_may_learn(const struct ph__arrow_rows *rows, const struct ph_encoder *encoder);
ph_status ph__run_learn(struct ph__arrow_rows *rows, const struct ph__run *run);

#endif
