#include "support/fuzz_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sum/checksum.h"

#define MAX_LENGTH 4
#define MAX_ROW_WORDS (5 + 3 * MAX_LENGTH)

const struct ph__row_layout *fuzz_layout(void)
{
    static uint32_t limits[] = {0, 0, 50, 0, 0};
    static struct ph__row_list lists[] = {
        {.word = 3, .limit = 1000}, {.word = 4, .limit = 7, .is_weighted = true}};
    static const struct ph__row_layout layout = {
        .num_fixed_words = 5, .limits = limits, .lists = lists, .num_lists = 2};
    return &layout;
}

static size_t make_row(struct ph__rng_sequence *random, uint32_t *row)
{
    const struct ph__row_layout *layout = fuzz_layout();
    size_t next = layout->num_fixed_words;
    for (size_t word = 0; word < layout->num_fixed_words; word++)
        row[word] = (uint32_t)ph__rng_below(random, layout->limits[word] > 0 ? layout->limits[word] : 3);
    for (size_t l = 0; l < layout->num_lists; l++) {
        const struct ph__row_list *list = &layout->lists[l];
        row[list->word] = (uint32_t)ph__rng_below(random, MAX_LENGTH + 1);
        for (uint32_t i = 0; i < row[list->word]; i++)
            row[next++] = (uint32_t)ph__rng_below(random, list->limit);
        for (uint32_t i = 0; list->is_weighted && i < row[list->word]; i++)
            row[next++] = (uint32_t)ph__rng_next(random);
    }
    return next;
}

struct ph__rows fuzz_make_rows(size_t num_rows, uint64_t seed)
{
    struct ph__rows rows = {0};
    struct ph__rng_sequence random = {.key.seed = seed};
    fuzz_require(ph__array_reserve((void **)&rows.words, &rows.words_capacity, num_rows * MAX_ROW_WORDS,
                     sizeof *rows.words) == PH_OK);
    fuzz_require(ph__array_reserve((void **)&rows.starts, &rows.starts_capacity, num_rows + 1,
                     sizeof *rows.starts) == PH_OK);
    rows.starts[0] = 0;
    for (; rows.num_rows < num_rows; rows.num_rows++) {
        const size_t start = rows.starts[rows.num_rows];
        rows.starts[rows.num_rows + 1] = start + make_row(&random, rows.words + start);
    }
    return rows;
}

void fuzz_check_rows(const struct ph__rows *rows, size_t first)
{
    const struct ph__row_layout *layout = fuzz_layout();
    for (size_t i = first; i < rows->num_rows; i++) {
        const uint32_t *row = rows->words + rows->starts[i];
        size_t next = layout->num_fixed_words;
        for (size_t word = 0; word < layout->num_fixed_words; word++)
            fuzz_require(layout->limits[word] == 0 || row[word] < layout->limits[word]);
        for (size_t l = 0; l < layout->num_lists; l++) {
            const struct ph__row_list *list = &layout->lists[l];
            const size_t length = row[list->word];
            fuzz_require(length <= FUZZ_MAX_WORDS);
            for (size_t j = 0; j < length; j++)
                fuzz_require(row[next + j] < list->limit);
            next += length << list->is_weighted;
        }
        fuzz_require(rows->starts[i] + next == rows->starts[i + 1]);
    }
}

/* The header must be the one that the layout gives: what differs in it is refused before anything else. */
static size_t put_header(uint8_t *bytes, size_t size, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES])
{
    unsigned char *header = NULL;
    size_t header_bytes = 0;
    fuzz_require(ph__part_header_create(layout, digest, &header, &header_bytes) == PH_OK);
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

void fuzz_reseal_part(uint8_t *bytes, size_t size, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES])
{
    const size_t header_bytes = put_header(bytes, size, layout, digest);
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
