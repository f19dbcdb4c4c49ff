/* Sets of arrays, and their rows as a source. Only the arrays that the encoder's columns are made of are read.
 *
 * A value is encoded as if it had been text: a whole number as an id by its decimal digits, a float as it is. */
#include "data/source/source_npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "data/source/source.h"

/* ---- arrays ---------------------------------------------------------------------------------------------- */

static ph_status add_array(struct ph__array_set *set, struct ph__array_file **array_out)
{
    PH_TRY(ph__array_reserve(
        (void **)&set->arrays, &set->arrays_capacity, set->num_arrays + 1, sizeof *set->arrays));
    *array_out = &set->arrays[set->num_arrays++];
    **array_out = (struct ph__array_file){0};
    return PH_OK;
}

/* The array opened last must have as many rows as the first one. */
static ph_status check_rows(struct ph__array_set *set)
{
    const struct ph__array_file *first = &set->arrays[0], *last = &set->arrays[set->num_arrays - 1];
    set->num_rows = first->npy.num_rows;
    if (last->npy.num_rows == set->num_rows)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "%s: has %llu rows, %s has %llu", last->name,
        (unsigned long long)last->npy.num_rows, first->name, (unsigned long long)set->num_rows);
}

static ph_status open_file(struct ph__array_set *set, const char *path)
{
    struct ph__array_file *array;
    PH_TRY(add_array(set, &array));
    PH_TRY(ph__array_file_open(array, path));
    return check_rows(set);
}

