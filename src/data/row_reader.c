#include "data/row_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/cell.h"
#include "data/decimal.h"
#include "data/header.h"
#include "data/text_hash.h"
#include "data/vocabulary_pass.h"

/* ---- rows ---------------------------------------------------------------------------------------------- */

size_t ph__rows_num_words(const struct ph__rows *rows)
{
    return rows->num_rows == 0 ? 0 : rows->starts[rows->num_rows];
}

/* Room for one more row of up to `num_words` words. */
static ph_status reserve_row(struct ph__rows *rows, size_t num_words)
{
    size_t used = ph__rows_num_words(rows);
    if (used + num_words > rows->words_capacity)
        PH_TRY(ph__array_reserve(
            (void **)&rows->words, &rows->words_capacity, used + num_words, sizeof *rows->words));
    if (rows->num_rows + 2 > rows->starts_capacity)
        PH_TRY(ph__array_reserve(
            (void **)&rows->starts, &rows->starts_capacity, rows->num_rows + 2, sizeof *rows->starts));
    rows->starts[rows->num_rows] = used;
    return PH_OK;
}

static void commit_row(struct ph__rows *rows, size_t num_words)
{
    rows->starts[rows->num_rows + 1] = rows->starts[rows->num_rows] + num_words;
    rows->num_rows++;
}

ph_status ph__rows_append(struct ph__rows *rows, const struct ph__rows *from, size_t index)
{
    size_t num_words = from->starts[index + 1] - from->starts[index];
    PH_TRY(reserve_row(rows, num_words));
    memcpy(rows->words + rows->starts[rows->num_rows], from->words + from->starts[index],
        num_words * sizeof *rows->words);
    commit_row(rows, num_words);
    return PH_OK;
}

void ph__rows_fini(struct ph__rows *rows)
{
    free(rows->words);
    free(rows->starts);
    memset(rows, 0, sizeof *rows);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static bool is_optional(const struct ph__column *column)
{
    return column->kind == PH_FIELD_LABEL || column->kind == PH_FIELD_WEIGHT ||
           column->kind == PH_FIELD_GROUP;
}

static ph_status set_column(struct ph__row_reader *reader, size_t position, const struct ph__column *column)
{
    reader->columns[position] = column->kind == PH_FIELD_IGNORE ? NULL : column;
    if (column->kind == PH_FIELD_ID && column->is_list)
        reader->lists[reader->num_lists++] = column->slot;
    return PH_OK;
}

static ph_status alloc_columns(struct ph__row_reader *reader, size_t num_columns)
{
    reader->columns = calloc(num_columns + 1, sizeof(const struct ph__column *));
    reader->lists = calloc(num_columns + 1, sizeof *reader->lists);
    reader->num_columns = num_columns;
    if (reader->columns == NULL || reader->lists == NULL)
        return ph_fail(PH_ERROR_MEMORY, "reader: no memory for %zu columns", num_columns);
    return PH_OK;
}

static ph_status match_header(struct ph__row_reader *reader, const struct ph__header *header)
{
    const struct ph_encoder *encoder = reader->encoder;
    PH_TRY(alloc_columns(reader, header->num_names));
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const struct ph__column *column = &encoder->columns[i];
        bool may_lack = column->kind == PH_FIELD_IGNORE || (reader->needs_no_labels && is_optional(column));
        if (ph__header_find(header, column->name) == SIZE_MAX && !may_lack)
            return ph_fail(PH_ERROR_DATA, "%s:1: the header lacks column '%s' of the schema",
                ph__reader_path(reader->reader), column->name);
    }
    for (size_t i = 0; i < header->num_names; i++) {
        const struct ph__column *column = ph__encoder_find(encoder, header->names[i]);
        if (column != NULL)
            PH_TRY(set_column(reader, i, column));
    }
    return PH_OK;
}

/* Without a header: all columns of the schema in order, with or without its labels. */
static ph_status match_positions(struct ph__row_reader *reader, bool has_labels)
{
    const struct ph_encoder *encoder = reader->encoder;
    reader->num_columns = 0;
    reader->num_lists = 0;
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (has_labels || encoder->columns[i].kind != PH_FIELD_LABEL)
            PH_TRY(set_column(reader, reader->num_columns++, &encoder->columns[i]));
    return PH_OK;
}

ph_status ph__row_reader_open(
    struct ph__row_reader *reader, const struct ph_encoder *encoder, const char *path, bool needs_no_labels)
{
    *reader = (struct ph__row_reader){.encoder = encoder, .needs_no_labels = needs_no_labels};
    PH_TRY(ph__reader_open(path, &reader->reader));
    if (!encoder->has_header) {
        reader->is_unmatched = needs_no_labels;
        PH_TRY(alloc_columns(reader, encoder->num_columns));
        return match_positions(reader, true);
    }
    struct ph__header header = {0};
    ph_status status =
        ph__header_read(reader->reader, encoder->separator, encoder->format == PH_DATA_CSV, &header);
    if (status == PH_OK)
        status = match_header(reader, &header);
    ph__header_fini(&header);
    return status;
}

