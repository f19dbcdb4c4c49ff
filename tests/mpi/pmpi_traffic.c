/* Counts what a program sends by MPI, from outside: preloaded, it stands before MPI's functions for
 * point-to-point messages and calls the library's own by their second names (PMPI). When the program leaves
 * MPI, each rank writes $PH_TEST_TRAFFIC.<rank>, sorted:
 *
 *     {"rank": 1, "sent": [
 *     {"to": 0, "tag": 5, "messages": 2, "bytes": 300},
 *     {"to": 2, "tag": 5, "messages": 1, "bytes": 0}
 *     ]}
 *
 * The program may also look by itself, at any time, by the function pmpi_traffic_visit.
 *
 * Ranks are those of the communicator that is sent on. Collectives, which we do not use but to leave, are not
 * counted. One thread; what goes wrong ends the program. */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct flow {
    int to, tag;
    uint64_t messages, bytes;
};

static struct flow *flows;
static size_t num_flows, max_flows;

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "pmpi_traffic: %s\n", what);
    exit(1);
}

static struct flow *find_flow(int to, int tag)
{
    for (size_t i = 0; i < num_flows; i++)
        if (flows[i].to == to && flows[i].tag == tag)
            return &flows[i];
    if (num_flows == max_flows) {
        max_flows = max_flows * 2 + 64;
        flows = realloc(flows, max_flows * sizeof *flows);
        if (flows == NULL)
            give_up("out of memory");
    }
    flows[num_flows] = (struct flow){.to = to, .tag = tag};
    return &flows[num_flows++];
}

static void count_message(int count, MPI_Datatype type, int to, int tag)
{
    int bytes = 0;
    struct flow *flow = find_flow(to, tag);
    PMPI_Type_size(type, &bytes);
    flow->messages++;
    flow->bytes += (uint64_t)count * (uint64_t)bytes;
}

#define COUNT_STARTED(name)                                                                        \
    int MPI_##name(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
        MPI_Request *request)                                                                      \
    {                                                                                              \
        count_message(count, type, to, tag);                                                       \
        return PMPI_##name(data, count, type, to, tag, comm, request);                             \
    }
COUNT_STARTED(Isend)
COUNT_STARTED(Issend)
COUNT_STARTED(Ibsend)
COUNT_STARTED(Irsend)

#define COUNT_WAITED(name)                                                                         \
    int MPI_##name(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) \
    {                                                                                              \
        count_message(count, type, to, tag);                                                       \
        return PMPI_##name(data, count, type, to, tag, comm);                                      \
    }
COUNT_WAITED(Send)
COUNT_WAITED(Ssend)
COUNT_WAITED(Bsend)
COUNT_WAITED(Rsend)

typedef void pmpi_traffic_visitor(void *context, int to, int tag, uint64_t bytes);
void pmpi_traffic_visit(pmpi_traffic_visitor *visitor, void *context);
void pmpi_traffic_visit(pmpi_traffic_visitor *visitor, void *context)
{
    for (size_t i = 0; i < num_flows; i++)
        visitor(context, flows[i].to, flows[i].tag, flows[i].bytes);
}

static int is_behind(const void *left, const void *right)
{
    const struct flow *a = left, *b = right;
    return a->to != b->to ? (a->to > b->to) - (a->to < b->to) : (a->tag > b->tag) - (a->tag < b->tag);
}

static void write_flows(const char *prefix, int rank)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", prefix, rank);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        give_up("the file cannot be made");
    fprintf(file, "{\"rank\": %d, \"sent\": [", rank);
    for (size_t i = 0; i < num_flows; i++)
        fprintf(file, "%s\n{\"to\": %d, \"tag\": %d, \"messages\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
            i > 0 ? "," : "", flows[i].to, flows[i].tag, flows[i].messages, flows[i].bytes);
    fprintf(file, "\n]}\n");
    if (fclose(file) != 0)
        give_up("the file cannot be written");
}

int MPI_Finalize(void)
{
    const char *prefix = getenv("PH_TEST_TRAFFIC");
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (num_flows > 0)
        qsort(flows, num_flows, sizeof *flows, is_behind);
    if (prefix != NULL)
        write_flows(prefix, rank);
    return PMPI_Finalize();
}
