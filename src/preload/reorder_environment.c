/* Finds who reads the process's rank from the environment, where launchers write the one before reordering.
 *
 * The library's getenv and secure_getenv stand before the C library's. MPI libraries and what they load need
 * the launcher's rank, so their calls do not count; nor do Phloem's, which only asks whether there is a
 * launcher. What reads `environ` itself, such as Python's os.environ, is not seen. Any thread. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload/reorder.h"

static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};

static const char *const entitled[] = {"libmpi", "libopen-", "libpmi", "libprrte", "mca_", "libuc",
    "libfabric", "libpsm", "libhwloc", "libevent", "libphloem", "phloem"};

/* NOBODY until somebody has read a rank, WRITING while it is noted who; NOTED; TOLD after the warning. */
static _Atomic enum { NOBODY, WRITING, NOTED, TOLD } state;
static atomic_bool is_warning;
static const char *variable;
static char reader[256];

/* Prints once the warning that is due. */
static void warn(void)
{
    int noted = NOTED;
    if (atomic_load(&is_warning) && atomic_compare_exchange_strong(&state, &noted, TOLD))
        fprintf(stderr,
            "phloem: warning: '%s' reads %s, the rank before PHLOEM_REORDER changed it: let it ask "
            "MPI_Comm_rank\n",
            reader, variable);
}

void ph__reorder_warn_of_readers(void)
{
    atomic_store(&is_warning, true);
    warn();
}

static void note(const char *name, const void *caller)
{
    Dl_info object;
    int nobody = NOBODY;
    if (dladdr(caller, &object) == 0 || object.dli_fname == NULL)
        return;
    const char *slash = strrchr(object.dli_fname, '/'), *file = slash != NULL ? slash + 1 : object.dli_fname;
    for (size_t i = 0; i < sizeof entitled / sizeof *entitled; i++)
        if (strncmp(file, entitled[i], strlen(entitled[i])) == 0)
            return;
    if (!atomic_compare_exchange_strong(&state, &nobody, WRITING))
        return;
    variable = name;
    snprintf(reader, sizeof reader, "%s", file);
    atomic_store(&state, NOTED);
    warn();
}

static char *look_up(const char *name, const void *caller)
{
    const size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (strcmp(name, ranks[i]) == 0)
            note(ranks[i], caller);
    for (char **at = environ; at != NULL && *at != NULL; at++)
        if (strncmp(*at, name, bytes) == 0 && (*at)[bytes] == '=')
            return *at + bytes + 1;
    return NULL;
}

__attribute__((visibility("default"))) char *getenv(const char *name)
{
    return look_up(name, __builtin_return_address(0));
}

__attribute__((visibility("default"))) char *secure_getenv(const char *name)
{
    return getauxval(AT_SECURE) != 0 ? NULL : look_up(name, __builtin_return_address(0));
}
