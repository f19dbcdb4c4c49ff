#include "data/prepared/part_file.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"

/* ---- layout ---- */

static unsigned nibble(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10) & 15u;
}

void ph__part_digest(const char *hex, unsigned char digest_out[PH_ENCODER_DIGEST_BYTES])
{
    for (size_t i = 0; i < PH_ENCODER_DIGEST_BYTES; i++)
        digest_out[i] = (unsigned char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
}

ph_status ph__part_header_create(const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], unsigned char **bytes_out, size_t *num_bytes_out)
{
    size_t num_bytes =
        sizeof(struct ph__part_header) + layout->num_lists * sizeof(struct ph__part_list) + sizeof(uint64_t);
    struct ph__part_header header = {.magic = PH_PART_MAGIC,
        .version = PH_PART_VERSION,
        .header_bytes = (uint32_t)num_bytes,
        .num_fixed_words = (uint32_t)layout->num_fixed_words,
        .num_lists = (uint32_t)layout->num_lists};
    memcpy(header.encoder_digest, digest, sizeof header.encoder_digest);
    unsigned char *bytes = malloc(num_bytes), *end = bytes;
    if (bytes == NULL)
        return ph__out_of_memory("a header of %zu bytes", num_bytes);
    memcpy(end, &header, sizeof header);
    end += sizeof header;
    for (size_t l = 0; l < layout->num_lists; l++) {
        struct ph__part_list list = {layout->lists[l].word, layout->lists[l].is_weighted};
        memcpy(end, &list, sizeof list);
        end += sizeof list;
    }
    uint64_t checksum = ph__checksum(bytes, (size_t)(end - bytes));
    memcpy(end, &checksum, sizeof checksum);
    *bytes_out = bytes;
    *num_bytes_out = num_bytes;
    return PH_OK;
}

uint64_t ph__part_footer_checksum(const struct ph__part_footer *footer)
{
    return ph__checksum(footer, offsetof(struct ph__part_footer, checksum));
}

/* ---- writing ---- */

struct ph__part_writer {
    struct ph__atomic_file file;
    bool is_open;
    uint64_t offset; /* offset of the next byte */
    struct ph__block_encoder encoder;
    struct ph__part_entry *entries;
    size_t entries_capacity;
    struct ph__part_footer footer; /* totals so far */
};

static ph_status write_bytes(struct ph__part_writer *writer, const void *bytes, size_t num_bytes)
{
    PH_TRY(ph__atomic_file_write(&writer->file, bytes, num_bytes));
    writer->offset += num_bytes;
    return PH_OK;
}

static ph_status write_header(struct ph__part_writer *writer, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES])
{
    unsigned char *bytes;
    size_t num_bytes;
    PH_TRY(ph__part_header_create(layout, digest, &bytes, &num_bytes));
    writer->footer.header_checksum = ph__checksum(bytes, num_bytes);
    ph_status status = write_bytes(writer, bytes, num_bytes);
    free(bytes);
    return status;
}

ph_status ph__part_writer_open(const char *path, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], struct ph__part_writer **writer_out)
{
    struct ph__part_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return ph__out_of_memory("cannot write %s", path);
    writer->encoder.layout = layout;
    ph_status status = ph__atomic_file_open(path, &writer->file);
    writer->is_open = status == PH_OK;
    if (status == PH_OK)
        status = write_header(writer, layout, digest);
    if (status != PH_OK) {
        ph__part_writer_close(writer);
        return status;
    }
    *writer_out = writer;
    return PH_OK;
}

ph_status ph__part_writer_add(struct ph__part_writer *writer, const struct ph__rows *rows)
{
    const unsigned char *bytes;
    size_t num_bytes;
    if (rows->num_rows == 0)
        return PH_OK;
    struct ph__part_footer *footer = &writer->footer;
    PH_TRY(ph__array_reserve((void **)&writer->entries, &writer->entries_capacity,
        (size_t)footer->num_blocks + 1, sizeof *writer->entries));
    PH_TRY(ph__block_encode(&writer->encoder, rows, &bytes, &num_bytes));
    writer->entries[footer->num_blocks++] = (struct ph__part_entry){.offset = writer->offset,
        .num_bytes = (uint32_t)num_bytes,
        .num_rows = (uint32_t)rows->num_rows,
        .num_words = ph__rows_num_words(rows),
        .checksum = ph__checksum(bytes, num_bytes)};
    footer->num_rows += rows->num_rows;
    footer->num_words += ph__rows_num_words(rows);
    return write_bytes(writer, bytes, num_bytes);
}

ph_status ph__part_writer_finish(
    struct ph__part_writer *writer, const struct ph__part_range *range, struct ph__part_footer *footer_out)
{
    struct ph__part_footer footer = writer->footer;
    size_t index_bytes = (size_t)footer.num_blocks * sizeof *writer->entries;
    footer.range = *range;
    footer.index_offset = writer->offset;
    footer.index_checksum = ph__checksum(writer->entries, index_bytes);
    footer.checksum = ph__part_footer_checksum(&footer);
    memcpy(footer.magic, PH_PART_END_MAGIC, sizeof footer.magic);
    PH_TRY(write_bytes(writer, writer->entries, index_bytes));
    PH_TRY(write_bytes(writer, &footer, sizeof footer));
    writer->is_open = false;
    PH_TRY(ph__atomic_file_commit(&writer->file));
    *footer_out = footer;
    return PH_OK;
}

