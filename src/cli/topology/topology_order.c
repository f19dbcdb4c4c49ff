/* phloem topology order FILE --collective NAME --bytes N: finds the order of a cluster's hosts in which a
 * collective takes least time, and writes it for launchers. */
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "base/text/number.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/topology/topology_verbs.h"
#include "plan/order/order.h"

#define LEAST_GAIN .05
#define FIRST_PORT 12400 /* LightGBM's local_listen_port */
#define MOST_SHOWN 16    /* hosts, on the screen */

struct ordered {
    const struct ph__fabric *fabric;
    const struct ph__order *order;
    int64_t port;
};

enum format { HOSTS, HOSTFILE, RANKFILE, MACHINES, NODE_RANKS, NUM_FORMATS };

/* Writes an address, since LightGBM takes no names. */
static ph_status write_machine(const char *name, int64_t port, struct ph__writer *writer)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char address[INET_ADDRSTRLEN] = "";
    int error = getaddrinfo(name, NULL, &hints, &found);
    if (error == 0) {
        error =
            getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST);
        freeaddrinfo(found);
    }
    if (error != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "--machines: host '%s' has no IPv4 address here (%s), and LightGBM takes no names: run this "
            "where "
            "names resolve, or probe by addresses",
            name, gai_strerror(error));
    return ph__writer_printf(writer, "%s %" PRId64 "\n", address, port);
}

/* Writes the lines of the host at a place, for one launcher. */
static ph_status write_host(
    const struct ordered *ordered, enum format format, size_t place, struct ph__writer *writer)
{
    const char *name = ordered->fabric->names[ordered->order->hosts[place]];
    const size_t count = ordered->fabric->ranks_per_host;
    switch (format) {
    case HOSTFILE:
        return ph__writer_printf(writer, "%s slots=%zu\n", name, count);
    case RANKFILE:
        for (size_t slot = 0; slot < count; slot++)
            PH_TRY(ph__writer_printf(writer, "rank %zu=%s slot=%zu\n", place * count + slot, name, slot));
        return PH_OK;
    case MACHINES:
        return write_machine(name, ordered->port, writer);
    case NODE_RANKS:
        return ph__writer_printf(writer, "%s %zu\n", name, place);
    default:
        return ph__writer_printf(writer, "%s\n", name);
    }
}

struct request {
    const char *topology, *collective, *bytes, *group_size, *seed, *least_gain, *port, *price;
    const char *paths[NUM_FORMATS];
    bool sums_edges;
    struct ph__order_problem problem;
    int64_t port_number;
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--collective", CLI_TEXT, &request->collective, "NAME",
            "ring, halving, far-halving, doubling, tree, hierarchical or exchange (required)"},
        {"--bytes", CLI_TEXT, &request->bytes, "N", "bytes that each rank sums (required)"},
        {"--group-size", CLI_TEXT, &request->group_size, "N",
            "hosts of a group, of hierarchical; default: those of the topology's groups"},
        {"--sum-edges", CLI_SWITCH, &request->sums_edges, NULL,
            "a ring costs the sum of its messages, not the slowest one: for short ones"},
        {"--least-gain", CLI_TEXT, &request->least_gain, "SHARE",
            "keeps the hosts' own order unless another one saves this share of the time; default: 0.05"},
        {"--seed", CLI_TEXT, &request->seed, "N", "seed of the search; default: 0"},
        {"--price", CLI_TEXT, &request->price, "FILE",
            "finds no order, but prints the milliseconds predicted for this one, a host a line"},
        {"--out", CLI_TEXT, &request->paths[HOSTS], "FILE",
            "writes a host a line: for PHLOEM_REORDER, and MPICH's -f"},
        {"--hostfile", CLI_TEXT, &request->paths[HOSTFILE], "FILE", "the same, for Open MPI's --hostfile"},
        {"--rankfile", CLI_TEXT, &request->paths[RANKFILE], "FILE", "for Open MPI's --rankfile"},
        {"--machines", CLI_TEXT, &request->paths[MACHINES], "FILE",
            "for LightGBM's machine_list_filename: an address and a port a line"},
        {"--port", CLI_TEXT, &request->port, "N", "that port; default: 12400"},
        {"--node-ranks", CLI_TEXT, &request->paths[NODE_RANKS], "FILE",
            "a host and its number a line, for torchrun's --node-rank"},
    };
    const struct cli_command command = {"topology order",
        "topology order cluster.yaml --collective ring --bytes 4194304 --out hosts.txt",
        "Finds the order of a cluster's hosts in which a collective takes least time. The first host stays\n"
        "the first. FILE is a topology file, as phloem topology probe writes one. A file to write may be -,\n"
        "standard output, which then gets nothing else.",
        "FILE", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    request->topology = arguments.positional[0];
    return request->collective != NULL && request->bytes != NULL
               ? PH_OK
               : ph_fail(PH_ERROR_USAGE, "topology order requires --collective NAME and --bytes N");
}

