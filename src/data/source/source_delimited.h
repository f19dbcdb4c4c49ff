/* Rows of cells between separators: reads the line of a file that names its columns, and matches the cells of
 * a line with the columns of an encoder. A source over a file, or a serving program, matches once and then
 * encodes line by line. */
#ifndef PH_DATA_SOURCE_DELIMITED_H
#define PH_DATA_SOURCE_DELIMITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/stream.h"
#include "data/encode/row_encoder.h"
#include "data/source/line_file.h"

/* Cuts the cell at *cursor off and moves *cursor behind its separator, to NULL after the line's last cell.
 * The cell is NUL-terminated in place. Returns false, with the line spoilt, when a quote is not closed or
 * text follows it. */
bool ph__cell_next(
    char **cursor, char *line_end, char separator, bool has_quotes, char **cell_out, size_t *length_out);

/* ---- the header: the first line that is not empty ---- */

struct ph__header {       /* zero-initialised is empty */
    char *line;           /* holds the names */
    uint64_t line_number; /* number of the line in the file, from 1 */
    bool is_whole;        /* true: all names have been read */
    char **names;
    size_t num_names, names_capacity;
    char **sorted; /* (num_names) names in the order of their bytes */
};

/* Reads the first line that is not empty: names that are not blank, not doubled, and UTF-8. Blanks and tabs
 * around a name are not part of it, unless it is quoted. Errors: PH_ERROR_DATA. Free the header also on
 * failure. */
ph_status ph__header_read(
    struct ph__reader *reader, char separator, bool has_quotes, struct ph__header *header);
void ph__header_fini(struct ph__header *header);

/* Replaces the error `status` by one about headerless Avazu files when the file's first line is a row.
 * Returns `status` when the line is a header. */
ph_status ph__header_blame_avazu(const struct ph__header *header, const char *path, ph_status status);

/* ---- rows ---- */

/* Columns that each cell of a line goes to: several when they are made from one cell, none when it is
 * skipped. */
struct ph__delimited { /* zero-initialised is empty */
    const struct ph_encoder *encoder;
    size_t num_cells;
    size_t *first;                     /* (num_cells + 1) into columns */
    const struct ph__column **columns; /* the encoder's; cell i has [first[i], first[i + 1]) */
};

/* Matches cells by position: the cells are the columns of the file that the encoder was made for, with or
 * without its labels. */
ph_status ph__delimited_match_positions(
    struct ph__delimited *delimited, const struct ph_encoder *encoder, bool has_labels);
void ph__delimited_fini(struct ph__delimited *delimited);

/* Counts the cells of a line. A quote that is not closed begins the last cell. */
size_t ph__delimited_count(const struct ph_encoder *encoder, const char *line);

/* Gives the cells of a line, NUL-terminated at line[line_length], to a row that has begun. Overwrites the
 * line, which must stay until the row's commit. PH_ERROR_DATA naming the problem without a place. */
ph_status ph__delimited_encode(
    const struct ph__delimited *delimited, struct ph__row_encoder *row, char *line, size_t line_length);

/* ---- files ---- */

struct ph__delimited_file {
    struct ph__line_file file; /* must stay the first member */
    struct ph__delimited delimited;
    bool is_unmatched; /* no header: the first row decides whether there are labels */
};

/* Functions of a struct ph__format, for a source whose state begins with the file, which is zero before it is
 * opened. Close it also on failure. */
ph_status ph__delimited_file_open(
    struct ph__source *source, struct ph__delimited_file *state, const struct ph__source_position *position);
void ph__delimited_file_close(struct ph__delimited_file *state);
ph_status ph__delimited_file_encode(struct ph__source *source, struct ph__delimited_file *state);

#endif
