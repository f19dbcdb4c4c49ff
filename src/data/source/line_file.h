/* A text file that is read line by line, shared by the formats of lines: the first member of their state. */
#ifndef PH_DATA_LINE_FILE_H
#define PH_DATA_LINE_FILE_H

#include "base/file/stream.h"
#include "data/source/source.h"

struct ph__line_file {
    struct ph__reader *reader;
    char *line; /* line of the current row, NUL-terminated, not empty; borrowed from the reader */
    size_t length;
    uint64_t line_byte; /* start of the line */
    bool is_uncounted;  /* true: the number of lines before the start is unknown */
};

ph_status ph__line_file_open(struct ph__line_file *file, struct ph__source *source);
void ph__line_file_close(struct ph__line_file *file);

/* Goes to the position where reading starts, or past a header that was read. */
ph_status ph__line_file_start(struct ph__line_file *file, const struct ph__source_position *position);

/* ---- functions of a struct ph__format, for a source whose state begins with a line file ---- */

/* Fetches the next line that is not empty, within the source's end_byte. An error of the reader names the
 * true line; after an uncounted start the lines before are counted for that. */
ph_status ph__line_file_fetch(struct ph__source *source, bool *is_end_out);

/* Writes "path:line", after an uncounted start by counting the lines of the file; only the path when that
 * fails. */
void ph__line_file_locate(const struct ph__source *source, char *text, size_t size);
void ph__line_file_tell(const struct ph__source *source, struct ph__source_position *position);

#endif