static ph_status parse_pattern(const char *name, enum ph__order_pattern *pattern_out)
{
#define NAME(name, text) text,
    static const char *const names[] = {PH_ORDER_PATTERN_LIST(NAME)};
#undef NAME
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *pattern_out = (enum ph__order_pattern)i;
            return PH_OK;
        }
    return cli_unknown("collective", name, names, sizeof names / sizeof *names);
}

static ph_status parse_problem(struct request *request)
{
    struct ph__order_problem *problem = &request->problem;
    int64_t bytes = 0, group_size = 0, seed = 0;
    problem->sums_edges = request->sums_edges;
    problem->least_gain = LEAST_GAIN;
    request->port_number = FIRST_PORT;
    PH_TRY(parse_pattern(request->collective, &problem->pattern));
    PH_TRY(cli_count_parse("--bytes", request->bytes, 1, (int64_t)1 << 50, &bytes));
    PH_TRY(cli_count_parse("--group-size", request->group_size, 1, UINT16_MAX, &group_size));
    PH_TRY(cli_count_parse("--seed", request->seed, 0, INT64_MAX, &seed));
    PH_TRY(cli_count_parse("--port", request->port, 1, UINT16_MAX, &request->port_number));
    if (request->least_gain != NULL && (!ph__number_parse(request->least_gain, &problem->least_gain) ||
                                           !(problem->least_gain >= 0) || problem->least_gain >= 1))
        return ph_fail(
            PH_ERROR_USAGE, "--least-gain must be at least 0 and below 1, not '%s'", request->least_gain);
    if (problem->sums_edges && problem->pattern != PH_ORDER_RING)
        return ph_fail(PH_ERROR_USAGE, "--sum-edges is of --collective ring, not '%s'", request->collective);
    problem->bytes = (double)bytes;
    problem->group_size = (size_t)group_size;
    problem->seed = (uint64_t)seed;
    return PH_OK;
}

/* ---- the price of an order ---- */

static ph_status find_host(
    const struct ph__fabric *fabric, const char *path, uint64_t number, const char *name, uint32_t *host_out)
{
    uint32_t host = 0;
    while (host < fabric->num_hosts && strcmp(fabric->names[host], name) != 0)
        host++;
    if (host == fabric->num_hosts)
        return ph_fail(PH_ERROR_DATA,
            "%s:%" PRIu64 ": '%s' is not a host of the topology file: write one of its names", path, number,
            name);
    *host_out = host;
    return PH_OK;
}

/* Reads an order of all hosts: a name a line. has: (num_hosts) false. */
static ph_status read_lines(
    struct ph__reader *reader, const char *path, const struct ph__fabric *fabric, uint32_t *hosts, bool *has)
{
    char *line;
    size_t length, count = 0;
    ph_status status;
    while ((status = ph__reader_line(reader, &line, &length)) == PH_OK && line != NULL) {
        uint32_t host;
        line += strspn(line, " \t");
        line[strcspn(line, " \t\r#")] = '\0';
        if (*line == '\0')
            continue;
        PH_TRY(find_host(fabric, path, ph__reader_line_number(reader), line, &host));
        if (has[host])
            return ph_fail(PH_ERROR_DATA, "%s:%" PRIu64 ": host '%s' is there twice", path,
                ph__reader_line_number(reader), line);
        has[host] = true;
        hosts[count++] = host;
    }
    if (status == PH_OK && count < fabric->num_hosts)
        return ph_fail(
            PH_ERROR_DATA, "%s: has %zu of the topology's %zu hosts", path, count, fabric->num_hosts);
    return status;
}

