/* Rows of CSV, TSV, Criteo and Avazu files. */
#include "data/source/source_delimited.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/utf8.h"
#include "data/encode/encoder.h"
#include "data/encode/schema.h"
#include "data/encode/text_hash.h"

/* ---- cells, cut in place ---- */

/* Unquotes a cell that starts after its opening quote: doubled quotes become one. Returns the cell's length
 * and sets *end to the character behind the closing quote; SIZE_MAX when there is no closing quote. */
static size_t cell_unquote(char *start, char **end)
{
    char *write = start;
    for (char *read = start; *read != '\0'; read++) {
        if (*read == '"') {
            if (read[1] != '"') {
                *end = read + 1;
                return (size_t)(write - start);
            }
            read++;
        }
        *write++ = *read;
    }
    return SIZE_MAX;
}

/* Returns the first separator from `at` on, or `end`; searches eight bytes at a time. A byte of `word` that
 * equals the separator is zero after the exclusive or, and the subtraction first borrows into a byte's high
 * bit at the lowest zero byte. */
static char *cell_end(char *at, char *end, char separator)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    const uint64_t pattern = ones * (unsigned char)separator;
    for (; end - at >= 8; at += 8) {
        uint64_t different = ph__text_full_word(at) ^ pattern;
        uint64_t zeros = (different - ones) & ~different & highs;
        if (zeros != 0)
            return at + __builtin_ctzll(zeros) / 8;
    }
    while (at < end && *at != separator)
        at++;
    return at;
}

bool ph__cell_next(
    char **cursor, char *line_end, char separator, bool has_quotes, char **cell_out, size_t *length_out)
{
    char *cell = *cursor;
    char *end = cell;
    if (has_quotes && *cell == '"') {
        cell++;
        *length_out = cell_unquote(cell, &end);
        if (*length_out == SIZE_MAX || (*end != separator && end != line_end))
            return false;
    } else {
        end = cell_end(cell, line_end, separator);
        *length_out = (size_t)(end - cell);
    }
    *cursor = end == line_end ? NULL : end + 1;
    cell[*length_out] = '\0';
    *cell_out = cell;
    return true;
}

/* ---- the header ---- */

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

/* Returns the name without blanks around it. */
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
        return ph__out_of_memory("the header of %s", path);
    memcpy(header->sorted, header->names, header->num_names * sizeof *header->sorted);
    qsort(header->sorted, header->num_names, sizeof *header->sorted, compare_names);
    for (size_t i = 1; i < header->num_names; i++)
        if (strcmp(header->sorted[i - 1], header->sorted[i]) == 0)
            return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": two columns are called '%s'", path,
                header->line_number, header->sorted[i]);
    return PH_OK;
}

/* Reads the first line that is not empty, and keeps it in the header. */
static ph_status read_line(struct ph__reader *reader, struct ph__header *header)
{
    char *line;
    size_t length;
    do
        PH_TRY(ph__reader_line(reader, &line, &length));
    while (line != NULL && length == 0);
    if (line == NULL)
        return ph_fail(
            PH_ERROR_DATA, "%s: the file is empty; it must begin with a header", ph__reader_path(reader));
    header->line = strdup(line);
    header->line_number = ph__reader_line_number(reader);
    if (header->line == NULL)
        return ph__out_of_memory("the header of %s", ph__reader_path(reader));
    return PH_OK;
}

ph_status ph__header_read(
    struct ph__reader *reader, char separator, bool has_quotes, struct ph__header *header)
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
        "%s:%" PRIu64 ": the line is not Avazu's header, which names 'click' and 'hour': put the line "
        "'id,click,hour,C1,...' in front of the file, or read it as format csv with "
        "data.has_header: false and all columns in data.fields",
        path, header->line_number);
}

void ph__header_fini(struct ph__header *header)
{
    free(header->line);
    free(header->names);
    free(header->sorted);
    memset(header, 0, sizeof *header);
}

static bool header_has(const struct ph__header *header, const char *name)
{
    return header->num_names > 0 &&
           bsearch(&name, header->sorted, header->num_names, sizeof *header->sorted, compare_names) != NULL;
}

/* ---- matching ---- */

static ph_status reserve(struct ph__delimited *delimited, const struct ph_encoder *encoder, size_t num_cells)
{
    *delimited = (struct ph__delimited){
        .encoder = encoder,
        .first = calloc(num_cells + 1, sizeof *delimited->first),
        .columns = calloc(encoder->num_columns + 1, sizeof(const struct ph__column *)),
    };
    if (delimited->first == NULL || delimited->columns == NULL)
        return ph__out_of_memory("cannot match %zu columns", num_cells);
    return PH_OK;
}

