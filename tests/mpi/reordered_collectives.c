/* Collectives: each once on MPI_COMM_WORLD, and by its second name on the oracle's communicator. */
#include "reordered.h"

#include <stdlib.h>
#include <string.h>
#if !PH_MPICH
#include <mpi-ext.h>
#define MPI_EXTENDED(name) MPIX_##name
#define PMPI_EXTENDED(name) PMPIX_##name
#else
#define MPI_EXTENDED(name) MPI_##name
#define PMPI_EXTENDED(name) PMPI_##name
#endif

/* What calls read and write. `out` and `comm` are exchanged between the two calls that are compared. */
static int in[MOST], got[MOST], want[MOST], *out;
static MPI_Comm comm;
static MPI_Comm world, other; /* that are compared */
static MPI_Request request;
static MPI_Datatype types[MOST];
static int counts_of_int[MOST], displs_of_int[MOST];
#if PH_MPICH
static MPI_Count large_counts[MOST];
#endif
static MPI_Aint far_displs[MOST];

static void begin(MPI_Comm which, int *where)
{
    comm = which;
    out = where;
    for (int i = 0; i < MOST; i++)
        where[i] = i % 7;
}

static void compare(const char *name)
{
    reordered_check(memcmp(got, want, sizeof got) == 0, __FILE__, __LINE__, name);
}

/* Calls on a world without a topology fail alike, too. */
#define COMPARE(name, one, another, finish, ...)                          \
    do {                                                                  \
        begin(world, got);                                                \
        const int code = one(__VA_ARGS__);                                \
        if (code == MPI_SUCCESS) {                                        \
            finish;                                                       \
        }                                                                 \
        begin(other, want);                                               \
        const int wanted = another(__VA_ARGS__);                          \
        if (wanted == MPI_SUCCESS) {                                      \
            finish;                                                       \
        }                                                                 \
        int class = -1, wanted_class = -2;                                \
        PMPI_Error_class(code, &class);                                   \
        PMPI_Error_class(wanted, &wanted_class);                          \
        reordered_check(class == wanted_class, __FILE__, __LINE__, name); \
        compare(name);                                                    \
    } while (0)
#define FINISH_PERSISTENT \
    MUST(MPI_Start(&request)), MUST(MPI_Wait(&request, MPI_STATUS_IGNORE)), MUST(MPI_Request_free(&request))