static ph_status read_order(const char *path, const struct ph__fabric *fabric, uint32_t *hosts)
{
    struct ph__reader *reader;
    bool *has = calloc(fabric->num_hosts, sizeof *has);
    if (has == NULL)
        return ph__out_of_memory("%zu hosts", fabric->num_hosts);
    ph_status status = ph__reader_open(path, &reader);
    if (status == PH_OK) {
        status = read_lines(reader, path, fabric, hosts, has);
        ph__reader_close(reader);
    }
    free(has);
    return status;
}

static ph_status price_order(const struct request *request, const struct ph__fabric *fabric)
{
    double ns = 0;
    uint32_t *hosts = calloc(fabric->num_hosts, sizeof *hosts);
    if (hosts == NULL)
        return ph__out_of_memory("%zu hosts", fabric->num_hosts);
    ph_status status = read_order(request->price, fabric, hosts);
    if (status == PH_OK)
        status = ph__order_times(&request->problem, hosts, 1, &request->problem.bytes, &ns);
    if (status == PH_OK)
        printf(
            "%.3f ms predicted for %s in the order of '%s'\n", ns / 1e6, request->collective, request->price);
    free(hosts);
    return status;
}

/* ---- output ---- */

static ph_status write_file(const struct ordered *ordered, enum format format, const char *path)
{
    struct ph__writer *writer;
    ph_status status = PH_OK;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    for (size_t place = 0; place < ordered->fabric->num_hosts && status == PH_OK; place++)
        status = write_host(ordered, format, place, writer);
    return ph__writer_end(writer, status);
}

static ph_status check_outputs(const struct request *request)
{
    for (size_t i = 0; i < NUM_FORMATS; i++)
        if (request->paths[i] != NULL && strcmp(request->paths[i], "-") != 0) {
            PH_TRY(cli_output_spare_input(request->paths[i], request->topology));
            PH_TRY(cli_output_try(request->paths[i]));
        }
    return PH_OK;
}

/* Returns true when no list for a launcher goes to standard output. */
static bool is_told(const struct request *request)
{
    bool is_free = true;
    for (size_t i = 0; i < NUM_FORMATS; i++)
        is_free &= request->paths[i] == NULL || strcmp(request->paths[i], "-") != 0;
    return is_free;
}

static void print(const struct request *request, const struct ordered *ordered)
{
    const struct ph__order *order = ordered->order;
    const size_t num_hosts = ordered->fabric->num_hosts;
    char bytes[PH_NUMBER_TEXT_BYTES];
    printf("%s of %s over %zu hosts, predicted: %.3f ms as they are, %.3f ms at random (median)\n",
        request->collective, ph__bytes_text((uint64_t)request->problem.bytes, bytes), num_hosts,
        order->identity_ns / 1e6, order->random_ns / 1e6);
    if (order->is_identity) {
        printf(
            "the hosts stay as they are: the best order found would take %.3f ms\n", order->found_ns / 1e6);
        return;
    }
    printf("%.3f ms in the order found, %.2f times faster:", order->ns / 1e6, order->identity_ns / order->ns);
    for (size_t place = 0; place < num_hosts && place < MOST_SHOWN; place++)
        printf(" %s", ordered->fabric->names[order->hosts[place]]);
    printf("%s\n", num_hosts > MOST_SHOWN ? " ..." : "");
}

static ph_status order_hosts(struct request *request, const struct ph__fabric *fabric)
{
    struct ph__order order;
    ph_status status = PH_OK;
    request->problem.fabric = fabric;
    if (request->price != NULL)
        return price_order(request, fabric);
    PH_TRY(ph__order_find(&request->problem, &order));
    const struct ordered ordered = {fabric, &order, request->port_number};
    if (is_told(request))
        print(request, &ordered);
    for (enum format format = 0; format < NUM_FORMATS && status == PH_OK; format++)
        if (request->paths[format] != NULL)
            status = write_file(&ordered, format, request->paths[format]);
    free(order.hosts);
    return status;
}

ph_status cli_topology_order(int argc, char **argv)
{
    struct request request = {0};
    struct ph__fabric fabric;
    bool is_done;
    PH_TRY(parse(argc, argv, &request, &is_done));
    if (is_done)
        return PH_OK;
    PH_TRY(parse_problem(&request));
    PH_TRY(check_outputs(&request));
    PH_TRY(ph__fabric_read(request.topology, &fabric));
    const ph_status status = order_hosts(&request, &fabric);
    ph__fabric_fini(&fabric);
    return status;
}
