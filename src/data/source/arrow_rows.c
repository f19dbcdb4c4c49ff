#include "data/source/arrow_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/name_index.h"

/* ---- matching ---- */

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

static ph_status match_column(struct ph__arrow_rows *rows, const struct ph__name_index *names,
    const struct ph_encoder *encoder, size_t index, enum ph__arrow_needs needs)
{
    const struct ph__column *column = &encoder->columns[index];
    const struct ph__arrow_column *from;
    const bool may_lack = ph__column_may_lack(column, needs != PH_ARROW_NEEDS_ALL);
    if (column->kind == PH_FIELD_IGNORE || (may_lack && needs == PH_ARROW_FEATURES_ALONE))
        return PH_OK;
    PH_TRY(find_column(rows->batch, names, column->from, &from));
    if (from == NULL && may_lack)
        return PH_OK;
    if (from == NULL)
        return ph_fail(PH_ERROR_DATA, "the batch has no column '%s'", column->from);
    PH_TRY(ph__arrow_column_check(from));
    if (from->kind == PH_ARROW_LIST && (!column->is_list || column->is_group))
        return ph_fail(PH_ERROR_DATA, "arrow: column '%s' (format '%s') has lists, but the schema's '%s' %s",
            from->name, from->format, column->name, column->is_list ? "is a group" : "has one value");
    struct ph__arrow_memo *memo = &rows->memos[index];
    if (from->kind == PH_ARROW_DICTIONARY) /* this batch has another dictionary */
        ph__arrow_memo_forget(memo);
    rows->cells[rows->num_cells++] = (struct ph__arrow_cell){.column = column, .from = from, .memo = memo};
    return PH_OK;
}

ph_status ph__arrow_rows_match(struct ph__arrow_rows *rows, const struct ph_encoder *encoder,
    const struct ph__dataset_batch *batch, enum ph__arrow_needs needs)
{
    struct ph__name_index names = {0};
    ph_status status = PH_OK;
    rows->batch = batch;
    rows->num_cells = 0;
    if (rows->cells == NULL) {
        rows->cells = calloc(encoder->num_columns + 1, sizeof *rows->cells);
        rows->memos = calloc(encoder->num_columns + 1, sizeof *rows->memos);
        rows->num_memos = encoder->num_columns;
    }
    if (rows->cells == NULL || rows->memos == NULL)
        return ph__out_of_memory("%zu columns", encoder->num_columns);
    for (size_t i = 0; i < batch->num_columns && status == PH_OK; i++)
        status = ph__name_index_add(&names, batch->columns[i].name);
    for (size_t i = 0; i < encoder->num_columns && status == PH_OK; i++)
        status = match_column(rows, &names, encoder, i, needs);
    ph__name_index_fini(&names);
    return status;
}

void ph__arrow_rows_fini(struct ph__arrow_rows *rows)
{
    for (size_t i = 0; rows->memos != NULL && i < rows->num_memos; i++)
        ph__arrow_memo_forget(&rows->memos[i]);
    free(rows->memos);
    free(rows->cells);
    *rows = (struct ph__arrow_rows){0};
}

/* ---- encoding ---- */

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

static ph_status encode_value(struct ph__row_encoder *row, struct ph__arrow_cell *cell, int64_t at)
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

ph_status ph__arrow_cell_encode(struct ph__arrow_cell *cell, struct ph__row_encoder *row, int64_t at)
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

ph_status ph__arrow_rows_encode(struct ph__arrow_rows *rows, struct ph__row_encoder *row, uint64_t at)
{
    const struct ph__dataset_batch *batch = rows->batch;
    const bool is_null = !ph__arrow_bit(batch->validity, batch->offset + (int64_t)at);
    for (size_t i = 0; i < rows->num_cells; i++)
        PH_TRY(is_null ? ph__row_text(row, rows->cells[i].column, "", 0)
                       : ph__arrow_cell_encode(&rows->cells[i], row, (int64_t)at));
    return PH_OK;
}
