/* Reorders the ranks after MPI_Init. */
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/reorder.h"

enum { BAD_INPUT = 2, HOST_BYTES = 64 };
#define PASSING_NS 500000000

struct ph__reorder ph__reorder = {.world = MPI_COMM_WORLD};

/* Tells the other ranks a rank's host, and its one or two indices in the order. */
struct seat {
    int index, again;
    char host[HOST_BYTES];
};

/* Returns the value of a variable of the environment, or NULL for none and for "". */
static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* Waits until the launcher has passed on what was printed: it drops the rest when a rank ends or aborts. */
static void wait_for_launcher(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PASSING_NS}, NULL);
}

/* Ends the job. Only one rank says why. */
static _Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void refuse(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "phloem: %s\n", text);
    wait_for_launcher();
    PMPI_Abort(MPI_COMM_WORLD, BAD_INPUT);
    _exit(BAD_INPUT);
}

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (memory == NULL)
        refuse("out of memory: the order of %zu ranks needs %zu bytes", count, count * bytes);
    return memory;
}

/* ---- two MPI libraries in one process ---- */

#if PH_MPICH
static const char own_mpi[] = "MPICH", other_mpi[] = "Open MPI",
                  other_library[] = "libphloem_reorder_openmpi.so";
static const char other_symbol[] = "ompi_mpi_comm_world";
#else
static const char own_mpi[] = "Open MPI", other_mpi[] = "MPICH",
                  other_library[] = "libphloem_reorder_mpich.so";
static const char other_symbol[] = "MPIR_Dup_fn";
#endif

static bool has_other(const char *object)
{
    void *handle = dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
    const bool has = handle != NULL && dlsym(handle, other_symbol) != NULL;
    if (handle != NULL)
        dlclose(handle);
    return has;
}

bool ph__reorder_is_first(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank != NULL ? rank : getenv("PMI_RANK");
    return rank == NULL || strcmp(rank, "0") == 0;
}

__attribute__((constructor)) void ph__reorder_check_library(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    struct link_map *object = NULL;
    if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, &object) != 0)
        return;
    while (object != NULL && (*object->l_name == '\0' || !has_other(object->l_name)))
        object = object->l_next;
    dlclose(program);
    if (object == NULL)
        return;
    if (ph__reorder_is_first())
        fprintf(stderr,
            "phloem: a library for %s is preloaded into a program that uses %s: preload %s instead\n",
            own_mpi, other_mpi, other_library);
    wait_for_launcher(); /* also on the other ranks, whose ends would end the one that prints */
    _exit(BAD_INPUT);
}

/* ---- the order, which rank 0 reads ---- */

/* Reads the order on rank 0. NULL: none is asked for. */
static char *read_order(void)
{
    const char *path = setting("PHLOEM_REORDER");
    char *text = path != NULL ? ph__hosts_read(path) : NULL;
    if (path != NULL && text == NULL)
        refuse("cannot read '%s', which PHLOEM_REORDER names (%s): give the file that phloem topology order "
               "has written",
            path, strerror(errno));
    return text;
}

