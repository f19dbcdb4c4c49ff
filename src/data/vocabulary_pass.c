#include "data/vocabulary_pass.h"

#include <inttypes.h>
#include <stdlib.h>
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

/* The pass: rows whose ids were cut out wait in `lookups` to be counted. */
struct pass {
    struct ph_encoder *encoder;
    struct ph_reader *reader;
    struct ph__lookups lookups;
};

static ph_status collect_cell(struct pass *pass, size_t column_index, char *cell, size_t length)
{
    const struct ph__column *column = &pass->encoder->columns[column_index];
    struct ph__lookup lookup = {.word = cell, .length = length, .column = column_index};
    if (!column->is_list)
        return length == 0 ? PH_OK : ph__lookups_add(&pass->lookups, &column->vocabulary, lookup);
    size_t num_ids = 0;
    for (char *cursor = cell; cursor != NULL && num_ids < column->max_length;) {
        char *word;
        ph__cell_next(&cursor, pass->encoder->list_separator, false, &word, &lookup.length);
        lookup.word = word;
        if (lookup.length == 0)
            continue;
        PH_TRY(ph__lookups_add(&pass->lookups, &column->vocabulary, lookup));
        num_ids++;
    }
    return PH_OK;
}

static ph_status collect_row(struct pass *pass, char *line)
{
    struct ph_encoder *encoder = pass->encoder;
    char *cursor = line;
    size_t num_cells = 0;
    pass->lookups.count = 0;
    for (; cursor != NULL; num_cells++) {
        char *cell;
        size_t length;
        struct ph__column *column = num_cells < encoder->num_columns ? &encoder->columns[num_cells] : NULL;
        if (!ph__cell_next(&cursor, encoder->separator, encoder->format == PH_DATA_CSV, &cell, &length))
            return ph__fail_quote(pass->reader, column != NULL ? column->name : "");
        if (column != NULL && column->kind == PH_FIELD_ID && column->encoding == PH_ENCODING_VOCABULARY)
            PH_TRY(collect_cell(pass, num_cells, cell, length));
    }
    if (num_cells != encoder->num_columns)
        return ph__fail_num_columns(pass->reader, num_cells, encoder->num_columns);
    return PH_OK;
}

static ph_status count_row(struct pass *pass)
{
    for (size_t i = 0; i < pass->lookups.count; i++) {
        const struct ph__lookup *lookup = &pass->lookups.items[i];
        struct ph__column *column = &pass->encoder->columns[lookup->column];
        int is_new = 0;
        PH_TRY(
            ph__vocabulary_count(&column->vocabulary, lookup->word, lookup->length, lookup->hash, &is_new));
        if (is_new && !ph__is_utf8(lookup->word, lookup->length))
            return ph_fail(PH_ERROR_DATA,
                "%s:%" PRIu64 ": field '%s': the id is not UTF-8, which a vocabulary cannot keep (hash it)",
                ph__reader_path(pass->reader), ph__reader_line_number(pass->reader), column->name);
    }
    return PH_OK;
}

static ph_status count_rows(struct pass *pass)
{
    for (;;) {
        char *line;
        size_t length;
        PH_TRY(ph__reader_line(pass->reader, &line, &length));
        if (line == NULL)
            return PH_OK;
        if (length == 0)
            continue;
        PH_TRY(collect_row(pass, line));
        PH_TRY(count_row(pass));
        pass->encoder->num_training_rows++;
    }
}

ph_status ph__vocabulary_pass(struct ph_encoder *encoder, struct ph_reader *reader)
{
    struct pass pass = {.encoder = encoder, .reader = reader};
    ph_status status = count_rows(&pass);
    free(pass.lookups.items);
    PH_TRY(status);
    if (encoder->num_training_rows == 0)
        return ph_fail(PH_ERROR_DATA, "%s: has no rows", ph__reader_path(reader));
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].vocabulary.num_words > 0)
            PH_TRY(ph__vocabulary_finish(&encoder->columns[i].vocabulary, encoder->columns[i].min_count));
    return PH_OK;
}
