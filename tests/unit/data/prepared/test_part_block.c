#include "unit/data/part_fixture.h"

/* An encoded block in memory of exactly its size, so that a sanitizer sees one byte more. */
static struct ph__block encode(const struct ph__row_layout *layout, const struct ph__rows *rows)
{
    struct ph__block_encoder encoder = {.layout = layout};
    struct ph__block block = {.num_rows = rows->num_rows, .num_words = ph__rows_num_words(rows)};
    const unsigned char *bytes;
    assert_ok(ph__block_encode(&encoder, rows, &bytes, &block.num_bytes));
    unsigned char *copy = malloc(block.num_bytes);
    assert_non_null(copy);
    memcpy(copy, bytes, block.num_bytes);
    block.bytes = copy;
    ph__block_encoder_fini(&encoder);
    return block;
}

static void release(struct ph__block *block)
{
    free((void *)(uintptr_t)block->bytes);
}

static void blocks_come_back_behind_the_rows_that_are_there(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 127, 128, 129, 1000, PH_BLOCK_MAX_ROWS};
    for (int has_lists = 0; has_lists < 2; has_lists++) {
        struct ph__row_layout layout = has_lists ? part_layout() : part_layout_fixed();
        struct ph__block_decoder decoder = {.layout = &layout};
        struct ph__rows decoded = {0};
        size_t first = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct ph__rows rows = part_rows(&layout, sizes[i], i);
            struct ph__block block = encode(&layout, &rows);
            assert_int_equal(block.num_bytes % 8, 0);
            assert_ok(ph__block_decode(&decoder, &block, &decoded));
            assert_int_equal(decoded.num_rows, first + sizes[i]);
            assert_rows_equal(&decoded, first, &rows);
            first += sizes[i];
            release(&block);
            ph__rows_fini(&rows);
        }
        ph__block_decoder_fini(&decoder);
        ph__rows_fini(&decoded);
    }
}

static void a_block_takes_no_more_than_its_streams_need(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout_fixed();
    struct ph__rows rows = part_rows(&layout, 4096, 0);
    struct ph__block block = encode(&layout, &rows);
    /* four directory entries; a label of one bit from a dictionary of two, 32 bits, a constant, 6 bits;
     * padding */
    size_t streams = 2 * 4 + 4096 / 8 + 4096 * 4 + 0 + 4096 * 6 / 8;
    assert_int_equal(block.num_bytes, 4 * 16 + streams + PH_STREAM_OVERREAD_BYTES);
    release(&block);
    ph__rows_fini(&rows);
}

static void too_many_rows_are_refused(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout_fixed();
    struct ph__rows rows = part_rows(&layout, PH_BLOCK_MAX_ROWS + 1, 0);
    struct ph__block_encoder encoder = {.layout = &layout};
    const unsigned char *bytes;
    size_t num_bytes;
    assert_fails(ph__block_encode(&encoder, &rows, &bytes, &num_bytes), PH_ERROR_DATA, "8193 rows");
    rows.num_rows = 0;
    assert_fails(ph__block_encode(&encoder, &rows, &bytes, &num_bytes), PH_ERROR_DATA, "0 rows");
    ph__block_encoder_fini(&encoder);
    ph__rows_fini(&rows);
}

/* Decodes a block whose bytes are hostile: an error, or rows whose ids are rows of their tables. */
static bool decode_hostile(const struct ph__row_layout *layout, const struct ph__block *block)
{
    struct ph__block_decoder decoder = {.layout = layout};
    struct ph__rows rows = {0};
    ph_status status = ph__block_decode(&decoder, block, &rows);
    assert_true(status == PH_OK || status == PH_ERROR_DATA);
    assert_int_equal(rows.num_rows, status == PH_OK ? block->num_rows : 0);
    for (size_t i = 0; i < rows.num_rows; i++) {
        const uint32_t *row = rows.words + rows.starts[i], *list = row + layout->num_fixed_words;
        for (size_t word = 0; word < layout->num_fixed_words; word++)
            assert_true(layout->limits[word] == 0 || row[word] < layout->limits[word]);
        for (size_t l = 0; l < layout->num_lists; l++) {
            for (uint32_t k = 0; k < row[layout->lists[l].word]; k++)
                assert_true(list[k] < layout->lists[l].limit);
            list += (size_t)row[layout->lists[l].word] << layout->lists[l].is_weighted;
        }
        assert_ptr_equal(list, rows.words + rows.starts[i + 1]);
    }
    ph__rows_fini(&rows);
    ph__block_decoder_fini(&decoder);
    return status == PH_OK;
}

