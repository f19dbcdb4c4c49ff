/* The order in which the blocks of a prepared data set are given out: as they lie, or shuffled.
 *
 * A shuffled pass permutes the blocks by (seed, epoch); its reader decodes as many as fit in its window and permutes
 * their rows. A set that fits in the window as a whole is not permuted by blocks: its order is that of the text that
 * it was prepared from, and so is the order of the permuted rows. One thread at a time. */
#ifndef PH_DATA_PREPARED_SOURCE_H
#define PH_DATA_PREPARED_SOURCE_H

#include "data/prepared_set.h"

struct ph__prepared_source {
    struct ph__prepared_set *set; /* owned */
    struct ph__block_decoder decoder;
    uint32_t *order;     /* (num_blocks) of the blocks */
    size_t next;         /* into order */
    size_t window_bytes; /* of decoded rows at most, when there are two blocks at least */
};

/* seed and epoch decide the order when window_bytes is not 0; 0 is the order in which the rows lie, one block at a
 * time. To be closed also on failure. */
ph_status ph__prepared_source_open(struct ph__prepared_source *source, const struct ph_encoder *encoder,
    const char *folder, size_t window_bytes, uint64_t seed, uint64_t epoch);
void ph__prepared_source_close(struct ph__prepared_source *source);

/* Whether another block belongs to the window whose rows are `rows` so far. */
bool ph__prepared_source_fits(const struct ph__prepared_source *source, const struct ph__rows *rows);

/* Appends the next block's rows; the first of them is the set's row *first_row_out. */
ph_status ph__prepared_source_next(
    struct ph__prepared_source *source, struct ph__rows *rows, uint64_t *first_row_out);

/* Goes to a block of the order: where `next` once was. PH_ERROR_DATA when there are fewer. */
ph_status ph__prepared_source_seek(struct ph__prepared_source *source, uint64_t next);

#endif
