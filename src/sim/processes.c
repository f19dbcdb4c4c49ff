#include "sim/processes.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "comm/wire/transport_open.h"

struct process {
    pid_t id; /* 0: none, or it has ended */
    bool has_ended;
    int how; /* as waitpid says */
};

struct ph__processes {
    struct ph__arena arena;
    struct ph__run_memory *memory;
    size_t mapped_bytes;
    int descriptor;
    size_t num_ranks;
    struct process *ranks;
};

/* ---- the program ---- */

static ph_status find_program(struct ph__arena *arena, const char *name, const char **path_out)
{
    const char *path = strchr(name, '/') != NULL ? "" : getenv("PATH");
    if (strchr(name, '/') != NULL) {
        *path_out = name;
        return access(name, X_OK) == 0
                   ? PH_OK
                   : ph_fail(PH_ERROR_USAGE, "cannot run '%s': %s", name, strerror(errno));
    }
    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");
        *path_out = ph__arena_printf(arena, "%.*s/%s", (int)length, path, name);
        if (*path_out == NULL)
            return PH_ERROR_MEMORY;
        if (access(*path_out, X_OK) == 0)
            return PH_OK;
        path += length + (path[length] == ':');
    }
    return ph_fail(PH_ERROR_USAGE, "'%s' is in no folder of $PATH: give its path, as in ./%s", name, name);
}

/* Reads the name of the program's loader. */
static ph_status read_loader(const char *path, char loader_out[PATH_MAX])
{
    Elf64_Ehdr head;
    Elf64_Phdr part;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_elf = file >= 0 && pread(file, &head, sizeof head, 0) == sizeof head &&
                        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64;
    ssize_t length = 0;
    for (size_t i = 0; is_elf && i < head.e_phnum && length <= 0; i++)
        if (pread(file, &part, sizeof part, (off_t)(head.e_phoff + i * sizeof part)) == sizeof part &&
            part.p_type == PT_INTERP && part.p_filesz < PATH_MAX)
            length = pread(file, loader_out, part.p_filesz, (off_t)part.p_offset);
    if (file >= 0)
        close(file);
    if (!is_elf)
        return ph_fail(PH_ERROR_USAGE,
            "'%s' is a script, or no program of this machine: name the MPI program itself", path);
    if (length <= 0)
        return ph_fail(PH_ERROR_USAGE,
            "'%s' is linked statically, so its MPI cannot be replaced: link it with a shared MPI", path);
    loader_out[length] = '\0';
    return PH_OK;
}

