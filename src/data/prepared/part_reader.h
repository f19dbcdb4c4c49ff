/* Reads one part of a prepared data set: maps the file, and decodes any block at any time.
 *
 * Opening checks header, index and footer against their checksums and against the file's size; a block's checksum is
 * checked when it is first used. Several threads may decode blocks of one reader at once, each with a decoder of its
 * own. A file that is cut short while it is mapped ends the process with SIGBUS, as with any mapping. */
#ifndef PH_DATA_PART_READER_H
#define PH_DATA_PART_READER_H

#include "data/prepared/part_block.h"
#include "data/prepared/part_format.h"

struct ph__part_reader;

/* Path and digest are borrowed during the call, the layout until close. PH_ERROR_DATA naming the path: it is missing,
 * cut, damaged, of another version, or made with another encoder. */
ph_status ph__part_reader_open(const char *path, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], struct ph__part_reader **reader_out);
void ph__part_reader_close(struct ph__part_reader *reader);

const struct ph__part_footer *ph__part_reader_footer(const struct ph__part_reader *reader);
uint64_t ph__part_reader_num_bytes(const struct ph__part_reader *reader); /* of the file */
/* (num_blocks) */
const struct ph__part_entry *ph__part_reader_entries(const struct ph__part_reader *reader);

/* Appends the block's rows to `rows`. PH_ERROR_DATA naming file and block. */
ph_status ph__part_reader_decode(
    struct ph__part_reader *reader, size_t block, struct ph__block_decoder *decoder, struct ph__rows *rows);

/* Only the first label of each row, as the word that it is: labels_out (the block's rows). The checksum, which would need
 * all of the block's bytes, is left to ph__part_reader_decode. */
ph_status ph__part_reader_decode_labels(const struct ph__part_reader *reader, size_t block,
    const struct ph__block_decoder *decoder, uint32_t *labels_out);

/* Tells the system that the block will be wanted soon. */
void ph__part_reader_expect(const struct ph__part_reader *reader, size_t block);

#endif
