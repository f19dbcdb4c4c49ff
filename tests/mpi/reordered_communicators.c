/* What MPI_COMM_WORLD is asked for, and what is made from it. */
#include "reordered.h"

#include <string.h>

static int copies, deletions, errors;
static MPI_Comm faulty; /* of the last error */

/* Frees a communicator that should have the reordered ranks. */
static void check_order(MPI_Comm comm)
{
    int result = MPI_UNEQUAL, other = MPI_UNEQUAL;
    MUST(PMPI_Comm_compare(comm, job.oracle, &result));
    MUST(MPI_Comm_compare(MPI_COMM_WORLD, comm, &other));
    CHECK(result == MPI_CONGRUENT && other == MPI_CONGRUENT);
    MUST(PMPI_Comm_free(&comm));
}

static void ask(void)
{
    int rank, size, is_inter, topology, result = MPI_UNEQUAL, length = 0;
    char name[MPI_MAX_OBJECT_NAME] = "";
    MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
    MUST(MPI_Comm_test_inter(MPI_COMM_WORLD, &is_inter));
    MUST(MPI_Topo_test(MPI_COMM_WORLD, &topology));
    MUST(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result));
    CHECK(rank == job.rank && size == job.size && !is_inter && topology == MPI_UNDEFINED &&
          result == MPI_IDENT);
    MUST(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == (int)strlen(name));
    MUST(MPI_Comm_set_name(MPI_COMM_WORLD, "everybody"));
    MUST(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "everybody") == 0);
}

static void use_groups(void)
{
    MPI_Group group, ordered;
    int result = MPI_UNEQUAL, zero = 0, translated = -1;
    MPI_Comm comm;
    MUST(MPI_Comm_group(MPI_COMM_WORLD, &group));
    MUST(PMPI_Comm_group(job.oracle, &ordered));
    MUST(MPI_Group_compare(group, ordered, &result));
    CHECK(result == MPI_IDENT);
    MUST(MPI_Group_translate_ranks(group, 1, &zero, ordered, &translated));
    CHECK(translated == 0);
    MUST(MPI_Comm_create(MPI_COMM_WORLD, group, &comm));
    check_order(comm);
    MUST(MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm));
    check_order(comm);
    MPI_Group_free(&group);
    MPI_Group_free(&ordered);
}

static void duplicate(void)
{
    MPI_Comm comm;
    MPI_Info info;
    MPI_Request request;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    check_order(comm);
    MUST(MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm));
    check_order(comm);
    MUST(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_order(comm);
#if PH_MPICH
    MUST(MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_order(comm);
#endif
    MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm));
    check_order(comm);
    MUST(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm)); /* one host */
    check_order(comm);
    MUST(MPI_Comm_get_info(MPI_COMM_WORLD, &info));
    MUST(MPI_Comm_set_info(MPI_COMM_WORLD, info));
    MUST(MPI_Info_free(&info));
}

/* ---- attributes ---- */

static int copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy_out, int *is_set)
{
    (void)comm, (void)keyval, (void)extra;
    copies++;
    *(void **)copy_out = value;
    *is_set = 1;
    return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

/* The true world's values are the world's, and a duplicate's. */
static void check_predefined(int keyval)
{
    int *value = NULL, *wanted = NULL, is_set = -1, is_wanted = -1;
    MPI_Comm comm;
    MUST(PMPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &wanted, &is_wanted));
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &is_set));
    CHECK(is_set == is_wanted && (!is_set || *value == *wanted));
    MUST(MPI_Attr_get(comm, keyval, &value, &is_set));
    CHECK(is_set == is_wanted && (!is_set || *value == *wanted));
    MPI_Comm_free(&comm);
}

static void check_attribute(MPI_Comm comm, int keyval, const int *wanted)
{
    int *value = NULL, is_set = 0;
    MUST(MPI_Comm_get_attr(comm, keyval, &value, &is_set));
    CHECK(is_set == (wanted != NULL) && (!is_set || value == wanted));
    MUST(MPI_Attr_get(comm, keyval, &value, &is_set));
    CHECK(is_set == (wanted != NULL) && (!is_set || value == wanted));
}

