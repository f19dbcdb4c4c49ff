/* The layout of a part, which is one file of a prepared data set (docs/PREPARED_FORMAT.md), its writer and
 * its reader. Little-endian throughout.
 *
 *     header   layout of the rows: checked against the encoder that reads them
 *     blocks   one after the other without gaps (part_block.h)
 *     index    a ph__part_entry for each block
 *     footer   totals, and the checksums of header and index: its own checksum stands for the whole file */
#ifndef PH_DATA_PART_FILE_H
#define PH_DATA_PART_FILE_H

#include "data/prepared/part_block.h"

#define PH_PART_VERSION 1
#define PH_PART_MAGIC "phloemPD"
#define PH_PART_END_MAGIC "DPmeolhp"
#define PH_PART_MAGIC_BYTES 8
#define PH_ENCODER_DIGEST_BYTES 16 /* first bytes of the SHA-256 of the encoder's file */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "prepared data is written and mapped as it lies");

/* Followed by a ph__part_list for each list, and 8 bytes of checksum over all of that. */
struct ph__part_header {
    char magic[PH_PART_MAGIC_BYTES];
    uint32_t version;
    uint32_t header_bytes; /* bytes of the whole header: a multiple of 8 */
    unsigned char encoder_digest[PH_ENCODER_DIGEST_BYTES];
    uint32_t num_fixed_words;
    uint32_t num_lists;
};
_Static_assert(sizeof(struct ph__part_header) == 40, "as in the file");

struct ph__part_list {
    uint32_t word; /* fixed word that is the list's length */
    uint32_t is_weighted;
};

struct ph__part_entry {
    uint64_t offset; /* bytes from the start of the file */
    uint32_t num_bytes, num_rows;
    uint64_t num_words; /* words of all rows together */
    uint64_t checksum;
};
_Static_assert(sizeof(struct ph__part_entry) == 32, "as in the file");

/* Range of the text that went into the part: lines that begin in these bytes (decompressed, where the file is
 * compressed). With arrays a range of rows. */
struct ph__part_range {
    uint64_t begin, end;
    uint64_t num_lines;    /* lines read, or rows */
    uint64_t num_bad_rows; /* rows left out among them */
    uint64_t is_last;      /* 1: the file ends with this part */
};

struct ph__part_footer {
    uint64_t num_blocks, num_rows, num_words;
    struct ph__part_range range;
    uint64_t header_checksum;
    uint64_t index_offset, index_checksum;
    uint64_t checksum; /* checksum of the footer's members before this one */
    char magic[PH_PART_MAGIC_BYTES];
};
_Static_assert(sizeof(struct ph__part_footer) == 104, "as in the file");

/* Converts the first bytes of a digest of 64 hexadecimal digits. */
void ph__part_digest(const char *hex, unsigned char digest_out[PH_ENCODER_DIGEST_BYTES]);

/* Makes the header's bytes, malloc'ed; layout and digest determine them. Both are borrowed during the
 * call. */
ph_status ph__part_header_create(const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], unsigned char **bytes_out, size_t *num_bytes_out);

uint64_t ph__part_footer_checksum(const struct ph__part_footer *footer);

/* ---- writing ---- */

/* Writes one part, block by block. The file appears under its name only when it is finished and durable. One
 * thread at a time per writer. */
struct ph__part_writer;

/* Opens a writer. Path and digest are borrowed during the call, the layout until close. Errors of all calls:
 * PH_ERROR_DISK naming the path, PH_ERROR_MEMORY. */
ph_status ph__part_writer_open(const char *path, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], struct ph__part_writer **writer_out);

/* Writes all of `rows` as one block; writes nothing when there are none. */
ph_status ph__part_writer_add(struct ph__part_writer *writer, const struct ph__rows *rows);

/* Writes index and footer, and puts the file under its name; nothing more may be added. */
ph_status ph__part_writer_finish(
    struct ph__part_writer *writer, const struct ph__part_range *range, struct ph__part_footer *footer_out);

void ph__part_writer_close(struct ph__part_writer *writer); /* without a finish, removes what was written */

/* ---- reading ---- */

/* Reads one part: maps the file, and decodes any block at any time.
 *
 * Opening checks header, index and footer against their checksums and against the file's size; a block's
 * checksum is checked when the block is first used. Several threads may decode blocks of one reader at once,
 * each with a decoder of its own. A file that is cut short while it is mapped ends the process with SIGBUS,
 * as with any mapping. */
struct ph__part_reader;

/* Opens a reader. Path and digest are borrowed during the call, the layout until close. PH_ERROR_DATA naming
 * the path when the file is missing, cut, damaged, of another version, or made with another encoder. */
ph_status ph__part_reader_open(const char *path, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], struct ph__part_reader **reader_out);
void ph__part_reader_close(struct ph__part_reader *reader);

const struct ph__part_footer *ph__part_reader_footer(const struct ph__part_reader *reader);
uint64_t ph__part_reader_num_bytes(const struct ph__part_reader *reader); /* size of the file */
/* Returns the index: (num_blocks). */
const struct ph__part_entry *ph__part_reader_entries(const struct ph__part_reader *reader);

/* Appends the block's rows to `rows`. PH_ERROR_DATA naming file and block. */
ph_status ph__part_reader_decode(
    struct ph__part_reader *reader, size_t block, struct ph__block_decoder *decoder, struct ph__rows *rows);

/* Decodes only the first label of each row, as a word: labels_out (the block's rows). Checks no checksum,
 * which would need all bytes of the block: ph__part_reader_decode does. */
ph_status ph__part_reader_decode_labels(const struct ph__part_reader *reader, size_t block,
    const struct ph__block_decoder *decoder, uint32_t *labels_out);

/* Asks the system to read the block ahead. */
void ph__part_reader_expect(const struct ph__part_reader *reader, size_t block);

#endif
