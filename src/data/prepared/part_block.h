/* A block of encoded rows as bytes, column by column, and back.
 *
 *     directory  a struct ph__stream for each stream: the fixed words in order, then for each list its ids
 * and, where it is weighted, its weights streams    in that order zeros      at least
 * PH_STREAM_OVERREAD_BYTES, up to a multiple of 8
 *
 * A decoder believes nothing in the bytes: whatever they are, it reads and writes within bounds, and every id
 * that it gives out is a row of its table. */
#ifndef PH_DATA_PART_BLOCK_H
#define PH_DATA_PART_BLOCK_H

#include "data/encode/encoder.h"
#include "data/encode/rows.h"
#include "data/prepared/stream_codec.h"

/* ---- rows ---- */

struct ph__row_list { /* in the order in which lists lie in a row */
    uint32_t word;    /* the fixed word that is its length */
    uint32_t limit;   /* its ids are below */
    bool is_weighted; /* its ids are followed by as many weights */
};

/* What prepared data needs to know of an encoded row: how many fixed words, which of them are lengths of
 * lists, and which ids may stand where. Made from an encoder; immutable afterwards, any number of threads may
 * read it. */
struct ph__row_layout {
    size_t num_fixed_words;
    uint32_t *limits; /* (num_fixed_words) the word is below; 0: any word */
    struct ph__row_list *lists;
    size_t num_lists;
};

ph_status ph__row_layout_init(struct ph__row_layout *layout, const struct ph_encoder *encoder);
void ph__row_layout_fini(struct ph__row_layout *layout);

/* ---- blocks ---- */

#define PH_BLOCK_MAX_ROWS 8192
/* A writer ends a block when it has so many words (4 MiB), whatever its rows. */
#define PH_BLOCK_FULL_WORDS ((size_t)1 << 20)
/* More than any writer can meet: a full block and one row more, of a line of 64 MiB. */
#define PH_BLOCK_MAX_WORDS ((size_t)1 << 27)

/* Zero-initialised but for layout, which is borrowed. Memory grows with the largest block and is kept. */
struct ph__block_encoder {
    const struct ph__row_layout *layout;
    struct ph__stream_encoder streams;
    uint32_t *values; /* the streams' values, one after the other */
    size_t values_capacity;
    size_t *cursors; /* of each row: where its next list lies */
    size_t cursors_capacity;
    unsigned char *bytes;
    size_t bytes_capacity;
};

/* All of `rows`, 1 to PH_BLOCK_MAX_ROWS with PH_BLOCK_MAX_WORDS words at most, as the bytes of a block:
 * borrowed until the next call. PH_ERROR_DATA above that, PH_ERROR_MEMORY. */
ph_status ph__block_encode(struct ph__block_encoder *encoder, const struct ph__rows *rows,
    const unsigned char **bytes_out, size_t *num_bytes_out);
void ph__block_encoder_fini(struct ph__block_encoder *encoder);

/* The bytes of a block (aligned to 8, borrowed), and what they shall hold. */
struct ph__block {
    const unsigned char *bytes;
    size_t num_bytes, num_rows, num_words;
};

/* Zero-initialised but for layout, which is borrowed. */
struct ph__block_decoder {
    const struct ph__row_layout *layout;
    size_t *cursors; /* of each list: its values decoded so far */
    size_t cursors_capacity;
};

/* Appends the block's rows to `rows`. PH_ERROR_DATA saying only what is wrong: the caller knows file and
 * block. */
ph_status ph__block_decode(
    struct ph__block_decoder *decoder, const struct ph__block *block, struct ph__rows *rows);
/* The first word of each row alone, its first label: labels_out (num_rows). As ph__block_decode, but what is
 * wrong with other streams is not noticed. */
ph_status ph__block_decode_labels(
    const struct ph__block_decoder *decoder, const struct ph__block *block, uint32_t *labels_out);
void ph__block_decoder_fini(struct ph__block_decoder *decoder);

#endif
