#include "data/source/delimited.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/encode/schema.h"
#include "data/source/cell.h"

static ph_status reserve(struct ph__delimited *delimited, const struct ph_encoder *encoder, size_t num_cells)
{
    *delimited = (struct ph__delimited){
        .encoder = encoder,
        .first = calloc(num_cells + 1, sizeof *delimited->first),
        .columns = calloc(encoder->num_columns + 1, sizeof(const struct ph__column *)),
    };
    if (delimited->first == NULL || delimited->columns == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory to match %zu columns", num_cells);
    return PH_OK;
}

/* The next cell is what these columns are made from. */
static void match_cell(struct ph__delimited *delimited, const struct ph__column *const *columns, size_t count)
{
    size_t next = delimited->first[delimited->num_cells];
    for (size_t i = 0; i < count; i++)
        if (columns[i]->kind != PH_FIELD_IGNORE)
            delimited->columns[next++] = columns[i];
    delimited->first[++delimited->num_cells] = next;
}

ph_status ph__delimited_match_header(struct ph__delimited *delimited, const struct ph_encoder *encoder,
    const struct ph__header *header, bool needs_no_labels, const char *where)
{
    PH_TRY(reserve(delimited, encoder, header->num_names));
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (!ph__header_has(header, column->from) && !ph__column_may_lack(column, needs_no_labels))
            return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": the header lacks column '%s' of the schema", where,
                header->line_number, column->from);
    }
    for (size_t i = 0; i < header->num_names; i++) {
        size_t count;
        const struct ph__column *const *columns = ph__encoder_made_from(encoder, header->names[i], &count);
        match_cell(delimited, columns, count);
    }
    return PH_OK;
}

static bool has_label(const struct ph__column *const *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (columns[i]->kind == PH_FIELD_LABEL)
            return true;
    return false;
}

ph_status ph__delimited_match_positions(
    struct ph__delimited *delimited, const struct ph_encoder *encoder, bool has_labels)
{
    PH_TRY(reserve(delimited, encoder, encoder->num_columns));
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        size_t count;
        const struct ph__column *const *columns = ph__encoder_made_from(encoder, column->from, &count);
        const bool is_known = columns[0] != column; /* a further one from a cell that has been met */
        if (!is_known && (has_labels || !has_label(columns, count)))
            match_cell(delimited, columns, count);
    }
    return PH_OK;
}

void ph__delimited_fini(struct ph__delimited *delimited)
{
    free(delimited->first);
    free(delimited->columns);
    *delimited = (struct ph__delimited){0};
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

/* The cell behind this one, which ends where ph__cell_next would find its end; NULL: it is the last one. */
static const char *next_cell(const char *cell, char separator, bool has_quotes)
{
    const char *end = cell;
    if (has_quotes && *cell == '"')
        do
            end = strchr(end + 1, '"');
        while (end != NULL && *++end == '"');
    end = end != NULL ? strchr(end, separator) : NULL;
    return end != NULL ? end + 1 : NULL;
}

size_t ph__delimited_count(const struct ph_encoder *encoder, const char *line)
{
    const bool has_quotes = ph__has_quotes((int)encoder->format);
    size_t num_cells = 0;
    for (const char *cell = line; cell != NULL; num_cells++)
        cell = next_cell(cell, encoder->separator, has_quotes);
    return num_cells;
}

static ph_status fail_quote(const struct ph__delimited *delimited, size_t cell)
{
    bool is_skipped = delimited->first[cell] == delimited->first[cell + 1];
    return ph_fail(PH_ERROR_DATA, "field '%s': a quote is not closed, or text follows it",
        is_skipped ? "" : delimited->columns[delimited->first[cell]]->name);
}

ph_status ph__delimited_encode(
    const struct ph__delimited *delimited, struct ph__row_encoder *row, char *line, size_t line_length)
{
    const struct ph_encoder *encoder = delimited->encoder;
    bool has_quotes = ph__has_quotes((int)encoder->format);
    char *cursor = line;
    size_t num_cells = 0;
    for (; cursor != NULL && num_cells < delimited->num_cells; num_cells++) {
        char *cell;
        size_t length;
        if (!ph__cell_next(&cursor, line + line_length, encoder->separator, has_quotes, &cell, &length))
            return fail_quote(delimited, num_cells);
        for (size_t i = delimited->first[num_cells]; i < delimited->first[num_cells + 1]; i++)
            PH_TRY(ph__row_text(row, delimited->columns[i], cell, length));
    }
    if (cursor != NULL)
        num_cells += ph__delimited_count(encoder, cursor);
    if (num_cells != delimited->num_cells)
        return ph_fail(
            PH_ERROR_DATA, "the row has %zu cells, %zu are wanted", num_cells, delimited->num_cells);
    return PH_OK;
}
