#include "store/checkpoint_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/memory.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_layout.h"

bool ph__checkpoint_is_half_written(const char *path)
{
    struct ph__arena arena = {0};
    const char *index = ph__path_join(&arena, path, PH_FOLDER_INDEX);
    const bool is_half = ph__directory_exists(path) && index != NULL && !ph__file_exists(index);
    ph__arena_fini(&arena);
    return is_half;
}

static ph_status fail_path(const char *path)
{
    return ph__out_of_memory("a path of %s", path);
}

/* ---- drafts ---- */

const char *ph__checkpoint_draft(struct ph__arena *arena, const char *path)
{
    return ph__arena_printf(arena, "%s.tmp", path);
}

static ph_status take_name(const char *draft, const char *path)
{
    if (rename(draft, path) == 0)
        return ph__file_sync_name(path);
    return ph_fail(
        PH_ERROR_DISK, "%s: cannot rename the new checkpoint to this name: %s", path, strerror(errno));
}

/* Tells whether the error means that the file system cannot exchange names. */
static bool is_unknown_there(int error)
{
    return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP;
}

static ph_status replace(const char *draft, const char *path)
{
    if (renameat2(AT_FDCWD, draft, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        PH_TRY(ph__file_sync_name(path));
        return ph__checkpoint_remove(draft);
    }
    if (!is_unknown_there(errno))
        return ph_fail(PH_ERROR_DISK, "%s: cannot be replaced: %s", path, strerror(errno));
    PH_TRY(ph__checkpoint_remove(path));
    return take_name(draft, path);
}

ph_status ph__checkpoint_publish(const char *path)
{
    struct ph__arena arena = {0};
    const char *draft = ph__checkpoint_draft(&arena, path);
    const ph_status status = draft == NULL           ? fail_path(path)
                             : ph__file_exists(path) ? replace(draft, path)
                                                     : take_name(draft, path);
    ph__arena_fini(&arena);
    return status;
}

/* ---- links ---- */

struct linking {
    const char *from, *to;
};

static ph_status link_name(const struct linking *linking, const char *name)
{
    struct ph__arena arena = {0};
    const char *from = ph__path_join(&arena, linking->from, name),
               *to = ph__path_join(&arena, linking->to, name);
    const ph_status status = from != NULL && to != NULL ? ph__file_link(from, to) : fail_path(linking->from);
    ph__arena_fini(&arena);
    return status;
}

static ph_status link_part(void *argument, const char *name)
{
    return strcmp(name, PH_FOLDER_INDEX) != 0 ? link_name(argument, name) : PH_OK;
}

static bool are_same_folder(const char *from, const char *to)
{
    char seal[65], other[65];
    return ph__directory_exists(to) && !ph__checkpoint_is_half_written(to) &&
           ph__checkpoint_read_seal(from, seal) == PH_OK && ph__checkpoint_read_seal(to, other) == PH_OK &&
           strcmp(seal, other) == 0;
}

/* Links a checkpoint at the draft's path; links a folder's index last. */
static ph_status link_draft(const char *from, const char *draft)
{
    struct linking linking = {from, draft};
    PH_TRY(ph__checkpoint_remove(draft));
    if (!ph__directory_exists(from))
        return ph__file_link(from, draft);
    PH_TRY(ph__folder_begin(draft));
    PH_TRY(ph__directory_visit(from, link_part, &linking));
    return link_name(&linking, PH_FOLDER_INDEX);
}

ph_status ph__checkpoint_link(const char *from, const char *to)
{
    const bool is_folder = ph__directory_exists(from);
    if (!is_folder && !ph__directory_exists(to))
        return ph__file_link(from, to);
    if (is_folder && are_same_folder(from, to))
        return PH_OK;
    struct ph__arena arena = {0};
    const char *draft = ph__checkpoint_draft(&arena, to);
    ph_status status = draft != NULL ? link_draft(from, draft) : fail_path(to);
    if (status == PH_OK)
        status = ph__checkpoint_publish(to);
    ph__arena_fini(&arena);
    return status;
}

/* ---- removing ---- */

ph_status ph__checkpoint_remove(const char *path)
{
    if (ph__directory_exists(path)) {
        PH_TRY(ph__folder_begin(path));
        if (rmdir(path) == 0)
            return PH_OK;
    } else if (unlink(path) == 0 || errno == ENOENT) {
        return PH_OK;
    }
    return ph_fail(PH_ERROR_DISK, "%s: cannot remove: %s", path, strerror(errno));
}

/* ---- seals ---- */

static ph_status seal_of_folder(const char *path, char seal_out[65])
{
    struct ph__folder *folder;
    PH_TRY(ph__folder_open_metadata(path, &folder));
    snprintf(
        seal_out, PH_SEAL_DIGITS + 1, "%s", ph__json_as_text(ph__json_get(folder->index, PH_SEAL_KEY), ""));
    ph__folder_close(folder);
    return PH_OK;
}

ph_status ph__checkpoint_read_seal(const char *path, char seal_out[65])
{
    return (ph__directory_exists(path) ? seal_of_folder : ph__safetensors_read_seal)(path, seal_out);
}

ph_status ph__checkpoint_check_seals(
    const char *path, size_t first, size_t step, const struct ph__meanwhile *meanwhile)
{
    struct ph__folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    ph__folder_set_meanwhile(folder, meanwhile);
    const ph_status status = ph__folder_check_seals(folder, first, step);
    ph__folder_close(folder);
    return status;
}
