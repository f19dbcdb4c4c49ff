/* A part of a prepared data set: header, blocks, index and footer, with checksums that are made to fit as far as the
 * file's own numbers lead to what they cover. */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "data/part_reader.h"
#include "support/fuzz_parts.h"

static const unsigned char digest[PH_ENCODER_DIGEST_BYTES] = "0123456789abcdef";

/* The header must be the one that the layout gives: what differs in it is refused before anything else. */
static size_t put_header(uint8_t *bytes, size_t size)
{
    unsigned char *header = NULL;
    size_t header_bytes = 0;
    fuzz_require(ph__part_header_create(fuzz_layout(), digest, &header, &header_bytes) == PH_OK);
    if (header_bytes <= size)
        memcpy(bytes, header, header_bytes);
    free(header);
    return header_bytes;
}

static void reseal_blocks(uint8_t *bytes, size_t index_offset, size_t num_blocks)
{
    for (size_t i = 0; i < num_blocks; i++) {
        struct ph__part_entry entry;
        uint8_t *at = bytes + index_offset + i * sizeof entry;
        memcpy(&entry, at, sizeof entry);
        if (entry.offset < index_offset && entry.num_bytes <= index_offset - entry.offset)
            entry.checksum = ph__checksum(bytes + entry.offset, entry.num_bytes);
        memcpy(at, &entry, sizeof entry);
    }
}

static void reseal(uint8_t *bytes, size_t size)
{
    const size_t header_bytes = put_header(bytes, size);
    struct ph__part_footer footer;
    if (size < header_bytes + sizeof footer)
        return;
    const size_t footer_offset = size - sizeof footer;
    memcpy(&footer, bytes + footer_offset, sizeof footer);
    if (footer.num_blocks <= footer_offset / sizeof(struct ph__part_entry)) {
        const size_t index_bytes = (size_t)footer.num_blocks * sizeof(struct ph__part_entry);
        const size_t index_offset = footer_offset - index_bytes;
        reseal_blocks(bytes, index_offset, (size_t)footer.num_blocks);
        footer.index_checksum = ph__checksum(bytes + index_offset, index_bytes);
    }
    footer.header_checksum = ph__checksum(bytes, header_bytes);
    footer.checksum = ph__part_footer_checksum(&footer);
    memcpy(bytes + footer_offset, &footer, sizeof footer);
}

static void decode_blocks(struct ph__part_reader *reader)
{
    struct ph__block_decoder decoder = {.layout = fuzz_layout()};
    struct ph__rows rows = {0};
    for (size_t i = 0; i < ph__part_reader_footer(reader)->num_blocks; i++) {
        const size_t first = rows.num_rows;
        if (ph__part_reader_entries(reader)[i].num_words <= FUZZ_MAX_WORDS &&
            ph__part_reader_decode(reader, i, &decoder, &rows) == PH_OK)
            fuzz_check_rows(&rows, first);
    }
    ph__rows_fini(&rows);
    ph__block_decoder_fini(&decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__part_reader *reader = NULL;
    uint8_t *bytes = malloc(size + 1);
    fuzz_require(bytes != NULL);
    memcpy(bytes, data, size);
    reseal(bytes, size);
    const char *path = fuzz_file(0, bytes, size);
    free(bytes);
    if (ph__part_reader_open(path, fuzz_layout(), digest, &reader) == PH_OK)
        decode_blocks(reader);
    ph__part_reader_close(reader);
    return 0;
}
