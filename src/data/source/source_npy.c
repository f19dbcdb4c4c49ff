/* Rows of sets of arrays. Reads only the arrays that the encoder's columns are made of.
 *
 * A value is encoded as if it were text: a whole number as an id by its decimal digits, a float as it is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "data/source/array_set.h"
#include "data/source/source.h"

/* Source of a column of the encoder. */
struct cell {
    const struct ph__column *column;
    const struct ph__array_column *from;
};

struct npy_files {
    struct ph__array_set set;
    struct cell *cells; /* (num_cells) */
    size_t num_cells;
    bool *is_read;              /* (num_arrays) */
    const unsigned char **rows; /* (num_arrays) the current row of each array */
    uint64_t next;              /* next row */
};

/* ---- opening ---- */

/* Returns NULL when no column has the name. */
static const struct ph__array_column *find_column(const struct ph__array_set *set, const char *name)
{
    const size_t column = ph__name_index_find(&set->names, name);
    return column != PH_NO_NAME ? &set->columns[column] : NULL;
}

static ph_status match_column(
    const struct ph__source *source, struct npy_files *state, const struct ph__column *column)
{
    const char *path = source->paths[source->file];
    const struct ph__array_column *from = find_column(&state->set, column->from);
    if (from == NULL && ph__column_may_lack(column, source->options.needs_no_labels))
        return PH_OK;
    if (from == NULL)
        return ph_fail(PH_ERROR_DATA, "%s: no array has the column '%s'", path, column->from);
    if (column->kind == PH_FIELD_IGNORE)
        return PH_OK;
    if (from->is_list && (!column->is_list || column->is_group))
        return ph_fail(PH_ERROR_DATA, "%s: '%s' has several values a row, but the schema's '%s' %s",
            state->set.arrays[from->array].name, from->name, column->name,
            column->is_list ? "is a group" : "has one");
    state->cells[state->num_cells++] = (struct cell){column, from};
    state->is_read[from->array] = true;
    return PH_OK;
}

static ph_status match_columns(struct ph__source *source, struct npy_files *state)
{
    const struct ph_encoder *encoder = source->encoder;
    state->cells = calloc(encoder->num_columns + 1, sizeof *state->cells);
    state->is_read = calloc(state->set.num_arrays + 1, sizeof *state->is_read);
    state->rows = calloc(state->set.num_arrays + 1, sizeof(const unsigned char *));
    if (state->cells == NULL || state->is_read == NULL || state->rows == NULL)
        return ph__out_of_memory("cannot match %zu arrays", state->set.num_arrays);
    for (size_t i = 0; i < encoder->num_columns; i++)
        PH_TRY(match_column(source, state, &encoder->columns[i]));
    return PH_OK;
}

static ph_status seek(struct npy_files *state, const char *path, uint64_t row)
{
    if (row > state->set.num_rows)
        return ph_fail(PH_ERROR_DATA, "%s: has fewer rows than when reading stopped", path);
    for (size_t i = 0; i < state->set.num_arrays; i++)
        if (state->is_read[i])
            PH_TRY(ph__array_file_seek(&state->set.arrays[i], row));
    state->next = row;
    return PH_OK;
}

/* Lets the checksums take in arrays in files of their own. An archive is identified by its ends: its
 * directory, with a CRC of each array, is the last part. */
static ph_status sum_arrays(const struct ph__source *source, struct npy_files *state)
{
    for (size_t i = 0; i < state->set.num_arrays; i++) {
        struct ph__array_file *array = &state->set.arrays[i];
        struct ph__running_checksum *checksum = ph__source_checksum(source, array->name);
        if (checksum != NULL)
            PH_TRY(ph__array_file_sum(array, checksum));
    }
    return PH_OK;
}

static ph_status open_npy(struct ph__source *source, const struct ph__source_position *position)
{
    const char *path = source->paths[source->file];
    struct npy_files *state = calloc(1, sizeof *state);
    if (state == NULL)
        return ph__out_of_memory("cannot read %s", path);
    source->state = state;
    PH_TRY(ph__array_set_open(&state->set, path, source->options.needs_no_labels));
    PH_TRY(match_columns(source, state));
    PH_TRY(sum_arrays(source, state));
    return seek(state, path, position->row);
}

static void close_npy(struct ph__source *source)
{
    struct npy_files *state = source->state;
    if (state == NULL)
        return;
    ph__array_set_close(&state->set);
    free(state->cells);
    free(state->is_read);
    free(state->rows);
    free(state);
}

/* ---- rows ---- */

static ph_status fetch_npy(struct ph__source *source, bool *is_end_out)
{
    struct npy_files *state = source->state;
    *is_end_out = state->next == state->set.num_rows;
    if (*is_end_out)
        return PH_OK;
    for (size_t i = 0; i < state->set.num_arrays; i++)
        if (state->is_read[i])
            PH_TRY(ph__array_file_next(&state->set.arrays[i], &state->rows[i]));
    state->next++;
    return PH_OK;
}

static ph_status encode_value(struct ph__row_encoder *row, const struct ph__column *column,
    enum ph__npy_type type, const unsigned char *item)
{
    if (type >= PH_NPY_FLOAT16)
        return ph__row_real(row, column, ph__npy_real(type, item));
    if (type == PH_NPY_UINT64)
        return ph__row_unsigned(row, column, (uint64_t)ph__npy_integer(type, item));
    return ph__row_integer(row, column, ph__npy_integer(type, item));
}

static ph_status encode_npy(struct ph__source *source)
{
    struct npy_files *state = source->state;
    for (size_t i = 0; i < state->num_cells; i++) {
        const struct ph__array_column *from = state->cells[i].from;
        const struct ph__npy *npy = &state->set.arrays[from->array].npy;
        const unsigned char *item = state->rows[from->array] + from->index * npy->item_bytes;
        size_t count = from->is_list ? npy->num_columns : 1;
        for (size_t k = 0; k < count; k++, item += npy->item_bytes)
            PH_TRY(encode_value(&source->row, state->cells[i].column, npy->type, item));
    }
    return PH_OK;
}

static void locate_npy(const struct ph__source *source, char *text, size_t size)
{
    const struct npy_files *state = source->state;
    snprintf(text, size, "%s: row %" PRIu64, source->paths[source->file], state->next);
}

static void tell_npy(const struct ph__source *source, struct ph__source_position *position)
{
    const struct npy_files *state = source->state;
    position->row = state->next;
}

const struct ph__format ph__format_npy = {
    .open = open_npy,
    .close = close_npy,
    .fetch = fetch_npy,
    .encode = encode_npy,
    .locate = locate_npy,
    .tell = tell_npy,
};
