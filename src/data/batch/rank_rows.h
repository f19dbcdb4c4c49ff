/* The rows of one rank in each global batch.
 *
 * Of a global batch of n rows rank r of W has rows n r / W to n (r + 1) / W - 1, rounded down. Which rows the batch holds, and
 * where the pass stands behind it, is the same on all ranks and for every W. Others' rows are
 *   - decoded in the blocks alone that hold some of the rank's own: prepared data in its order, or shuffled in lanes;
 *   - read, but not encoded: text, arrays and datasets in their order, where no row may be left out;
 *   - encoded or decoded: else, for what becomes of a row decides which rows come behind it, or the rank's rows lie all over
 *     the window.
 * How large the last batch is shows only at the end of text: a rank has then skipped rows that are its own, and goes back to
 * where the batch began; compressed text is read from its beginning for that. One thread at a time. */
#ifndef PH_DATA_RANK_ROWS_H
#define PH_DATA_RANK_ROWS_H

#include "data/batch/lanes.h"

struct ph__rank_rows {
    struct ph__window window;
    struct ph__lanes lanes; /* in its place */
    bool has_lanes;
    size_t rank, world_size, batch_size;
    uint64_t num_given; /* of all ranks */
};

/* A rank's part of a batch: none of its rows, perhaps. */
struct ph__rank_batch {
    const uint32_t *const *rows; /* (num_rows) */
    size_t num_rows;
    uint64_t first;    /* place of rows[0] in the pass */
    size_t num_global; /* rows of the batch on all ranks; 0: the pass has ended */
};

/* With a dataset (else NULL) its rows are taken, and the path is its name in errors; a record of the path's files (else NULL) is
 * carried on. Errors are ph_batches_open's. To be closed also on failure. */
ph_status ph__rank_rows_open(struct ph__rank_rows *rows, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__read_record *record,
    const struct ph_batches_options *options);
void ph__rank_rows_close(struct ph__rank_rows *rows);

/* Borrowed until the next call. PH_ERROR_DATA also when the whole pass has no row. */
ph_status ph__rank_rows_next(struct ph__rank_rows *rows, struct ph__rank_batch *batch_out);

void ph__rank_rows_tell(const struct ph__rank_rows *rows, struct ph_position *position_out);

/* Rows left out so far, and the first of them, "": none; of a window's source (source.h). */
uint64_t ph__rank_rows_num_bad(const struct ph__rank_rows *rows);
const char *ph__rank_rows_first_bad(const struct ph__rank_rows *rows);

#endif
