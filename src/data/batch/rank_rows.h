/* The rows of one rank in each global batch.
 *
 * Rank r of W has rows n r / W to n (r + 1) / W - 1, rounded down, of a global batch of n rows. The rows of a
 * global batch and the pass's position behind it are the same on all ranks and for every W. A rank treats the
 * other ranks' rows in one of three ways:
 *   - Prepared data in its order, or shuffled in lanes: the rank decodes only blocks that hold some of its
 *     own rows.
 *   - Text, arrays and datasets in their order, where no row may be left out: the rank reads the other rows
 *     without encoding them. Text shows only at its end how large the last batch is. A rank has then skipped
 *     rows of its own, and goes back to where the batch began; compressed text is read again from its
 *     beginning.
 *   - Everything else: the rank encodes or decodes all rows, because the fate of a row decides which rows
 *     follow it, or because the rank's rows lie all over the window.
 *
 * One thread at a time. */
#ifndef PH_DATA_RANK_ROWS_H
#define PH_DATA_RANK_ROWS_H

#include "data/batch/window.h"

/* ---- lanes ---- */

/* A shuffled pass over prepared data in lanes, so that each of many ranks decodes only some of the blocks.
 *
 * The blocks, permuted by (seed, epoch), are dealt to the lanes in turn. Each lane is shuffled within a
 * window of its own (window.h), of shuffle_bytes / lanes. A batch of n rows takes the rows numbered [n l / L,
 * n (l + 1) / L) from lane l of L, in the order of the lanes: where L is a multiple of the world's size, a
 * rank's part of the batch comes from lanes that no other rank reads. When a lane has too few rows left, the
 * missing ones are dealt to the other lanes in the same way. All of that follows from the number of rows in
 * each block: the number of batches given determines how many rows each lane has left, and a rank reads no
 * lane that it takes nothing from. Where negatives are left out the labels of all blocks are read first, to
 * count the rows that take part. One thread at a time. */
struct ph__lane {
    struct ph__window window;
    uint64_t num_rows, num_left;
    size_t share; /* rows of the batch that is being dealt */
};

struct ph__lanes {
    struct ph__prepared_source blocks; /* all lanes' blocks, lane by lane */
    struct ph__lane *lanes;
    size_t num_lanes;
    uint64_t num_left; /* rows of all lanes */
    const uint32_t **taken;
    size_t taken_capacity;
};

/* Opens options->shuffle_lanes lanes, but no more than there are blocks or rows in a batch, and skips
 * num_given rows; the skipped batches were full, except the last. PH_ERROR_DATA when there are fewer rows.
 * Folder and options are borrowed during the call. Close the lanes also on failure. */
ph_status ph__lanes_open(struct ph__lanes *lanes, const struct ph_encoder *encoder, const char *folder,
    const struct ph_batches_options *options, uint64_t num_given);
void ph__lanes_close(struct ph__lanes *lanes);

/* Passes a batch of num_rows rows, at most num_left, and gives its rows first to end - 1, borrowed until the
 * next call. */
ph_status ph__lanes_take(
    struct ph__lanes *lanes, size_t num_rows, size_t first, size_t end, const uint32_t *const **rows_out);

/* ---- a rank's rows ---- */

struct ph__rank_rows {
    struct ph__window window;
    struct ph__lanes lanes; /* used in place of window when has_lanes */
    bool has_lanes;
    size_t rank, world_size, batch_size;
    uint64_t num_given; /* rows of all ranks that were given out */
};

/* A rank's part of a batch; may have no rows. */
struct ph__rank_batch {
    const uint32_t *const *rows; /* (num_rows) */
    size_t num_rows;
    uint64_t first;    /* place of rows[0] in the pass */
    size_t num_global; /* rows of the batch on all ranks; 0: the pass has ended */
};

/* Opens a pass over the files of the path or, where dataset is not NULL, over the dataset's rows; the path is
 * then the dataset's name in errors. Carries on a fingerprint of the path's files, NULL: none. Errors are
 * ph_batches_open's. Close the rows also on failure. */
ph_status ph__rank_rows_open(struct ph__rank_rows *rows, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__fingerprint *fingerprint,
    const struct ph_batches_options *options);
void ph__rank_rows_close(struct ph__rank_rows *rows);

/* Gives the rank's part of the next batch, borrowed until the next call. PH_ERROR_DATA also when the whole
 * pass has no row. */
ph_status ph__rank_rows_next(struct ph__rank_rows *rows, struct ph__rank_batch *batch_out);

/* Returns the bytes of the rows that are held to draw from. */
uint64_t ph__rank_rows_bytes(const struct ph__rank_rows *rows);

void ph__rank_rows_tell(const struct ph__rank_rows *rows, struct ph_position *position_out);

/* Return the number of rows left out so far, and the first of them as text, "": none (source.h). */
uint64_t ph__rank_rows_num_bad(const struct ph__rank_rows *rows);
const char *ph__rank_rows_first_bad(const struct ph__rank_rows *rows);

#endif
