#include "data/source/line_file.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/file/compress.h"

ph_status ph__line_file_open(struct ph__line_file *file, struct ph__source *source)
{
    const char *path = source->paths[source->file];
    const struct ph__read_options options = {
        .stop_signal = source->options.stop_signal, .checksum = ph__source_checksum(source, path)};
    return ph__reader_open_with(path, &options, &file->reader);
}

void ph__line_file_close(struct ph__line_file *file)
{
    ph__reader_close(file->reader);
}

ph_status ph__line_file_start(struct ph__line_file *file, const struct ph__source_position *position)
{
    if (position->byte == 0)
        return PH_OK;
    file->is_uncounted = position->row == 0;
    /* a piece that begins in empty lines before the header has rows only after the header */
    const uint64_t read_byte = ph__reader_byte(file->reader);
    const uint64_t byte = position->byte > read_byte ? position->byte : read_byte;
    return ph__reader_seek(file->reader, byte, position->row);
}

/* Counts the lines of a file that begin before `byte`. Fails as the reader does, naming the true line. */
static ph_status count_lines(const char *path, uint64_t byte, uint64_t *num_lines_out)
{
    struct ph__reader *reader;
    PH_TRY(ph__reader_open(path, &reader));
    char *line = NULL;
    size_t length;
    ph_status status = PH_OK;
    do
        status = ph__reader_line(reader, &line, &length);
    while (status == PH_OK && line != NULL && ph__reader_byte(reader) < byte);
    *num_lines_out = ph__reader_line_number(reader);
    ph__reader_close(reader);
    return status;
}

/* Corrects the line in a reader's error, which counts from an uncounted start: a reader of the whole file
 * fails at the same place with the right line. */
static ph_status fail_counted(const struct ph__line_file *file)
{
    char text[1024];
    uint64_t num_lines;
    snprintf(text, sizeof text, "%s", ph_error_text());
    if (count_lines(ph__reader_path(file->reader), file->line_byte + 1, &num_lines) == PH_ERROR_DATA)
        return PH_ERROR_DATA;
    return ph_fail(PH_ERROR_DATA, "%s", text);
}

static ph_status read_line(struct ph__line_file *file)
{
    const ph_status status = ph__reader_line(file->reader, &file->line, &file->length);
    return status == PH_ERROR_DATA && file->is_uncounted ? fail_counted(file) : status;
}

ph_status ph__line_file_fetch(struct ph__source *source, bool *is_end_out)
{
    struct ph__line_file *file = source->state;
    uint64_t end_byte = source->options.end_byte;
    do {
        file->line_byte = ph__reader_byte(file->reader);
        *is_end_out = end_byte != 0 && file->line_byte >= end_byte;
        if (*is_end_out)
            return PH_OK;
        PH_TRY(read_line(file));
        *is_end_out = file->line == NULL;
        if (*is_end_out)
            return PH_OK;
    } while (file->length == 0);
    return PH_OK;
}

void ph__line_file_locate(const struct ph__source *source, char *text, size_t size)
{
    const struct ph__line_file *file = source->state;
    const char *path = ph__reader_path(file->reader);
    uint64_t number = ph__reader_line_number(file->reader), num_before = 0;
    if (!file->is_uncounted)
        snprintf(text, size, "%s:%" PRIu64, path, number);
    else if (count_lines(path, file->line_byte, &num_before) == PH_OK)
        snprintf(text, size, "%s:%" PRIu64, path, num_before + 1);
    else
        snprintf(text, size, "%s", path);
}

void ph__line_file_tell(const struct ph__source *source, struct ph__source_position *position)
{
    const struct ph__line_file *file = source->state;
    position->row = ph__reader_line_number(file->reader);
    position->byte = ph__reader_byte(file->reader);
}
