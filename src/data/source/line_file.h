/* A text file that is read line by line: what the formats of lines share. One is the first member of an open
 * source's state. */
#ifndef PH_DATA_LINE_FILE_H
#define PH_DATA_LINE_FILE_H

#include "base/file/stream.h"
#include "data/source/source.h"

struct ph__line_file {
    struct ph__reader *reader;
    char *line; /* the row at hand, NUL-terminated, not empty; borrowed from the reader */
    size_t length;
    uint64_t line_byte; /* where it began */
    bool is_uncounted;  /* the lines before the start are not known */
};

ph_status ph__line_file_open(struct ph__line_file *file, struct ph__source *source);
void ph__line_file_close(struct ph__line_file *file);

/* Goes to where reading shall start, behind a header that has been read. */
ph_status ph__line_file_start(struct ph__line_file *file, const struct ph__source_position *position);

/* ---- functions of a struct ph__format: of a source whose state begins with a line file ---- */

/* Fetches the next line that is not empty, within the source's end_byte. What the reader fails with names the
 * true line, for which the lines before are counted when they are not known. */
ph_status ph__line_file_fetch(struct ph__source *source, bool *is_end_out);

/* Writes "path:line"; counts the lines of the file first when they are not known. Only the path when that
 * fails. */
void ph__line_file_locate(const struct ph__source *source, char *text, size_t size);
void ph__line_file_tell(const struct ph__source *source, struct ph__source_position *position);

#endif
