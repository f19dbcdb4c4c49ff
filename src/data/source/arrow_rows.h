/* Rows of Arrow batches: matches the columns of a batch with those of an encoder, and encodes row by row, or
 * a run of rows column by column. A source over a dataset matches each batch, a session the batch that it
 * scores. */
#ifndef PH_DATA_ARROW_ROWS_H
#define PH_DATA_ARROW_ROWS_H

#include "data/encode/row_encoder.h"
#include "data/source/arrow_column.h"
#include "data/source/dataset.h"

/* Columns of the encoder that a batch must have. Others are matched where they are there. */
enum ph__arrow_needs {
    PH_ARROW_NEEDS_ALL,
    PH_ARROW_NEEDS_NO_LABELS, /* nor weights and groups */
    PH_ARROW_FEATURES_ALONE,  /* labels, weights and groups are left out even where they are there */
};

/* Words that a column's ids became in encoded rows, each in the one slot that its key's hash names. */
struct ph__arrow_memo {
    struct ph__arrow_known {
        int64_t key; /* the id, or its index into a dictionary */
        uint32_t word;
        bool is_set;
    } * slots; /* (2^log2_slots) or NULL */
    int log2_slots;
};

/* Source of a column of the encoder. */
struct ph__arrow_cell {
    const struct ph__column *column;
    const struct ph__arrow_column *from;
    struct ph__arrow_memo *memo;          /* used by runs */
    char written[PH_ARROW_WRITTEN_BYTES]; /* text made of the value, for the row in the making */
};

struct ph__arrow_rows { /* zero-initialised is empty */
    const struct ph__dataset_batch *batch;
    struct ph__arrow_cell *cells; /* (num_cells) */
    size_t num_cells;
    struct ph__arrow_memo *memos; /* (num_memos), by the encoder's column */
    size_t num_memos;
};

/* Matches a batch, in the place of the one before; both arguments are borrowed while rows are encoded.
 * PH_ERROR_DATA naming the column, without a place. Free the match also on failure. */
ph_status ph__arrow_rows_match(struct ph__arrow_rows *rows, const struct ph_encoder *encoder,
    const struct ph__dataset_batch *batch, enum ph__arrow_needs needs);
void ph__arrow_rows_fini(struct ph__arrow_rows *rows);

/* Gives the cells of row `at` of the batch to a row that has begun. PH_ERROR_DATA without a place. */
ph_status ph__arrow_rows_encode(struct ph__arrow_rows *rows, struct ph__row_encoder *row, uint64_t at);
/* Gives one cell of row `at` to a row that has begun; neither row nor cell is null as a whole. */
ph_status ph__arrow_cell_encode(struct ph__arrow_cell *cell, struct ph__row_encoder *row, int64_t at);

/* ---- runs (arrow_run.c) ---- */

#define PH_ARROW_RUN_ROWS 256 /* few enough for the rows in the making to stay in the first cache */

/* Appends the rows [first, first + num_rows) of the batch, PH_ARROW_RUN_ROWS at most, to what ph__row_begin
 * would append to. Gives the words that ph__arrow_rows_encode gives row by row, but takes each column at
 * once. Appends nothing when a row is bad: which one and why, only the way row by row tells. With a fit it
 * learns from the rows, and appends nothing; from a run with a bad row it learns nothing. */
ph_status ph__arrow_rows_encode_run(struct ph__arrow_rows *rows, struct ph__row_encoder *row,
    struct ph__rows *encoded, uint64_t first, size_t num_rows);
/* Returns true where rows may come in runs: they have no lists, and none is null. To learn from them, ids
 * must have a vocabulary of their own, and no statistics or quantiles may be wanted. */
bool ph__arrow_rows_may_run(const struct ph__arrow_rows *rows, const struct ph__row_encoder *row);
void ph__arrow_memo_forget(struct ph__arrow_memo *memo);

#endif
