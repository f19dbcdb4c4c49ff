#include "store/checkpoint_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_folder_read.h"

static bool is_folder_there(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool ph__checkpoint_is_half_written(const char *path)
{
    struct ph_arena arena = {0};
    const char *index = ph__path_join(&arena, path, PH_FOLDER_INDEX);
    const bool is_half = is_folder_there(path) && index != NULL && !ph__file_exists(index);
    ph__arena_fini(&arena);
    return is_half;
}

/* ---- links ----------------------------------------------------------------------------------------------------- */

struct linking {
    const char *from, *to;
};

static ph_status link_name(const struct linking *linking, const char *name)
{
    struct ph_arena arena = {0};
    const char *from = ph__path_join(&arena, linking->from, name),
               *to = ph__path_join(&arena, linking->to, name);
    const ph_status status = from != NULL && to != NULL
                                 ? ph__file_link(from, to)
                                 : ph_fail(PH_ERROR_MEMORY, "no memory for a path in %s", linking->from);
    ph__arena_fini(&arena);
    return status;
}

static ph_status link_part(void *argument, const char *name)
{
    return strcmp(name, PH_FOLDER_INDEX) != 0 ? link_name(argument, name) : PH_OK;
}

/* A folder that is linked anew is none for a while, which whoever needs it must not see. */
static bool are_same_folder(const char *from, const char *to)
{
    char seal[65], other[65];
    return is_folder_there(to) && !ph__checkpoint_is_half_written(to) &&
           ph__checkpoint_read_seal(from, false, seal) == PH_OK &&
           ph__checkpoint_read_seal(to, false, other) == PH_OK && strcmp(seal, other) == 0;
}

ph_status ph__checkpoint_link(const char *from, const char *to)
{
    struct linking linking = {from, to};
    const bool is_folder = is_folder_there(from);
    if (is_folder && are_same_folder(from, to))
        return PH_OK;
    PH_TRY(ph__checkpoint_make_way(to, is_folder));
    if (!is_folder)
        return ph__file_link(from, to);
    PH_TRY(ph__folder_begin(to));
    PH_TRY(ph__directory_visit(from, link_part, &linking));
    return link_name(&linking, PH_FOLDER_INDEX);
}

/* ---- removing --------------------------------------------------------------------------------------------------- */

ph_status ph__checkpoint_remove(const char *path)
{
    if (is_folder_there(path)) {
        PH_TRY(ph__folder_begin(path));
        if (rmdir(path) == 0)
            return PH_OK;
    } else if (unlink(path) == 0 || errno == ENOENT) {
        return PH_OK;
    }
    return ph_fail(PH_ERROR_DISK, "%s: cannot be removed: %s", path, strerror(errno));
}

ph_status ph__checkpoint_make_way(const char *path, bool is_folder)
{
    return ph__file_exists(path) && is_folder_there(path) != is_folder ? ph__checkpoint_remove(path) : PH_OK;
}

/* ---- seals ------------------------------------------------------------------------------------------------------ */

static ph_status seal_of_file(const char *path, bool is_checked, char seal_out[65])
{
    struct ph_safetensors *file;
    PH_TRY(ph__safetensors_open(path, &file));
    ph_status status = is_checked ? ph__safetensors_check_seal(file) : PH_OK;
    const char *seal = ph__safetensors_metadata(file, PH_SEAL_KEY);
    if (status == PH_OK && (seal == NULL || strlen(seal) != PH_SEAL_DIGITS))
        status = ph_fail(PH_ERROR_CHECKPOINT, "%s: carries no seal", path);
    if (status == PH_OK)
        memcpy(seal_out, seal, PH_SEAL_DIGITS + 1);
    ph__safetensors_close(file);
    return status;
}

static ph_status seal_of_folder(const char *path, bool is_checked, char seal_out[65])
{
    struct ph_folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    const ph_status status = is_checked ? ph__folder_check_seals(folder, 0, 1) : PH_OK;
    if (status == PH_OK)
        snprintf(seal_out, PH_SEAL_DIGITS + 1, "%s",
            ph__json_as_text(ph__json_get(folder->index, PH_SEAL_KEY), ""));
    ph__folder_close(folder);
    return status;
}

ph_status ph__checkpoint_read_seal(const char *path, bool is_checked, char seal_out[65])
{
    return (is_folder_there(path) ? seal_of_folder : seal_of_file)(path, is_checked, seal_out);
}
