/* Lines of a text file with a header, each with a key: a 64-bit hash of some of its cells, or of the whole
 * line. Rows of several files that have the same key are one example. Two examples of n have the same key
 * with a probability of about n^2 / 2^65. */
#ifndef PH_SERVE_KEYED_LINES_H
#define PH_SERVE_KEYED_LINES_H

#include "base/memory/buffer.h"
#include "data/source/source_delimited.h"
#include "phloem/serve.h"

struct ph__keyed_lines { /* zero-initialised is closed */
    struct ph__reader *reader;
    struct ph__header header;
    char separator;
    size_t *key_cells; /* (num_keys) places in the header; none: the key is that of the line */
    size_t num_keys;
    /* of the latest line; borrowed until the next one */
    uint64_t key;
    char **cells; /* (header.num_names) NUL-terminated */
    size_t *lengths;
    struct ph__buffer text; /* the line as it was */
};

/* Opens a file of the format csv or tsv, whose header must have these columns (num_keys). Close it also after
 * a failure. PH_ERROR_DATA naming the file and the column. */
ph_status ph__keyed_lines_open(
    struct ph__keyed_lines *lines, const char *path, bool is_csv, const char *const *keys, size_t num_keys);
/* Reads the next line that is not empty; *has_line_out false: there is none. PH_ERROR_DATA with file and line
 * where it has another number of cells than the header. */
ph_status ph__keyed_lines_next(struct ph__keyed_lines *lines, bool *has_line_out);
void ph__keyed_lines_close(struct ph__keyed_lines *lines);

/* Returns the place of a column in the header, SIZE_MAX: it has none of this name. */
size_t ph__keyed_lines_find(const struct ph__keyed_lines *lines, const char *name);

/* ---- rows for a session ---- */

/* Gives the place of a column that a model reads. PH_ERROR_DATA naming file and column. */
ph_status ph__keyed_lines_place(const struct ph__keyed_lines *lines, const char *name, size_t *place_out);

/* Finds the session's columns in the header: places_out (its columns). PH_ERROR_DATA naming file and column
 * where one is missing, unless others fill the columns of this beginning (NULL: they do not): then its place
 * is SIZE_MAX. */
ph_status ph__keyed_lines_match(const struct ph__keyed_lines *lines, const struct ph_session *session,
    const char *filled, size_t *places_out);
/* Copies the latest line as cells of text in the arena: cells_out (num_columns); a blank where a place is
 * SIZE_MAX. */
ph_status ph__keyed_lines_copy(const struct ph__keyed_lines *lines, size_t num_columns, const size_t *places,
    struct ph__arena *arena, struct ph_cell *cells_out);

#endif
