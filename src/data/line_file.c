#include "data/line_file.h"

#include <inttypes.h>
#include <stdio.h>

ph_status ph__line_file_open(struct ph__line_file *file, struct ph__source *source)
{
    return ph__reader_open_until(source->paths[source->file], source->options.stop_signal, &file->reader);
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
    return ph__reader_seek(file->reader, position->byte, position->row);
}

ph_status ph__line_file_fetch(struct ph__line_file *file, const struct ph__source *source, bool *is_end_out)
{
    uint64_t end_byte = source->options.end_byte;
    do {
        file->line_byte = ph__reader_byte(file->reader);
        *is_end_out = end_byte != 0 && file->line_byte >= end_byte;
        if (*is_end_out)
            return PH_OK;
        PH_TRY(ph__reader_line(file->reader, &file->line, &file->length));
        *is_end_out = file->line == NULL;
        if (*is_end_out)
            return PH_OK;
    } while (file->length == 0);
    return PH_OK;
}

/* Lines that begin before `byte`; 0 when the file cannot be read again. */
static uint64_t count_lines(const char *path, uint64_t byte)
{
    struct ph_reader *reader;
    if (ph__reader_open(path, &reader) != PH_OK)
        return 0;
    char *line = NULL;
    size_t length;
    while (ph__reader_byte(reader) < byte && ph__reader_line(reader, &line, &length) == PH_OK && line != NULL)
        continue;
    uint64_t num_lines = ph__reader_line_number(reader);
    ph__reader_close(reader);
    return num_lines;
}

void ph__line_file_locate(const struct ph__line_file *file, char *text, size_t size)
{
    const char *path = ph__reader_path(file->reader);
    uint64_t number = ph__reader_line_number(file->reader);
    if (file->is_uncounted)
        number = count_lines(path, file->line_byte) + 1;
    snprintf(text, size, "%s:%" PRIu64, path, number);
}

void ph__line_file_tell(const struct ph__line_file *file, struct ph__source_position *position)
{
    position->row = ph__reader_line_number(file->reader);
    position->byte = ph__reader_byte(file->reader);
}
