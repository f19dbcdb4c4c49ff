/* Beginning and end, time and place, and communicators. */
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "preload/sim/sim_mpi.h"

/* Gives the function of the MPI behind one that is simulated. */
#define REAL(name) ((__typeof(&PMPI_##name))find_real("PMPI_" #name))

static int key_of_comm = MPI_KEYVAL_INVALID; /* the attribute of a simulated communicator */
static bool has_begun, is_beginning;

static uintptr_t find_real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL)
        ph__process_fail(2, "the program's MPI has no %s", name);
    return (uintptr_t)function;
}

const struct ph__sim_comm *ph__sim_comm(MPI_Comm handle)
{
    const struct ph__sim_comm *comm;
    int is_there = 0;
    if (has_begun)
        PMPI_Comm_get_attr(handle, key_of_comm, &comm, &is_there);
    if (!is_there)
        ph__process_fail(2, "a communicator that is none, or MPI before MPI_Init");
    return comm;
}

/* Adds what is simulated to a communicator of the MPI behind. Messages that are under way need it, even if
 * the program frees the communicator. */
static struct ph__sim_comm *add_comm(MPI_Comm handle, uint32_t context, int rank, int size)
{
    struct ph__sim_comm *comm = malloc(sizeof *comm + (size_t)size * sizeof *comm->ranks);
    if (comm == NULL)
        ph__process_fail(5, "rank %u is out of memory", ph__process()->rank);
    *comm = (struct ph__sim_comm){context, rank, size, (int32_t *)(comm + 1)};
    PMPI_Comm_set_attr(handle, key_of_comm, comm);
    return comm;
}

/* ---- beginning and end ---- */

PH_MPI(Init_thread, int *argc, char ***argv, int required, int *provided_out)
{
    const struct ph__process *process = ph__process();
    if (process == NULL || has_begun)
        ph__process_fail(2, "MPI_Init is called twice, or not below phloem sim run");
    const int num_ranks = (int)process->memory->num_ranks, rank = (int)process->rank;
    is_beginning = true;
    REAL(Init_thread)
    (argc, argv, required < MPI_THREAD_SERIALIZED ? required : MPI_THREAD_SERIALIZED, provided_out);
    is_beginning = false;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key_of_comm, NULL);
    struct ph__sim_comm *world = add_comm(MPI_COMM_WORLD, 0, rank, num_ranks);
    for (int i = 0; i < num_ranks; i++)
        world->ranks[i] = i;
    add_comm(MPI_COMM_SELF, 2, 0, 1)->ranks[0] = rank;
    has_begun = true;
    atomic_store(&process->own->has_begun, 1);
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Init, int *argc, char ***argv)
{
    int provided;
    return PMPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

PH_MPI(Finalize, void)
{
    ph__process_enter();
    ph__process_post((struct ph__run_record){.kind = PH_RUN_END});
    return REAL(Finalize)();
}

PH_MPI(Abort, MPI_Comm comm, int code)
{
    (void)comm;
    const struct ph__process *process = ph__process();
    ph__process_fail((code & 255) != 0 ? code & 255 : 1, "rank %u has called MPI_Abort, with the code %d",
        process != NULL ? process->rank : 0, code);
}

/* ---- time ---- */

PH_MPI_RETURNS(double, Wtime, void)
{
    ph__process_enter();
    ph__process_ask((struct ph__run_record){.kind = PH_RUN_TIME});
    const double seconds = ph__process()->own->now_ns * 1e-9;
    ph__process_leave();
    return seconds;
}

/* These stand before the C library's: a rank sleeps in simulated time. */
__attribute__((visibility("default"))) int nanosleep(const struct timespec *time, struct timespec *rest_out)
{
    if (ph__process_sleep((double)time->tv_sec * 1e9 + (double)time->tv_nsec))
        return 0;
    const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, rest_out);
    errno = error;
    return error == 0 ? 0 : -1;
}

__attribute__((visibility("default"))) int usleep(useconds_t microseconds)
{
    const struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    return nanosleep(&time, NULL);
}

__attribute__((visibility("default"))) unsigned sleep(unsigned seconds)
{
    const struct timespec time = {.tv_sec = seconds};
    return nanosleep(&time, NULL) == 0 ? 0 : seconds;
}

/* ---- place: a host of the topology, for everything but the MPI behind ---- */

static const char *host(void)
{
    const struct ph__process *process = is_beginning ? NULL : ph__process();
    return process != NULL ? process->own->host : NULL;
}

PH_MPI(Get_processor_name, char *name_out, int *length_out)
{
    *length_out = snprintf(name_out, MPI_MAX_PROCESSOR_NAME, "%s", host());
    return MPI_SUCCESS;
}

