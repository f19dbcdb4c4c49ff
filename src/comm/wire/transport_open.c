/* See transport_open.h. */
#include "comm/wire/transport_open.h"

#include <dlfcn.h>
#include <string.h>

#include "comm/wire/plugin_file.h"
#include "comm/wire/transport_choice.h"
#include "comm/wire/transport_self.h"

struct library {
    const char *transport, *name;
    const char *plugin;
    const char *package, *build_package; /* Debian's: what runs it, and what our plugin is built with */
};

static const struct library libraries[] = {
    {"openmpi", "Open MPI", "libphloem_openmpi.so", "openmpi-bin", "libopenmpi-dev"},
    {"mpich", "MPICH", "libphloem_mpich.so", "mpich", "libmpich-dev"},
};

/* All that it links is for all to see: parts of MPI that it loads itself want its symbols. */
static ph_status load(
    const struct library *library, const char *path, const struct ph_transport_plugin **plugin_out)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL)
        return ph_fail(PH_ERROR_USAGE, "%s is not installed (Debian's package: %s): %s", library->name,
            library->package, dlerror());
    const struct ph_transport_plugin *plugin = dlsym(handle, PH_TRANSPORT_SYMBOL);
    if (plugin == NULL || plugin->version != PH_TRANSPORT_VERSION)
        return ph_fail(PH_ERROR_USAGE, "%s is a plugin of another version of Phloem", path);
    *plugin_out = plugin;
    return PH_OK;
}

static ph_status find_plugin(
    const struct library *library, struct ph_arena *arena, const struct ph_transport_plugin **plugin_out)
{
    const char *path, *folders;
    PH_TRY(ph__plugin_find(arena, library->plugin, &path, &folders));
    if (path == NULL)
        return ph_fail(PH_ERROR_USAGE,
            "no %s in %s: it is built and installed with Phloem where %s is there (Debian's package: %s)",
            library->plugin, folders, library->name, library->build_package);
    return load(library, path, plugin_out);
}

static ph_status open_library(const struct library *library, struct ph_transport *transport_out)
{
    char error[PH_TRANSPORT_ERROR_BYTES] = "";
    const struct ph_transport_plugin *plugin;
    struct ph_arena arena = {0};
    const ph_status status = find_plugin(library, &arena, &plugin);
    ph__arena_fini(&arena);
    PH_TRY(status);
    if (!plugin->open(transport_out, error))
        return ph_fail(PH_ERROR_PEER, "%s: the job cannot be joined: %s", library->name, error);
    return PH_OK;
}

/* One MPI's library that another MPI's launcher has started takes every process for a job of its own. */
static ph_status check_ranks(const struct ph_transport_choice *choice, const struct ph_transport *transport)
{
    if (choice->num_ranks == 0 || choice->num_ranks == transport->world_size)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE,
        "%s=%zu ranks were started, but %s knows of %zu: start them with its own mpirun, or choose the other "
        "MPI",
        choice->counted_by, choice->num_ranks, transport->name, transport->world_size);
}

ph_status ph__transport_open(const char *wanted, struct ph_transport *transport_out)
{
    struct ph_transport_choice choice;
    struct ph_transport transport;
    PH_TRY(ph__transport_choose(wanted, &choice));
    if (strcmp(choice.name, "self") == 0)
        return ph__transport_self_open(transport_out);
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