void ph__part_writer_close(struct ph__part_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->is_open)
        ph__atomic_file_abandon(&writer->file);
    ph__block_encoder_fini(&writer->encoder);
    free(writer->entries);
    free(writer);
}

/* ---- reading ---- */

#define PREPARE_ANEW "prepare it again: phloem prepare CONFIG --out FOLDER"

struct ph__part_reader {
    char *path;
    const struct ph__row_layout *layout;
    struct ph__mapped_file map;
    struct ph__part_footer footer;
    const struct ph__part_entry *entries; /* (num_blocks) in the map */
    atomic_bool *is_checked;              /* (num_blocks) true: the block's checksum was right */
};

static ph_status fail(const struct ph__part_reader *reader, const char *what)
{
    return ph_fail(PH_ERROR_DATA, "%s: %s", reader->path, what);
}

/* ---- opening ---- */

static ph_status map(struct ph__part_reader *reader)
{
    PH_TRY(ph__mapped_file_open(reader->path, PH_ERROR_DATA, &reader->map));
    if (reader->map.size < sizeof(struct ph__part_header) + sizeof(struct ph__part_footer))
        return fail(reader, "not a part of prepared data, or cut off");
    return PH_OK;
}

/* Compares the header with the expected one, which follows from layout and digest; the difference tells why
 * the file cannot be read. */
static ph_status check_header(const struct ph__part_reader *reader,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], uint64_t *checksum_out, size_t *header_bytes_out)
{
    struct ph__part_header header;
    memcpy(&header, reader->map.bytes, sizeof header);
    if (memcmp(header.magic, PH_PART_MAGIC, sizeof header.magic) != 0)
        return fail(reader, "not a part of prepared data");
    if (header.version != PH_PART_VERSION)
        return ph_fail(PH_ERROR_DATA,
            "%s: version %" PRIu32 " of prepared data is not supported, only version %d; " PREPARE_ANEW,
            reader->path, header.version, PH_PART_VERSION);
    uint64_t checksum = 0;
    if (header.header_bytes > reader->map.size || header.header_bytes < sizeof header + sizeof checksum)
        return fail(reader, "the header is damaged; " PREPARE_ANEW);
    size_t content_bytes = header.header_bytes - sizeof checksum;
    memcpy(&checksum, reader->map.bytes + content_bytes, sizeof checksum);
    if (checksum != ph__checksum(reader->map.bytes, content_bytes))
        return fail(reader, "the header is damaged; " PREPARE_ANEW);
    unsigned char *wanted;
    size_t num_wanted;
    PH_TRY(ph__part_header_create(reader->layout, digest, &wanted, &num_wanted));
    bool is_wanted = num_wanted == header.header_bytes && memcmp(wanted, reader->map.bytes, num_wanted) == 0;
    *checksum_out = ph__checksum(wanted, num_wanted);
    *header_bytes_out = num_wanted;
    free(wanted);
    return is_wanted ? PH_OK : fail(reader, "was prepared with another encoder than the one beside it");
}

static ph_status read_footer(struct ph__part_reader *reader, uint64_t header_checksum)
{
    struct ph__part_footer *footer = &reader->footer;
    size_t footer_offset = reader->map.size - sizeof *footer;
    memcpy(footer, reader->map.bytes + footer_offset, sizeof *footer);
    if (memcmp(footer->magic, PH_PART_END_MAGIC, sizeof footer->magic) != 0)
        return fail(reader, "the file is cut off; " PREPARE_ANEW);
    if (footer->checksum != ph__part_footer_checksum(footer) || footer->header_checksum != header_checksum ||
        footer->num_blocks > footer_offset / sizeof *reader->entries ||
        footer->index_offset != footer_offset - footer->num_blocks * sizeof *reader->entries ||
        footer->index_offset % 8 != 0)
        return fail(reader, "the footer is damaged; " PREPARE_ANEW);
    reader->entries = (const struct ph__part_entry *)(const void *)(reader->map.bytes + footer->index_offset);
    size_t index_bytes = (size_t)footer->num_blocks * sizeof *reader->entries;
    if (footer->index_checksum != ph__checksum(reader->entries, index_bytes))
        return fail(reader, "the index is damaged; " PREPARE_ANEW);
    return PH_OK;
}

