/* Beginning and end, communicators, and what a program asks about itself. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "preload/sim/sim_mpi.h"

enum { MOST_COMMS = 4096 };
static struct ph__sim_comm *comms[MOST_COMMS]; /* world, self, and those that are made */
static size_t num_comms;
static bool has_begun, has_ended;

const struct ph__sim_comm *ph__sim_comm(MPI_Comm handle)
{
    const intptr_t number = handle == MPI_COMM_WORLD  ? 0
                            : handle == MPI_COMM_SELF ? 1
                                                      : PH_HANDLE_NUMBER(handle);
    if (number < 0 || number >= (intptr_t)num_comms || comms[number] == NULL)
        ph__process_fail(2, "a communicator that is none, or MPI before MPI_Init");
    return comms[number];
}

static struct ph__sim_comm *add_comm(uint32_t context, int size)
{
    if (num_comms == MOST_COMMS)
        ph__process_fail(2, "more than %d communicators are not simulated", MOST_COMMS);
    struct ph__sim_comm *comm = ph__sim_allocate(sizeof *comm);
    *comm = (struct ph__sim_comm){.context = context,
        .size = size,
        .ranks = ph__sim_allocate((size_t)size * sizeof *comm->ranks),
        .number = num_comms,
        .handle = PH_HANDLE(MPI_Comm, num_comms)};
    comms[num_comms++] = comm;
    return comm;
}

/* ---- beginning and end ---- */

