#include "data/source/input_file.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/sum/checksum.h"
#include "data/source/array_set.h"

#define END_BYTES ((size_t)64 << 10)

/* ---- one file -------------------------------------------------------------------------------------------- */

/* Both ends of the file, which for a small one is all of it, into a buffer of 2 END_BYTES. */
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

ph_status ph__input_file_look(const char *path, struct ph__input_file *file_out)
{
    int descriptor;
    size_t size = 0;
    struct ph__input_file file = {.path = path};
    unsigned char *buffer = malloc(2 * END_BYTES);
    if (buffer == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to look at it", path);
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
        return ph_fail(PH_ERROR_DATA, "%s: had %" PRIu64 " bytes when %s and has %" PRIu64, now->path,
            before->num_bytes, since, now->num_bytes);
    if (strcmp(before->checksum, now->checksum) != 0)
        return ph_fail(PH_ERROR_DATA, "%s: its bytes are others than when %s", now->path, since);
    return PH_OK;
}

/* ---- the files of a path --------------------------------------------------------------------------------- */

bool ph__input_is_prepared(const char *path)
{
    struct ph_arena arena = {0};
    const char *manifest = ph__path_join(&arena, path, PH_MANIFEST_NAME);
    bool is_prepared = manifest != NULL && ph__file_exists(manifest);
    ph__arena_fini(&arena);
    return is_prepared;
}

static ph_status copy_paths(
    struct ph_arena *arena, char *const *found, size_t count, const char ***paths_out, size_t *num_paths_out)
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

/* For glob: which folder it cannot look into, and why. */
static int fail_folder(const char *folder, int reason)
{
    ph_fail(PH_ERROR_DATA, "%s: %s", folder, strerror(reason));
    return 1;
}

ph_status ph__input_list(
    struct ph_arena *arena, const char *path, const char ***paths_out, size_t *num_paths_out)
{
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
        return ph_fail(PH_ERROR_DATA, "%s: no file has such a name", path);
    if (outcome == GLOB_NOSPACE)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for the list of files", path);
    if (outcome != 0)
        return ph_fail(PH_ERROR_DATA, "%s: cannot look into %s", path, ph_error_text());
    ph_status status = copy_paths(arena, found.gl_pathv, found.gl_pathc, paths_out, num_paths_out);
    globfree(&found);
    return status;
}
