#include "serve/teacher/keyed_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "data/encode/text_hash.h"

size_t ph__keyed_lines_find(const struct ph__keyed_lines *lines, const char *name)
{
    for (size_t i = 0; i < lines->header.num_names; i++)
        if (strcmp(lines->header.names[i], name) == 0)
            return i;
    return SIZE_MAX;
}

ph_status ph__keyed_lines_open(
    struct ph__keyed_lines *lines, const char *path, bool is_csv, const char *const *keys, size_t num_keys)
{
    *lines = (struct ph__keyed_lines){.separator = is_csv ? ',' : '\t', .num_keys = num_keys};
    PH_TRY(ph__reader_open(path, &lines->reader));
    PH_TRY(ph__header_read(lines->reader, lines->separator, is_csv, &lines->header));
    lines->key_cells = calloc(num_keys + 1, sizeof *lines->key_cells);
    lines->cells = calloc(lines->header.num_names, sizeof *lines->cells);
    lines->lengths = calloc(lines->header.num_names, sizeof *lines->lengths);
    if (lines->key_cells == NULL || lines->cells == NULL || lines->lengths == NULL)
        return ph__out_of_memory("the columns of %s", path);
    for (size_t i = 0; i < num_keys; i++) {
        lines->key_cells[i] = ph__keyed_lines_find(lines, keys[i]);
        if (lines->key_cells[i] == SIZE_MAX)
            return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": no column is called '%s', which is of the key",
                path, lines->header.line_number, keys[i]);
    }
    return PH_OK;
}

static ph_status fail_line(const struct ph__keyed_lines *lines, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": %s", ph__reader_path(lines->reader),
        ph__reader_line_number(lines->reader), problem);
}

static ph_status cut_cells(struct ph__keyed_lines *lines, char *line, size_t length)
{
    const bool has_quotes = lines->separator == ',';
    size_t count = 0;
    for (char *cursor = line; cursor != NULL; count++) {
        if (count == lines->header.num_names)
            return fail_line(lines, "the line has more cells than the header");
        if (!ph__cell_next(&cursor, line + length, lines->separator, has_quotes, &lines->cells[count],
                &lines->lengths[count]))
            return fail_line(lines, "a quote is not closed");
    }
    return count == lines->header.num_names ? PH_OK
                                            : fail_line(lines, "the line has fewer cells than the header");
}

static uint64_t key_of(const struct ph__keyed_lines *lines)
{
    uint64_t hash = ph__text_hash_start(0);
    if (lines->num_keys == 0)
        return ph__text_hash_from(hash, (const char *)lines->text.bytes, lines->text.size);
    for (size_t i = 0; i < lines->num_keys; i++)
        hash =
            ph__text_hash_from(hash, lines->cells[lines->key_cells[i]], lines->lengths[lines->key_cells[i]]);
    return hash;
}

ph_status ph__keyed_lines_next(struct ph__keyed_lines *lines, bool *has_line_out)
{
    char *line;
    size_t length;
    do
        PH_TRY(ph__reader_line(lines->reader, &line, &length));
    while (line != NULL && length == 0);
    *has_line_out = line != NULL;
    if (line == NULL)
        return PH_OK;
    ph__buffer_clear(&lines->text);
    ph__buffer_append(&lines->text, line, length);
    if (lines->text.has_failed)
        return ph__out_of_memory("a line of %s", ph__reader_path(lines->reader));
    PH_TRY(cut_cells(lines, line, length));
    lines->key = key_of(lines);
    return PH_OK;
}

ph_status ph__keyed_lines_place(const struct ph__keyed_lines *lines, const char *name, size_t *place_out)
{
    *place_out = ph__keyed_lines_find(lines, name);
    return *place_out != SIZE_MAX
               ? PH_OK
               : ph_fail(PH_ERROR_DATA, "%s: no column is called '%s', which the model reads",
                     ph__reader_path(lines->reader), name);
}

ph_status ph__keyed_lines_match(const struct ph__keyed_lines *lines, const struct ph_session *session,
    const char *filled, size_t *places_out)
{
    for (size_t i = 0; i < ph_session_num_columns(session); i++) {
        const char *name = ph_session_column_name(session, i);
        const bool is_filled = filled != NULL && strncmp(name, filled, strlen(filled)) == 0;
        places_out[i] = SIZE_MAX;
        if (!is_filled)
            PH_TRY(ph__keyed_lines_place(lines, name, &places_out[i]));
    }
    return PH_OK;
}

ph_status ph__keyed_lines_copy(const struct ph__keyed_lines *lines, size_t num_columns, const size_t *places,
    struct ph__arena *arena, struct ph_cell *cells_out)
{
    for (size_t i = 0; i < num_columns; i++) {
        cells_out[i] = (struct ph_cell){.kind = PH_CELL_BLANK};
        if (places[i] == SIZE_MAX)
            continue;
        const char *text = ph__arena_strdup(arena, lines->cells[places[i]]);
        if (text == NULL)
            return PH_ERROR_MEMORY;
        cells_out[i] =
            (struct ph_cell){.kind = PH_CELL_TEXT, .text = text, .length = lines->lengths[places[i]]};
    }
    return PH_OK;
}

void ph__keyed_lines_close(struct ph__keyed_lines *lines)
{
    if (lines->reader != NULL)
        ph__reader_close(lines->reader);
    ph__header_fini(&lines->header);
    ph__buffer_fini(&lines->text);
    free(lines->key_cells);
    free(lines->cells);
    free(lines->lengths);
    *lines = (struct ph__keyed_lines){0};
}