static ph_status open_member(struct ph__array_set *set, const char *path, const struct ph__npz_member *member)
{
    struct ph__array_file *array;
    const char *name = ph__arena_printf(&set->arena, "%s:%s", path, member->name);
    if (name == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(add_array(set, &array));
    PH_TRY(ph__array_file_open_member(array, path, name, member));
    return check_rows(set);
}

/* ---- columns --------------------------------------------------------------------------------------------- */

/* A column of the array opened last; the name is owned by the arena, NULL when there was no memory for it. */
static ph_status add_column(struct ph__array_set *set, char *name, size_t index, bool is_list)
{
    if (name == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__array_reserve(
        (void **)&set->columns, &set->columns_capacity, set->num_columns + 1, sizeof *set->columns));
    set->columns[set->num_columns++] = (struct ph__array_column){
        .name = name, .array = set->num_arrays - 1, .index = index, .is_list = is_list};
    return ph__name_index_add(&set->names, name);
}

/* The columns of a matrix, one after the other: prefix1, prefix2 ... */
static ph_status add_columns(struct ph__array_set *set, const char *prefix)
{
    size_t num_columns = set->arrays[set->num_arrays - 1].npy.num_columns;
    for (size_t i = 0; i < num_columns; i++)
        PH_TRY(add_column(set, ph__arena_printf(&set->arena, "%s%zu", prefix, i + 1), i, false));
    return PH_OK;
}

/* ---- MLPerf's layout ------------------------------------------------------------------------------------- */

static ph_status open_labels(struct ph__array_set *set, const char *path)
{
    PH_TRY(open_file(set, path));
    if (set->arrays[0].npy.num_columns > 1)
        return ph_fail(
            PH_ERROR_DATA, "%s: has %zu columns, a row has one label", path, set->arrays[0].npy.num_columns);
    return add_column(set, ph__arena_strdup(&set->arena, "label"), 0, false);
}

/* Members 0, 1 ... of the archive: the ids of one feature each. */
static ph_status open_multi_hot(struct ph__array_set *set, const char *path)
{
    PH_TRY(ph__npz_read(&set->arena, path, &set->npz));
    for (size_t i = 0; i < set->npz.num_members; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        const struct ph__npz_member *member = ph__npz_find(&set->npz, name);
        if (member == NULL)
            return ph_fail(
                PH_ERROR_DATA, "%s: of its %zu members none is called %zu", path, set->npz.num_members, i);
        PH_TRY(open_member(set, path, member));
        bool is_list = set->arrays[set->num_arrays - 1].npy.num_columns > 1;
        PH_TRY(add_column(set, ph__arena_printf(&set->arena, "C%zu", i + 1), 0, is_list));
    }
    return PH_OK;
}

static ph_status open_mlperf(struct ph__array_set *set, const char *path, bool needs_no_labels)
{
    const char *paths[PH_NUM_SET_FILES];
    PH_TRY(ph__array_set_name(&set->arena, path, paths));
    if (!needs_no_labels || ph__file_exists(paths[PH_SET_LABELS]))
        PH_TRY(open_labels(set, paths[PH_SET_LABELS]));
    PH_TRY(open_file(set, paths[PH_SET_DENSE]));
    PH_TRY(add_columns(set, "I"));
    if (ph__file_exists(paths[PH_SET_MULTI_HOT]))
        return open_multi_hot(set, paths[PH_SET_MULTI_HOT]);
    if (!ph__file_exists(paths[PH_SET_ONE_HOT]))
        return ph_fail(
            PH_ERROR_DATA, "%s: is missing, and so is %s", paths[PH_SET_MULTI_HOT], paths[PH_SET_ONE_HOT]);
    PH_TRY(open_file(set, paths[PH_SET_ONE_HOT]));
    return add_columns(set, "C");
}

/* ---- one archive ----------------------------------------------------------------------------------------- */

static ph_status open_archive(struct ph__array_set *set, const char *path)
{
    PH_TRY(ph__npz_read(&set->arena, path, &set->npz));
    for (size_t i = 0; i < set->npz.num_members; i++) {
        const struct ph__npz_member *member = &set->npz.members[i];
        PH_TRY(open_member(set, path, member));
        const struct ph__npy *npy = &set->arrays[set->num_arrays - 1].npy;
        if (npy->num_columns > 1 && ph__npy_is_real(npy))
            PH_TRY(add_columns(set, ph__arena_printf(&set->arena, "%s_", member->name)));
        else
            PH_TRY(add_column(set, ph__arena_strdup(&set->arena, member->name), 0, npy->num_columns > 1));
    }
    return set->num_arrays > 0 ? PH_OK : ph_fail(PH_ERROR_DATA, "%s: has no arrays", path);
}

/* ---- a set ----------------------------------------------------------------------------------------------- */

ph_status ph__array_set_open(struct ph__array_set *set, const char *path, bool needs_no_labels)
{
    *set = (struct ph__array_set){0};
    if (ph__path_ends_in(path, ".npz"))
        return open_archive(set, path);
    if (strcmp(path, "-") == 0)
        return ph_fail(PH_ERROR_DATA, "standard input: arrays are read from files");
    if (ph__path_ends_in(path, ".npy") && !ph__path_ends_in(path, PH_LABELS_ENDING))
        return ph_fail(PH_ERROR_DATA,
            "%s: a set of arrays is named by its file ..." PH_LABELS_ENDING " or is one .npz", path);
    return open_mlperf(set, path, needs_no_labels);
}

void ph__array_set_close(struct ph__array_set *set)
{
    for (size_t i = 0; i < set->num_arrays; i++)
        ph__array_file_close(&set->arrays[i]);
    free(set->arrays);
    free(set->columns);
    ph__name_index_fini(&set->names);
    ph__arena_fini(&set->arena);
    *set = (struct ph__array_set){0};
}

/* NULL when there is none of that name. */
static const struct ph__array_column *find_column(const struct ph__array_set *set, const char *name)
{
    const size_t column = ph__name_index_find(&set->names, name);
    return column != PH_NO_NAME ? &set->columns[column] : NULL;
}

/* ---- the arrays that are read ---------------------------------------------------------------------------- */

/* What a column of the encoder reads. */
struct cell {
    const struct ph__column *column;
    const struct ph__array_column *from;
};

struct npy_files {
    struct ph__array_set set;
    struct cell *cells; /* (num_cells) */
    size_t num_cells;
    bool *is_read;              /* (num_arrays) */
    const unsigned char **rows; /* (num_arrays) of the row at hand */
    uint64_t next;              /* row */
};

/* ---- opening --------------------------------------------------------------------------------------------- */

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
        return ph_fail(PH_ERROR_DATA, "%s: '%s' has several values a row, the schema's '%s' %s",
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
        return ph_fail(PH_ERROR_DATA, "%s: has fewer rows than when the reading was left", path);
    for (size_t i = 0; i < state->set.num_arrays; i++)
        if (state->is_read[i])
            PH_TRY(ph__array_file_seek(&state->set.arrays[i], row));
    state->next = row;
    return PH_OK;
}

/* Sums what lies in files of their own. An archive is known by its ends: its directory, with a CRC of each array, is the last part. */
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
        return ph__out_of_memory("%s: cannot read", path);
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

/* ---- rows ------------------------------------------------------------------------------------------------ */

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
