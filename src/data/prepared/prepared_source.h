/* The order in which the blocks of a prepared data set are given out: as they lie, or shuffled.
 *
 * A shuffled pass permutes the blocks by (seed, epoch); its reader decodes as many as fit in its window and permutes
 * their rows. A set that fits in the window as a whole is not permuted by blocks: its order is that of the text that
 * it was prepared from, and so is the order of the permuted rows. A view gives out a run of the order (lanes.h). One
 * thread at a time. */
#ifndef PH_DATA_PREPARED_SOURCE_H
#define PH_DATA_PREPARED_SOURCE_H

#include "data/prepared/prepared_set.h"
#include "data/source/negatives.h"

struct ph__prepared_source {
    struct ph__prepared_set *set; /* owned, unless this is a view; so are order and kept */
    struct ph__block_decoder decoder;
    uint32_t *order; /* (num_blocks) of the blocks */
    uint32_t *kept;  /* (num_blocks) rows of each that take part; NULL: not counted, for all do */
    bool is_view;
    size_t next, end;     /* into order: the next window's first block, and behind the last one */
    size_t window_bytes;  /* of decoded rows at most, when there are two blocks at least */
    uint64_t num_decoded; /* blocks so far: what the pass has cost */
};

/* seed and epoch decide the order when window_bytes is not 0; 0 is the order in which the rows lie, one block at a
 * time. To be closed also on failure. */
ph_status ph__prepared_source_open(struct ph__prepared_source *source, const struct ph_encoder *encoder,
    const char *folder, size_t window_bytes, uint64_t seed, uint64_t epoch);
/* The blocks at places first to end - 1 of the order of another source, which must stay open and as it is. */
void ph__prepared_source_view(struct ph__prepared_source *view, const struct ph__prepared_source *of,
    size_t first, size_t end, size_t window_bytes);
void ph__prepared_source_close(struct ph__prepared_source *source);

/* Counts in each block the rows that take part, by their labels alone, unless all do. */
ph_status ph__prepared_source_count(
    struct ph__prepared_source *source, const struct ph__negatives *negatives);
/* Rows that take part in the blocks at places first to end - 1. */
uint64_t ph__prepared_source_num_kept(const struct ph__prepared_source *source, size_t first, size_t end);

/* Moves `next` behind the blocks of the next window: as many as fit, one at least, none at the end. Nothing is read. */
void ph__prepared_source_choose(struct ph__prepared_source *source);

/* Appends the rows of the block at that place of the order; the first of them is the set's row *first_row_out. */
ph_status ph__prepared_source_read(
    struct ph__prepared_source *source, size_t place, struct ph__rows *rows, uint64_t *first_row_out);

/* Goes to a block of the order: where `next` once was. PH_ERROR_DATA when there are fewer. */
ph_status ph__prepared_source_seek(struct ph__prepared_source *source, uint64_t next);

#endif
