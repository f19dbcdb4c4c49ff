#include "data/source/input_file.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"

#define END_BYTES ((size_t)64 << 10)

/* ---- one file ---- */

/* Reads both ends of the file into a buffer of 2 END_BYTES; a small file is read whole. */
static ph_status read_ends(
    int descriptor, const char *path, uint64_t num_bytes, unsigned char *buffer, size_t *size_out)
{
    if (num_bytes <= 2 * END_BYTES) {
        *size_out = (size_t)num_bytes;
        return ph__file_read_at(descriptor, path, 0, buffer, *size_out);
    }
    *size_out = 2 * END_BYTES;
    PH_TRY(ph__file_read_at(descriptor, path, 0, buffer, END_BYTES));
    return ph__file_read_at(descriptor, path, num_bytes - END_BYTES, buffer + END_BYTES, END_BYTES);
}

static ph_status look_at(const char *path, struct ph__input_file *file_out)
{
    int descriptor;
    size_t size = 0;
    struct ph__input_file file = {.path = path};
    unsigned char *buffer = malloc(2 * END_BYTES);
    if (buffer == NULL)
        return ph__out_of_memory("cannot read %s", path);
    ph_status status = ph__file_open(path, &descriptor, &file.num_bytes);
    if (status == PH_OK) {
        status = read_ends(descriptor, path, file.num_bytes, buffer, &size);
        close(descriptor);
    }
    if (status == PH_OK) {
        ph__checksum_text(ph__checksum(buffer, size), file.checksum);
        *file_out = file;
    }
    free(buffer);
    return status;
}