static void use_attributes(void)
{
    const int predefined[] = {MPI_TAG_UB, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_UNIVERSE_SIZE};
    int keyval, one = 1, two = 2;
    MPI_Comm comm;
    for (size_t i = 0; i < sizeof predefined / sizeof *predefined; i++)
        check_predefined(predefined[i]);
    MUST(MPI_Comm_create_keyval(copy, delete, &keyval, NULL));
    check_attribute(MPI_COMM_WORLD, keyval, NULL);
    MUST(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &one));
    check_attribute(MPI_COMM_WORLD, keyval, &one);
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    check_attribute(comm, keyval, &one);
    CHECK(copies == 1 && deletions == 0);
    MUST(MPI_Comm_free(&comm));
    MUST(MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval));
    CHECK(deletions == 2);
    MUST(MPI_Attr_put(MPI_COMM_WORLD, keyval, &two));
    check_attribute(MPI_COMM_WORLD, keyval, &two);
    MUST(MPI_Attr_delete(MPI_COMM_WORLD, keyval));
    check_attribute(MPI_COMM_WORLD, keyval, NULL);
    CHECK(deletions == 3);
    MUST(MPI_Comm_free_keyval(&keyval));
}

/* ---- errors ---- */

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    errors++;
    faulty = *comm;
}

/* A handler of the world holds for calls on it, for calls on nothing, and for what is made from it. */
static void use_handlers(void)
{
    MPI_Errhandler handler, before, now;
    int value = 0;
    MPI_Comm comm, same = MPI_COMM_WORLD;
    MUST(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before));
    CHECK(before == MPI_ERRORS_ARE_FATAL);
    MUST(MPI_Comm_create_errhandler(count_error, &handler));
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    MUST(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now));
    CHECK(now == handler);
    MPI_Errhandler_free(&now);
    CHECK(MPI_Send(&value, 1, MPI_INT, job.size, 0, MPI_COMM_WORLD) != MPI_SUCCESS && errors == 1);
    MUST(PMPI_Comm_compare(faulty, job.oracle, &value));
    CHECK(value == MPI_CONGRUENT);
    MUST(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER));
    CHECK(errors == 2);
    CHECK(MPI_Comm_free(&same) != MPI_SUCCESS && errors == 3 && same == MPI_COMM_WORLD);
#if PH_MPICH
    errors++; /* MPICH disconnects its world indeed */
#else
    CHECK(MPI_Comm_disconnect(&same) != MPI_SUCCESS && errors == 4 && same == MPI_COMM_WORLD);
#endif
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CHECK(MPI_Send(&value, 1, MPI_INT, job.size, 0, comm) != MPI_SUCCESS && errors == 5);
    MPI_Comm_free(&comm);
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(MPI_Send(&value, 1, MPI_INT, job.size, 0, MPI_COMM_WORLD) != MPI_SUCCESS && errors == 5);
#if PH_MPICH
    MUST(MPI_Errhandler_set(MPI_COMM_WORLD, handler));
    MUST(MPI_Errhandler_get(MPI_COMM_WORLD, &now));
    CHECK(now == handler);
    MPI_Errhandler_free(&now);
    CHECK(MPI_Send(&value, 1, MPI_INT, job.size, 0, MPI_COMM_WORLD) != MPI_SUCCESS && errors == 6);
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
#endif
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&handler);
}

/* ---- topologies ---- */

