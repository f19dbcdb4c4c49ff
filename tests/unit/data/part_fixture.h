/* What the tests of prepared data share: a layout with lists of both kinds, and random rows of it. */
#ifndef PH_TEST_PART_FIXTURE_H
#define PH_TEST_PART_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "data/prepared/part_block.h"
#include "data/prepared/part_file.h"
#include "support/test_support.h"

#define PART_FIXED_WORDS 7
#define PART_LISTS 2

/* label | dense | constant | id below 50 | list of ids below 1000 | id below 2^31 | weighted list of ids
 * below 7 */
static inline struct ph__row_layout part_layout(void)
{
    static uint32_t limits[PART_FIXED_WORDS] = {0, 0, 0, 50, 0, 1u << 31, 0};
    static struct ph__row_list lists[PART_LISTS] = {
        {.word = 4, .limit = 1000}, {.word = 6, .limit = 7, .is_weighted = true}};
    return (struct ph__row_layout){
        .num_fixed_words = PART_FIXED_WORDS, .limits = limits, .lists = lists, .num_lists = PART_LISTS};
}

/* The same without lists: fixed words alone. */
static inline struct ph__row_layout part_layout_fixed(void)
{
    struct ph__row_layout layout = part_layout();
    layout.num_lists = 0;
    layout.num_fixed_words = 4;
    return layout;
}

static inline void part_add_row(
    struct ph__rows *rows, const struct ph__row_layout *layout, struct ph__rng_sequence *rng)
{
    size_t used = ph__rows_num_words(rows), num_words = layout->num_fixed_words;
    assert_ok(ph__array_reserve(
        (void **)&rows->words, &rows->words_capacity, used + num_words + 64, sizeof *rows->words));
    assert_ok(ph__array_reserve(
        (void **)&rows->starts, &rows->starts_capacity, rows->num_rows + 2, sizeof *rows->starts));
    uint32_t *row = rows->words + used;
    const uint32_t fixed[PART_FIXED_WORDS] = {(uint32_t)ph__rng_below(rng, 2) * 0x3f800000u,
        (uint32_t)ph__rng_next(rng), 42, (uint32_t)ph__rng_below(rng, 50), 0,
        (uint32_t)ph__rng_below(rng, 1u << 31), 0};
    memcpy(row, fixed, num_words * sizeof *row);
    for (size_t l = 0; l < layout->num_lists; l++) {
        const struct ph__row_list *list = &layout->lists[l];
        uint32_t length = ph__rng_below(rng, 3) == 0 ? 0 : (uint32_t)ph__rng_below(rng, 20);
        row[list->word] = length;
        for (uint32_t i = 0; i < length; i++)
            row[num_words++] = (uint32_t)ph__rng_below(rng, list->limit);
        for (uint32_t i = 0; list->is_weighted && i < length; i++)
            row[num_words++] = (uint32_t)ph__rng_next(rng);
    }
    rows->starts[rows->num_rows] = used;
    rows->starts[++rows->num_rows] = used + num_words;
}

static inline struct ph__rows part_rows(const struct ph__row_layout *layout, size_t num_rows, uint64_t seed)
{
    struct ph__rows rows = {0};
    struct ph__rng_sequence rng = {.key.seed = test_seed() + seed};
    while (rows.num_rows < num_rows)
        part_add_row(&rows, layout, &rng);
    return rows;
}

/* Rows first to first + wanted->num_rows - 1 of `rows` are all of `wanted`. */
static inline void assert_rows_equal(const struct ph__rows *rows, size_t first, const struct ph__rows *wanted)
{
    assert_true(first + wanted->num_rows <= rows->num_rows);
    for (size_t i = 0; i < wanted->num_rows; i++) {
        size_t start = rows->starts[first + i], num_words = rows->starts[first + i + 1] - start;
        assert_int_equal(num_words, wanted->starts[i + 1] - wanted->starts[i]);
        assert_memory_equal(
            rows->words + start, wanted->words + wanted->starts[i], num_words * sizeof *rows->words);
    }
}

static const unsigned char part_digest[PH_ENCODER_DIGEST_BYTES] = "sixteen bytes...";

/* The bytes of a file, malloc'ed. */
static inline unsigned char *part_bytes(const char *path, size_t *num_bytes_out)
{
    struct ph__arena arena = {0};
    char *text;
    assert_ok(ph__file_read(&arena, path, (uint64_t)1 << 30, &text, num_bytes_out));
    unsigned char *bytes = malloc(*num_bytes_out + 1);
    assert_non_null(bytes);
    memcpy(bytes, text, *num_bytes_out);
    ph__arena_fini(&arena);
    return bytes;
}

static inline void part_put_bytes(const char *path, const unsigned char *bytes, size_t num_bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, num_bytes, file), num_bytes);
    assert_int_equal(fclose(file), 0);
}

/* A part in the test's folder with `num_blocks` blocks of `num_rows` rows: part_rows(layout, num_rows,
 * block). */
static inline void part_write(
    const char *path, const struct ph__row_layout *layout, size_t num_blocks, size_t num_rows)
{
    struct ph__part_writer *writer;
    struct ph__part_footer footer;
    const struct ph__part_range range = {.begin = 100, .end = 5000, .num_bad_rows = 3};
    assert_ok(ph__part_writer_open(path, layout, part_digest, &writer));
    for (size_t block = 0; block < num_blocks; block++) {
        struct ph__rows rows = part_rows(layout, num_rows, block);
        assert_ok(ph__part_writer_add(writer, &rows));
        ph__rows_fini(&rows);
    }
    assert_ok(ph__part_writer_finish(writer, &range, &footer));
    assert_int_equal(footer.num_rows, num_blocks * num_rows);
    ph__part_writer_close(writer);
}

#endif
