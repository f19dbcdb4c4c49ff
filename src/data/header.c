#include "data/header.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/cell.h"
#include "data/encoder.h"

static ph_status check_name(
    const struct ph__header *header, const char *path, const char *name, size_t length)
{
    if (length == 0)
        return ph_fail(PH_ERROR_DATA, "%s:1: column %zu has no name", path, header->num_names + 1);
    if (!ph__is_utf8(name, length))
        return ph_fail(
            PH_ERROR_DATA, "%s:1: the name of column %zu is not UTF-8", path, header->num_names + 1);
    return PH_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static ph_status sort_names(struct ph__header *header, const char *path)
{
    header->sorted = malloc(header->num_names * sizeof *header->sorted);
    if (header->sorted == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for the header", path);
    memcpy(header->sorted, header->names, header->num_names * sizeof *header->sorted);
    qsort(header->sorted, header->num_names, sizeof *header->sorted, compare_names);
    for (size_t i = 1; i < header->num_names; i++)
        if (strcmp(header->sorted[i - 1], header->sorted[i]) == 0)
            return ph_fail(PH_ERROR_DATA, "%s:1: two columns are called '%s'", path, header->sorted[i]);
    return PH_OK;
}

ph_status ph__header_read(
    struct ph_reader *reader, char separator, bool has_quotes, struct ph__header *header)
{
    const char *path = ph__reader_path(reader);
    char *line;
    size_t length;
    PH_TRY(ph__reader_line(reader, &line, &length));
    if (line == NULL)
        return ph_fail(PH_ERROR_DATA, "%s: is empty, not even a header", path);
    header->line = strdup(line);
    if (header->line == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for the header", path);
    char *end = header->line + strlen(header->line);
    for (char *cursor = header->line; cursor != NULL;) {
        char *name;
        if (!ph__cell_next(&cursor, end, separator, has_quotes, &name, &length))
            return ph_fail(
                PH_ERROR_DATA, "%s:1: column %zu: a quote is not closed", path, header->num_names + 1);
        PH_TRY(check_name(header, path, name, length));
        PH_TRY(ph__array_reserve(
            (void **)&header->names, &header->names_capacity, header->num_names + 1, sizeof *header->names));
        header->names[header->num_names++] = name;
    }
    return sort_names(header, path);
}

void ph__header_fini(struct ph__header *header)
{
    free(header->line);
    free(header->names);
    free(header->sorted);
    memset(header, 0, sizeof *header);
}

bool ph__header_has(const struct ph__header *header, const char *name)
{
    return header->num_names > 0 &&
           bsearch(&name, header->sorted, header->num_names, sizeof *header->sorted, compare_names) != NULL;
}
