/* Rows that come as lines of text: the same cells as in the files that the model learnt from. */
#include <string.h>

#include "base/memory.h"
#include "serve/session.h"

struct text_request {
    struct ph__request base;
    const struct ph_session *session;
    const char *text, *end;
    const char *next;                      /* behind the line that was encoded last */
    size_t line_number;                    /* of that line, from 1 */
    const struct ph__delimited *delimited; /* with or without labels, as the first line is */
};

bool ph__session_cuts_lines(const struct ph_session *session)
{
    const enum ph_data_format format = session->model.encoder->format;
    return format == PH_DATA_CSV || format == PH_DATA_TSV || format == PH_DATA_CRITEO ||
           format == PH_DATA_AVAZU;
}

/* The line at *cursor, without its LF or CR-LF, and *cursor behind it; NULL at the end. */
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

/* Empty lines are none, as in files. */
static size_t count_rows(const char *text, const char *end)
{
    size_t num_rows = 0, length;
    while (next_line(&text, end, &length) != NULL)
        num_rows += length > 0;
    return num_rows;
}

static ph_status copy_line(struct ph__context *context, const char *line, size_t length)
{
    PH_TRY(ph__array_reserve((void **)&context->line, &context->line_capacity, length + 1, 1));
    memcpy(context->line, line, length);
    context->line[length] = '\0';
    if (memchr(line, '\0', length) != NULL)
        return ph_fail(PH_ERROR_DATA, "holds a zero byte");
    return PH_OK;
}

static void match_labels(struct text_request *request, const char *line)
{
    const struct ph_session *session = request->session;
    const size_t num_cells = ph__delimited_count(session->model.encoder, line);
    request->delimited =
        num_cells == session->unlabelled.num_cells ? &session->unlabelled : &session->labelled;
}

static ph_status encode_line(
    struct text_request *request, struct ph__context *context, const char *line, size_t length)
{
    PH_TRY(copy_line(context, line, length));
    if (request->delimited == NULL)
        match_labels(request, context->line);
    PH_TRY(ph__row_begin(&context->row, &context->rows));
    PH_TRY(ph__delimited_encode(request->delimited, &context->row, context->line, length));
    return ph__row_commit(&context->row);
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
    } while (line != NULL && length == 0);
    ph_status status = encode_line(request, context, line, length);
    return status == PH_OK ? PH_OK : ph_fail(status, "line %zu: %s", request->line_number, ph_error_text());
}

ph_status ph_session_score_text(struct ph_session *session, const char *text, size_t size,
    float *probabilities, size_t capacity_rows, size_t *num_rows_out)
{
    const char *end = text + size;
    struct text_request request = {
        .base = {count_rows(text, end), encode_text}, .session = session, .text = text, .end = end};
    if (!ph__session_cuts_lines(session))
        return ph_fail(PH_ERROR_USAGE, "rows of this format are not scored as text: hand their cells over");
    if (request.base.num_rows > capacity_rows)
        return ph_fail(PH_ERROR_USAGE, "the text holds %zu rows, there is room for the results of %zu",
            request.base.num_rows, capacity_rows);
    PH_TRY(ph__session_run(session, &request.base, probabilities));
    *num_rows_out = request.base.num_rows;
    return PH_OK;
}
