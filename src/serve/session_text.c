/* Rows that come as lines of text, with the same cells as in the files of the training data. */
#include <string.h>

#include "base/memory/memory.h"
#include "serve/session.h"

struct text_request {
    struct ph__request base;
    const struct ph__lines *lines;
    const char *text, *end;
    const char *next;                      /* behind the line that was encoded last */
    size_t line_number;                    /* number of that line, from 1 */
    const struct ph__delimited *delimited; /* CELLS: with or without labels, as the first line is */
};

static enum ph__line_kind kind_of(enum ph__data_format format)
{
    switch (format) {
    case PH_DATA_CSV:
    case PH_DATA_TSV:
    case PH_DATA_CRITEO:
    case PH_DATA_AVAZU:
        return PH_LINES_CELLS;
    case PH_DATA_LIBSVM:
    case PH_DATA_LIBFFM:
        return PH_LINES_LIBSVM;
    case PH_DATA_NPY:
    case PH_DATA_ARROW:
    case PH_DATA_GRAPH:
        break;
    }
    return PH_LINES_NONE;
}

ph_status ph__lines_init(const struct ph_encoder *encoder, struct ph__lines *lines)
{
    *lines = (struct ph__lines){.kind = kind_of(encoder->format)};
    if (lines->kind == PH_LINES_LIBSVM)
        return ph__libsvm_match(&lines->libsvm, encoder);
    if (lines->kind == PH_LINES_NONE)
        return PH_OK;
    PH_TRY(ph__delimited_match_positions(&lines->labelled, encoder, true));
    return ph__delimited_match_positions(&lines->unlabelled, encoder, false);
}

void ph__lines_fini(struct ph__lines *lines)
{
    ph__libsvm_fini(&lines->libsvm);
    ph__delimited_fini(&lines->unlabelled);
    ph__delimited_fini(&lines->labelled);
}

/* Returns true for a row. Empty lines are skipped, as in files, and so are comments of libsvm. */
static bool is_row(const struct ph__lines *lines, const char *line, size_t length)
{
    return length > 0 && (lines->kind != PH_LINES_LIBSVM || !ph__libsvm_is_comment(line, length));
}

/* Returns the line at *cursor, without its LF or CR-LF, and moves *cursor behind it; NULL at the end. */
static const char *next_line(const char **cursor, const char *end, size_t *length_out)
{
    const char *line = *cursor;
    if (line == end)
        return NULL;
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t length = (size_t)((stop != NULL ? stop : end) - line);
    *cursor = stop != NULL ? stop + 1 : end;
    *length_out = length > 0 && line[length - 1] == '\r' ? length - 1 : length;
    return line;
}

static size_t count_rows(const struct ph__lines *lines, const char *text, const char *end)
{
    const char *line;
    size_t num_rows = 0, length;
    while ((line = next_line(&text, end, &length)) != NULL)
        num_rows += is_row(lines, line, length);
    return num_rows;
}

static ph_status copy_line(struct ph__context *context, const char *line, size_t length)
{
    PH_TRY(ph__array_reserve((void **)&context->line, &context->line_capacity, length + 1, 1));
    memcpy(context->line, line, length);
    context->line[length] = '\0';
    if (memchr(line, '\0', length) != NULL)
        return ph_fail(PH_ERROR_DATA, "the row has a zero byte");
    return PH_OK;
}

/* Encodes cells in *layout; NULL: the line itself tells whether it has labels, and *layout is set. */
static ph_status encode_cells(const struct ph__lines *lines, const struct ph__delimited **layout,
    struct ph__context *context, size_t length)
{
    if (*layout == NULL) {
        const size_t num_cells = ph__delimited_count(context->encoder, context->line);
        *layout = num_cells == lines->unlabelled.num_cells ? &lines->unlabelled : &lines->labelled;
    }
    return ph__delimited_encode(*layout, &context->row, context->line, length);
}

static ph_status encode_line(const struct ph__lines *lines, const struct ph__delimited **layout,
    struct ph__context *context, const char *line, size_t length)
{
    PH_TRY(copy_line(context, line, length));
    PH_TRY(ph__row_begin(&context->row, &context->rows));
    PH_TRY(lines->kind == PH_LINES_LIBSVM
               ? ph__libsvm_encode(&lines->libsvm, &context->row, context->line, true)
               : encode_cells(lines, layout, context, length));
    return ph__row_commit(&context->row);
}

ph_status ph__lines_encode(
    const struct ph__lines *lines, struct ph__context *context, const char *text, size_t size)
{
    const struct ph__delimited *layout = NULL;
    const char *next = text, *line;
    size_t length = 0;
    line = next_line(&next, text + size, &length);
    if (line == NULL || !is_row(lines, line, length))
        return ph_fail(PH_ERROR_DATA, "the text is not a row: it is empty, or a comment");
    if (next != text + size)
        return ph_fail(PH_ERROR_DATA, "the text has more than one line");
    return encode_line(lines, &layout, context, line, length);
}

static ph_status encode_text(struct ph__request *base, struct ph__context *context, size_t row)
{
    struct text_request *request = (struct text_request *)base;
    const char *line;
    size_t length = 0;
    if (row == 0) {
        request->next = request->text;
        request->line_number = 0;
    }
    do {
        line = next_line(&request->next, request->end, &length);
        request->line_number++;
    } while (line != NULL && !is_row(request->lines, line, length));
    ph_status status = encode_line(request->lines, &request->delimited, context, line, length);
    return status == PH_OK ? PH_OK : ph_fail(status, "line %zu: %s", request->line_number, ph_error_text());
}

ph_status ph_session_score_text(struct ph_session *session, const char *text, size_t size,
    float *probabilities, size_t capacity_rows, size_t *num_rows_out)
{
    const struct ph__lines *lines = &session->lines;
    const char *end = text + size;
    struct text_request request = {
        .base = {count_rows(lines, text, end), encode_text}, .lines = lines, .text = text, .end = end};
    if (lines->kind == PH_LINES_NONE)
        return ph_fail(PH_ERROR_USAGE, "rows of this format are not lines of text: pass their cells instead");
    if (request.base.num_rows > capacity_rows)
        return ph_fail(PH_ERROR_USAGE, "the text has %zu rows, but capacity_rows is %zu",
            request.base.num_rows, capacity_rows);
    PH_TRY(ph__session_run_probabilities(session, &request.base, probabilities));
    *num_rows_out = request.base.num_rows;
    return PH_OK;
}
