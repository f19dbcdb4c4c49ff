/* The layout of a part: one file of a prepared data set (docs/PREPARED_FORMAT.md). Little-endian throughout.
 *
 *     header   what the rows are: checked against the encoder that reads them
 *     blocks   one after the other without gaps (part_block.h)
 *     index    a ph__part_entry for each block
 *     footer   totals, and the checksums of header and index: its own checksum stands for the whole file */
#ifndef PH_DATA_PART_FORMAT_H
#define PH_DATA_PART_FORMAT_H

#include "data/prepared/part_layout.h"

#define PH_PART_VERSION 1
#define PH_PART_MAGIC "phloemPD"
#define PH_PART_END_MAGIC "DPmeolhp"
#define PH_PART_MAGIC_BYTES 8
#define PH_ENCODER_DIGEST_BYTES 16 /* the first of the SHA-256 of the encoder's file */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "prepared data is written and mapped as it lies");

/* Followed by a ph__part_list for each list, and a checksum of all before it: 8 bytes. */
struct ph__part_header {
    char magic[PH_PART_MAGIC_BYTES];
    uint32_t version;
    uint32_t header_bytes; /* all of it: a multiple of 8 */
    unsigned char encoder_digest[PH_ENCODER_DIGEST_BYTES];
    uint32_t num_fixed_words;
    uint32_t num_lists;
};
_Static_assert(sizeof(struct ph__part_header) == 40, "as in the file");

struct ph__part_list {
    uint32_t word; /* the fixed word that is its length */
    uint32_t is_weighted;
};

struct ph__part_entry {
    uint64_t offset; /* from the start of the file */
    uint32_t num_bytes, num_rows;
    uint64_t num_words; /* of all rows together */
    uint64_t checksum;
};
_Static_assert(sizeof(struct ph__part_entry) == 32, "as in the file");

/* Which bytes of the text went into the part, decompressed where the file is compressed: lines that begin there. Of
 * arrays: which rows. */
struct ph__part_range {
    uint64_t begin, end;
    uint64_t num_lines;    /* that were read, or rows */
    uint64_t num_bad_rows; /* among them, left out */
    uint64_t is_last;      /* 1: nothing follows in that file */
};

struct ph__part_footer {
    uint64_t num_blocks, num_rows, num_words;
    struct ph__part_range range;
    uint64_t header_checksum;
    uint64_t index_offset, index_checksum;
    uint64_t checksum; /* of the footer up to here */
    char magic[PH_PART_MAGIC_BYTES];
};
_Static_assert(sizeof(struct ph__part_footer) == 104, "as in the file");

/* The first bytes of a digest of 64 hexadecimal digits. */
void ph__part_digest(const char *hex, unsigned char digest_out[PH_ENCODER_DIGEST_BYTES]);

/* The header's bytes, malloc'ed: they follow from layout and digest alone. Both are borrowed. */
ph_status ph__part_header_create(const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], unsigned char **bytes_out, size_t *num_bytes_out);

uint64_t ph__part_footer_checksum(const struct ph__part_footer *footer);

#endif
