#include "comm/wire/transport_open.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"

/* ---- finding plugins: PH_PLUGIN_FOLDER is their installed folder, relative to that of installed programs
 * ---- */

struct search {
    struct ph__arena *arena;
    const char *file;
    const char *path;    /* NULL: not found yet */
    const char *folders; /* folders without the plugin: "", or "/a, /b" */
    const char *around;  /* folder searched already, or "" */
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

/* Searches around `folder`, which holds a program or a library: builds have plugins in the same folder,
 * installed programs at PH_PLUGIN_FOLDER, and installed libraries in the folder phloem below. */
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

/* Searches beside a file given by its absolute path: a program's own name may be relative to a folder that it
 * has left. */
static ph_status look_beside(struct search *search, const char *file)
{
    char path[PATH_MAX];
    if (*file != '/' || realpath(file, path) == NULL)
        return PH_OK;
    *strrchr(path, '/') = '\0';
    return look_around(search, path);
}

ph_status ph__plugin_find(
    struct ph__arena *arena, const char *file, const char **path_out, const char **folders_out)
{
    struct search search = {.arena = arena, .file = file, .folders = "", .around = ""};
    const char *chosen = getenv("PHLOEM_PLUGINS");
    static const char own = 0; /* its address is in the library that this is linked into, or in the program */
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

/* ---- opening ---- */

struct library {
    const char *transport, *name;
    const char *plugin;
    const char *package, *build_package; /* Debian's: what runs it, and what our plugin is built with */
};

static const struct library libraries[] = {
    {"openmpi", "Open MPI", "libphloem_openmpi.so", "openmpi-bin", "libopenmpi-dev"},
    {"mpich", "MPICH", "libphloem_mpich.so", "mpich", "libmpich-dev"},
};

/* Loads a plugin, with global symbols: parts of MPI that it loads later need them. */
static ph_status load(
    const struct library *library, const char *path, const struct ph__transport_plugin **plugin_out)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL)
        return ph_fail(PH_ERROR_USAGE, "%s is not installed (Debian's package: %s): %s", library->name,
            library->package, dlerror());
    const struct ph__transport_plugin *plugin = dlsym(handle, PH_TRANSPORT_SYMBOL);
    if (plugin == NULL || plugin->version != PH_TRANSPORT_VERSION)
        return ph_fail(PH_ERROR_USAGE, "%s is a plugin of another version of Phloem", path);
    *plugin_out = plugin;
    return PH_OK;
}

static ph_status find_plugin(
    const struct library *library, struct ph__arena *arena, const struct ph__transport_plugin **plugin_out)
{
    const char *path, *folders;
    PH_TRY(ph__plugin_find(arena, library->plugin, &path, &folders));
    if (path == NULL)
        return ph_fail(PH_ERROR_USAGE,
            "cannot find %s in %s: build and install Phloem where %s is installed (Debian's package: %s)",
            library->plugin, folders, library->name, library->build_package);
    return load(library, path, plugin_out);
}

static ph_status open_library(const struct library *library, struct ph__transport *transport_out)
{
    char error[PH_TRANSPORT_ERROR_BYTES] = "";
    const struct ph__transport_plugin *plugin;
    struct ph__arena arena = {0};
    const ph_status status = find_plugin(library, &arena, &plugin);
    ph__arena_fini(&arena);
    PH_TRY(status);
    if (!plugin->open(transport_out, error))
        return ph_fail(PH_ERROR_PEER, "%s: cannot join the job: %s", library->name, error);
    return PH_OK;
}

/* Compares the launcher's number of ranks with the transport's: an MPI library started by another MPI's
 * launcher takes every process for a job of its own. */
static ph_status check_ranks(const struct ph__transport_choice *choice, const struct ph__transport *transport)
{
    if (choice->num_ranks == 0 || choice->num_ranks == transport->world_size)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE,
        "%s=%zu ranks were started, but %s counts %zu: start them with its own mpirun, or choose the other "
        "MPI",
        choice->counted_by, choice->num_ranks, transport->name, transport->world_size);
}

ph_status ph__transport_open(const char *wanted, struct ph__transport *transport_out)
{
    struct ph__transport_choice choice;
    struct ph__transport transport;
    PH_TRY(ph__transport_choose(wanted, &choice));
    if (strcmp(choice.name, "self") == 0)
        return ph__transport_self_open(1, transport_out);
    const struct library *library = libraries;
    while (strcmp(library->transport, choice.name) != 0)
        library++;
    PH_TRY(open_library(library, &transport));
    const ph_status status = check_ranks(&choice, &transport);
    if (status != PH_OK) {
        transport.close(transport.context, false);
        return status;
    }
    *transport_out = transport;
    return PH_OK;
}
