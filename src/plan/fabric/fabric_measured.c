/* Links of measured hosts: a cluster of which nothing but its pairs is known, and what groups of hosts share.
 *
 *   number of the first          links
 *   0                            hosts' own, outwards: as fast as their fastest pair
 *   H                            the same, inwards
 *   2 H                          groups' own, outwards: as fast as their fastest trunk
 *   2 H + G                      the same, inwards
 *   2 H + 2 G                    trunks, by the group that they come from
 *   2 H + 2 G + G G              pairs, by the host that they come from
 *
 * A pair alone has a latency. A capacity of 0: nothing is known, and the link is in no route. */
#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "plan/fabric/fabric_routes.h"

#define MOST_MISSING 3 /* named in an error */

static size_t host_link(const struct ph__fabric *fabric, size_t host, bool is_inwards)
{
    return host + (is_inwards ? fabric->num_hosts : 0);
}

static size_t group_link(const struct ph__fabric *fabric, size_t group, bool is_inwards)
{
    return 2 * fabric->num_hosts + group + (is_inwards ? fabric->num_groups : 0);
}

static size_t trunk_link(const struct ph__fabric *fabric, size_t from, size_t to)
{
    return 2 * fabric->num_hosts + 2 * fabric->num_groups + from * fabric->num_groups + to;
}

static size_t pair_link(const struct ph__fabric *fabric, size_t from, size_t to)
{
    return trunk_link(fabric, fabric->num_groups, 0) + from * fabric->num_hosts + to;
}

/* A list of the file: of hosts' pairs, or of groups' trunks. */
struct measured_list {
    const char *name, *of;
    const struct ph__record_list *records;
    size_t count; /* of hosts, or groups */
    size_t (*link)(const struct ph__fabric *fabric, size_t from, size_t to);
    size_t (*end_link)(const struct ph__fabric *fabric, size_t end, bool is_inwards);
};

static ph_status check_ends(const char *path, const struct measured_list *list, size_t index)
{
    const struct ph__fabric_measured *item = (const struct ph__fabric_measured *)list->records->items + index;
    if ((size_t)item->from < list->count && (size_t)item->to < list->count && item->from != item->to)
        return PH_OK;
    return list->count < 2 ? ph_fail(PH_ERROR_CONFIG, "%s: %s: there must be two at least", path, list->name)
                           : ph_fail(PH_ERROR_CONFIG, "%s: %s[%zu]: must be two different ones of 0 to %zu",
                                 path, list->name, index, list->count - 1);
}

/* Sets the links of a list, and makes the ends' own links as fast. */
static ph_status set_links(struct ph__fabric *fabric, const char *path, const struct measured_list *list)
{
    for (size_t i = 0; i < list->records->count; i++) {
        PH_TRY(check_ends(path, list, i));
        const struct ph__fabric_measured *item = (const struct ph__fabric_measured *)list->records->items + i;
        const size_t from = (size_t)item->from, to = (size_t)item->to;
        struct ph__fabric_link *link = &fabric->links[list->link(fabric, from, to)];
        struct ph__fabric_link *out = &fabric->links[list->end_link(fabric, from, false)];
        struct ph__fabric_link *in = &fabric->links[list->end_link(fabric, to, true)];
        if (link->bytes_per_ns > 0)
            return ph_fail(PH_ERROR_CONFIG, "%s: %s[%zu]: %s %zu to %s %zu is there twice", path, list->name,
                i, list->of, from, list->of, to);
        *link = (struct ph__fabric_link){
            (uint32_t)from, (uint32_t)to, item->gbits_per_s / 8, item->latency_us * 1e3};
        out->bytes_per_ns = fmax(out->bytes_per_ns, link->bytes_per_ns);
        in->bytes_per_ns = fmax(in->bytes_per_ns, link->bytes_per_ns);
    }
    return PH_OK;
}

static ph_status check_pairs(const struct ph__fabric *fabric, const char *path)
{
    char missing[96] = "";
    size_t num_missing = 0, length = 0;
    for (size_t from = 0; from < fabric->num_hosts; from++)
        for (size_t to = 0; to < fabric->num_hosts; to++) {
            if (from == to || fabric->links[pair_link(fabric, from, to)].bytes_per_ns > 0)
                continue;
            if (num_missing++ < MOST_MISSING)
                length +=
                    (size_t)snprintf(missing + length, sizeof missing - length, " %zu to %zu,", from, to);
        }
    return num_missing == 0 ? PH_OK
                            : ph_fail(PH_ERROR_CONFIG,
                                  "%s: pairs: %zu are missing (hosts%s%s): probe again, or add them by hand",
                                  path, num_missing, missing, num_missing > MOST_MISSING ? " ..." : "");
}

ph_status ph__fabric_measure(struct ph__fabric *fabric, const char *path, const struct ph__record_list *pairs,
    const struct ph__record_list *trunks)
{
    fabric->is_measured = true;
    fabric->num_links = pair_link(fabric, fabric->num_hosts, 0);
    fabric->links = calloc(fabric->num_links, sizeof *fabric->links);
    if (fabric->links == NULL)
        return ph__out_of_memory("the links of %zu hosts", fabric->num_hosts);
    const struct measured_list lists[] = {{"pairs", "host", pairs, fabric->num_hosts, pair_link, host_link},
        {"trunks", "group", trunks, fabric->num_groups, trunk_link, group_link}};
    PH_TRY(set_links(fabric, path, &lists[0]));
    PH_TRY(check_pairs(fabric, path));
    return set_links(fabric, path, &lists[1]);
}

size_t ph__fabric_measured_route(
    const struct ph__fabric *fabric, size_t from, size_t to, uint32_t links_out[PH_FABRIC_MAX_HOPS])
{
    const size_t group = fabric->groups[from], other = fabric->groups[to];
    const size_t links[] = {host_link(fabric, from, false), group_link(fabric, group, false),
        trunk_link(fabric, group, other), pair_link(fabric, from, to), group_link(fabric, other, true),
        host_link(fabric, to, true)};
    size_t count = 0;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        const bool is_of_groups = links[i] >= 2 * fabric->num_hosts && links[i] < pair_link(fabric, 0, 0);
        if (fabric->links[links[i]].bytes_per_ns > 0 && (!is_of_groups || group != other))
            links_out[count++] = (uint32_t)links[i];
    }
    return count;
}