void ph__row_reader_close(struct ph__row_reader *reader)
{
    ph__reader_close(reader->reader);
    free(reader->columns);
    free(reader->lists);
    free(reader->lookups.items);
    memset(reader, 0, sizeof *reader);
}

/* ---- cells --------------------------------------------------------------------------------------------- */

/* A row under construction: its words from the first on; `end` is behind the last id of a list so far. */
struct row {
    struct ph__rows *rows;
    uint32_t *words;
    size_t num_words;
};

static ph_status fail_cell(const struct ph__row_reader *reader, const struct ph__column *column,
    const char *cell, const char *problem)
{
    return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": field '%s': '%.40s' %s", ph__reader_path(reader->reader),
        ph__reader_line_number(reader->reader), column->name, cell, problem);
}

static ph_status encode_label(const struct ph__row_reader *reader, const struct ph__column *column,
    const char *cell, size_t length, uint32_t *word)
{
    double label = 0;
    if (length == 0)
        label = (double)NAN; /* unknown: masked */
    else if (length == 1 && (cell[0] == '0' || cell[0] == '1'))
        label = cell[0] - '0';
    else if (!ph__decimal_parse(cell, length, &label) || label < 0 || label > 1)
        return fail_cell(reader, column, cell, "is not a label in [0, 1]");
    *word = ph__word_from_float((float)label);
    return PH_OK;
}

static ph_status encode_weight(const struct ph__row_reader *reader, const struct ph__column *column,
    const char *cell, size_t length, uint32_t *word)
{
    double weight;
    if (!ph__decimal_parse(cell, length, &weight) || weight < 0 || !isfinite((float)weight))
        return fail_cell(reader, column, cell, "is not a weight, a finite number of at least 0");
    *word = ph__word_from_float((float)weight);
    return PH_OK;
}

static float log1p_of(const struct ph_encoder *encoder, double number)
{
    if (number <= 0)
        return 0;
    if (number < PH_LOG1P_TABLE_SIZE && number == (double)(size_t)number)
        return encoder->log1p[(size_t)number];
    return (float)log1p(number);
}

static ph_status encode_dense(const struct ph__row_reader *reader, const struct ph__column *column,
    const char *cell, size_t length, uint32_t *word)
{
    double number = (double)column->missing;
    if (length != 0 && (!ph__decimal_parse(cell, length, &number) || !isfinite((float)number)))
        return fail_cell(reader, column, cell, "is not a finite number");
    bool is_log1p = column->transform == PH_TRANSFORM_LOG1P;
    *word = ph__word_from_float(is_log1p ? log1p_of(reader->encoder, number) : (float)number);
    return PH_OK;
}

/* The id goes to word `target` of the row: at once, or from a vocabulary when all cells of the row are cut. */
static ph_status encode_id(struct ph__row_reader *reader, const struct ph__column *column, const char *cell,
    size_t length, struct row *row, size_t target)
{
    uint64_t number;
    if (length == 0) {
        row->words[target] = 0;
        return PH_OK;
    }
    switch (column->encoding) {
    case PH_ENCODING_VOCABULARY:
        return ph__lookups_add(&reader->lookups, &column->vocabulary,
            (struct ph__lookup){.word = cell,
                .length = length,
                .column = (size_t)(column - reader->encoder->columns),
                .target = target});
    case PH_ENCODING_HASH:
        row->words[target] = 1 + (uint32_t)ph__text_hash_below(
                                     ph__text_hash(cell, length, column->hash_seed), column->num_rows - 1);
        return PH_OK;
    case PH_ENCODING_RAW:
    case PH_ENCODING_INHERIT:
        break;
    }
    if (!ph__decimal_parse_id(cell, length, &number))
        return fail_cell(reader, column, cell, "is not a raw id, a whole number");
    if (number >= column->num_rows)
        return fail_cell(reader, column, cell, "is beyond the rows of the table");
    row->words[target] = (uint32_t)number;
    return PH_OK;
}

static void look_up_ids(struct ph__row_reader *reader, struct row *row)
{
    for (size_t i = 0; i < reader->lookups.count; i++) {
        const struct ph__lookup *lookup = &reader->lookups.items[i];
        const struct ph__vocabulary *vocabulary = &reader->encoder->columns[lookup->column].vocabulary;
        row->words[lookup->target] =
            ph__vocabulary_row(vocabulary, lookup->word, lookup->length, lookup->hash);
    }
    reader->lookups.count = 0;
}

