/* The order in which rows become samples: as in the file, or shuffled within a window.
 *
 * A window is as many encoded rows as fit in shuffle_bytes (one at least), read, permuted by (seed, epoch) and then given
 * out. Rows come from text, in its order, or from prepared data, block by block (prepared_source.h). The order depends
 * on nothing else: not on batch sizes, not on who reads ahead. */
#ifndef PH_DATA_WINDOW_H
#define PH_DATA_WINDOW_H

#include "base/rng.h"
#include "data/prepared_source.h"
#include "data/source.h"

struct ph__window {
    const struct ph_encoder *encoder;
    char *path;
    struct ph__source source;            /* of text */
    struct ph__prepared_source prepared; /* in its place */
    bool is_prepared;
    bool is_shuffled;
    size_t max_bytes;
    struct ph_rng_key negative_key; /* which negatives are kept */
    double negative_rate;           /* 1: all */
    struct ph_rng_sequence random;
    struct ph__rows rows;
    uint32_t *order; /* (num_ordered) of the rows that take part */
    size_t num_ordered, order_capacity;
    size_t next; /* into order */
    bool is_at_end;
    struct ph__source_position
        start;              /* of the window's first row; of prepared data: file is the block's place */
    uint64_t random_start;  /* position of `random` before its permutation */
    const uint32_t **taken; /* rows given out last */
    size_t taken_capacity;
    struct ph__rows carried; /* those of them that lay in a former window */
};

/* Only seed, epoch and the options of order, labels, bad and negative rows are read. With a dataset (else NULL) its rows are
 * taken, and the path is its name in errors. To be closed also on failure. */
ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, const struct ph_batches_options *options);
void ph__window_close(struct ph__window *window);

/* The next `wanted` rows; fewer only at the end. Borrowed until the next call. */
ph_status ph__window_take(
    struct ph__window *window, size_t wanted, const uint32_t *const **rows_out, size_t *num_rows_out);

/* All words of a position but the last, which is the caller's. */
void ph__window_tell(const struct ph__window *window, struct ph_position *position_out);

#endif
