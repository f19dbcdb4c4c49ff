#include "data/source/array_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"

#define LABELS "_labels.npy"

/* ---- names ----------------------------------------------------------------------------------------------- */

ph_status ph__array_set_name(
    struct ph_arena *arena, const char *path, const char *paths_out[PH_NUM_SET_FILES])
{
    static const char *const endings[PH_NUM_SET_FILES] = {
        LABELS, "_dense.npy", "_sparse_multi_hot.npz", "_sparse.npy"};
    size_t length = strlen(path) - (ph__path_ends_in(path, LABELS) ? strlen(LABELS) : 0);
    for (size_t i = 0; i < PH_NUM_SET_FILES; i++) {
        paths_out[i] = ph__arena_printf(arena, "%.*s%s", (int)length, path, endings[i]);
        if (paths_out[i] == NULL)
            return PH_ERROR_MEMORY;
    }
    return PH_OK;
}

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

/* ---- all ------------------------------------------------------------------------------------------------- */

ph_status ph__array_set_open(struct ph__array_set *set, const char *path, bool needs_no_labels)
{
    *set = (struct ph__array_set){0};
    if (ph__path_ends_in(path, ".npz"))
        return open_archive(set, path);
    if (strcmp(path, "-") == 0)
        return ph_fail(PH_ERROR_DATA, "standard input: arrays are read from files");
    if (ph__path_ends_in(path, ".npy") && !ph__path_ends_in(path, LABELS))
        return ph_fail(
            PH_ERROR_DATA, "%s: a set of arrays is named by its file ..." LABELS " or is one .npz", path);
    return open_mlperf(set, path, needs_no_labels);
}

ph_status ph__array_set_list(struct ph_arena *arena, const char *path,
    const char *paths_out[PH_ARRAY_SET_MAX_FILES], size_t *count_out)
{
    const char *paths[PH_NUM_SET_FILES];
    size_t count = 0;
    if (ph__path_ends_in(path, ".npz")) {
        paths_out[0] = path;
        *count_out = 1;
        return PH_OK;
    }
    PH_TRY(ph__array_set_name(arena, path, paths));
    const size_t unread = ph__file_exists(paths[PH_SET_MULTI_HOT]) ? PH_SET_ONE_HOT : PH_SET_MULTI_HOT;
    for (size_t i = 0; i < PH_NUM_SET_FILES; i++)
        if (i != unread && ph__file_exists(paths[i]))
            paths_out[count++] = paths[i];
    *count_out = count;
    return PH_OK;
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

const struct ph__array_column *ph__array_set_find(const struct ph__array_set *set, const char *name)
{
    const size_t column = ph__name_index_find(&set->names, name);
    return column != PH_NO_NAME ? &set->columns[column] : NULL;
}
