/* Parts of prepared data: written whole or not at all, and read with nothing believed that they say. */
#include <unistd.h>

#include "base/sum/checksum.h"
#include "data/prepared/part_file.h"
#include "unit/data/part_fixture.h"

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

/* ---- writing ---- */

static void a_part_appears_only_when_it_is_finished(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__part_writer *writer;
    const char *path = path_of("unfinished.phd");
    struct ph__rows rows = part_rows(&layout, 10, 0);
    assert_ok(ph__part_writer_open(path, &layout, part_digest, &writer));
    assert_ok(ph__part_writer_add(writer, &rows));
    assert_false(ph__file_exists(path));
    ph__part_writer_close(writer);
    assert_false(ph__file_exists(path));
    assert_false(ph__file_exists(path_of("unfinished.phd.tmp")));
    ph__rows_fini(&rows);
}

static void the_same_rows_are_the_same_bytes(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    char first[4096];
    size_t first_bytes, second_bytes;
    snprintf(first, sizeof first, "%s", path_of("first.phd"));
    part_write(first, &layout, 3, 500);
    part_write(path_of("second.phd"), &layout, 3, 500);
    unsigned char *one = part_bytes(first, &first_bytes);
    unsigned char *other = part_bytes(path_of("second.phd"), &second_bytes);
    assert_int_equal(first_bytes, second_bytes);
    assert_memory_equal(one, other, first_bytes);
    free(one);
    free(other);
}

static void a_folder_that_is_missing_is_a_disk_error(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__part_writer *writer = NULL;
    assert_fails(ph__part_writer_open("/nonexistent/part.phd", &layout, part_digest, &writer), PH_ERROR_DISK,
        "/nonexistent/part.phd");
    assert_null(writer);
    ph__part_writer_close(NULL);
}

static void a_full_disk_is_a_disk_error(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        test_skip("there is no /dev/full");
    struct ph__row_layout layout = part_layout();
    struct ph__part_writer *writer = NULL;
    assert_int_equal(symlink("/dev/full", path_of("full.phd.tmp")), 0);
    assert_fails(ph__part_writer_open(path_of("full.phd"), &layout, part_digest, &writer), PH_ERROR_DISK,
        "No space left");
}

/* ---- reading ---- */

#define NUM_BLOCKS 3
#define NUM_ROWS 300 /* of a block */

static void blocks_come_back_in_any_order(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__block_decoder decoder = {.layout = &layout};
    struct ph__part_reader *reader;
    part_write(path_of("part.phd"), &layout, NUM_BLOCKS, NUM_ROWS);
    assert_ok(ph__part_reader_open(path_of("part.phd"), &layout, part_digest, &reader));
    const struct ph__part_footer *footer = ph__part_reader_footer(reader);
    assert_int_equal(footer->num_blocks, NUM_BLOCKS);
    assert_int_equal(footer->num_rows, NUM_BLOCKS * NUM_ROWS);
    assert_int_equal(footer->range.begin, 100);
    assert_int_equal(footer->range.end, 5000);
    assert_int_equal(footer->range.num_bad_rows, 3);
    static const size_t order[] = {2, 0, 1, 2};
    struct ph__rows decoded = {0};
    for (size_t i = 0; i < 4; i++) {
        struct ph__rows rows = part_rows(&layout, NUM_ROWS, order[i]);
        assert_int_equal(ph__part_reader_entries(reader)[order[i]].num_words, ph__rows_num_words(&rows));
        ph__part_reader_expect(reader, order[i]);
        assert_ok(ph__part_reader_decode(reader, order[i], &decoder, &decoded));
        assert_rows_equal(&decoded, i * NUM_ROWS, &rows);
        uint32_t labels[NUM_ROWS];
        assert_ok(ph__part_reader_decode_labels(reader, order[i], &decoder, labels));
        for (size_t row = 0; row < NUM_ROWS; row++)
            assert_int_equal(labels[row], rows.words[rows.starts[row]]);
        ph__rows_fini(&rows);
    }
    ph__rows_fini(&decoded);
    ph__block_decoder_fini(&decoder);
    ph__part_reader_close(reader);
}

static void a_part_without_rows_can_be_read(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__part_reader *reader;
    part_write(path_of("empty.phd"), &layout, 0, 0);
    assert_ok(ph__part_reader_open(path_of("empty.phd"), &layout, part_digest, &reader));
    assert_int_equal(ph__part_reader_footer(reader)->num_blocks, 0);
    ph__part_reader_close(reader);
}

