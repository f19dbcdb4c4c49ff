#include "plan/fabric/fabric_routes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"

#define NO_WAY UINT16_MAX

/* ---- finding ---- */

static int by_origin(const void *left, const void *right)
{
    const struct ph__fabric_link *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static void order_links(struct ph__fabric *fabric)
{
    qsort(fabric->links, fabric->num_links, sizeof *fabric->links, by_origin);
    for (size_t i = 0; i < fabric->num_links; i++)
        fabric->first_links[fabric->links[i].from + 1]++;
    for (size_t node = 0; node < fabric->num_nodes; node++)
        fabric->first_links[node + 1] += fabric->first_links[node];
}

/* Counts the links from each node to a host, by going from the host, as each link has its opposite. Other
 * hosts forward nothing. queue: (num_nodes) scratch. */
static void count_hops(const struct ph__fabric *fabric, size_t host, uint32_t *queue, uint16_t *hops)
{
    size_t num_queued = 1;
    memset(hops, 0xff, fabric->num_nodes * sizeof *hops);
    hops[host] = 0;
    queue[0] = (uint32_t)host;
    for (size_t i = 0; i < num_queued; i++) {
        const uint32_t node = queue[i];
        if (node < fabric->num_hosts && node != host)
            continue;
        for (size_t k = fabric->first_links[node]; k < fabric->first_links[node + 1]; k++) {
            const uint32_t origin = fabric->links[k].to;
            if (hops[origin] != NO_WAY)
                continue;
            hops[origin] = (uint16_t)(hops[node] + 1);
            queue[num_queued++] = origin;
        }
    }
}

static ph_status check_hops(
    const struct ph__fabric *fabric, const char *path, size_t to, const uint16_t *hops)
{
    for (size_t from = 0; from < fabric->num_hosts; from++) {
        if (hops[from] == NO_WAY)
            return ph_fail(PH_ERROR_CONFIG, "%s: no links lead from host %zu to host %zu", path, from, to);
        if (hops[from] > PH_FABRIC_MAX_HOPS)
            return ph_fail(PH_ERROR_CONFIG, "%s: %u links lie between hosts %zu and %zu: must be %d at most",
                path, hops[from], from, to, PH_FABRIC_MAX_HOPS);
    }
    return PH_OK;
}

static ph_status find(struct ph__fabric *fabric, const char *path, uint32_t *queue)
{
    if (fabric->first_links == NULL || fabric->hops == NULL || queue == NULL)
        return ph__out_of_memory("the routes between %zu hosts", fabric->num_hosts);
    order_links(fabric);
    for (size_t host = 0; host < fabric->num_hosts; host++) {
        uint16_t *hops = fabric->hops + host * fabric->num_nodes;
        count_hops(fabric, host, queue, hops);
        PH_TRY(check_hops(fabric, path, host, hops));
    }
    return PH_OK;
}

ph_status ph__fabric_find_routes(struct ph__fabric *fabric, const char *path)
{
    uint32_t *queue = calloc(fabric->num_nodes, sizeof *queue);
    fabric->first_links = calloc(fabric->num_nodes + 1, sizeof *fabric->first_links);
    fabric->hops = calloc(fabric->num_hosts * fabric->num_nodes, sizeof *fabric->hops);
    const ph_status status = find(fabric, path, queue);
    free(queue);
    return status;
}

void ph__fabric_fini(struct ph__fabric *fabric)
{
    ph__arena_fini(&fabric->arena);
    free(fabric->links);
    free(fabric->first_links);
    free(fabric->hops);
    *fabric = (struct ph__fabric){0};
}

/* ---- following ---- */

struct way {
    const struct ph__fabric *fabric;
    const uint16_t *hops; /* to the host */
    size_t to;
};

static bool is_nearer(const struct way *way, size_t node, const struct ph__fabric_link *link)
{
    const bool forwards = link->to >= way->fabric->num_hosts || link->to == way->to;
    return forwards && way->hops[link->to] + 1 == way->hops[node];
}

static size_t count_nearer(const struct way *way, size_t node)
{
    const struct ph__fabric *fabric = way->fabric;
    size_t count = 0;
    for (size_t i = fabric->first_links[node]; i < fabric->first_links[node + 1]; i++)
        count += is_nearer(way, node, &fabric->links[i]);
    return count;
}

/* Returns the link from a node that leads nearer to the host; among several, the hash chooses. */
static size_t next_link(const struct way *way, size_t node, uint64_t hash)
{
    const struct ph__fabric *fabric = way->fabric;
    const uint64_t choice[] = {hash, node};
    const size_t count = count_nearer(way, node);
    size_t place, i = fabric->first_links[node];
    place = count > 1 ? ph__hash_bytes(choice, sizeof choice) % count : 0;
    while (!is_nearer(way, node, &fabric->links[i]) || place-- > 0)
        i++;
    return i;
}

size_t ph__fabric_route(
    const struct ph__fabric *fabric, size_t from_rank, size_t to_rank, uint32_t links_out[PH_FABRIC_MAX_HOPS])
{
    const uint64_t ranks[] = {from_rank, to_rank}, hash = ph__hash_bytes(ranks, sizeof ranks);
    const size_t from = from_rank / fabric->ranks_per_host, to = to_rank / fabric->ranks_per_host;
    if (fabric->is_measured)
        return from == to ? 0 : ph__fabric_measured_route(fabric, from, to, links_out);
    const struct way way = {fabric, fabric->hops + to * fabric->num_nodes, to};
    size_t num_links = 0;
    for (size_t node = from; node != to; node = fabric->links[links_out[num_links - 1]].to)
        links_out[num_links++] = (uint32_t)next_link(&way, node, hash);
    return num_links;
}

size_t ph__fabric_route_of_hosts(
    const struct ph__fabric *fabric, size_t from, size_t to, uint32_t links_out[PH_FABRIC_MAX_HOPS])
{
    return ph__fabric_route(fabric, from * fabric->ranks_per_host, to * fabric->ranks_per_host, links_out);
}

/* ---- all to all ---- */

/* Splits the flows that are at a node evenly among the links that lead nearer to the host. */
static void pass_on(const struct way *way, size_t node, double *flows, double *loads)
{
    const struct ph__fabric *fabric = way->fabric;
    const double part = flows[node] / (double)count_nearer(way, node);
    for (size_t i = fabric->first_links[node]; i < fabric->first_links[node + 1]; i++)
        if (is_nearer(way, node, &fabric->links[i])) {
            loads[i] += part;
            flows[fabric->links[i].to] += part;
        }
}

/* Adds a flow to one of the first hosts from each other one of them, which has one route. */
static void load_measured(const struct ph__fabric *fabric, size_t to, size_t num_hosts, double *loads)
{
    uint32_t links[PH_FABRIC_MAX_HOPS];
    for (size_t from = 0; from < num_hosts; from++)
        for (size_t i = ph__fabric_route_of_hosts(fabric, from, to, links); i > 0; i--)
            loads[links[i - 1]]++;
}

/* Does the same where links were found: from the hosts, which forward nothing, and then from the switches,
 * the farthest first. flows: (num_nodes) room. */
static void load_links(const struct way *way, size_t num_hosts, double *flows, double *loads)
{
    const struct ph__fabric *fabric = way->fabric;
    for (size_t node = 0; node < fabric->num_nodes; node++)
        flows[node] = node < num_hosts;
    for (size_t host = 0; host < num_hosts; host++)
        if (host != way->to)
            pass_on(way, host, flows, loads);
    for (size_t hops = PH_FABRIC_MAX_HOPS - 1; hops > 0; hops--)
        for (size_t node = fabric->num_hosts; node < fabric->num_nodes; node++)
            if (way->hops[node] == hops && flows[node] > 0)
                pass_on(way, node, flows, loads);
}

ph_status ph__fabric_all_to_all(const struct ph__fabric *fabric, size_t num_hosts, double *bytes_per_s_out)
{
    double *loads = calloc(fabric->num_links + fabric->num_nodes, sizeof *loads);
    double least = (double)INFINITY;
    if (loads == NULL)
        return ph__out_of_memory("the flows between %zu hosts", num_hosts);
    for (size_t to = 0; to < num_hosts; to++) {
        if (fabric->is_measured) {
            load_measured(fabric, to, num_hosts, loads);
            continue;
        }
        const struct way way = {fabric, fabric->hops + to * fabric->num_nodes, to};
        load_links(&way, num_hosts, loads + fabric->num_links, loads);
    }
    for (size_t i = 0; i < fabric->num_links; i++)
        if (loads[i] > 0)
            least = fmin(least, fabric->links[i].bytes_per_ns / loads[i]);
    *bytes_per_s_out = least * 1e9 * (double)(num_hosts - 1);
    free(loads);
    return PH_OK;
}
