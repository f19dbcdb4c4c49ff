/* Rows of a dataset: batches of Arrow's columns in place of files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "data/source/dataset.h"
#include "data/source/source.h"

/* Source of a column of the encoder. */
struct cell {
    const struct ph__column *column;
    const struct ph__arrow_column *from;
    char written[PH_ARROW_WRITTEN_BYTES]; /* text made of the value, for the row in the making */
};

struct arrow_batch {
    const struct ph__dataset_batch *batch;
    struct cell *cells; /* (num_cells) */
    size_t num_cells;
    uint64_t next; /* next row */
};

/* ---- opening ---- */

/* Finds a column by name; gives NULL when there is none, PH_ERROR_DATA when there are several. `names`
 * indexes the batch's columns. */
static ph_status find_column(const struct ph__dataset_batch *batch, const struct ph__name_index *names,
    const char *name, const struct ph__arrow_column **column_out)
{
    const size_t found = ph__name_index_find(names, name);
    if (found != PH_NO_NAME && ph__name_index_next(names, found) != PH_NO_NAME)
        return ph_fail(PH_ERROR_DATA, "two columns are called '%s'", name);
    *column_out = found != PH_NO_NAME ? &batch->columns[found] : NULL;
    return PH_OK;
}

static ph_status match_column(const struct ph__source *source, struct arrow_batch *state,
    const struct ph__name_index *names, const struct ph__column *column)
{
    const struct ph__arrow_column *from;
    if (column->kind == PH_FIELD_IGNORE)
        return PH_OK;
    PH_TRY(find_column(state->batch, names, column->from, &from));
    if (from == NULL && ph__column_may_lack(column, source->options.needs_no_labels))
        return PH_OK;
    if (from == NULL)
        return ph_fail(PH_ERROR_DATA, "the batch has no column '%s'", column->from);
    PH_TRY(ph__arrow_column_check(from));
    if (from->kind == PH_ARROW_LIST && (!column->is_list || column->is_group))
        return ph_fail(PH_ERROR_DATA, "arrow: column '%s' (format '%s') has lists, but the schema's '%s' %s",
            from->name, from->format, column->name, column->is_list ? "is a group" : "has one value");
    state->cells[state->num_cells++] = (struct cell){.column = column, .from = from};
    return PH_OK;
}

static ph_status match_columns(const struct ph__source *source, struct arrow_batch *state)
{
    struct ph__name_index names = {0};
    ph_status status = PH_OK;
    for (size_t i = 0; i < state->batch->num_columns && status == PH_OK; i++)
        status = ph__name_index_add(&names, state->batch->columns[i].name);
    for (size_t i = 0; i < source->encoder->num_columns && status == PH_OK; i++)
        status = match_column(source, state, &names, &source->encoder->columns[i]);
    ph__name_index_fini(&names);
    if (status == PH_OK)
        return PH_OK;
    return ph_fail(status, "%s: batch %zu: %s", source->paths[source->file], source->file, ph_error_text());
}

static ph_status open_arrow(struct ph__source *source, const struct ph__source_position *position)
{
    const struct ph_encoder *encoder = source->encoder;
    struct arrow_batch *state = calloc(1, sizeof *state);
    source->state = state;
    if (state != NULL)
        state->cells = calloc(encoder->num_columns + 1, sizeof *state->cells);
    if (state == NULL || state->cells == NULL)
        return ph__out_of_memory("cannot read %s", source->paths[source->file]);
    state->batch = &source->options.dataset->batches[source->file];
    PH_TRY(match_columns(source, state));
    if (position->row > state->batch->num_rows)
        return ph_fail(
            PH_ERROR_DATA, "%s: has fewer rows than when reading stopped", source->paths[source->file]);
    state->next = position->row;
    return PH_OK;
}

static void close_arrow(struct ph__source *source)
{
    struct arrow_batch *state = source->state;
    if (state == NULL)
        return;
    free(state->cells);
    free(state);
}

/* ---- rows ---- */

static ph_status fetch_arrow(struct ph__source *source, bool *is_end_out)
{
    struct arrow_batch *state = source->state;
    *is_end_out = state->next == state->batch->num_rows;
    if (!*is_end_out)
        state->next++;
    return PH_OK;
}