/* Opens the part and decodes all of it: PH_OK only if every row is as it was written. */
static ph_status read_all(const char *path, const struct ph__row_layout *layout)
{
    struct ph__part_reader *reader;
    struct ph__block_decoder decoder = {.layout = layout};
    struct ph__rows rows = {0};
    PH_TRY(ph__part_reader_open(path, layout, part_digest, &reader));
    ph_status status = PH_OK;
    for (size_t i = 0; i < ph__part_reader_footer(reader)->num_blocks && status == PH_OK; i++)
        status = ph__part_reader_decode(reader, i, &decoder, &rows);
    ph__part_reader_close(reader);
    ph__block_decoder_fini(&decoder);
    ph__rows_fini(&rows);
    return status;
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    size_t num_bytes;
    part_write(path_of("whole.phd"), &layout, NUM_BLOCKS, NUM_ROWS);
    unsigned char *bytes = part_bytes(path_of("whole.phd"), &num_bytes);
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    for (size_t i = 0; i < 1000; i++) {
        /* every byte of header, index and footer, and a sample of the blocks */
        size_t at = i < 200 ? i : i < 500 ? num_bytes - (i - 199) : (size_t)ph__rng_below(&rng, num_bytes);
        unsigned char flip = (unsigned char)(1u << ph__rng_below(&rng, 8));
        bytes[at] ^= flip;
        part_put_bytes(path_of("flipped.phd"), bytes, num_bytes);
        assert_fails(read_all(path_of("flipped.phd"), &layout), PH_ERROR_DATA, "flipped.phd: ");
        bytes[at] ^= flip;
    }
    part_put_bytes(path_of("flipped.phd"), bytes, num_bytes);
    assert_ok(read_all(path_of("flipped.phd"), &layout));
    free(bytes);
}

static void every_cut_is_found(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    size_t num_bytes;
    part_write(path_of("whole.phd"), &layout, NUM_BLOCKS, NUM_ROWS);
    unsigned char *bytes = part_bytes(path_of("whole.phd"), &num_bytes);
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    for (size_t i = 0; i < 1000; i++) {
        size_t cut = i < 300 ? i : i < 600 ? num_bytes - (i - 299) : (size_t)ph__rng_below(&rng, num_bytes);
        part_put_bytes(path_of("cut.phd"), bytes, cut);
        assert_fails(read_all(path_of("cut.phd"), &layout), PH_ERROR_DATA, "cut.phd: ");
    }
    free(bytes);
}

static void a_damaged_block_is_named_and_the_others_can_be_read(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__block_decoder decoder = {.layout = &layout};
    struct ph__part_reader *reader;
    struct ph__rows rows = {0};
    size_t num_bytes;
    part_write(path_of("block.phd"), &layout, NUM_BLOCKS, NUM_ROWS);
    unsigned char *bytes = part_bytes(path_of("block.phd"), &num_bytes);
    assert_ok(ph__part_reader_open(path_of("block.phd"), &layout, part_digest, &reader));
    const struct ph__part_entry entry = ph__part_reader_entries(reader)[1];
    ph__part_reader_close(reader);
    bytes[entry.offset + entry.num_bytes / 2] ^= 1;
    part_put_bytes(path_of("block.phd"), bytes, num_bytes);
    assert_ok(ph__part_reader_open(path_of("block.phd"), &layout, part_digest, &reader));
    assert_ok(ph__part_reader_decode(reader, 0, &decoder, &rows));
    assert_fails(
        ph__part_reader_decode(reader, 1, &decoder, &rows), PH_ERROR_DATA, "block.phd: block 1 is damaged");
    assert_ok(ph__part_reader_decode(reader, 2, &decoder, &rows));
    assert_int_equal(rows.num_rows, 2 * NUM_ROWS);
    ph__part_reader_close(reader);
    ph__block_decoder_fini(&decoder);
    ph__rows_fini(&rows);
    free(bytes);
}

/* Makes all checksums of the part right again, as far as its own numbers lead there. */
static void reseal(unsigned char *bytes, size_t num_bytes)
{
    struct ph__part_footer footer;
    memcpy(&footer, bytes + num_bytes - sizeof footer, sizeof footer);
    for (size_t i = 0; i < footer.num_blocks && i < NUM_BLOCKS; i++) {
        struct ph__part_entry entry;
        size_t at = num_bytes - sizeof footer - (NUM_BLOCKS - i) * sizeof entry;
        memcpy(&entry, bytes + at, sizeof entry);
        if (entry.offset < num_bytes && entry.num_bytes <= num_bytes - entry.offset)
            entry.checksum = ph__checksum(bytes + entry.offset, entry.num_bytes);
        memcpy(bytes + at, &entry, sizeof entry);
    }
    size_t index_bytes = NUM_BLOCKS * sizeof(struct ph__part_entry);
    footer.index_checksum = ph__checksum(bytes + num_bytes - sizeof footer - index_bytes, index_bytes);
    footer.checksum = ph__part_footer_checksum(&footer);
    memcpy(bytes + num_bytes - sizeof footer, &footer, sizeof footer);
}

