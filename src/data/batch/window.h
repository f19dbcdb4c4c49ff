/* The order in which rows become samples: as in the file, or shuffled within a window.
 *
 * A window is as many encoded rows as fit in shuffle_bytes (one at least), read, permuted by (seed, epoch)
 * and then given out. Rows come from text, in its order, or from prepared data, block by block
 * (prepared_source.h). The order depends on nothing else: not on batch sizes, not on who reads ahead.
 *
 * A lazy window, of prepared data, knows from the blocks' numbers of rows alone which rows it holds, and
 * reads them when one of them is taken: whoever skips all of them reads none. */
#ifndef PH_DATA_WINDOW_H
#define PH_DATA_WINDOW_H

#include "base/rng.h"
#include "data/prepared/prepared_source.h"
#include "data/source/source.h"

struct ph__window {
    const struct ph_encoder *encoder;
    char *path;
    struct ph__source source;            /* of text */
    struct ph__prepared_source prepared; /* in its place */
    bool is_prepared;
    bool is_lazy; /* and if it is shuffled, each window is permuted by a key of its own */
    bool is_shuffled;
    bool can_skip;
    size_t max_bytes;
    struct ph__negatives negatives;
    struct ph__rng_sequence random;
    struct ph__rows rows;
    uint32_t *order;                    /* (num_ordered) of the rows that take part */
    size_t num_ordered, order_capacity; /* of a lazy window the rows that will be in the order */
    bool is_read;                       /* the rows are there, and their order */
    size_t next;                        /* into order */
    bool is_at_end;
    struct ph__source_position
        start;              /* of the window's first row; of prepared data: file is the block's place */
    uint64_t random_start;  /* position of `random` before its permutation */
    const uint32_t **taken; /* rows given out last */
    size_t taken_capacity;
    struct ph__rows carried; /* those of them that lay in a former window */
};

/* Only seed, epoch, world_size and the options of order, labels, bad and negative rows are read. With a
 * dataset (else NULL) its rows are taken, and the path is its name in errors; a fingerprint of the path's
 * files (else NULL) is carried on. To be closed also on failure. */
ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__fingerprint *fingerprint,
    const struct ph_batches_options *options);
/* A lazy window over some blocks, whose source becomes the window's; the start is not looked at. */
ph_status ph__window_open_blocks(struct ph__window *window, const struct ph_encoder *encoder,
    const char *path, const struct ph__prepared_source *blocks, const struct ph_batches_options *options);
void ph__window_close(struct ph__window *window);

/* The next `wanted` rows; fewer only at the end. Borrowed until rows are taken again. */
ph_status ph__window_take(
    struct ph__window *window, size_t wanted, const uint32_t *const **rows_out, size_t *num_rows_out);

/* Goes over so many rows, fewer only at the end; where can_skip is true, of the windows that are opened for
 * one of several ranks: rows in the order of the data, of which it is known without encoding them that they
 * take part. */
ph_status ph__window_skip(struct ph__window *window, uint64_t count, uint64_t *num_skipped_out);

/* All words of a position but the last, which is the caller's. */
void ph__window_tell(const struct ph__window *window, struct ph_position *position_out);
/* Goes back to where the window once stood; where can_skip is true. */
ph_status ph__window_return(struct ph__window *window, const struct ph_position *position);

#endif
