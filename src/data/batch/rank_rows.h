/* The rows of one rank in each global batch.
 *
 * Of a global batch of n rows rank r of W has rows n r / W to n (r + 1) / W - 1, rounded down. Which rows the
 * batch holds, and where the pass stands behind it, is the same on all ranks and for every W. Others' rows
 * are
 *   - decoded in the blocks alone that hold some of the rank's own: prepared data in its order, or shuffled
 * in lanes;
 *   - read, but not encoded: text, arrays and datasets in their order, where no row may be left out;
 *   - encoded or decoded: else, for what becomes of a row decides which rows come behind it, or the rank's
 * rows lie all over the window. How large the last batch is shows only at the end of text: a rank has then
 * skipped rows that are its own, and goes back to where the batch began; compressed text is read from its
 * beginning for that. One thread at a time. */
#ifndef PH_DATA_RANK_ROWS_H
#define PH_DATA_RANK_ROWS_H

#include "data/batch/window.h"

/* ---- lanes ---- */

/* A shuffled pass over prepared data in lanes, so that each of many ranks decodes only some of the blocks.
 *
 * The blocks, permuted by (seed, epoch), are dealt to the lanes in turn; each lane is shuffled within a
 * window of its own (window.h), of shuffle_bytes / lanes. A batch of n rows takes from lane l of L as many as
 * there are in [n l / L, n (l + 1) / L), and has them in the order of the lanes: where L is a multiple of the
 * world's size, a rank's part of the batch lies in lanes that are its own. When a lane cannot give its part,
 * what is missing is dealt to the others in the same way. All of that follows from the blocks' numbers of
 * rows: whoever knows how many batches there were knows how many rows each lane has left, and nobody reads a
 * lane that it takes nothing from. Where negatives are left out the labels of all blocks are read first, to
 * count the rows that take part. One thread at a time. */
struct ph__lane {
    struct ph__window window;
    uint64_t num_rows, num_left;
    size_t share; /* of the batch that is being dealt */
};

struct ph__lanes {
    struct ph__prepared_source blocks; /* of all lanes, each lane's one after the other */
    struct ph__lane *lanes;
    size_t num_lanes;
    uint64_t num_left; /* of all lanes */
    const uint32_t **taken;
    size_t taken_capacity;
};

/* options->shuffle_lanes of them, but no more than there are blocks or rows in a batch. Behind num_given
 * rows, of which all batches but the last were full; PH_ERROR_DATA when there are fewer. Folder and options
 * are borrowed during the call. To be closed also on failure. */
ph_status ph__lanes_open(struct ph__lanes *lanes, const struct ph_encoder *encoder, const char *folder,
    const struct ph_batches_options *options, uint64_t num_given);
void ph__lanes_close(struct ph__lanes *lanes);

/* Goes over a batch of num_rows rows, at most num_left, and gives rows first to end - 1 of it: borrowed until
 * the next call. */
ph_status ph__lanes_take(
    struct ph__lanes *lanes, size_t num_rows, size_t first, size_t end, const uint32_t *const **rows_out);

/* ---- a rank's rows ---- */

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

/* Opens a pass. With a dataset (else NULL) its rows are taken, and the path is its name in errors; a
 * fingerprint of the path's files (else NULL) is carried on. Errors are ph_batches_open's. To be closed also
 * on failure. */
ph_status ph__rank_rows_open(struct ph__rank_rows *rows, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__fingerprint *fingerprint,
    const struct ph_batches_options *options);
void ph__rank_rows_close(struct ph__rank_rows *rows);

/* Borrowed until the next call. PH_ERROR_DATA also when the whole pass has no row. */
ph_status ph__rank_rows_next(struct ph__rank_rows *rows, struct ph__rank_batch *batch_out);

void ph__rank_rows_tell(const struct ph__rank_rows *rows, struct ph_position *position_out);

/* Rows left out so far, and the first of them, "": none; of a window's source (source.h). */
uint64_t ph__rank_rows_num_bad(const struct ph__rank_rows *rows);
const char *ph__rank_rows_first_bad(const struct ph__rank_rows *rows);

#endif
