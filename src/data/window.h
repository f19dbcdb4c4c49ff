/* The order in which rows become samples: as in the file, or shuffled within a window.
 *
 * A window is as many encoded rows as fit in shuffle_bytes (one at least), read, permuted by (seed, epoch)
 * and then given out. The order depends on nothing else: not on batch sizes, not on who reads ahead. */
#ifndef PH_DATA_WINDOW_H
#define PH_DATA_WINDOW_H

#include "base/rng.h"
#include "data/source.h"

struct ph__window {
    struct ph__source source;
    bool is_shuffled;
    size_t max_bytes;
    struct ph_rng_key negative_key; /* which negatives are kept */
    double negative_rate;           /* 1: all */
    struct ph_rng_sequence random;
    struct ph__rows rows;
    uint32_t *order; /* (rows.num_rows) */
    size_t order_capacity;
    size_t next; /* into order */
    bool is_at_end;
    struct ph__source_position source_start; /* of the window's first row */
    uint64_t random_start;                   /* position of `random` before its permutation */
};

/* Only seed, epoch and the options of order, labels, bad and negative rows are read. To be closed also on failure. */
ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options);
void ph__window_close(struct ph__window *window);

/* Fills `rows`, emptied before, with the next `wanted` rows; fewer only at the end of the file. */
ph_status ph__window_take(struct ph__window *window, size_t wanted, struct ph__rows *rows);

/* All words of a position but the last, which is the caller's. */
void ph__window_tell(const struct ph__window *window, struct ph_position *position_out);

#endif
