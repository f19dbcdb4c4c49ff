/* The order in which rows become samples: as in the file, or shuffled within a window.
 *
 * A window holds as many encoded rows as fit in shuffle_bytes, at least one. They are read, permuted by
 * (seed, epoch) and then given out. Rows come from text, in its order, or from prepared data, block by block
 * (prepared_source.h). The order depends on nothing else: neither on batch sizes nor on reading ahead.
 *
 * A lazy window, over prepared data, computes from the number of rows in each block which rows it holds, and
 * reads them when the first of them is taken: skipping all of them reads nothing. One thread at a time. */
#ifndef PH_DATA_WINDOW_H
#define PH_DATA_WINDOW_H

#include "base/rng.h"
#include "data/prepared/prepared_source.h"
#include "data/source/source.h"

struct ph__window {
    const struct ph_encoder *encoder;
    char *path;
    struct ph__source source;            /* text, arrays or a dataset */
    struct ph__prepared_source prepared; /* used in place of source when is_prepared */
    bool is_prepared;
    bool is_lazy; /* reads rows when one is taken; a shuffled lazy window has its own permutation key */
    bool is_shuffled;
    bool can_skip;
    size_t max_bytes;
    struct ph__negatives negatives;
    struct ph__rng_sequence random;
    struct ph__rows rows;
    uint32_t *order;                    /* (num_ordered) rows that take part */
    size_t num_ordered, order_capacity; /* of a lazy window: rows that will be in the order */
    bool is_read;                       /* true: rows and order are filled */
    size_t next;                        /* into order */
    bool is_at_end;
    struct ph__source_position start; /* the window's first row; prepared data: file is the block's place */
    uint64_t random_start;            /* position of `random` before its permutation */
    const uint32_t **taken;           /* rows given out last */
    size_t taken_capacity;
    struct ph__rows carried; /* rows of `taken` that lay in a former window */
};

/* Opens a window over the files of the path or, where dataset is not NULL, over the dataset's rows; the path
 * is then the dataset's name in errors. Carries on a fingerprint of the path's files, NULL: none. Reads only
 * seed, epoch, world_size, stop_signal and the options of order, labels, bad and negative rows. Close the
 * window also on failure. */
ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__fingerprint *fingerprint,
    const struct ph_batches_options *options);
/* Opens a lazy window over some blocks and takes over their source; ignores options->start. */
ph_status ph__window_open_blocks(struct ph__window *window, const struct ph_encoder *encoder,
    const char *path, const struct ph__prepared_source *blocks, const struct ph_batches_options *options);
void ph__window_close(struct ph__window *window);

/* Gives the next `wanted` rows, fewer only at the end; borrowed until rows are taken again. */
ph_status ph__window_take(
    struct ph__window *window, size_t wanted, const uint32_t *const **rows_out, size_t *num_rows_out);

/* Skips `count` rows, fewer only at the end. Only where can_skip is true: in a window opened for one of
 * several ranks, over rows in the order of the data that are known to take part without being encoded. */
ph_status ph__window_skip(struct ph__window *window, uint64_t count, uint64_t *num_skipped_out);

/* Writes all words of a position but the last, which the caller writes. */
void ph__window_tell(const struct ph__window *window, struct ph_position *position_out);
/* Goes back to a position that the window had before; only where can_skip is true. */
ph_status ph__window_return(struct ph__window *window, const struct ph_position *position);

#endif
