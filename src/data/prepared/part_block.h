/* Encodes a block of encoded rows as bytes, column by column, and decodes it.
 *
 *     directory  a struct ph__stream for each stream: the fixed words in order, then for each list its ids
 *                and, where it is weighted, its weights
 *     streams    in that order
 *     zeros      at least PH_STREAM_OVERREAD_BYTES, up to a multiple of 8
 *
 * A decoder trusts none of the bytes: with any bytes, it reads and writes within bounds, and every id that it
 * gives out is a row of its table. */
#ifndef PH_DATA_PART_BLOCK_H
#define PH_DATA_PART_BLOCK_H

#include "data/encode/encoder.h"
#include "data/encode/rows.h"
#include "data/prepared/stream_codec.h"

/* ---- rows ---- */

struct ph__row_list { /* in the order of the lists in a row */
    uint32_t word;    /* fixed word that is the list's length */
    uint32_t limit;   /* ids are below this */
    bool is_weighted; /* the ids are followed by as many weights */
};

/* Layout of an encoded row: the number of fixed words, the fixed words that are lengths of lists, and the
 * limits of ids. Made from an encoder; immutable afterwards, any number of threads may read it. */
struct ph__row_layout {
    size_t num_fixed_words;
    uint32_t *limits; /* (num_fixed_words) limit that each word is below; 0: any word */
    struct ph__row_list *lists;
    size_t num_lists;
};

ph_status ph__row_layout_init(struct ph__row_layout *layout, const struct ph_encoder *encoder);
void ph__row_layout_fini(struct ph__row_layout *layout);

/* ---- blocks ---- */

#define PH_BLOCK_MAX_ROWS 8192
/* Words (4 MiB) at which a writer ends a block, whatever its rows. */
#define PH_BLOCK_FULL_WORDS ((size_t)1 << 20)
/* More than any writer can reach: a full block and one more row, from a line of 64 MiB. */
#define PH_BLOCK_MAX_WORDS ((size_t)1 << 27)

/* Zero-initialised except for layout, which is borrowed. Memory grows with the largest block and is kept. */
struct ph__block_encoder {
    const struct ph__row_layout *layout;
    struct ph__stream_encoder streams;
    uint32_t *values; /* values of the streams, one stream after the other */
    size_t values_capacity;
    size_t *cursors; /* (num_rows) start of each row's next list */
    size_t cursors_capacity;
    unsigned char *bytes;
    size_t bytes_capacity;
};

/* Encodes all of `rows`, 1 to PH_BLOCK_MAX_ROWS with PH_BLOCK_MAX_WORDS words at most, as the bytes of a
 * block, borrowed until the next call. PH_ERROR_DATA above that, PH_ERROR_MEMORY. */
ph_status ph__block_encode(struct ph__block_encoder *encoder, const struct ph__rows *rows,
    const unsigned char **bytes_out, size_t *num_bytes_out);
void ph__block_encoder_fini(struct ph__block_encoder *encoder);

/* Bytes of a block (aligned to 8, borrowed), and the numbers of rows and words that they must hold. */
struct ph__block {
    const unsigned char *bytes;
    size_t num_bytes, num_rows, num_words;
};

/* Zero-initialised except for layout, which is borrowed. */
struct ph__block_decoder {
    const struct ph__row_layout *layout;
    size_t *cursors; /* (num_lists) values of each list decoded so far */
    size_t cursors_capacity;
};

/* Appends the block's rows to `rows`. PH_ERROR_DATA naming only the problem: the caller knows file and
 * block. */
ph_status ph__block_decode(
    struct ph__block_decoder *decoder, const struct ph__block *block, struct ph__rows *rows);
/* Decodes only the first word of each row, its first label: labels_out (num_rows). Errors as
 * ph__block_decode, but problems of other streams go unnoticed. */
ph_status ph__block_decode_labels(
    const struct ph__block_decoder *decoder, const struct ph__block *block, uint32_t *labels_out);
void ph__block_decoder_fini(struct ph__block_decoder *decoder);

#endif
