/* Finds who reads the process's rank from the environment, where launchers write the one before reordering.
 *
 * The library's getenv and secure_getenv stand before the C library's. MPI libraries and what they load need
 * the launcher's rank, so their calls do not count; nor do Phloem's, which only asks whether there is a
 * launcher. What reads `environ` itself, such as Python's os.environ, is not seen. The same functions notice
 * programs that are linked statically with MPI, whose calls nothing can precede. Any thread. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload/reorder.h"

static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};
static const char *const connections[] = {"PMI_FD", "PMIX_NAMESPACE", NULL}; /* to the launcher */

static const char *const entitled[] = {"libmpi", "libopen-", "libpmi", "libprrte", "mca_", "libuc",
    "libfabric", "libpsm", "libhwloc", "libevent", "libphloem", "phloem"};

/* NOBODY until somebody has read a rank, WRITING while it is noted who; NOTED; TOLD after the warning. */
enum { NOBODY, WRITING, NOTED, TOLD };
static atomic_int state;
static atomic_bool is_warning;
static char variable[32], reader[256];

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

static char *find(const char *name)
{
    const size_t bytes = strlen(name);
    for (char **at = environ; at != NULL && *at != NULL; at++)
        if (strncmp(*at, name, bytes) == 0 && (*at)[bytes] == '=')
            return *at + bytes + 1;
    return NULL;
}

/* Returns the file of whoever calls, or NULL when the call is no concern of ours. */
static const char *file_of(const void *caller)
{
    Dl_info object;
    if (dladdr(caller, &object) == 0 || object.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(object.dli_fname, '/'), *file = slash != NULL ? slash + 1 : object.dli_fname;
    for (size_t i = 0; i < sizeof entitled / sizeof *entitled; i++)
        if (strncmp(file, entitled[i], strlen(entitled[i])) == 0)
            return NULL;
    return file;
}

static void note_rank(const char *name, const void *caller)
{
    const char *file = file_of(caller);
    int nobody = NOBODY;
    if (file == NULL || !atomic_compare_exchange_strong(&state, &nobody, WRITING))
        return;
    snprintf(variable, sizeof variable, "%s", name);
    snprintf(reader, sizeof reader, "%s", file);
    atomic_store(&state, NOTED);
    warn();
}

/* Warns of a program that itself asks for what only MPI needs: it has MPI inside, and its calls do not come
 * here. */
static void note_mpi(const void *caller)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    const char *file = file_of(caller);
    if (file != NULL && find("PHLOEM_REORDER") != NULL && ph__reorder_is_first() &&
        !atomic_flag_test_and_set(&is_told))
        fprintf(stderr,
            "phloem: warning: '%s' is linked statically with MPI, so its ranks keep their order: link it "
            "dynamically\n",
            file);
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

static char *look_up(const char *name, const void *caller)
{
    char *value = find(name);
    if (value != NULL && is_among(name, ranks))
        note_rank(name, caller);
    else if (value != NULL && is_among(name, connections))
        note_mpi(caller);
    return value;
}

__attribute__((visibility("default"))) char *getenv(const char *name)
{
    return look_up(name, __builtin_return_address(0));
}

__attribute__((visibility("default"))) char *secure_getenv(const char *name)
{
    return getauxval(AT_SECURE) != 0 ? NULL : look_up(name, __builtin_return_address(0));
}
