/* Rows of Arrow batches: matches the columns of a batch with those of an encoder, and encodes row by row. A
 * source over a dataset matches each batch, a session the batch that it scores. */
#ifndef PH_DATA_SOURCE_ARROW_H
#define PH_DATA_SOURCE_ARROW_H

#include "data/encode/row_encoder.h"
#include "data/source/dataset.h"

/* Columns of the encoder that a batch must have. Others are matched where they are there. */
enum ph__arrow_needs {
    PH_ARROW_NEEDS_ALL,
    PH_ARROW_NEEDS_NO_LABELS, /* nor weights and groups */
    PH_ARROW_FEATURES_ALONE,  /* labels, weights and groups are left out even where they are there */
};

struct ph__arrow_cell;

struct ph__arrow_rows { /* zero-initialised is empty */
    const struct ph__dataset_batch *batch;
    struct ph__arrow_cell *cells; /* (num_cells) */
    size_t num_cells;
};

/* Matches a batch, in the place of the one before; both arguments are borrowed while rows are encoded.
 * PH_ERROR_DATA naming the column, without a place. Free the match also on failure. */
ph_status ph__arrow_rows_match(struct ph__arrow_rows *rows, const struct ph_encoder *encoder,
    const struct ph__dataset_batch *batch, enum ph__arrow_needs needs);
void ph__arrow_rows_fini(struct ph__arrow_rows *rows);

/* Gives the cells of row `at` of the batch to a row that has begun. PH_ERROR_DATA without a place. */
ph_status ph__arrow_rows_encode(struct ph__arrow_rows *rows, struct ph__row_encoder *row, uint64_t at);

#endif
