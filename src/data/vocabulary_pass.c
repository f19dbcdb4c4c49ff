#include "data/vocabulary_pass.h"

#include <inttypes.h>
#include <string.h>

#include "data/cell.h"

ph_status ph__fail_num_columns(const struct ph_reader *reader, size_t found, size_t wanted)
{
    return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": the row has %zu cells, %zu are wanted",
        ph__reader_path(reader), ph__reader_line_number(reader), found, wanted);
}

ph_status ph__fail_quote(const struct ph_reader *reader, const char *name)
{
    return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": field '%s': a quote is not closed, or text follows it",
        ph__reader_path(reader), ph__reader_line_number(reader), name);
}

static ph_status count_word(
    struct ph__column *column, const struct ph_reader *reader, const char *word, size_t length)
{
    int is_new;
    PH_TRY(ph__vocabulary_count(&column->vocabulary, word, length, &is_new));
    if (is_new && !ph__is_utf8(word, length))
        return ph_fail(PH_ERROR_DATA,
            "%s:%" PRIu64 ": field '%s': the id is not UTF-8, which a vocabulary cannot keep (hash it)",
            ph__reader_path(reader), ph__reader_line_number(reader), column->name);
    return PH_OK;
}

static ph_status count_cell(const struct ph_encoder *encoder, struct ph__column *column,
    const struct ph_reader *reader, char *cell, size_t length)
{
    if (!column->is_list)
        return length == 0 ? PH_OK : count_word(column, reader, cell, length);
    size_t num_ids = 0;
    for (char *cursor = cell; cursor != NULL && num_ids < column->max_length;) {
        char *word;
        ph__cell_next(&cursor, encoder->list_separator, false, &word, &length);
        if (length == 0)
            continue;
        PH_TRY(count_word(column, reader, word, length));
        num_ids++;
    }
    return PH_OK;
}

static ph_status count_row(struct ph_encoder *encoder, const struct ph_reader *reader, char *line)
{
    char *cursor = line;
    size_t num_cells = 0;
    for (; cursor != NULL; num_cells++) {
        char *cell;
        size_t length;
        struct ph__column *column = num_cells < encoder->num_columns ? &encoder->columns[num_cells] : NULL;
        if (!ph__cell_next(&cursor, encoder->separator, encoder->format == PH_DATA_CSV, &cell, &length))
            return ph__fail_quote(reader, column != NULL ? column->name : "");
        if (column != NULL && column->kind == PH_FIELD_ID && column->encoding == PH_ENCODING_VOCABULARY)
            PH_TRY(count_cell(encoder, column, reader, cell, length));
    }
    if (num_cells != encoder->num_columns)
        return ph__fail_num_columns(reader, num_cells, encoder->num_columns);
    return PH_OK;
}

ph_status ph__vocabulary_pass(struct ph_encoder *encoder, struct ph_reader *reader)
{
    for (;;) {
        char *line;
        size_t length;
        PH_TRY(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            break;
        if (length == 0)
            continue;
        PH_TRY(count_row(encoder, reader, line));
        encoder->num_training_rows++;
    }
    if (encoder->num_training_rows == 0)
        return ph_fail(PH_ERROR_DATA, "%s: has no rows", ph__reader_path(reader));
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].vocabulary.num_words > 0)
            PH_TRY(ph__vocabulary_finish(&encoder->columns[i].vocabulary, encoder->columns[i].min_count));
    return PH_OK;
}
