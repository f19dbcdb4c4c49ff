/* A split of a prepared data set: its blocks, the rows of them that take part, and the order in which they
 * are given out, as they lie or shuffled.
 *
 * A shuffled pass permutes the blocks by (seed, epoch); its reader decodes as many as fit in its window and
 * permutes their rows. A set that fits in the window as a whole keeps the order of its blocks, which is the
 * order of the text that it was prepared from; so its permuted rows have the same order as those of the text.
 * A view gives out a run of the order (rank_rows.h). One thread at a time. */
#ifndef PH_DATA_PREPARED_SOURCE_H
#define PH_DATA_PREPARED_SOURCE_H

#include <stdbool.h>

#include "base/rng.h"
#include "data/encode/rows.h"
#include "data/prepared/part_file.h"
#include "data/prepared/prepared_manifest.h"

/* ---- blocks ---- */

/* A split of a prepared data set: the blocks of all its parts, one after the other. Immutable after opening;
 * several threads may decode its blocks at once, each with a decoder of its own. */
struct ph__prepared_set;

struct ph__set_block {
    uint64_t first_row; /* number of its first row in the split */
    uint32_t part, block;
    uint32_t num_rows;
    size_t num_words;
};

/* Opens a split. The folder is borrowed during the call, the encoder until close. PH_ERROR_DATA naming the
 * file when it is damaged, not finished, of another version, or prepared with another encoder. */
ph_status ph__prepared_set_open(
    const char *folder, const struct ph_encoder *encoder, struct ph__prepared_set **set_out);
void ph__prepared_set_close(struct ph__prepared_set *set);

const struct ph__manifest *ph__prepared_set_manifest(const struct ph__prepared_set *set);
const struct ph__row_layout *ph__prepared_set_layout(const struct ph__prepared_set *set);
size_t ph__prepared_set_num_blocks(const struct ph__prepared_set *set);
const struct ph__set_block *ph__prepared_set_block(const struct ph__prepared_set *set, size_t block);

/* Appends the block's rows to `rows`. PH_ERROR_DATA naming file and block. */
ph_status ph__prepared_set_decode(
    struct ph__prepared_set *set, size_t block, struct ph__block_decoder *decoder, struct ph__rows *rows);

/* ---- rows that take part ---- */

/* Choice of the rows that take part in a pass: all, or a share of those whose first label is 0, drawn anew in
 * every epoch. */
struct ph__negatives {
    struct ph__rng_key key;
    double rate; /* 1: all rows take part */
};

/* Sets the share; rate 0: all rows take part. PH_ERROR_USAGE naming the path when the rate is beyond [0,
 * 1]. */
static inline ph_status ph__negatives_init(
    struct ph__negatives *negatives, const char *path, uint64_t seed, uint64_t epoch, double rate)
{
    *negatives = (struct ph__negatives){
        .key = {seed, epoch, ph__hash_name("data.negatives")}, .rate = rate == 0 ? 1 : rate};
    if (!(negatives->rate > 0 && negatives->rate <= 1)) /* NaN included */
        return ph_fail(PH_ERROR_USAGE, "%s: negative_rate %g must be between 0 and 1", path, negatives->rate);
    return PH_OK;
}

static inline bool ph__negatives_are_all_kept(const struct ph__negatives *negatives)
{
    return negatives->rate >= 1;
}

/* Returns true when row `number` of the data takes part; `label` is its first word, its first label. */
static inline bool ph__negatives_keep(const struct ph__negatives *negatives, uint32_t label, uint64_t number)
{
    if (ph__negatives_are_all_kept(negatives) || ph__word_as_float(label) != 0)
        return true;
    return ph__rng_uniform(&negatives->key, number, 0) < negatives->rate;
}

/* ---- the order ---- */

struct ph__prepared_source {
    struct ph__prepared_set *set; /* owned with order and kept, except in a view */
    struct ph__block_decoder decoder;
    uint32_t *order; /* (num_blocks) numbers of the blocks */
    uint32_t *kept;  /* (num_blocks) rows of each block that take part; NULL: all */
    bool is_view;
    size_t next, end;     /* places in order: the next window's first block, and the end */
    size_t window_bytes;  /* most bytes of a window's rows, unless it is a single block */
    uint64_t num_decoded; /* blocks decoded so far: the cost of the pass */
};

/* Opens a split. With window_bytes 0 rows keep their order, one block at a time; else seed and epoch
 * determine the order of the blocks. Close the source also on failure. */
ph_status ph__prepared_source_open(struct ph__prepared_source *source, const struct ph_encoder *encoder,
    const char *folder, size_t window_bytes, uint64_t seed, uint64_t epoch);
/* Makes a view of places first to end - 1 of another source's order; that source must stay open and
 * unchanged. */
void ph__prepared_source_view(struct ph__prepared_source *view, const struct ph__prepared_source *of,
    size_t first, size_t end, size_t window_bytes);
void ph__prepared_source_close(struct ph__prepared_source *source);

/* Counts in each block the rows that take part, by their labels alone, unless all rows do. */
ph_status ph__prepared_source_count(
    struct ph__prepared_source *source, const struct ph__negatives *negatives);
/* Returns the rows that take part in the blocks at places first to end - 1. */
uint64_t ph__prepared_source_num_kept(const struct ph__prepared_source *source, size_t first, size_t end);

/* Moves `next` past the blocks of the next window: as many as fit, at least one, none at the end. Reads
 * nothing. */
void ph__prepared_source_choose(struct ph__prepared_source *source);

/* Appends the rows of the block at `place` of the order; *first_row_out is the number of its first row in the
 * set. */
ph_status ph__prepared_source_read(
    struct ph__prepared_source *source, size_t place, struct ph__rows *rows, uint64_t *first_row_out);

/* Sets `next` to a place that it had before. PH_ERROR_DATA when there are fewer blocks. */
ph_status ph__prepared_source_seek(struct ph__prepared_source *source, uint64_t next);

#endif
