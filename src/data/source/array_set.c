#include "data/source/array_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/memory.h"

#define BUFFER_BYTES ((size_t)128 << 10) /* or one row, where that is larger */

/* ---- bytes ---- */

/* Reads some of the bytes that follow, at least one. */
static ph_status read_some(struct ph__array_file *array, unsigned char *buffer, size_t size, size_t *size_out)
{
    if (array->decompressor == NULL) {
        PH_TRY(
            ph__file_read_at(array->descriptor, array->name, array->first_byte + array->byte, buffer, size));
        *size_out = size;
        return PH_OK;
    }
    if (ph__decompressor_read(array->decompressor, buffer, size, size_out) != PH_OK) {
        char reason[256];
        snprintf(reason, sizeof reason, "%s", ph_error_text());
        return ph_fail(PH_ERROR_DATA, "%s: %s", array->name, reason);
    }
    return *size_out > 0 ? PH_OK
                         : ph_fail(PH_ERROR_DATA, "%s: the data ends before the size that the archive states",
                               array->name);
}

static ph_status check_crc(const struct ph__array_file *array)
{
    if (array->wanted == NULL || !array->has_crc || array->crc == *array->wanted)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "%s: the file is damaged: its CRC does not match", array->name);
}

static ph_status read_bytes(struct ph__array_file *array, unsigned char *buffer, size_t size)
{
    while (size > 0) {
        size_t count;
        PH_TRY(read_some(array, buffer, size, &count));
        if (array->checksum != NULL)
            ph__running_checksum_add(array->checksum, array->byte, buffer, count);
        if (array->wanted != NULL && array->has_crc)
            array->crc = ph__crc32(array->crc, buffer, count);
        array->byte += count;
        buffer += count;
        size -= count;
    }
    return array->byte == array->num_bytes ? check_crc(array) : PH_OK;
}

/* ---- opening ---- */

static ph_status read_header(struct ph__array_file *array)
{
    unsigned char *header = array->buffer;
    if (array->num_bytes < PH_NPY_PREFIX_BYTES)
        return ph_fail(PH_ERROR_DATA, "%s: not a .npy array", array->name);
    PH_TRY(read_bytes(array, header, PH_NPY_PREFIX_BYTES));
    PH_TRY(ph__npy_header_bytes(array->name, header, PH_NPY_PREFIX_BYTES, &array->header_bytes));
    if (array->header_bytes > array->num_bytes)
        return ph_fail(PH_ERROR_DATA, "%s: the file is cut off in the .npy header", array->name);
    PH_TRY(read_bytes(array, header + PH_NPY_PREFIX_BYTES, array->header_bytes - PH_NPY_PREFIX_BYTES));
    PH_TRY(ph__npy_parse(array->name, header, array->header_bytes, &array->npy));
    uint64_t num_bytes = array->num_bytes - array->header_bytes;
    if (array->npy.num_bytes != num_bytes)
        return ph_fail(PH_ERROR_DATA, "%s: has %llu bytes of rows, but its header says %llu (%s)",
            array->name, (unsigned long long)num_bytes, (unsigned long long)array->npy.num_bytes,
            array->npy.num_bytes > num_bytes ? "the file is cut off" : "bytes follow the array");
    return PH_OK;
}

static ph_status make_buffer(struct ph__array_file *array, size_t size)
{
    unsigned char *buffer = realloc(array->buffer, size);
    if (buffer == NULL)
        return ph__out_of_memory("cannot read %s", array->name);
    array->buffer = buffer;
    array->buffer_bytes = size;
    return PH_OK;
}

static ph_status open_array(struct ph__array_file *array)
{
    array->has_crc = true;
    PH_TRY(make_buffer(array, PH_NPY_MAX_HEADER_BYTES));
    PH_TRY(read_header(array));
    size_t row_bytes = array->npy.row_bytes;
    return make_buffer(array, row_bytes > BUFFER_BYTES ? row_bytes : BUFFER_BYTES / row_bytes * row_bytes);
}

