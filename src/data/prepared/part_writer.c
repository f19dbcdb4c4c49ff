#include "data/prepared/part_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"

struct ph__part_writer {
    struct ph_atomic_file file;
    bool is_open;
    uint64_t offset; /* of the next byte */
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
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to write it", path);
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