/* Ranks lie on a line, and know both neighbours. */
static void use_cartesian(void)
{
    int size, is_ring, at, rank = -1, from, to, num, number = -1, no_ring = 0;
    const int keep = 1, right = (job.rank + 1) % job.size, left = (job.rank + job.size - 1) % job.size,
              ring = 1;
    MPI_Comm comm, sub;
    MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, &job.size, &ring, 0, &comm));
    MUST(MPI_Cartdim_get(comm, &num));
    MUST(MPI_Cart_get(comm, 1, &size, &is_ring, &at));
    CHECK(num == 1 && size == job.size && is_ring && at == job.rank);
    MUST(MPI_Cart_rank(comm, &at, &rank));
    MUST(MPI_Cart_coords(comm, right, 1, &at));
    MUST(MPI_Cart_shift(comm, 0, 1, &from, &to));
    CHECK(rank == job.rank && at == right && from == left && to == right);
    MUST(MPI_Cart_sub(comm, &keep, &sub));
    check_order(sub);
    check_order(comm);
    MUST(MPI_Cart_map(MPI_COMM_WORLD, 1, &job.size, &no_ring, &number));
    MUST(PMPI_Cart_map(job.oracle, 1, &job.size, &no_ring, &at));
    CHECK(number == at);
}

static void use_graph(void)
{
    int index[MOST], edges[MOST], nodes, num, at = -1, wanted, neighbours[2], degree, in, out, weighted;
    int sources[2], heard[2], told[2];
    const int weights[] = {1, 2};
    const int right = (job.rank + 1) % job.size, left = (job.rank + job.size - 1) % job.size,
              both[] = {left, right};
    MPI_Comm comm;
    for (int i = 0; i < job.size; i++) {
        index[i] = 2 * i + 2;
        edges[2 * i] = (i + job.size - 1) % job.size;
        edges[2 * i + 1] = (i + 1) % job.size;
    }
    MUST(MPI_Graph_create(MPI_COMM_WORLD, job.size, index, edges, 0, &comm));
    MUST(MPI_Graphdims_get(comm, &nodes, &num));
    MUST(MPI_Graph_get(comm, MOST, MOST, index, edges));
    MUST(MPI_Graph_neighbors_count(comm, job.rank, &degree));
    MUST(MPI_Graph_neighbors(comm, job.rank, 2, neighbours));
    CHECK(nodes == job.size && num == 2 * job.size && degree == 2 && neighbours[0] == left &&
          neighbours[1] == right);
    check_order(comm);
    MUST(MPI_Graph_map(MPI_COMM_WORLD, job.size, index, edges, &at));
    MUST(PMPI_Graph_map(job.oracle, job.size, index, edges, &wanted));
    CHECK(at == wanted);
    MUST(MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, 2, both, weights, 2, both, weights, MPI_INFO_NULL, 0, &comm));
    MUST(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    MUST(MPI_Dist_graph_neighbors(comm, 2, sources, heard, 2, neighbours, told));
    CHECK(in == 2 && out == 2 && weighted && heard[1] == 2 && told[1] == 2 && sources[0] == left &&
          neighbours[1] == right);
    check_order(comm);
    MUST(
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &job.rank, &degree, both, weights, MPI_INFO_NULL, 0, &comm));
    MUST(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted)); /* which come in any order */
    CHECK(in == 2 && out == 2 && weighted);
    check_order(comm);
}

/* ---- two halves ---- */

static void bridge(void)
{
    const int half = job.size / 2, is_high = job.rank >= half;
    int size, is_inter;
    MPI_Comm part, inter, whole;
    MPI_Group group;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, is_high, 0, &part));
    MUST(MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, is_high ? 0 : half, 9, &inter));
    MUST(MPI_Comm_remote_size(inter, &size));
    MUST(MPI_Comm_remote_group(inter, &group));
    MUST(MPI_Comm_test_inter(inter, &is_inter));
    CHECK(is_inter && size == (is_high ? half : job.size - half));
    MUST(MPI_Intercomm_merge(inter, is_high, &whole));
    check_order(whole);
    MPI_Group_free(&group);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&part);
}

void check_communicators(void)
{
    ask();
    use_groups();
    duplicate();
    use_attributes();
    use_handlers();
    use_cartesian();
    use_graph();
    bridge();
}
