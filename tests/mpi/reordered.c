/* reordered FOLDER RANK...: checks that the job's ranks were reordered; RANK... are the former ones, in their
 * new order. With abort or finalize for the folder, it only ends in that way. Spawned, it is a child of that
 * job. */
#include "reordered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reordered job;

void reordered_check(bool is_so, const char *file, int line, const char *text)
{
    if (is_so)
        return;
    fprintf(stderr, "%s:%d: rank %d: %s\n", file, line, job.rank, text);
    fflush(stderr);
    PMPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- windows and files ---- */

/* Checks whose memory a window joins. */
static void check_window(MPI_Win win)
{
    int result = MPI_UNEQUAL;
    MPI_Group group, ordered;
    MUST(MPI_Win_get_group(win, &group));
    MUST(PMPI_Comm_group(job.oracle, &ordered));
    MUST(MPI_Group_compare(group, ordered, &result));
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&ordered);
}

/* Puts this rank's former number to the right neighbour. With Debian's MPICH 4.0 what is put does not arrive,
 * in any program and on any communicator. */
static void use_window(MPI_Win win, MPI_Aint to, const int *memory)
{
    check_window(win);
#if !PH_MPICH
    const int sent = job.former[job.rank], left = (job.rank + job.size - 1) % job.size;
    MUST(MPI_Win_fence(0, win));
    MUST(MPI_Put(&sent, 1, MPI_INT, (job.rank + 1) % job.size, to, 1, MPI_INT, win));
    MUST(MPI_Win_fence(0, win));
    CHECK(*memory == job.former[left]);
#else
    (void)to, (void)memory;
#endif
}

