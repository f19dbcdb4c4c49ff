/* An MPI program that sums over its ranks, in their order and in others, and says how long each sum takes.
 * Knows nothing of Phloem: reorder_figures.py starts it under mpirun, with and without the reorder library,
 * and phloem sim run.
 *
 *     mpi_allreduce BYTES SUMS [world | graph | R,R,...]...
 *
 * Each last word is a communicator to sum over; none: world. R,R,... lists the ranks of MPI_COMM_WORLD in
 * another order. graph: MPI_Dist_graph_create_adjacent, told that each rank sends to the next, may reorder
 * them. Rank 0 prints a line for each: the word, and the seconds of each sum by the slowest rank, as from its
 * leaving a barrier; on a real network the first one warms up. Ends with 1 where a sum is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what, const char *value)
{
    fprintf(stderr, "mpi_allreduce: %s '%s'\n", what, value);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
}

/* Gives a rank its place in a list of all ranks. */
static MPI_Comm in_order(const char *list, int rank, int ranks)
{
    const char *at = list;
    char *end;
    int place = -1, count = 0;
    for (; count < ranks; count++, at = end + (*end == ',')) {
        if (strtol(at, &end, 10) == rank && end > at)
            place = count;
        if (end == at)
            break;
    }
    if (count != ranks || *at != '\0' || place < 0)
        failed("an order must list each rank once, not", list);
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, place, &comm);
    return comm;
}

static MPI_Comm by_graph(int rank, int ranks)
{
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, weight = 1;
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, 1, &before, &weight, 1, &next, &weight, MPI_INFO_NULL, 1, &comm);
    return comm;
}

/* Sums `count` numbers once. Returns the slowest rank's seconds; a wrong sum ends all ranks. */
static double sum_once(MPI_Comm comm, const int *numbers, int *sums, int count)
{
    int rank, ranks;
    double own, slowest;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(comm);
    const double start = MPI_Wtime();
    MPI_Allreduce(numbers, sums, count, MPI_INT, MPI_SUM, comm);
    own = MPI_Wtime() - start;
    for (int i = 0; i < count; i++)
        if (sums[i] != ranks * (ranks - 1) / 2 + ranks * (i % 100)) {
            fprintf(stderr, "mpi_allreduce: rank %d: sum %d is wrong: %d\n", rank, i, sums[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int count = argc > 2 ? atoi(argv[1]) / (int)sizeof(int) : 0,
              num_sums = argc > 2 ? atoi(argv[2]) : 0;
    if (count < 1 || num_sums < 1)
        return failed("usage: mpi_allreduce BYTES SUMS [COMMUNICATOR]..., not", argc > 1 ? argv[1] : "");
    int *numbers = malloc((size_t)count * sizeof *numbers), *sums = malloc((size_t)count * sizeof *sums);
    if (numbers == NULL || sums == NULL)
        return failed("no memory for bytes:", argv[1]);
    for (int i = 0; i < count; i++)
        numbers[i] = rank + i % 100;
    for (int word = 3; word < (argc > 3 ? argc : 4); word++) {
        const char *name = word < argc ? argv[word] : "world";
        MPI_Comm comm = strcmp(name, "world") == 0   ? MPI_COMM_WORLD
                        : strcmp(name, "graph") == 0 ? by_graph(rank, ranks)
                                                     : in_order(name, rank, ranks);
        if (rank == 0)
            printf("%s", name);
        for (int i = 0; i < num_sums; i++) {
            const double seconds = sum_once(comm, numbers, sums, count);
            if (rank == 0)
                printf(" %.9f", seconds);
        }
        if (rank == 0)
            puts("");
        if (comm != MPI_COMM_WORLD)
            MPI_Comm_free(&comm);
    }
    free(numbers);
    free(sums);
    MPI_Finalize();
    return 0;
}
