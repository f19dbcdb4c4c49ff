/* The order in which rows become samples: as in the file, or shuffled within a window.
 *
 * A window is as many encoded rows as fit in shuffle_bytes (one at least), read, permuted by (seed, epoch)
 * and then given out. The order depends on nothing else: not on batch sizes, not on who reads ahead. */
#ifndef PH_DATA_WINDOW_H
#define PH_DATA_WINDOW_H

#include "base/rng.h"
#include "data/row_reader.h"

struct ph__window {
    struct ph__row_reader reader;
    bool is_shuffled;
    size_t max_bytes;
    struct ph_rng_sequence random;
    struct ph__rows rows;
    uint32_t *order; /* (rows.num_rows) */
    size_t order_capacity;
    size_t next; /* into order */
    bool is_at_end;
};

/* Only seed, epoch and the shuffle's options are read. To be closed also on failure. */
ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options);
void ph__window_close(struct ph__window *window);

/* Fills `rows`, emptied before, with the next `wanted` rows; fewer only at the end of the file. */
ph_status ph__window_take(struct ph__window *window, size_t wanted, struct ph__rows *rows);

#endif
