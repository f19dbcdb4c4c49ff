/* A block of a prepared data set, without the checksum in front of it: 4 bytes are the number of its rows, 4
 * that of its words, the rest is the block. What is decoded gives the same rows when it is encoded and
 * decoded again. */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_parts.h"

#define HEAD_BYTES 8

static void check_again(const struct ph__rows *rows)
{
    static struct ph__block_encoder encoder;
    encoder.layout = fuzz_layout();
    struct ph__block_decoder decoder = {.layout = fuzz_layout()};
    struct ph__block block = {.num_rows = rows->num_rows, .num_words = ph__rows_num_words(rows)};
    struct ph__rows again = {0};
    fuzz_require(ph__block_encode(&encoder, rows, &block.bytes, &block.num_bytes) == PH_OK);
    fuzz_require(ph__block_decode(&decoder, &block, &again) == PH_OK);
    fuzz_require(ph__rows_num_words(&again) == block.num_words);
    fuzz_require(memcmp(again.words, rows->words, block.num_words * sizeof *rows->words) == 0);
    ph__rows_fini(&again);
    ph__block_decoder_fini(&decoder);
}

/* The labels alone are those of the rows; there may be some where the rest makes no sense. */
static void check_labels(const struct ph__block *block, const struct ph__rows *rows)
{
    const struct ph__block_decoder decoder = {.layout = fuzz_layout()};
    uint32_t labels[PH_BLOCK_MAX_ROWS];
    const ph_status status = ph__block_decode_labels(&decoder, block, labels);
    fuzz_require(status == PH_OK || (status == PH_ERROR_DATA && rows->num_rows == 0));
    for (size_t i = 0; i < rows->num_rows; i++)
        fuzz_require(labels[i] == rows->words[rows->starts[i]]);
}

static void decode(const struct ph__block *block)
{
    struct ph__block_decoder decoder = {.layout = fuzz_layout()};
    struct ph__rows rows = {0};
    const ph_status status = ph__block_decode(&decoder, block, &rows);
    fuzz_require(status == PH_OK || (status == PH_ERROR_DATA && rows.num_rows == 0));
    check_labels(block, &rows);
    if (status == PH_OK) {
        fuzz_require(rows.num_rows == block->num_rows && ph__rows_num_words(&rows) == block->num_words);
        fuzz_check_rows(&rows, 0);
        check_again(&rows);
    }
    ph__rows_fini(&rows);
    ph__block_decoder_fini(&decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t head[2];
    if (size < HEAD_BYTES)
        return 0;
    memcpy(head, data, HEAD_BYTES);
    struct ph__block block = {
        .num_bytes = (size - HEAD_BYTES) / 8 * 8, .num_rows = head[0], .num_words = head[1]};
    if (block.num_rows == 0 || block.num_rows > PH_BLOCK_MAX_ROWS || block.num_words > FUZZ_MAX_WORDS)
        return 0; /* the reader of the index refuses them */
    unsigned char *bytes = malloc(block.num_bytes > 0 ? block.num_bytes : 1);
    fuzz_require(bytes != NULL);
    memcpy(bytes, data + HEAD_BYTES, block.num_bytes);
    block.bytes = bytes;
    decode(&block);
    free(bytes);
    return 0;
}