/* Checks that the blocks lie between header and index without gaps, and add up to the footer's totals. */
static ph_status check_entries(const struct ph__part_reader *reader, size_t header_bytes)
{
    const struct ph__part_footer *footer = &reader->footer;
    uint64_t offset = header_bytes, num_rows = 0, num_words = 0;
    for (size_t i = 0; i < footer->num_blocks; i++) {
        const struct ph__part_entry *entry = &reader->entries[i];
        if (entry->offset != offset || entry->num_bytes % 8 != 0 || entry->num_rows == 0 ||
            entry->num_rows > PH_BLOCK_MAX_ROWS || entry->num_words > PH_BLOCK_MAX_WORDS)
            return fail(reader, "the index is not valid; " PREPARE_ANEW);
        offset += entry->num_bytes;
        num_rows += entry->num_rows;
        num_words += entry->num_words;
    }
    bool is_whole =
        offset == footer->index_offset && num_rows == footer->num_rows && num_words == footer->num_words;
    return is_whole ? PH_OK : fail(reader, "the index is not valid; " PREPARE_ANEW);
}

static ph_status open_all(struct ph__part_reader *reader, const unsigned char digest[PH_ENCODER_DIGEST_BYTES])
{
    uint64_t header_checksum = 0;
    size_t header_bytes = 0;
    PH_TRY(map(reader));
    PH_TRY(check_header(reader, digest, &header_checksum, &header_bytes));
    PH_TRY(read_footer(reader, header_checksum));
    PH_TRY(check_entries(reader, header_bytes));
    reader->is_checked = calloc((size_t)reader->footer.num_blocks + 1, sizeof *reader->is_checked);
    if (reader->is_checked == NULL)
        return ph__out_of_memory("the blocks of %s", reader->path);
    return PH_OK;
}

ph_status ph__part_reader_open(const char *path, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], struct ph__part_reader **reader_out)
{
    struct ph__part_reader *reader = calloc(1, sizeof *reader);
    char *copy = strdup(path);
    if (reader == NULL || copy == NULL) {
        free(reader);
        free(copy);
        return ph__out_of_memory("cannot read %s", path);
    }
    reader->path = copy;
    reader->layout = layout;
    ph_status status = open_all(reader, digest);
    if (status != PH_OK) {
        ph__part_reader_close(reader);
        return status;
    }
    *reader_out = reader;
    return PH_OK;
}

void ph__part_reader_close(struct ph__part_reader *reader)
{
    if (reader == NULL)
        return;
    ph__mapped_file_close(&reader->map);
    free(reader->is_checked);
    free(reader->path);
    free(reader);
}

/* ---- blocks ---- */

const struct ph__part_footer *ph__part_reader_footer(const struct ph__part_reader *reader)
{
    return &reader->footer;
}

uint64_t ph__part_reader_num_bytes(const struct ph__part_reader *reader)
{
    return reader->map.size;
}

const struct ph__part_entry *ph__part_reader_entries(const struct ph__part_reader *reader)
{
    return reader->entries;
}

/* Checks a block's checksum once. Two threads may check a block at once, with the same result. */
static ph_status check_block(struct ph__part_reader *reader, size_t block)
{
    const struct ph__part_entry *entry = &reader->entries[block];
    if (atomic_load_explicit(&reader->is_checked[block], memory_order_relaxed))
        return PH_OK;
    if (entry->checksum != ph__checksum(reader->map.bytes + entry->offset, entry->num_bytes))
        return ph_fail(PH_ERROR_DATA, "%s: block %zu is damaged; " PREPARE_ANEW, reader->path, block);
    atomic_store_explicit(&reader->is_checked[block], true, memory_order_relaxed);
    return PH_OK;
}

static struct ph__block content_of(const struct ph__part_reader *reader, size_t block)
{
    const struct ph__part_entry *entry = &reader->entries[block];
    return (struct ph__block){.bytes = reader->map.bytes + entry->offset,
        .num_bytes = entry->num_bytes,
        .num_rows = entry->num_rows,
        .num_words = (size_t)entry->num_words};
}

static ph_status name_block(const struct ph__part_reader *reader, size_t block, ph_status status)
{
    if (status == PH_OK)
        return PH_OK;
    return ph_fail(status, "%s: block %zu: %s", reader->path, block, ph_error_text());
}

ph_status ph__part_reader_decode(
    struct ph__part_reader *reader, size_t block, struct ph__block_decoder *decoder, struct ph__rows *rows)
{
    PH_TRY(check_block(reader, block));
    const struct ph__block content = content_of(reader, block);
    return name_block(reader, block, ph__block_decode(decoder, &content, rows));
}

ph_status ph__part_reader_decode_labels(const struct ph__part_reader *reader, size_t block,
    const struct ph__block_decoder *decoder, uint32_t *labels_out)
{
    const struct ph__block content = content_of(reader, block);
    return name_block(reader, block, ph__block_decode_labels(decoder, &content, labels_out));
}

void ph__part_reader_expect(const struct ph__part_reader *reader, size_t block)
{
    const struct ph__part_entry *entry = &reader->entries[block];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)(reader->map.bytes + entry->offset) / page * page;
    uintptr_t end = (uintptr_t)(reader->map.bytes + entry->offset + entry->num_bytes);
    madvise((void *)start, end - start, MADV_WILLNEED);
}