/* Lets the loader list the program's libraries, and looks for two of them. */
static ph_status list_libraries(const char *loader, const char *path, bool *has_openmpi, bool *has_mpich)
{
    int ends[2];
    char line[PATH_MAX];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot make a pipe: %s", strerror(errno));
    const pid_t id = fork();
    if (id == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(loader, loader, "--list", path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    *has_openmpi = *has_mpich = false;
    while (list != NULL && fgets(line, sizeof line, list) != NULL) {
        *has_openmpi |= strstr(line, "libmpi.so.40 ") != NULL;
        *has_mpich |= strstr(line, "libmpich.so.12 ") != NULL;
    }
    if (list != NULL)
        fclose(list);
    if (id > 0)
        waitpid(id, NULL, 0);
    return id > 0 && list != NULL ? PH_OK : ph_fail(PH_ERROR_MEMORY, "cannot start %s", loader);
}

/* Finds the library for the MPI that the program is linked with. */
static ph_status find_library(struct ph__arena *arena, const char *program, const char **library_out)
{
    char loader[PATH_MAX];
    bool has_openmpi, has_mpich;
    const char *folders;
    PH_TRY(read_loader(program, loader));
    PH_TRY(list_libraries(loader, program, &has_openmpi, &has_mpich));
    if (has_openmpi && has_mpich)
        return ph_fail(
            PH_ERROR_USAGE, "'%s' is linked with two MPIs: libmpi.so.40 and libmpich.so.12", program);
    if (!has_openmpi && !has_mpich)
        return ph_fail(PH_ERROR_USAGE,
            "'%s' is not linked with Open MPI 4 (libmpi.so.40) or MPICH 4 (libmpich.so.12)", program);
    const char *file = has_openmpi ? "libphloem_sim_mpi_openmpi.so" : "libphloem_sim_mpi_mpich.so";
    PH_TRY(ph__plugin_find(arena, file, library_out, &folders));
    if (*library_out == NULL)
        return ph_fail(PH_ERROR_USAGE,
            "cannot find %s in %s: build and install Phloem where that MPI is installed", file, folders);
    return PH_OK;
}

/* ---- starting ---- */

static ph_status share_memory(struct ph__processes *processes, const struct ph__processes_options *options)
{
    const uint32_t num_ranks = (uint32_t)options->num_ranks;
    const uint64_t end = ph__run_heap(num_ranks, num_ranks);
    const uint64_t bytes = end + (options->is_folded ? PH_RUN_FOLD_BYTES : 0);
    processes->descriptor = memfd_create("phloem sim run", 0); /* the programs inherit it */
    processes->mapped_bytes = ph__run_heap(num_ranks, 0);
    if (processes->descriptor < 0 || ftruncate(processes->descriptor, (off_t)bytes) != 0)
        return ph_fail(
            PH_ERROR_MEMORY, "cannot share memory with %u processes: %s", num_ranks, strerror(errno));
    void *memory = mmap(NULL, processes->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
        processes->descriptor, 0);
    if (memory == MAP_FAILED)
        return ph_fail(
            PH_ERROR_MEMORY, "cannot share memory with %u processes: %s", num_ranks, strerror(errno));
    processes->memory = memory;
    processes->memory->bytes = bytes;
    processes->memory->fold_at = options->is_folded ? end : 0;
    processes->memory->num_ranks = num_ranks;
    processes->memory->ranks_per_host = (uint32_t)options->fabric->ranks_per_host;
    processes->memory->eager_bytes = (uint64_t)options->fabric->messages.eager_bytes;
    processes->memory->is_compute_free = options->is_compute_free;
    processes->memory->next_context = 4; /* behind those of the world and of each rank alone */
    memcpy(processes->memory->algorithms, options->algorithms, sizeof processes->memory->algorithms);
    for (uint32_t i = 0; i < num_ranks; i++)
        snprintf(processes->memory->ranks[i].host, sizeof processes->memory->ranks[i].host, "%s",
            options->fabric->names[i / options->fabric->ranks_per_host]);
    return PH_OK;
}

/* Lets the MPI of each process begin as if it were alone: without a launcher, a daemon or a network. */
static void set_environment(void)
{
    static const char *const launchers[] = {"OMPI_", "PMIX_", "PMI_", "ORTE_"};
    static const char *const settings[] = {"OMPI_MCA_ess=singleton", "OMPI_MCA_ess_singleton_isolated=1",
        "OMPI_MCA_orte_create_session_dirs=0", "OMPI_MCA_opal_signal=", "OMPI_MCA_pml=ob1",
        "OMPI_MCA_btl=self", "OMPI_MCA_osc=^ucx,rdma", "UCX_TLS=self"};
    size_t num_kept = 0;
    for (size_t i = 0; environ[i] != NULL; i++) {
        bool is_kept = true;
        for (size_t k = 0; k < sizeof launchers / sizeof *launchers; k++)
            is_kept &= strncmp(environ[i], launchers[k], strlen(launchers[k])) != 0;
        environ[num_kept] = environ[i];
        num_kept += is_kept;
    }
    environ[num_kept] = NULL;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        putenv((char *)(uintptr_t)settings[i]);
}

/* Becomes a rank's program; the first one has the standard input. */
static _Noreturn void be_program(
    const char *path, const char *const *arguments, const char *place, size_t rank)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_environment();
    setenv(PH_RUN_ENVIRONMENT, place, 1);
    if (rank > 0) {
        const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
    }
    execv(path, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static ph_status start_all(struct ph__processes *processes, const struct ph__processes_options *options)
{
    const char *path, *library, *before = getenv("LD_PRELOAD");
    PH_TRY(find_program(&processes->arena, options->arguments[0], &path));
    PH_TRY(find_library(&processes->arena, path, &library));
    PH_TRY(share_memory(processes, options));
    const char *preload = ph__arena_printf(&processes->arena, "%s:%s:%s",
        options->preload != NULL ? options->preload : "", before != NULL ? before : "", library);
    if (preload == NULL)
        return PH_ERROR_MEMORY;
    fflush(stdout);
    for (size_t i = 0; i < processes->num_ranks; i++) {
        char place[64];
        snprintf(place, sizeof place, "%d:%zu", processes->descriptor, i);
        const pid_t id = fork();
        if (id == 0) {
            setenv("LD_PRELOAD", preload, 1);
            be_program(path, options->arguments, place, i);
        }
        if (id < 0)
            return ph_fail(PH_ERROR_MEMORY, "cannot start process %zu: %s", i, strerror(errno));
        processes->ranks[i].id = id;
    }
    return PH_OK;
}

ph_status ph__processes_start(
    const struct ph__processes_options *options, struct ph__processes **processes_out)
{
    struct ph__processes *processes = calloc(1, sizeof *processes);
    if (processes == NULL)
        return ph__out_of_memory("%zu processes", options->num_ranks);
    *processes = (struct ph__processes){.descriptor = -1,
        .num_ranks = options->num_ranks,
        .ranks = calloc(options->num_ranks, sizeof *processes->ranks)};
    const ph_status status = processes->ranks != NULL
                                 ? start_all(processes, options)
                                 : ph__out_of_memory("%zu processes", options->num_ranks);
    if (status != PH_OK) {
        ph__processes_destroy(processes);
        return status;
    }
    *processes_out = processes;
    return PH_OK;
}

struct ph__run_memory *ph__processes_memory(struct ph__processes *processes)
{
    return processes->memory;
}

/* ---- ends ---- */

static void look(struct process *process, int options)
{
    if (process->id > 0 && waitpid(process->id, &process->how, options) == process->id) {
        process->id = 0;
        process->has_ended = true;
    }
}

static bool has_finalized(const struct ph__run_rank *rank)
{
    const uint32_t written = atomic_load(&rank->written);
    return written > 0 && rank->records[(written - 1) % PH_RUN_RECORDS].kind == PH_RUN_END;
}

/* Fails if a process has ended by a signal, or before the simulation could. */
static ph_status judge(struct ph__processes *processes, size_t rank)
{
    const struct process *process = &processes->ranks[rank];
    const struct ph__run_rank *shared = &processes->memory->ranks[rank];
    if (!process->has_ended)
        return PH_OK;
    if (WIFSIGNALED(process->how))
        return ph_fail(PH_ERROR_PEER, "rank %zu was ended by signal %d (%s)", rank, WTERMSIG(process->how),
            strsignal(WTERMSIG(process->how)));
    if (has_finalized(shared))
        return PH_OK;
    processes->memory->exit_code = WEXITSTATUS(process->how);
    return ph_fail(PH_ERROR_PEER, "rank %zu ended with exit code %d %s", rank, WEXITSTATUS(process->how),
        atomic_load(&shared->has_begun) != 0 ? "before MPI_Finalize" : "without calling MPI_Init");
}

ph_status ph__processes_check(void *context, size_t rank)
{
    struct ph__processes *processes = context;
    if (atomic_load(&processes->memory->has_failed) == 2)
        return ph_fail(PH_ERROR_PEER, "%s", processes->memory->failure);
    for (size_t i = 0; i < processes->num_ranks; i++)
        look(&processes->ranks[i], WNOHANG);
    PH_TRY(judge(processes, rank));
    for (size_t i = 0; i < processes->num_ranks; i++)
        PH_TRY(judge(processes, i));
    return PH_OK;
}

ph_status ph__processes_wait(struct ph__processes *processes, int *code_out)
{
    *code_out = 0;
    for (size_t i = 0; i < processes->num_ranks; i++) {
        look(&processes->ranks[i], 0);
        PH_TRY(judge(processes, i));
        *code_out = *code_out != 0 ? *code_out : WEXITSTATUS(processes->ranks[i].how);
    }
    return PH_OK;
}

void ph__processes_destroy(struct ph__processes *processes)
{
    if (processes == NULL)
        return;
    for (size_t i = 0; processes->ranks != NULL && i < processes->num_ranks; i++)
        if (processes->ranks[i].id > 0)
            kill(processes->ranks[i].id, SIGKILL);
    for (size_t i = 0; processes->ranks != NULL && i < processes->num_ranks; i++)
        look(&processes->ranks[i], 0);
    if (processes->memory != NULL)
        munmap(processes->memory, processes->mapped_bytes);
    if (processes->descriptor >= 0)
        close(processes->descriptor);
    free(processes->ranks);
    ph__arena_fini(&processes->arena);
    free(processes);
}