/* Returns rank 0's order on all ranks, in memory that the caller frees. NULL: none is asked for. */
static char *share_order(int rank)
{
    char *text = rank == 0 ? read_order() : NULL;
    int bytes = text != NULL ? (int)strlen(text) + 1 : 0;
    PMPI_Bcast(&bytes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (bytes == 0)
        return NULL;
    if (rank != 0)
        text = allocate(1, (size_t)bytes);
    PMPI_Bcast(text, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    return text;
}

/* Ends the job on rank 0 when the order has no host, or one twice. */
static void check_order(const struct ph__hosts *hosts)
{
    const char *path = setting("PHLOEM_REORDER");
    size_t again;
    if (hosts->num == 0)
        refuse("the order '%s' names no host: write one host a line", path);
    const size_t first = ph__hosts_find_twice(hosts, &again);
    if (first < hosts->num)
        refuse("the order '%s' names '%s' twice, in lines %d and %d: remove one", path,
            hosts->list[first].name, hosts->list[first].line, hosts->list[again].line);
}

/* ---- the ranks' places in it ---- */

static struct seat find_seat(const struct ph__hosts *hosts)
{
    struct seat seat = {0};
    struct ifaddrs *interfaces = NULL;
    const char *chosen = setting("PHLOEM_REORDER_HOST");
    if (chosen != NULL)
        snprintf(seat.host, sizeof seat.host, "%s", chosen);
    else if (gethostname(seat.host, sizeof seat.host - 1) != 0 || getifaddrs(&interfaces) != 0)
        interfaces = NULL; /* the name alone must do */
    const size_t index = ph__hosts_find_own(hosts, 0, seat.host, interfaces);
    const size_t from = index < hosts->num ? index + 1 : index;
    seat.index = (int)index;
    seat.again = (int)ph__hosts_find_own(hosts, from, seat.host, interfaces);
    if (interfaces != NULL)
        freeifaddrs(interfaces);
    return seat;
}

/* Ends the job when a rank has no place in the order, or two. Rank 0 says so; others wait to be ended. */
static void check_seats(const struct ph__hosts *hosts, const struct seat *seats, int size, int own)
{
    const char *path = own == 0 ? setting("PHLOEM_REORDER") : "";
    const int num = (int)hosts->num;
    int rank = 0;
    while (rank < size && seats[rank].index < num && seats[rank].again == num)
        rank++;
    if (rank == size)
        return;
    if (own != 0) {
        PMPI_Barrier(MPI_COMM_WORLD);
        _exit(BAD_INPUT);
    }
    const struct seat *seat = &seats[rank];
    if (seat->index == num)
        refuse("the order '%s' lacks host '%s' of rank %d: add it, or write the order again with phloem "
               "topology order",
            path, seat->host, rank);
    refuse("the order '%s' names host '%s' of rank %d twice, in lines %d and %d: remove one", path,
        seat->host, rank, hosts->list[seat->index].line, hosts->list[seat->again].line);
}

/* Returns a rank's place among the hosts, counted from rank 0's: a ring stays the same ring when it is
 * turned. */
static int place(const struct seat *seats, int rank, int num_hosts)
{
    return (seats[rank].index - seats[0].index + num_hosts) % num_hosts;
}

/* Returns the new rank of `own`: hosts stand in order, and a host's ranks as before. Tells whether all stay.
 */
static int new_rank(const struct seat *seats, int size, int own, int num_hosts, bool *is_same_out)
{
    const int own_place = place(seats, own, num_hosts);
    int before = 0, last = 0;
    *is_same_out = true;
    for (int rank = 0; rank < size; rank++) {
        const int at = place(seats, rank, num_hosts);
        *is_same_out = *is_same_out && last <= at;
        last = at;
        before += at < own_place || (at == own_place && rank < own);
    }
    return before;
}

static int find_new_rank(char *order, int size, int own, bool *is_same_out)
{
    struct ph__hosts hosts;
    if (!ph__hosts_parse(order, &hosts))
        refuse("out of memory: the order of the hosts");
    if (own == 0)
        check_order(&hosts);
    struct seat *seats = allocate((size_t)size, sizeof *seats);
    const struct seat seat = find_seat(&hosts);
    PMPI_Allgather(&seat, sizeof seat, MPI_BYTE, seats, sizeof seat, MPI_BYTE, MPI_COMM_WORLD);
    check_seats(&hosts, seats, size, own);
    const int rank = new_rank(seats, size, own, (int)hosts.num, is_same_out);
    free(seats);
    free(hosts.list);
    return rank;
}

/* ---- the communicator ---- */

/* Frees the communicator when MPI_Finalize deletes the attributes of MPI_COMM_SELF. Attributes that the
 * program has set there go first, and what they call may still need it. */
static int leave(MPI_Comm self, int keyval, void *value, void *context)
{
    MPI_Comm world = ph__reorder.world;
    (void)self, (void)keyval, (void)value, (void)context;
    ph__reorder.world = MPI_COMM_WORLD;
    ph__reorder.fortran_world = ph__reorder.fortran_plain;
    return PMPI_Comm_free(&world);
}

/* Makes the communicator, which has the name and the error handler of the world. */
static void make_world(int rank)
{
    MPI_Errhandler handler;
    MPI_Comm world;
    int keyval;
    PMPI_Comm_split(MPI_COMM_WORLD, 0, rank, &world);
    PMPI_Comm_set_name(world, "MPI_COMM_WORLD");
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    PMPI_Comm_set_errhandler(world, handler);
    PMPI_Errhandler_free(&handler);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave, &keyval, NULL);
    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    PMPI_Comm_free_keyval(&keyval);
    ph__reorder.world = world;
    ph__reorder.fortran_plain = PMPI_Comm_c2f(MPI_COMM_WORLD);
    ph__reorder.fortran_world = PMPI_Comm_c2f(world);
}

/* Prints the former ranks in their new order: "phloem: 4 ranks reordered: 0 2 1 3". */
static void describe(int size, int own)
{
    int *ranks = allocate((size_t)size, sizeof *ranks);
    PMPI_Gather(&own, 1, MPI_INT, ranks, 1, MPI_INT, 0, ph__reorder.world);
    char *text = allocate((size_t)size * 12 + 1, 1), *end = text;
    for (int rank = 0; own == 0 && rank < size; rank++)
        end += sprintf(end, " %d", ranks[rank]);
    if (own == 0 && setting("PHLOEM_REORDER_VERBOSE") != NULL)
        fprintf(stderr, "phloem: %d ranks reordered:%s\n", size, text);
    free(text);
    free(ranks);
}

/* Processes that were spawned keep their order, which is also that of their communicator with the parents. */
void ph__reorder_start(void)
{
    static bool is_started;
    MPI_Comm parent;
    int own, size;
    bool is_same;
    if (is_started)
        return;
    is_started = true;
    PMPI_Comm_rank(MPI_COMM_WORLD, &own);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_get_parent(&parent);
    char *order = parent == MPI_COMM_NULL ? share_order(own) : NULL;
    if (order == NULL)
        return;
    const int rank = find_new_rank(order, size, own, &is_same);
    free(order);
    if (!is_same) {
        make_world(rank);
        describe(size, own);
        if (own == 0)
            ph__reorder_warn_of_readers();
    } else if (own == 0 && setting("PHLOEM_REORDER_VERBOSE") != NULL) {
        fprintf(stderr, "phloem: %d ranks keep their order\n", size);
    }
}