#define BOTH(name, ...) COMPARE(#name, MPI_##name, PMPI_##name, , __VA_ARGS__)
#define STARTED(name, ...) \
    COMPARE(               \
        #name, MPI_##name, PMPI_##name, MUST(MPI_Wait(&request, MPI_STATUS_IGNORE)), __VA_ARGS__, &request)
#define PERSISTENT(name, ...)                                                                              \
    COMPARE(#name, MPI_EXTENDED(name), PMPI_EXTENDED(name), FINISH_PERSISTENT, __VA_ARGS__, MPI_INFO_NULL, \
        &request)

/* A blocking function, its non-blocking and its persistent form; with `counts` and `displs` of their type. */
#define THREE(name, started, persistent, ...)                                   \
    do {                                                                        \
        const int *const counts = counts_of_int, *const displs = displs_of_int; \
        (void)counts, (void)displs;                                             \
        BOTH(name, __VA_ARGS__);                                                \
        STARTED(started, __VA_ARGS__);                                          \
        PERSISTENT(persistent, __VA_ARGS__);                                    \
    } while (0)
#if PH_MPICH
#define SIX(name, started, persistent, ...)            \
    do {                                               \
        THREE(name, started, persistent, __VA_ARGS__); \
        const MPI_Count *const counts = large_counts;  \
        const MPI_Aint *const displs = far_displs;     \
        (void)counts, (void)displs;                    \
        BOTH(name##_c, __VA_ARGS__);                   \
        STARTED(started##_c, __VA_ARGS__);             \
        PERSISTENT(persistent##_c, __VA_ARGS__);       \
    } while (0)
#else
#define SIX THREE
#endif

/* Rank r's data begin with 1000 r + its former rank: whatever is in the wrong place differs. */
static void prepare(MPI_Comm first, MPI_Comm second)
{
    int former;
    PMPI_Comm_rank(MPI_COMM_WORLD, &former);
    world = first;
    other = second;
    for (int i = 0; i < MOST; i++) {
        in[i] = 1000 * former + i;
        types[i] = MPI_INT;
        counts_of_int[i] = 2;
        displs_of_int[i] = 2 * i;
        far_displs[i] = 2 * i;
#if PH_MPICH
        large_counts[i] = 2;
#endif
    }
}

/* Displacements of Alltoallw and its like are bytes. */
static void displace_by_bytes(void)
{
    for (int i = 0; i < MOST; i++) {
        displs_of_int[i] *= (int)sizeof(int);
        far_displs[i] *= (MPI_Aint)sizeof(int);
    }
}

void check_collectives(void)
{
    const int root = job.size - 1;
    prepare(MPI_COMM_WORLD, job.oracle);
    THREE(Barrier, Ibarrier, Barrier_init, comm);
    SIX(Allgather, Iallgather, Allgather_init, in, 2, MPI_INT, out, 2, MPI_INT, comm);
    SIX(Allgatherv, Iallgatherv, Allgatherv_init, in, 2, MPI_INT, out, counts, displs, MPI_INT, comm);
    SIX(Allreduce, Iallreduce, Allreduce_init, in, out, 5, MPI_INT, MPI_SUM, comm);
    SIX(Alltoall, Ialltoall, Alltoall_init, in, 2, MPI_INT, out, 2, MPI_INT, comm);
    SIX(Alltoallv, Ialltoallv, Alltoallv_init, in, counts, displs, MPI_INT, out, counts, displs, MPI_INT,
        comm);
    SIX(Exscan, Iexscan, Exscan_init, in, out, 5, MPI_INT, MPI_SUM, comm);
    SIX(Gather, Igather, Gather_init, in, 2, MPI_INT, out, 2, MPI_INT, root, comm);
    SIX(Gatherv, Igatherv, Gatherv_init, in, 2, MPI_INT, out, counts, displs, MPI_INT, root, comm);
    SIX(Reduce, Ireduce, Reduce_init, in, out, 5, MPI_INT, MPI_SUM, root, comm);
    SIX(Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, in, out, counts, MPI_INT, MPI_SUM, comm);
    SIX(Reduce_scatter_block, Ireduce_scatter_block, Reduce_scatter_block_init, in, out, 2, MPI_INT, MPI_SUM,
        comm);
    SIX(Scan, Iscan, Scan_init, in, out, 5, MPI_INT, MPI_SUM, comm);
    SIX(Scatter, Iscatter, Scatter_init, in, 2, MPI_INT, out, 2, MPI_INT, root, comm);
    SIX(Scatterv, Iscatterv, Scatterv_init, in, counts, displs, MPI_INT, out, 2, MPI_INT, root, comm);
    SIX(Bcast, Ibcast, Bcast_init, job.rank == root ? memcpy(out, in, 20) : out, 5, MPI_INT, root, comm);
    displace_by_bytes();
    SIX(Alltoallw, Ialltoallw, Alltoallw_init, in, counts, displs, types, out, counts, displs, types, comm);
}

static void exchange_with_neighbours(MPI_Comm first, MPI_Comm second)
{
    prepare(first, second);
    SIX(Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, in, 2, MPI_INT, out, 2, MPI_INT,
        comm);
    SIX(Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init, in, 2, MPI_INT, out, counts,
        displs, MPI_INT, comm);
    SIX(Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, in, 2, MPI_INT, out, 2, MPI_INT, comm);
    SIX(Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, in, counts, displs, MPI_INT, out,
        counts, displs, MPI_INT, comm);
    displace_by_bytes();
    SIX(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, in, counts, far_displs, types, out,
        counts, far_displs, types, comm);
}

/* A ring made from either world, by each kind of topology; calls on a world itself, which has none, fail
 * alike. */
void check_neighbours(void)
{
    const int left = (job.rank + job.size - 1) % job.size, right = (job.rank + 1) % job.size,
              both[] = {left, right};
    const int is_ring = 1, weights[] = {1, 2};
    MPI_Comm first, second;
    MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, &job.size, &is_ring, 0, &first));
    MUST(PMPI_Cart_create(job.oracle, 1, &job.size, &is_ring, 0, &second));
    exchange_with_neighbours(first, second);
    PMPI_Comm_free(&first);
    PMPI_Comm_free(&second);
    MUST(MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, 2, both, weights, 2, both, weights, MPI_INFO_NULL, 0, &first));
    MUST(PMPI_Dist_graph_create_adjacent(
        job.oracle, 2, both, weights, 2, both, weights, MPI_INFO_NULL, 0, &second));
    exchange_with_neighbours(first, second);
    PMPI_Comm_free(&first);
    PMPI_Comm_free(&second);
#if !PH_MPICH /* MPICH 4.0 crashes where there is no topology */
    exchange_with_neighbours(MPI_COMM_WORLD, job.oracle);
#endif
}