/* Goes on to the dictionary's value if the column has a dictionary. */
static ph_status resolve(const struct ph__arrow_column **from, int64_t *at)
{
    if ((*from)->kind != PH_ARROW_DICTIONARY || ph__arrow_is_null(*from, *at))
        return PH_OK;
    PH_TRY(ph__arrow_index(*from, *at, at));
    *from = (*from)->child;
    return PH_OK;
}

static ph_status encode_number(struct ph__row_encoder *row, const struct ph__column *column,
    const struct ph__arrow_column *from, int64_t at)
{
    if (from->kind == PH_ARROW_REAL)
        return ph__row_real(row, column, ph__arrow_real(from, at));
    if (from->kind == PH_ARROW_UINT64)
        return ph__row_unsigned(row, column, (uint64_t)ph__arrow_integer(from, at));
    return ph__row_integer(row, column, ph__arrow_integer(from, at));
}

/* Encodes an id of a list; a text of a weighted list is id:weight. Skips items that are null or empty. */
static ph_status encode_item(struct ph__row_encoder *row, const struct ph__column *column,
    const struct ph__arrow_column *from, int64_t at)
{
    const char *text;
    size_t length;
    PH_TRY(resolve(&from, &at));
    if (ph__arrow_is_null(from, at))
        return PH_OK;
    if (from->kind != PH_ARROW_TEXT)
        return encode_number(row, column, from, at);
    PH_TRY(ph__arrow_text(from, at, &text, &length));
    if (length == 0)
        return PH_OK;
    return column->is_weighted ? ph__row_weighted_item(row, column, text, length)
                               : ph__row_item(row, column, text, length, 1);
}

static ph_status encode_value(struct ph__row_encoder *row, struct cell *cell, int64_t at)
{
    const struct ph__column *column = cell->column;
    const struct ph__arrow_column *from = cell->from;
    const char *text;
    size_t length;
    PH_TRY(resolve(&from, &at));
    if (ph__arrow_is_null(from, at))
        return ph__row_text(row, column, "", 0);
    if (from->kind == PH_ARROW_TIME || from->kind == PH_ARROW_DECIMAL) {
        PH_TRY(ph__arrow_written(from, at, cell->written, &length));
        return ph__row_text(row, column, cell->written, length);
    }
    if (from->kind != PH_ARROW_TEXT)
        return encode_number(row, column, from, at);
    PH_TRY(ph__arrow_text(from, at, &text, &length));
    return ph__row_text(row, column, text, length);
}

static ph_status encode_cell(struct ph__row_encoder *row, struct cell *cell, int64_t at)
{
    int64_t first, end;
    if (cell->from->kind != PH_ARROW_LIST)
        return encode_value(row, cell, at);
    if (ph__arrow_is_null(cell->from, at))
        return PH_OK;
    PH_TRY(ph__arrow_items(cell->from, at, &first, &end));
    for (int64_t i = first; i < end; i++)
        PH_TRY(encode_item(row, cell->column, cell->from->child, i));
    return PH_OK;
}

static ph_status encode_arrow(struct ph__source *source)
{
    const struct arrow_batch *state = source->state;
    int64_t at = (int64_t)state->next - 1;
    bool is_null = !ph__arrow_bit(state->batch->validity, state->batch->offset + at);
    for (size_t i = 0; i < state->num_cells; i++)
        PH_TRY(is_null ? ph__row_text(&source->row, state->cells[i].column, "", 0)
                       : encode_cell(&source->row, &state->cells[i], at));
    return PH_OK;
}

static void locate_arrow(const struct ph__source *source, char *text, size_t size)
{
    const struct arrow_batch *state = source->state;
    snprintf(text, size, "%s: batch %zu, row %" PRIu64, source->paths[source->file], source->file,
        state->next - 1);
}

static void tell_arrow(const struct ph__source *source, struct ph__source_position *position)
{
    const struct arrow_batch *state = source->state;
    position->row = state->next;
}

const struct ph__format ph__format_arrow = {
    .open = open_arrow,
    .close = close_arrow,
    .fetch = fetch_arrow,
    .encode = encode_arrow,
    .locate = locate_arrow,
    .tell = tell_arrow,
};