static ph_status encode_list(struct ph__row_reader *reader, const struct ph__column *column, char *cell,
    size_t length, struct row *row)
{
    /* no more ids than half the cell, and one */
    size_t start = row->rows->starts[row->rows->num_rows];
    size_t wanted = start + row->num_words + length / 2 + 1;
    if (wanted > row->rows->words_capacity) {
        PH_TRY(ph__array_reserve(
            (void **)&row->rows->words, &row->rows->words_capacity, wanted, sizeof *row->rows->words));
        row->words = row->rows->words + start;
    }
    uint32_t num_ids = 0;
    for (char *cursor = cell; cursor != NULL && num_ids < column->max_length;) {
        char *word;
        ph__cell_next(&cursor, reader->encoder->list_separator, false, &word, &length);
        if (length == 0)
            continue;
        PH_TRY(encode_id(reader, column, word, length, row, row->num_words++));
        num_ids++;
    }
    row->words[reader->encoder->sparse_word + column->slot] = num_ids;
    return PH_OK;
}

static void encode_group(const struct ph_encoder *encoder, const char *cell, size_t length, struct row *row)
{
    uint64_t group = ph__text_hash(cell, length, 0);
    row->words[encoder->group_word] = (uint32_t)group;
    row->words[encoder->group_word + 1] = (uint32_t)(group >> 32);
}

static ph_status encode_cell(struct ph__row_reader *reader, const struct ph__column *column, char *cell,
    size_t length, struct row *row)
{
    const struct ph_encoder *encoder = reader->encoder;
    switch (column->kind) {
    case PH_FIELD_LABEL:
        return encode_label(reader, column, cell, length, &row->words[column->slot]);
    case PH_FIELD_DENSE:
        return encode_dense(reader, column, cell, length, &row->words[encoder->dense_word + column->slot]);
    case PH_FIELD_WEIGHT:
        return encode_weight(reader, column, cell, length, &row->words[encoder->weight_word]);
    case PH_FIELD_GROUP:
        encode_group(encoder, cell, length, row);
        return PH_OK;
    case PH_FIELD_ID:
        if (column->is_group)
            encode_group(encoder, cell, length, row);
        if (column->is_list)
            return encode_list(reader, column, cell, length, row);
        return encode_id(reader, column, cell, length, row, encoder->sparse_word + column->slot);
    case PH_FIELD_IGNORE:
        break;
    }
    return PH_OK;
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static size_t count_cells(const char *line, char separator)
{
    size_t num_cells = 1;
    for (; *line != '\0'; line++)
        num_cells += *line == separator;
    return num_cells;
}

static ph_status encode_line(struct ph__row_reader *reader, char *line, struct row *row)
{
    const struct ph_encoder *encoder = reader->encoder;
    bool has_quotes = encoder->format == PH_DATA_CSV;
    char *cursor = line;
    size_t num_cells = 0;
    for (; cursor != NULL && num_cells < reader->num_columns; num_cells++) {
        char *cell;
        size_t length;
        const struct ph__column *column = reader->columns[num_cells];
        if (!ph__cell_next(&cursor, encoder->separator, has_quotes, &cell, &length))
            return ph__fail_quote(reader->reader, column != NULL ? column->name : "");
        if (column != NULL)
            PH_TRY(encode_cell(reader, column, cell, length, row));
    }
    if (cursor != NULL)
        num_cells += count_cells(cursor, encoder->separator);
    if (num_cells != reader->num_columns)
        return ph__fail_num_columns(reader->reader, num_cells, reader->num_columns);
    return PH_OK;
}

/* The first row of a file without a header that needs no labels: are they there? */
static ph_status match_first_row(struct ph__row_reader *reader, const char *line)
{
    const struct ph_encoder *encoder = reader->encoder;
    reader->is_unmatched = false;
    size_t num_cells = count_cells(line, encoder->separator);
    if (num_cells + encoder->num_tasks == encoder->num_columns)
        return match_positions(reader, false);
    return PH_OK;
}

ph_status ph__row_reader_next(struct ph__row_reader *reader, struct ph__rows *rows, bool *is_end_out)
{
    const struct ph_encoder *encoder = reader->encoder;
    char *line;
    size_t length;
    do {
        PH_TRY(ph__reader_line(reader->reader, &line, &length));
        if (line == NULL) {
            *is_end_out = true;
            return PH_OK;
        }
    } while (length == 0);
    if (reader->is_unmatched)
        PH_TRY(match_first_row(reader, line));
    PH_TRY(reserve_row(rows, encoder->num_fixed_words));
    struct row row = {.rows = rows,
        .words = rows->words + rows->starts[rows->num_rows],
        .num_words = encoder->num_fixed_words};
    memset(row.words, 0, encoder->num_fixed_words * sizeof *row.words);
    if (encoder->has_weight)
        row.words[encoder->weight_word] = ph__word_from_float(1.0f);
    PH_TRY(encode_line(reader, line, &row));
    look_up_ids(reader, &row);
    commit_row(rows, row.num_words);
    *is_end_out = false;
    return PH_OK;
}
