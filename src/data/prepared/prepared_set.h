/* A split of a prepared data set: the blocks of all its parts, one after the other. Immutable after opening; several
 * threads may decode its blocks at once, each with a decoder of its own. */
#ifndef PH_DATA_PREPARED_SET_H
#define PH_DATA_PREPARED_SET_H

#include "data/prepared/part_file.h"
#include "data/prepared/prepared_manifest.h"

struct ph__prepared_set;

struct ph__set_block {
    uint64_t first_row; /* of the split's rows */
    uint32_t part, block;
    uint32_t num_rows;
    size_t num_words;
};

/* The folder is borrowed during the call, the encoder until close. PH_ERROR_DATA naming the file: damaged, not
 * finished, of another version, or prepared with another encoder. */
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
/* labels_out (the block's rows): the first label of each, as a word. */
ph_status ph__prepared_set_decode_labels(const struct ph__prepared_set *set, size_t block,
    const struct ph__block_decoder *decoder, uint32_t *labels_out);
void ph__prepared_set_expect(const struct ph__prepared_set *set, size_t block); /* it will be wanted soon */

#endif