/* Opens the array and checks its header against the file's size. `path` is borrowed until close. Close the
 * array also on failure. PH_ERROR_DATA naming the array. */
static ph_status open_array_file(struct ph__array_file *array, const char *path)
{
    *array = (struct ph__array_file){.name = path};
    PH_TRY(ph__file_open(path, &array->descriptor, &array->num_bytes));
    array->is_open = true;
    return open_array(array);
}

/* Opens a member in the same way; `name` and `member` are borrowed, too. */
static ph_status open_array_member(
    struct ph__array_file *array, const char *path, const char *name, const struct ph__npz_member *member)
{
    uint64_t file_bytes;
    *array = (struct ph__array_file){.name = name, .first_byte = member->data_byte, .wanted = &member->crc};
    PH_TRY(ph__file_open(path, &array->descriptor, &file_bytes));
    array->is_open = true;
    array->num_bytes = member->num_bytes;
    if (member->is_deflated) {
        if (lseek(array->descriptor, (off_t)member->data_byte, SEEK_SET) < 0)
            return ph_fail(PH_ERROR_DATA, "%s: cannot seek to the member", name);
        PH_TRY(ph__decompressor_create_deflate(array->descriptor, &array->decompressor));
    }
    return open_array(array);
}

static void close_array(struct ph__array_file *array)
{
    ph__decompressor_destroy(array->decompressor);
    if (array->is_open)
        close(array->descriptor);
    free(array->buffer);
    *array = (struct ph__array_file){0};
}

/* ---- rows ---- */

/* Reads on up to `byte`. */
static ph_status skip_to(struct ph__array_file *array, uint64_t byte)
{
    while (array->byte < byte) {
        uint64_t rest = byte - array->byte;
        PH_TRY(read_bytes(
            array, array->buffer, rest < array->buffer_bytes ? (size_t)rest : array->buffer_bytes));
    }
    return PH_OK;
}

ph_status ph__array_file_sum(struct ph__array_file *array, struct ph__running_checksum *checksum)
{
    unsigned char *header = malloc(array->header_bytes);
    if (header == NULL)
        return ph__out_of_memory("the header of %s", array->name);
    const ph_status status = ph__file_read_at(array->descriptor, array->name, 0, header, array->header_bytes);
    if (status == PH_OK)
        ph__running_checksum_add(checksum, 0, header, array->header_bytes);
    free(header);
    array->checksum = checksum;
    return status;
}

ph_status ph__array_file_seek(struct ph__array_file *array, uint64_t row)
{
    uint64_t byte = array->header_bytes + row * array->npy.row_bytes;
    if (array->decompressor != NULL)
        return skip_to(array, byte);
    array->has_crc &= byte == array->byte;
    array->byte = byte;
    return PH_OK;
}

static ph_status fill(struct ph__array_file *array)
{
    uint64_t rest = array->num_bytes - array->byte;
    size_t size = rest < array->buffer_bytes ? (size_t)rest : array->buffer_bytes;
    array->start = array->end = 0;
    PH_TRY(read_bytes(array, array->buffer, size));
    array->end = size;
    return PH_OK;
}

ph_status ph__array_file_next(struct ph__array_file *array, const unsigned char **row_out)
{
    if (array->start == array->end)
        PH_TRY(fill(array));
    *row_out = array->buffer + array->start;
    array->start += array->npy.row_bytes;
    return PH_OK;
}

/* ---- arrays ---- */

static ph_status add_array(struct ph__array_set *set, struct ph__array_file **array_out)
{
    PH_TRY(ph__array_reserve(
        (void **)&set->arrays, &set->arrays_capacity, set->num_arrays + 1, sizeof *set->arrays));
    *array_out = &set->arrays[set->num_arrays++];
    **array_out = (struct ph__array_file){0};
    return PH_OK;
}

