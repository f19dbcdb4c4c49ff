/* A part of a prepared data set: header, blocks, index and footer. An input is a list of edits of a real one,
 * whose checksums are then made to fit as far as the file's own numbers lead to what they cover. */
#include <stdlib.h>
#include <string.h>

#include "data/prepared/part_file.h"
#include "support/fuzz_parts.h"

static const unsigned char digest[PH_ENCODER_DIGEST_BYTES] = "0123456789abcdef";

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

static char *make_part(size_t *size_out)
{
    static const size_t num_rows[] = {1, 3, 40};
    const struct ph__part_range range = {.end = 1000, .num_lines = 45, .num_bad_rows = 1};
    struct ph__part_writer *writer = NULL;
    struct ph__part_footer footer;
    char path[64];
    fuzz_folder_path("part", path);
    fuzz_require(ph__part_writer_open(path, fuzz_layout(), digest, &writer) == PH_OK);
    for (size_t i = 0; i < sizeof num_rows / sizeof *num_rows; i++) {
        struct ph__rows rows = fuzz_make_rows(num_rows[i], i);
        fuzz_require(ph__part_writer_add(writer, &rows) == PH_OK);
        ph__rows_fini(&rows);
    }
    fuzz_require(ph__part_writer_finish(writer, &range, &footer) == PH_OK);
    ph__part_writer_close(writer);
    return fuzz_read(path, size_out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *part;
    static size_t part_size;
    size_t edited_size, mark;
    struct ph__part_reader *reader = NULL;
    if (part == NULL)
        part = make_part(&part_size);
    uint8_t *bytes = fuzz_edit(part, part_size, data, size, 0, &mark, &edited_size);
    fuzz_reseal_part(bytes, edited_size, fuzz_layout(), digest);
    const char *path = fuzz_file(0, bytes, edited_size);
    free(bytes);
    const ph_status status = ph__part_reader_open(path, fuzz_layout(), digest, &reader);
    fuzz_require(status == PH_OK || size > 0); /* the part as it is can be read */
    if (status == PH_OK)
        decode_blocks(reader);
    ph__part_reader_close(reader);
    return 0;
}
