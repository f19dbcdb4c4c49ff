#include "data/source/header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/utf8.h"
#include "data/encode/encoder.h"
#include "data/source/cell.h"

static ph_status fail_column(const struct ph__header *header, const char *path, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": column %zu%s", path, header->line_number,
        header->num_names + 1, problem);
}

static ph_status check_name(
    const struct ph__header *header, const char *path, const char *name, size_t length)
{
    if (length == 0)
        return fail_column(header, path, " has no name");
    return ph__utf8_is_valid(name, length) ? PH_OK : fail_column(header, path, ": the name is not UTF-8");
}

static bool is_blank(char character)
{
    return character == ' ' || character == '\t';
}

/* A name without blanks around it. */
static char *trim(char *name, size_t *length)
{
    while (*length > 0 && is_blank(name[*length - 1]))
        name[--*length] = '\0';
    while (*length > 0 && is_blank(*name)) {
        name++;
        --*length;
    }
    return name;
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
            return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": two columns are called '%s'", path,
                header->line_number, header->sorted[i]);
    return PH_OK;
}

/* The first line that is not empty, kept in the header. */
static ph_status read_line(struct ph_reader *reader, struct ph__header *header)
{
    char *line;
    size_t length;
    do
        PH_TRY(ph__reader_line(reader, &line, &length));
    while (line != NULL && length == 0);
    if (line == NULL)
        return ph_fail(PH_ERROR_DATA, "%s: is empty, not even a header", ph__reader_path(reader));
    header->line = strdup(line);
    header->line_number = ph__reader_line_number(reader);
    if (header->line == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for the header", ph__reader_path(reader));
    return PH_OK;
}

ph_status ph__header_read(
    struct ph_reader *reader, char separator, bool has_quotes, struct ph__header *header)
{
    const char *path = ph__reader_path(reader);
    PH_TRY(read_line(reader, header));
    char *end = header->line + strlen(header->line);
    for (char *cursor = header->line; cursor != NULL;) {
        char *name;
        size_t length;
        const bool is_quoted = has_quotes && *cursor == '"';
        if (!ph__cell_next(&cursor, end, separator, has_quotes, &name, &length))
            return fail_column(header, path, ": a quote is not closed");
        if (!is_quoted)
            name = trim(name, &length);
        PH_TRY(check_name(header, path, name, length));
        PH_TRY(ph__array_reserve(
            (void **)&header->names, &header->names_capacity, header->num_names + 1, sizeof *header->names));
        header->names[header->num_names++] = name;
    }
    header->is_whole = true;
    return sort_names(header, path);
}

static bool is_named(const struct ph__header *header, const char *name)
{
    for (size_t i = 0; i < header->num_names; i++)
        if (strcmp(header->names[i], name) == 0)
            return true;
    return false;
}

ph_status ph__header_blame_avazu(const struct ph__header *header, const char *path, ph_status status)
{
    const bool may_be_other = status != PH_OK && status != PH_ERROR_DATA;
    if (may_be_other || !header->is_whole || is_named(header, "click") || is_named(header, "hour"))
        return status;
    return ph_fail(PH_ERROR_DATA,
        "%s:%" PRIu64 ": this is no header of Avazu's, for it names neither 'click' nor 'hour': put the line "
        "'id,click,hour,C1,...' "
        "in front of the file, or read it as format csv with data.has_header: false and all columns in "
        "data.fields",
        path, header->line_number);
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