/* Checks that the last array opened has as many rows as the first. */
static ph_status check_rows(struct ph__array_set *set)
{
    const struct ph__array_file *first = &set->arrays[0], *last = &set->arrays[set->num_arrays - 1];
    set->num_rows = first->npy.num_rows;
    if (last->npy.num_rows == set->num_rows)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "%s: has %llu rows, but %s has %llu", last->name,
        (unsigned long long)last->npy.num_rows, first->name, (unsigned long long)set->num_rows);
}

static ph_status open_file(struct ph__array_set *set, const char *path)
{
    struct ph__array_file *array;
    PH_TRY(add_array(set, &array));
    PH_TRY(open_array_file(array, path));
    return check_rows(set);
}

static ph_status open_member(struct ph__array_set *set, const char *path, const struct ph__npz_member *member)
{
    struct ph__array_file *array;
    const char *name = ph__arena_printf(&set->arena, "%s:%s", path, member->name);
    if (name == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(add_array(set, &array));
    PH_TRY(open_array_member(array, path, name, member));
    return check_rows(set);
}

/* ---- columns ---- */

/* Adds a column of the last array opened. The arena owns the name; NULL: out of memory. */
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

/* Adds the columns of a matrix, one after the other: prefix1, prefix2 ... */
static ph_status add_columns(struct ph__array_set *set, const char *prefix)
{
    size_t num_columns = set->arrays[set->num_arrays - 1].npy.num_columns;
    for (size_t i = 0; i < num_columns; i++)
        PH_TRY(add_column(set, ph__arena_printf(&set->arena, "%s%zu", prefix, i + 1), i, false));
    return PH_OK;
}

/* ---- MLPerf's layout ---- */

static ph_status open_labels(struct ph__array_set *set, const char *path)
{
    PH_TRY(open_file(set, path));
    if (set->arrays[0].npy.num_columns > 1)
        return ph_fail(PH_ERROR_DATA, "%s: has %zu columns of labels; it must have one", path,
            set->arrays[0].npy.num_columns);
    return add_column(set, ph__arena_strdup(&set->arena, "label"), 0, false);
}

/* Opens members 0, 1 ... of the archive: the ids of one feature each. */
static ph_status open_multi_hot(struct ph__array_set *set, const char *path)
{
    PH_TRY(ph__npz_read(&set->arena, path, &set->npz));
    for (size_t i = 0; i < set->npz.num_members; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        const struct ph__npz_member *member = ph__npz_find(&set->npz, name);
        if (member == NULL)
            return ph_fail(PH_ERROR_DATA, "%s: has %zu members, but none is named %zu; name them 0, 1, ...",
                path, set->npz.num_members, i);
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
        return ph_fail(PH_ERROR_DATA, "%s: does not exist, and neither does %s", paths[PH_SET_MULTI_HOT],
            paths[PH_SET_ONE_HOT]);
    PH_TRY(open_file(set, paths[PH_SET_ONE_HOT]));
    return add_columns(set, "C");
}

/* ---- one archive ---- */

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

/* ---- a set ---- */

ph_status ph__array_set_open(struct ph__array_set *set, const char *path, bool needs_no_labels)
{
    *set = (struct ph__array_set){0};
    if (ph__path_ends_in(path, ".npz"))
        return open_archive(set, path);
    if (strcmp(path, "-") == 0)
        return ph_fail(PH_ERROR_DATA, "standard input: arrays must come from files");
    if (ph__path_ends_in(path, ".npy") && !ph__path_ends_in(path, PH_LABELS_ENDING))
        return ph_fail(PH_ERROR_DATA,
            "%s: not a set of arrays: name its file ..." PH_LABELS_ENDING " or one .npz", path);
    return open_mlperf(set, path, needs_no_labels);
}

void ph__array_set_close(struct ph__array_set *set)
{
    for (size_t i = 0; i < set->num_arrays; i++)
        close_array(&set->arrays[i]);
    free(set->arrays);
    free(set->columns);
    ph__name_index_fini(&set->names);
    ph__arena_fini(&set->arena);
    *set = (struct ph__array_set){0};
}