static void hostile_files_with_right_checksums_are_read_within_bounds(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    size_t num_bytes;
    part_write(path_of("whole.phd"), &layout, NUM_BLOCKS, NUM_ROWS);
    unsigned char *bytes = part_bytes(path_of("whole.phd"), &num_bytes);
    unsigned char *hostile = malloc(num_bytes);
    assert_non_null(hostile);
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    size_t num_refused = 0,
           tail = sizeof(struct ph__part_footer) + NUM_BLOCKS * sizeof(struct ph__part_entry);
    for (size_t i = 0; i < 1200; i++) {
        memcpy(hostile, bytes, num_bytes);
        size_t at = i % 2 == 0 ? num_bytes - 1 - (size_t)ph__rng_below(&rng, tail)
                               : 64 + (size_t)ph__rng_below(&rng, num_bytes - 64);
        hostile[at] = (unsigned char)ph__rng_next(&rng);
        reseal(hostile, num_bytes);
        part_put_bytes(path_of("hostile.phd"), hostile, num_bytes);
        ph_status status = read_all(path_of("hostile.phd"), &layout);
        assert_true(status == PH_OK || status == PH_ERROR_DATA);
        num_refused += status != PH_OK;
    }
    assert_true(num_refused > 200);
    free(hostile);
    free(bytes);
}

static void another_version_is_refused_with_the_command_that_helps(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    size_t num_bytes;
    part_write(path_of("newer.phd"), &layout, 1, 10);
    unsigned char *bytes = part_bytes(path_of("newer.phd"), &num_bytes);
    bytes[8] = 2;
    part_put_bytes(path_of("newer.phd"), bytes, num_bytes);
    assert_fails(read_all(path_of("newer.phd"), &layout), PH_ERROR_DATA,
        "version 2 of prepared data is not supported, only version 1; prepare it again: phloem prepare");
    free(bytes);
}

static void another_encoder_or_layout_is_refused(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout(), fixed = part_layout_fixed();
    struct ph__part_reader *reader = NULL;
    unsigned char digest[PH_ENCODER_DIGEST_BYTES] = {0};
    part_write(path_of("part.phd"), &layout, 1, 10);
    assert_fails(ph__part_reader_open(path_of("part.phd"), &layout, digest, &reader), PH_ERROR_DATA,
        "was prepared with another encoder");
    assert_fails(ph__part_reader_open(path_of("part.phd"), &fixed, part_digest, &reader), PH_ERROR_DATA,
        "was prepared with another encoder");
    assert_null(reader);
}

static void what_is_no_part_is_refused(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__part_reader *reader = NULL;
    static unsigned char zeros[1000];
    part_put_bytes(path_of("zeros.phd"), zeros, sizeof zeros);
    part_put_bytes(path_of("nothing.phd"), zeros, 0);
    assert_fails(ph__part_reader_open(path_of("missing.phd"), &layout, part_digest, &reader), PH_ERROR_DATA,
        "missing.phd: cannot open: No such file");
    assert_fails(ph__part_reader_open(path_of("zeros.phd"), &layout, part_digest, &reader), PH_ERROR_DATA,
        "not a part of prepared data");
    assert_fails(ph__part_reader_open(path_of("nothing.phd"), &layout, part_digest, &reader), PH_ERROR_DATA,
        "not a part of prepared data");
    assert_fails(ph__part_reader_open(test_folder(), &layout, part_digest, &reader), PH_ERROR_DATA,
        "not a regular file");
    ph__part_reader_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_appears_only_when_it_is_finished),
        cmocka_unit_test(the_same_rows_are_the_same_bytes),
        cmocka_unit_test(a_folder_that_is_missing_is_a_disk_error),
        cmocka_unit_test(a_full_disk_is_a_disk_error),
        cmocka_unit_test(blocks_come_back_in_any_order),
        cmocka_unit_test(a_part_without_rows_can_be_read),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(every_cut_is_found),
        cmocka_unit_test(a_damaged_block_is_named_and_the_others_can_be_read),
        cmocka_unit_test(hostile_files_with_right_checksums_are_read_within_bounds),
        cmocka_unit_test(another_version_is_refused_with_the_command_that_helps),
        cmocka_unit_test(another_encoder_or_layout_is_refused),
        cmocka_unit_test(what_is_no_part_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