static void hostile_bytes_never_leave_the_bounds(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__rows rows = part_rows(&layout, 200, 0);
    struct ph__block block = encode(&layout, &rows);
    unsigned char *bytes = (unsigned char *)(uintptr_t)block.bytes;
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    size_t num_refused = 0;
    for (int i = 0; i < 20000; i++) {
        /* mostly the directory, where the damage is worst */
        uint64_t reach = ph__rng_below(&rng, 4) == 0 ? block.num_bytes : 10 * sizeof(struct ph__stream);
        size_t at = (size_t)ph__rng_below(&rng, reach);
        unsigned char was = bytes[at];
        bytes[at] = (unsigned char)ph__rng_next(&rng);
        num_refused += !decode_hostile(&layout, &block);
        bytes[at] = was;
    }
    assert_true(num_refused > 5000);
    assert_true(decode_hostile(&layout, &block));
    release(&block);
    ph__rows_fini(&rows);
}

static void a_block_cut_short_or_of_other_sizes_is_refused(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__rows rows = part_rows(&layout, 200, 0);
    struct ph__block block = encode(&layout, &rows);
    for (size_t num_bytes = 0; num_bytes < block.num_bytes; num_bytes += 8) {
        struct ph__block cut = block;
        unsigned char *copy = malloc(num_bytes + 1);
        assert_non_null(copy);
        memcpy(copy, block.bytes, num_bytes);
        cut.bytes = copy;
        cut.num_bytes = num_bytes;
        assert_false(decode_hostile(&layout, &cut));
        free(copy);
    }
    struct ph__block other = block;
    other.num_rows = 199;
    assert_false(decode_hostile(&layout, &other));
    other = block;
    other.num_words++;
    assert_false(decode_hostile(&layout, &other));
    release(&block);
    ph__rows_fini(&rows);
}

static void an_id_beyond_its_table_is_refused(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__block_decoder decoder = {.layout = &layout};
    struct ph__rows rows = part_rows(&layout, 300, 0), decoded = {0};
    rows.words[rows.starts[299] + 3] = 50;
    struct ph__block block = encode(&layout, &rows);
    assert_fails(ph__block_decode(&decoder, &block, &decoded), PH_ERROR_DATA, "an id of stream 3 is beyond");
    release(&block);
    rows.words[rows.starts[299] + 3] = 49;
    size_t row = 0;
    while (rows.words[rows.starts[row] + 4] == 0)
        row++;
    rows.words[rows.starts[row] + PART_FIXED_WORDS] = 1000;
    block = encode(&layout, &rows);
    assert_fails(ph__block_decode(&decoder, &block, &decoded), PH_ERROR_DATA, "an id of stream 7 is beyond");
    release(&block);
    ph__block_decoder_fini(&decoder);
    ph__rows_fini(&rows);
    ph__rows_fini(&decoded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back_behind_the_rows_that_are_there),
        cmocka_unit_test(a_block_takes_no_more_than_its_streams_need),
        cmocka_unit_test(too_many_rows_are_refused),
        cmocka_unit_test(hostile_bytes_never_leave_the_bounds),
        cmocka_unit_test(a_block_cut_short_or_of_other_sizes_is_refused),
        cmocka_unit_test(an_id_beyond_its_table_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