/* Makes these columns those of the next cell. */
static void match_cell(struct ph__delimited *delimited, const struct ph__column *const *columns, size_t count)
{
    size_t next = delimited->first[delimited->num_cells];
    for (size_t i = 0; i < count; i++)
        if (columns[i]->kind != PH_FIELD_IGNORE)
            delimited->columns[next++] = columns[i];
    delimited->first[++delimited->num_cells] = next;
}

/* Matches cells by name, in any order. `where` names the file, which must have every column except ignored
 * ones and, where no labels are needed, labels, weight and group. */
static ph_status match_header(struct ph__delimited *delimited, const struct ph_encoder *encoder,
    const struct ph__header *header, bool needs_no_labels, const char *where)
{
    PH_TRY(reserve(delimited, encoder, header->num_names));
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        if (!header_has(header, column->from) && !ph__column_is_made(&encoder->graph, column->from) &&
            !ph__column_may_lack(column, needs_no_labels))
            return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": the header lacks column '%s' of the schema", where,
                header->line_number, column->from);
    }
    for (size_t i = 0; i < header->num_names; i++) {
        size_t count;
        const struct ph__column *const *columns = ph__encoder_made_from(encoder, header->names[i], &count);
        match_cell(delimited, columns, ph__column_is_made(&encoder->graph, header->names[i]) ? 0 : count);
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
        const bool is_known = columns[0] != column; /* another column of a cell that was matched before */
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

/* ---- rows ---- */

/* Returns the cell after this one, which ends where cell_next would end it; NULL: this is the last cell. */
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
    const bool has_quotes = ph__has_quotes(encoder->format);
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
    bool has_quotes = ph__has_quotes(encoder->format);
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
            PH_ERROR_DATA, "the row has %zu cells; it must have %zu", num_cells, delimited->num_cells);
    return PH_OK;
}

/* ---- files ---- */

static ph_status match_file(struct ph__source *source, struct ph__delimited_file *state)
{
    struct ph__header header = {0};
    const struct ph_encoder *encoder = source->encoder;
    bool has_quotes = ph__has_quotes(encoder->format);
    ph_status status = ph__header_read(state->file.reader, encoder->separator, has_quotes, &header);
    if (status == PH_ERROR_DATA && encoder->format == PH_DATA_AVAZU)
        status = ph__header_blame_avazu(&header, ph__reader_path(state->file.reader), status);
    if (status == PH_OK)
        status = match_header(&state->delimited, encoder, &header, source->options.needs_no_labels,
            ph__reader_path(state->file.reader));
    ph__header_fini(&header);
    return status;
}

ph_status ph__delimited_file_open(
    struct ph__source *source, struct ph__delimited_file *state, const struct ph__source_position *position)
{
    PH_TRY(ph__line_file_open(&state->file, source));
    if (source->encoder->has_header)
        PH_TRY(match_file(source, state));
    else
        PH_TRY(ph__delimited_match_positions(&state->delimited, source->encoder, true));
    state->is_unmatched = !source->encoder->has_header && source->options.needs_no_labels;
    return ph__line_file_start(&state->file, position);
}

static ph_status open_delimited(struct ph__source *source, const struct ph__source_position *position)
{
    source->state = calloc(1, sizeof(struct ph__delimited_file));
    return source->state != NULL ? ph__delimited_file_open(source, source->state, position)
                                 : ph__out_of_memory("cannot read %s", source->paths[source->file]);
}

void ph__delimited_file_close(struct ph__delimited_file *state)
{
    ph__line_file_close(&state->file);
    ph__delimited_fini(&state->delimited);
}

static void close_delimited(struct ph__source *source)
{
    if (source->state != NULL)
        ph__delimited_file_close(source->state);
    free(source->state);
}

/* Finds out by the number of cells of the first row whether there are labels. */
static ph_status match_first_row(const struct ph__source *source, struct ph__delimited_file *state)
{
    struct ph__delimited without = {0};
    state->is_unmatched = false;
    ph_status status = ph__delimited_match_positions(&without, source->encoder, false);
    if (status == PH_OK && ph__delimited_count(source->encoder, state->file.line) == without.num_cells) {
        struct ph__delimited with = state->delimited;
        state->delimited = without;
        without = with;
    }
    ph__delimited_fini(&without);
    return status;
}

ph_status ph__delimited_file_encode(struct ph__source *source, struct ph__delimited_file *state)
{
    if (state->is_unmatched)
        PH_TRY(match_first_row(source, state));
    return ph__delimited_encode(&state->delimited, &source->row, state->file.line, state->file.length);
}

static ph_status encode_delimited(struct ph__source *source)
{
    return ph__delimited_file_encode(source, source->state);
}

const struct ph__format ph__format_delimited = {
    .open = open_delimited,
    .close = close_delimited,
    .fetch = ph__line_file_fetch,
    .encode = encode_delimited,
    .locate = ph__line_file_locate,
    .tell = ph__line_file_tell,
};