ph_status ph__input_file_compare(
    const struct ph__input_file *now, const struct ph__input_file *before, const char *since)
{
    if (before->num_bytes != now->num_bytes)
        return ph_fail(PH_ERROR_DATA, "%s: had %" PRIu64 " bytes when %s, and has %" PRIu64 " now", now->path,
            before->num_bytes, since, now->num_bytes);
    if (strcmp(before->checksum, now->checksum) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: the contents have changed since %s", now->path, since);
    return PH_OK;
}

/* ---- the files of a path ---- */

bool ph__input_is_prepared(const char *path)
{
    struct ph__arena arena = {0};
    const char *manifest = ph__path_join(&arena, path, PH_MANIFEST_NAME);
    bool is_prepared = manifest != NULL && ph__file_exists(manifest);
    ph__arena_fini(&arena);
    return is_prepared;
}

ph_status ph__array_set_name(
    struct ph__arena *arena, const char *path, const char *paths_out[PH_NUM_SET_FILES])
{
    static const char *const endings[PH_NUM_SET_FILES] = {
        PH_LABELS_ENDING, "_dense.npy", "_sparse_multi_hot.npz", "_sparse.npy"};
    size_t length = strlen(path) - (ph__path_ends_in(path, PH_LABELS_ENDING) ? strlen(PH_LABELS_ENDING) : 0);
    for (size_t i = 0; i < PH_NUM_SET_FILES; i++) {
        paths_out[i] = ph__arena_printf(arena, "%.*s%s", (int)length, path, endings[i]);
        if (paths_out[i] == NULL)
            return PH_ERROR_MEMORY;
    }
    return PH_OK;
}

static ph_status copy_paths(
    struct ph__arena *arena, char *const *found, size_t count, const char ***paths_out, size_t *num_paths_out)
{
    const char **paths = ph__arena_alloc_array(arena, count, sizeof *paths);
    if (paths == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        paths[i] = ph__arena_strdup(arena, found[i]);
        if (paths[i] == NULL)
            return PH_ERROR_MEMORY;
    }
    *paths_out = paths;
    *num_paths_out = count;
    return PH_OK;
}

/* Records the folder that glob cannot look into, and the reason. */
static int fail_folder(const char *folder, int reason)
{
    ph_fail(PH_ERROR_DATA, "%s: %s", folder, strerror(reason));
    return 1;
}

const char *ph__input_split(const char *path)
{
    const char *mark = strrchr(path, '#');
    return mark != NULL && mark > path && mark[1] != '\0' && !ph__file_exists(path) ? mark + 1 : NULL;
}

ph_status ph__input_list(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out)
{
    const char *split = ph__input_split(path);
    if (split != NULL)
        path = ph__arena_printf(arena, "%.*s", (int)(split - 1 - path), path);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    char *one[] = {(char *)path};
    if (ph__file_exists(path))
        return copy_paths(arena, one, 1, paths_out, num_paths_out);
    if (strpbrk(path, "*?[") == NULL) {
        const char *arrays[PH_NUM_SET_FILES];
        PH_TRY(ph__array_set_name(arena, path, arrays));
        if (ph__file_exists(arrays[PH_SET_LABELS]))
            one[0] = (char *)arrays[PH_SET_LABELS];
        return copy_paths(arena, one, 1, paths_out, num_paths_out);
    }
    glob_t found;
    int outcome = glob(path, 0, fail_folder, &found);
    if (outcome == GLOB_NOMATCH)
        return ph_fail(PH_ERROR_DATA, "%s: no file matches this pattern", path);
    if (outcome == GLOB_NOSPACE)
        return ph__out_of_memory("the list of files %s", path);
    if (outcome != 0)
        return ph_fail(PH_ERROR_DATA, "%s: cannot list %s", path, ph_error_text());
    ph_status status = copy_paths(arena, found.gl_pathv, found.gl_pathc, paths_out, num_paths_out);
    globfree(&found);
    return status;
}

/* Lists the files that a path may stand for, in their order: the file, then the arrays that are named after
 * it. */
static ph_status list_around(struct ph__arena *arena, const char *path, const char **paths)
{
    const char *arrays[PH_NUM_SET_FILES];
    PH_TRY(ph__array_set_name(arena, path, arrays));
    paths[0] = path;
    memcpy(paths + 1, arrays, sizeof arrays);
    return PH_OK;
}

ph_status ph__input_list_around(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out)
{
    const char **sources = NULL;
    size_t num_sources = 0;
    PH_TRY(ph__input_list(arena, path, &sources, &num_sources));
    const size_t num_each = 1 + PH_NUM_SET_FILES;
    const char **paths = ph__arena_alloc_array(arena, num_sources * num_each + 1, sizeof *paths);
    if (paths == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_sources; i++)
        PH_TRY(list_around(arena, sources[i], paths + i * num_each));
    *paths_out = paths;
    *num_paths_out = num_sources * num_each;
    return PH_OK;
}

ph_status ph__input_list_all(
    struct ph__arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out)
{
    if (!ph__input_is_prepared(path)) {
        const ph_status status = ph__input_list_around(arena, path, paths_out, num_paths_out);
        if (status != PH_ERROR_DATA)
            return status;
        *paths_out = NULL;
        *num_paths_out = 0; /* a pattern without files */
        return PH_OK;
    }
    const char **paths = ph__arena_alloc_array(arena, 1, sizeof *paths);
    if (paths == NULL)
        return PH_ERROR_MEMORY;
    paths[0] = ph__path_join(arena, path, PH_MANIFEST_NAME);
    *paths_out = paths;
    *num_paths_out = 1;
    return paths[0] != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* Lists those existing files that are read for a set of arrays or one archive. */
static ph_status list_arrays(
    struct ph__arena *arena, const char *path, const char *paths_out[PH_INPUT_MAX_FILES], size_t *count_out)
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

struct ph__input_beside ph__input_beside(enum ph__data_format format, const struct ph__graph_settings *graph)
{
    if (format == PH_DATA_GRAPH)
        return (struct ph__input_beside){.names = {graph->edges, graph->words}};
    return (struct ph__input_beside){.are_arrays = format == PH_DATA_NPY};
}

ph_status ph__input_beside_path(
    struct ph__arena *arena, const char *path, const char *name, const char **path_out)
{
    const char *slash = strrchr(path, '/');
    *path_out = name[0] == '/' || slash == NULL
                    ? name
                    : ph__arena_printf(arena, "%.*s%s", (int)(slash + 1 - path), path, name);
    return *path_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__input_files_look(struct ph__arena *arena, const char *path,
    const struct ph__input_beside *beside, struct ph__input_files *files_out)
{
    const char *paths[PH_INPUT_MAX_FILES] = {path};
    *files_out = (struct ph__input_files){.count = 1};
    if (beside->are_arrays)
        PH_TRY(list_arrays(arena, path, paths, &files_out->count));
    for (size_t i = 0; i < PH_INPUT_MAX_FILES - 1; i++)
        if (beside->names[i] != NULL && beside->names[i][0] != '\0')
            PH_TRY(ph__input_beside_path(arena, path, beside->names[i], &paths[files_out->count++]));
    for (size_t i = 0; i < files_out->count; i++)
        PH_TRY(look_at(paths[i], &files_out->items[i]));
    return PH_OK;
}
