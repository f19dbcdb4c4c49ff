/* The line of a file that names its columns: the first one that is not empty. */
#ifndef PH_DATA_HEADER_H
#define PH_DATA_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/stream.h"

struct ph__header {       /* zero-initialised is empty */
    char *line;           /* the names lie in it */
    uint64_t line_number; /* where it stands in the file, from 1 */
    bool is_whole;        /* all names have been read */
    char **names;
    size_t num_names, names_capacity;
    char **sorted; /* (num_names) the names, in the order of their bytes */
};

/* Reads the first line that is not empty: names that are not blank, not doubled, and UTF-8. Blanks and tabs around a name are not part
 * of it, unless it is quoted.
 * Errors: PH_ERROR_DATA. The header is to be fini'ed also on failure. */
ph_status ph__header_read(
    struct ph_reader *reader, char separator, bool has_quotes, struct ph__header *header);
void ph__header_fini(struct ph__header *header);

/* Fails with a text about headerless Avazu files where the file's first line is a row, in place of what `status` and its error say
 * of that line. Returns `status` where the line is a header. */
ph_status ph__header_blame_avazu(const struct ph__header *header, const char *path, ph_status status);

bool ph__header_has(const struct ph__header *header, const char *name);

#endif