__attribute__((visibility("default"))) int gethostname(char *name_out, size_t size)
{
    struct utsname system;
    if (host() == NULL && uname(&system) != 0)
        return -1;
    snprintf(name_out, size, "%s", host() != NULL ? host() : system.nodename);
    return 0;
}

/* A simulated host has no addresses: those of this machine are no rank's. */
__attribute__((visibility("default"))) int getifaddrs(struct ifaddrs **interfaces_out)
{
    *interfaces_out = NULL;
    return host() != NULL ? 0 : ((__typeof(&getifaddrs))find_real("getifaddrs"))(interfaces_out);
}

/* ---- communicators ---- */

PH_MPI(Comm_rank, MPI_Comm comm, int *rank_out)
{
    *rank_out = ph__sim_comm(comm)->rank;
    return MPI_SUCCESS;
}

PH_MPI(Comm_size, MPI_Comm comm, int *size_out)
{
    *size_out = ph__sim_comm(comm)->size;
    return MPI_SUCCESS;
}

/* A rank's part in a split. */
struct choice {
    int color, key, rank;
    uint32_t context; /* the first of as many as there are ranks: the parent's first rank's counts */
};

static int by_key(const void *a, const void *b)
{
    const struct choice *one = a, *other = b;
    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    return one->rank < other->rank ? -1 : 1;
}

/* Adds to `made` the communicator of those that have chosen the same color. */
static void join(MPI_Comm made, const struct ph__sim_comm *parent, struct choice *choices)
{
    const struct choice own = choices[parent->rank];
    const uint32_t first_context = choices[0].context;
    int count = 0, rank = 0;
    for (int i = 0; i < parent->size; i++)
        if (choices[i].color == own.color)
            choices[count++] = choices[i];
    const uint32_t context = first_context + 2 * (uint32_t)choices[0].rank;
    qsort(choices, (size_t)count, sizeof *choices, by_key);
    while (choices[rank].rank != own.rank)
        rank++;
    struct ph__sim_comm *comm = add_comm(made, context, rank, count);
    for (int i = 0; i < count; i++)
        comm->ranks[i] = parent->ranks[choices[i].rank];
}

/* Splits a communicator; `made` is a new one of the MPI behind, or null where this rank wants none. */
static int split(MPI_Comm handle, int color, int key, MPI_Comm made)
{
    const struct ph__sim_comm *parent = ph__sim_comm(handle);
    struct choice *choices = ph__sim_allocate((size_t)parent->size * sizeof *choices);
    ph__process_enter();
    choices[parent->rank] = (struct choice){.color = color, .key = key, .rank = parent->rank};
    if (parent->rank == 0)
        choices[0].context =
            atomic_fetch_add(&ph__process()->memory->next_context, 2 * (uint32_t)parent->size);
    ph__sim_allgather(parent, choices, sizeof *choices);
    if (made != MPI_COMM_NULL)
        join(made, parent, choices);
    return ph__sim_leave();
}

PH_MPI(Comm_split, MPI_Comm comm, int color, int key, MPI_Comm *made_out)
{
    REAL(Comm_split)(MPI_COMM_SELF, color == MPI_UNDEFINED ? color : 0, 0, made_out);
    return split(comm, color, key, *made_out);
}

PH_MPI(Comm_split_type, MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made_out)
{
    const struct ph__process *process = ph__process();
    const int place = (int)(process->rank / process->memory->ranks_per_host);
    (void)info;
    return PMPI_Comm_split(comm, type == MPI_COMM_TYPE_SHARED ? place : MPI_UNDEFINED, key, made_out);
}

PH_MPI(Comm_dup, MPI_Comm comm, MPI_Comm *made_out)
{
    REAL(Comm_dup)(comm, made_out); /* with its attributes */
    return split(comm, 0, 0, *made_out);
}

PH_MPI(Comm_compare, MPI_Comm one, MPI_Comm other, int *result_out)
{
    const struct ph__sim_comm *a = ph__sim_comm(one), *b = ph__sim_comm(other);
    int num_found = 0;
    *result_out = a == b ? MPI_IDENT : MPI_UNEQUAL;
    if (a == b || a->size != b->size)
        return MPI_SUCCESS;
    for (int i = 0; i < a->size; i++)
        for (int k = 0; k < b->size; k++)
            num_found += a->ranks[i] == b->ranks[k];
    if (num_found == a->size)
        *result_out =
            memcmp(a->ranks, b->ranks, (size_t)a->size * sizeof *a->ranks) == 0 ? MPI_CONGRUENT : MPI_SIMILAR;
    return MPI_SUCCESS;
}