static void use_dynamic_window(void)
{
    const int left = (job.rank + job.size - 1) % job.size, right = (job.rank + 1) % job.size;
    int memory = -1;
    MPI_Aint own, to;
    MPI_Win win;
    MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MUST(MPI_Win_attach(win, &memory, sizeof memory));
    MUST(MPI_Get_address(&memory, &own));
    MUST(MPI_Sendrecv(
        &own, 1, MPI_AINT, left, 0, &to, 1, MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    use_window(win, to, &memory);
    MUST(MPI_Win_detach(win, &memory));
    MUST(MPI_Win_free(&win));
}

static void use_windows(void)
{
    int memory = -1, *allocated;
    MPI_Win win;
    MUST(MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use_window(win, 0, &memory);
    MUST(MPI_Win_free(&win));
    MUST(MPI_Win_allocate(sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win));
    use_window(win, 0, allocated);
    MUST(MPI_Win_free(&win));
    MUST(MPI_Win_allocate_shared(
        sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win));
    use_window(win, 0, allocated);
    MUST(MPI_Win_free(&win));
#if PH_MPICH
    MUST(MPI_Win_create_c(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use_window(win, 0, &memory);
    MUST(MPI_Win_free(&win));
    MUST(MPI_Win_allocate_c(sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win));
    use_window(win, 0, allocated);
    MUST(MPI_Win_free(&win));
    MUST(MPI_Win_allocate_shared_c(
        sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win));
    use_window(win, 0, allocated);
    MUST(MPI_Win_free(&win));
#endif
    use_dynamic_window();
}

/* What ranks write in turn stands in their new order. */
static void use_file(const char *folder)
{
    char path[MOST];
    MPI_File file;
    snprintf(path, sizeof path, "%s/ordered", folder);
    MUST(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    MUST(MPI_File_write_ordered(file, &job.former[job.rank], 1, MPI_INT, MPI_STATUS_IGNORE));
    MUST(MPI_File_close(&file));
    PMPI_Barrier(job.oracle);
    FILE *plain = fopen(path, "rb");
    CHECK(plain != NULL);
    for (int rank = 0; rank < job.size; rank++) {
        int value = -1;
        CHECK(fread(&value, sizeof value, 1, plain) == 1 && value == job.former[rank]);
    }
    fclose(plain);
}

static void check_memory_and_files(const char *folder)
{
    use_windows();
    use_file(folder);
}

/* ---- other processes ---- */

/* Compares the sum of what the parents' ranks know with what the child expects, on either side. */
static void meet_child(MPI_Comm child)
{
    int sent = (job.rank + 1) * job.former[job.rank], wanted = 0;
    for (int rank = 0; rank < job.size; rank++)
        wanted += (rank + 1) * job.former[rank];
    if (job.rank == 0)
        MUST(MPI_Send(&wanted, 1, MPI_INT, 0, 1, child));
    MUST(MPI_Send(&sent, 1, MPI_INT, 0, 2, child));
    MUST(MPI_Comm_disconnect(&child));
}

static void meet_parents(MPI_Comm parents)
{
    int size, wanted, sum = 0;
    MUST(MPI_Comm_remote_size(parents, &size));
    MUST(MPI_Recv(&wanted, 1, MPI_INT, 0, 1, parents, MPI_STATUS_IGNORE));
    for (int rank = 0; rank < size; rank++) {
        int value = 0;
        MUST(MPI_Recv(&value, 1, MPI_INT, rank, 2, parents, MPI_STATUS_IGNORE));
        sum += value;
        CHECK(value % (rank + 1) == 0);
    }
    CHECK(sum == wanted);
    MUST(MPI_Comm_disconnect(&parents));
}

/* A child that was spawned is met over a port, too, unless it came second. */
static void be_child(MPI_Comm parents, bool has_port)
{
    char port[MPI_MAX_PORT_NAME];
    int rank, true_rank;
    MPI_Comm again;
    PMPI_Comm_rank(MPI_COMM_WORLD, &true_rank);
    MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(rank == true_rank);
    if (has_port) {
        MUST(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 3, parents, MPI_STATUS_IGNORE));
        MUST(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &again));
        meet_parents(again);
    }
    meet_parents(parents);
}

/* Spawns a child that is told its part. */
static int spawn(char *program, char *part, bool is_multiple, MPI_Comm parents, MPI_Comm *child_out)
{
    char *arguments[] = {part, NULL}, **lists[] = {arguments}, *programs[] = {program};
    const int one = 1;
    const MPI_Info info = MPI_INFO_NULL;
    if (is_multiple)
        return MPI_Comm_spawn_multiple(
            1, programs, lists, &one, &info, 0, parents, child_out, MPI_ERRCODES_IGNORE);
    return MPI_Comm_spawn(program, arguments, 1, info, 0, parents, child_out, MPI_ERRCODES_IGNORE);
}

/* Debian's MPICH 4.0 spawns nothing, in any program and from any communicator. */
static void check_processes(char *program)
{
    char port[MPI_MAX_PORT_NAME] = "", first[] = "child", second[] = "second";
    MPI_Comm child, again;
    if (spawn(program, first, false, MPI_COMM_WORLD, &child) != MPI_SUCCESS) {
        CHECK(spawn(program, first, false, job.oracle, &child) != MPI_SUCCESS);
        CHECK(spawn(program, second, true, MPI_COMM_WORLD, &child) != MPI_SUCCESS);
        return;
    }
    if (job.rank == 0) {
        MUST(MPI_Open_port(MPI_INFO_NULL, port));
        MUST(MPI_Send(port, sizeof port, MPI_CHAR, 0, 3, child));
    }
    MUST(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &again));
    meet_child(again);
    meet_child(child);
    if (job.rank == 0)
        MUST(MPI_Close_port(port));
    MUST(spawn(program, second, true, MPI_COMM_WORLD, &child));
    meet_child(child);
}

/* ---- the job ---- */

/* Reads the order from the arguments, and makes the oracle's communicator. */
static void find_order(char **ranks)
{
    int former;
    PMPI_Comm_size(MPI_COMM_WORLD, &job.size);
    PMPI_Comm_rank(MPI_COMM_WORLD, &former);
    job.former = calloc((size_t)job.size, sizeof *job.former);
    for (int rank = 0; rank < job.size; rank++) {
        job.former[rank] = atoi(ranks[rank]);
        if (job.former[rank] == former)
            job.rank = rank;
    }
    PMPI_Comm_split(MPI_COMM_WORLD, 0, job.rank, &job.oracle);
}

static int say_goodbye(MPI_Comm self, int keyval, void *value, void *extra)
{
    int rank = -1;
    (void)self, (void)keyval, (void)value, (void)extra;
    MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(rank == job.rank); /* the world lasts as long as what MPI_Finalize calls */
    return MPI_SUCCESS;
}

static void check_all(const char *folder, char *program)
{
    int keyval;
    MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, say_goodbye, &keyval, NULL));
    MUST(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    check_communicators();
    check_collectives();
    PMPI_Comm_set_errhandler(job.oracle, MPI_ERRORS_RETURN);
    check_neighbours();
    check_messages();
    check_memory_and_files(folder);
    check_processes(program);
}

static bool is_asked(int argc, char **argv, const char *word)
{
    return argc == 2 && strcmp(argv[1], word) == 0;
}

static void read_environment(void)
{
    const char *open = getenv("OMPI_COMM_WORLD_RANK"), *hydra = secure_getenv("PMI_RANK");
    CHECK(open != NULL || hydra != NULL);
}

static void print_ranks(void)
{
    int former, rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &former);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%d %d\n", former, rank);
}

int main(int argc, char **argv)
{
    MPI_Comm parents;
    int provided;
    if (is_asked(argc, argv, "early"))
        read_environment();
    if (getenv("PH_TEST_THREADS") != NULL)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    else
        MPI_Init(&argc, &argv);
    if (is_asked(argc, argv, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (is_asked(argc, argv, "late"))
        read_environment();
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        be_child(parents, is_asked(argc, argv, "child"));
    } else if (argc > 1 && strcmp(argv[1], "ranks") == 0) {
        print_ranks();
    } else if (argc > 2) {
        find_order(argv + 2);
        check_all(argv[1], argv[0]);
        if (job.rank == 0)
            puts("all calls are right");
    }
    MPI_Finalize();
    return 0;
}
