/* See plugin_file.h. PH_PLUGIN_FOLDER is the folder of installed plugins as seen from that of installed programs. */
#include "comm/wire/plugin_file.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"

struct search {
    struct ph_arena *arena;
    const char *file;
    const char *path;    /* NULL: not found yet */
    const char *folders; /* "", or those without it: "/a, /b" */
    const char *around;  /* "", or where has been looked already */
};

static ph_status look_into(struct search *search, const char *folder)
{
    if (search->path != NULL)
        return PH_OK;
    const char *path = ph__path_join(search->arena, folder, search->file);
    const char *folders = ph__arena_printf(
        search->arena, "%s%s%s", search->folders, *search->folders == '\0' ? "" : ", ", folder);
    if (path == NULL || folders == NULL)
        return PH_ERROR_MEMORY;
    search->folders = folders;
    if (ph__file_exists(path))
        search->path = path;
    return PH_OK;
}

/* Where a program or a library lies in `folder`: builds have plugins in the same, installed programs where
 * PH_PLUGIN_FOLDER leads, and installed libraries have them in a folder below. */
static ph_status look_around(struct search *search, const char *folder)
{
    if (strcmp(folder, search->around) == 0)
        return PH_OK;
    const char *from_library = ph__path_join(search->arena, folder, "phloem");
    const char *from_program = ph__path_join(search->arena, folder, PH_PLUGIN_FOLDER);
    search->around = ph__arena_strdup(search->arena, folder);
    if (from_library == NULL || from_program == NULL || search->around == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(look_into(search, folder));
    PH_TRY(look_into(search, from_library));
    return look_into(search, from_program);
}

/* Of a file that is given by its whole path: a program's own name may be relative to a folder that it was in long ago. */
static ph_status look_beside(struct search *search, const char *file)
{
    char path[PATH_MAX];
    if (*file != '/' || realpath(file, path) == NULL)
        return PH_OK;
    *strrchr(path, '/') = '\0';
    return look_around(search, path);
}

ph_status ph__plugin_find(
    struct ph_arena *arena, const char *file, const char **path_out, const char **folders_out)
{
    struct search search = {.arena = arena, .file = file, .folders = "", .around = ""};
    const char *chosen = getenv("PHLOEM_PLUGINS");
    static const char own = 0; /* lies in the library that this is linked into, or in the program */
    Dl_info library;
    if (chosen != NULL) {
        PH_TRY(look_into(&search, chosen));
    } else {
        if (dladdr(&own, &library) != 0 && library.dli_fname != NULL)
            PH_TRY(look_beside(&search, library.dli_fname));
        PH_TRY(look_beside(&search, "/proc/self/exe"));
    }
    *path_out = search.path;
    *folders_out = search.folders;
    return PH_OK;
}