PH_MPI(Init_thread, int *argc, char ***argv, int required, int *provided_out)
{
    const struct ph__process *process = ph__process();
    (void)argc;
    (void)argv;
    if (process == NULL || has_begun)
        ph__process_fail(2, "MPI_Init is called twice, or not below phloem sim run");
    struct ph__sim_comm *world = add_comm(0, (int)process->memory->num_ranks);
    struct ph__sim_comm *self = add_comm(2, 1);
    world->rank = (int)process->rank;
    world->handle = MPI_COMM_WORLD;
    self->handle = MPI_COMM_SELF;
    self->rank = 0;
    self->ranks[0] = (int32_t)process->rank;
    snprintf(world->name, sizeof world->name, "MPI_COMM_WORLD");
    snprintf(self->name, sizeof self->name, "MPI_COMM_SELF");
    for (int i = 0; i < world->size; i++)
        world->ranks[i] = i;
    *provided_out = required < MPI_THREAD_SERIALIZED ? required : MPI_THREAD_SERIALIZED;
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

PH_MPI(Initialized, int *has_begun_out)
{
    *has_begun_out = has_begun;
    return MPI_SUCCESS;
}

PH_MPI(Finalize, void)
{
    ph__process_enter();
    ph__process_post((struct ph__run_record){.kind = PH_RUN_END});
    has_ended = true;
    return MPI_SUCCESS;
}

PH_MPI(Finalized, int *has_ended_out)
{
    *has_ended_out = has_ended;
    return MPI_SUCCESS;
}

PH_MPI(Abort, MPI_Comm comm, int code)
{
    (void)comm;
    const struct ph__process *process = ph__process();
    ph__process_fail((code & 255) != 0 ? code & 255 : 1, "rank %u has called MPI_Abort, with the code %d",
        process != NULL ? process->rank : 0, code);
}

PH_MPI(Query_thread, int *provided_out)
{
    *provided_out = MPI_THREAD_SERIALIZED;
    return MPI_SUCCESS;
}

PH_MPI(Is_thread_main, int *is_main_out)
{
    *is_main_out = 1;
    return MPI_SUCCESS;
}

/* ---- time and place ---- */

PH_MPI_RETURNS(double, Wtime, void)
{
    ph__process_enter();
    ph__process_ask((struct ph__run_record){.kind = PH_RUN_TIME});
    const double seconds = ph__process()->own->now_ns * 1e-9;
    ph__process_leave();
    return seconds;
}

PH_MPI_RETURNS(double, Wtick, void)
{
    return 1e-9;
}

PH_MPI(Get_processor_name, char *name_out, int *length_out)
{
    *length_out = snprintf(name_out, MPI_MAX_PROCESSOR_NAME, "%s", ph__process()->own->host);
    return MPI_SUCCESS;
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

/* Names the simulated host to whatever the program consists of. */
__attribute__((visibility("default"))) int gethostname(char *name_out, size_t size)
{
    const struct ph__process *process = ph__process();
    struct utsname system;
    if (process == NULL && uname(&system) != 0)
        return -1;
    snprintf(name_out, size, "%s", process != NULL ? process->own->host : system.nodename);
    return 0;
}

PH_MPI(Get_version, int *version_out, int *subversion_out)
{
    *version_out = 3;
    *subversion_out = 1;
    return MPI_SUCCESS;
}

PH_MPI(Get_library_version, char *text_out, int *length_out)
{
    *length_out = snprintf(text_out, MPI_MAX_LIBRARY_VERSION_STRING, "Phloem's simulated MPI");
    return MPI_SUCCESS;
}

PH_MPI(Error_string, int code, char *text_out, int *length_out)
{
    *length_out = snprintf(text_out, MPI_MAX_ERROR_STRING, "error %d", code);
    return MPI_SUCCESS;
}

PH_MPI(Comm_set_errhandler, MPI_Comm comm, MPI_Errhandler handler)
{
    (void)comm;
    (void)handler;
    return MPI_SUCCESS;
}

PH_MPI(Comm_get_errhandler, MPI_Comm comm, MPI_Errhandler *handler_out)
{
    (void)comm;
    *handler_out = MPI_ERRORS_ARE_FATAL;
    return MPI_SUCCESS;
}

PH_MPI(Errhandler_free, MPI_Errhandler *handler)
{
    *handler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

/* ---- attributes, whose callbacks are not called ---- */

static struct {
    const struct ph__sim_comm *comm;
    int key;
    void *value;
} attributes[256];
static size_t num_attributes;

PH_MPI(Comm_create_keyval, MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete,
    int *key_out, void *extra)
{
    static int num_keys;
    (void)copy;
    (void)delete;
    (void)extra;
    *key_out = PH_HANDLE_BASE + num_keys++;
    return MPI_SUCCESS;
}

PH_MPI(Comm_free_keyval, int *key)
{
    *key = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

PH_MPI(Comm_set_attr, MPI_Comm comm, int key, void *value)
{
    if (num_attributes == sizeof attributes / sizeof *attributes)
        ph__process_fail(2, "more than %zu attributes are not simulated", num_attributes);
    attributes[num_attributes].comm = ph__sim_comm(comm);
    attributes[num_attributes].key = key;
    attributes[num_attributes++].value = value;
    return MPI_SUCCESS;
}

PH_MPI(Comm_get_attr, MPI_Comm comm, int key, void *value_out, int *is_there_out)
{
    static int most_tag = INT_MAX;
    *is_there_out = key == MPI_TAG_UB;
    if (key == MPI_TAG_UB)
        *(int **)value_out = &most_tag;
    for (size_t i = num_attributes; i-- > 0 && !*is_there_out;)
        if (attributes[i].key == key && attributes[i].comm == ph__sim_comm(comm)) {
            *is_there_out = 1;
            *(void **)value_out = attributes[i].value;
        }
    return MPI_SUCCESS;
}

PH_MPI(Attr_get, MPI_Comm comm, int key, void *value_out, int *is_there_out)
{
    return PMPI_Comm_get_attr(comm, key, value_out, is_there_out);
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

PH_MPI(Comm_get_parent, MPI_Comm *parent_out)
{
    *parent_out = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

PH_MPI(Comm_test_inter, MPI_Comm comm, int *is_inter_out)
{
    (void)comm;
    *is_inter_out = 0;
    return MPI_SUCCESS;
}

PH_MPI(Comm_set_name, MPI_Comm comm, const char *name)
{
    struct ph__sim_comm *named = comms[ph__sim_comm(comm)->number];
    snprintf(named->name, sizeof named->name, "%s", name);
    return MPI_SUCCESS;
}

PH_MPI(Comm_get_name, MPI_Comm comm, char *name_out, int *length_out)
{
    *length_out = snprintf(name_out, MPI_MAX_OBJECT_NAME, "%s", ph__sim_comm(comm)->name);
    return MPI_SUCCESS;
}

#if !PH_MPICH /* where these are functions, and not macros that pass the handle on */
PH_MPI_RETURNS(MPI_Fint, Comm_c2f, MPI_Comm comm)
{
    return PH_HANDLE_BASE + (MPI_Fint)ph__sim_comm(comm)->number;
}

PH_MPI_RETURNS(MPI_Comm, Comm_f2c, MPI_Fint comm)
{
    return ph__sim_comm(PH_HANDLE(MPI_Comm, comm - PH_HANDLE_BASE))->handle;
}
#endif

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

/* Makes the communicator of those that have chosen the same color. */
static MPI_Comm join(const struct ph__sim_comm *parent, struct choice *choices)
{
    const int color = choices[parent->rank].color, rank = parent->rank;
    const uint32_t first_context = choices[0].context;
    int count = 0, first = -1;
    for (int i = 0; i < parent->size; i++)
        if (choices[i].color == color) {
            first = first < 0 ? i : first;
            choices[count++] = choices[i];
        }
    struct ph__sim_comm *comm = add_comm(first_context + 2 * (uint32_t)first, count);
    qsort(choices, (size_t)count, sizeof *choices, by_key);
    for (int i = 0; i < count; i++) {
        comm->ranks[i] = parent->ranks[choices[i].rank];
        if (choices[i].rank == rank)
            comm->rank = i;
    }
    return comm->handle;
}

static MPI_Comm split(MPI_Comm handle, int color, int key)
{
    const struct ph__sim_comm *parent = ph__sim_comm(handle);
    struct choice *choices = ph__sim_allocate((size_t)parent->size * sizeof *choices);
    ph__process_enter();
    choices[parent->rank] = (struct choice){.color = color, .key = key, .rank = parent->rank};
    if (parent->rank == 0)
        choices[0].context =
            atomic_fetch_add(&ph__process()->memory->next_context, 2 * (uint32_t)parent->size);
    ph__sim_allgather(parent, choices, sizeof *choices);
    const MPI_Comm made = color != MPI_UNDEFINED ? join(parent, choices) : MPI_COMM_NULL;
    free(choices);
    ph__process_leave();
    return made;
}

PH_MPI(Comm_split, MPI_Comm comm, int color, int key, MPI_Comm *made_out)
{
    *made_out = split(comm, color, key);
    return MPI_SUCCESS;
}

PH_MPI(Comm_split_type, MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made_out)
{
    const struct ph__process *process = ph__process();
    (void)info;
    *made_out = split(comm,
        type == MPI_COMM_TYPE_SHARED ? (int)(process->rank / process->memory->ranks_per_host) : MPI_UNDEFINED,
        key);
    return MPI_SUCCESS;
}

PH_MPI(Comm_dup, MPI_Comm comm, MPI_Comm *made_out)
{
    *made_out = split(comm, 0, 0);
    return MPI_SUCCESS;
}

/* Only the name goes: messages that are under way still need the rest. */
PH_MPI(Comm_free, MPI_Comm *comm)
{
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
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
