#include "train/ranks/collective_choice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm_parts.h"
#include "plan/order/order.h"

#define LARGE_BYTES 16777216. /* of the sum that groups are chosen for */

const char *ph__collective_name(enum ph_collective kind)
{
    static const char *const names[] = {"exchange", "hierarchical", "ring", "auto"};
    return names[kind];
}

/* ---- groups ---- */

/* A job's hosts, which are the first ones of the cluster. */
struct hosts {
    const struct ph__fabric *fabric; /* NULL: not known */
    const char *path;                /* of the fabric, for errors */
    size_t count, ranks_per_host;
    uint32_t *groups; /* (count) the first host of each host's group; as much room as there are ranks */
};

/* Makes each host its own group. */
static void separate_hosts(uint32_t *groups, size_t count)
{
    for (size_t host = 0; host < count; host++)
        groups[host] = (uint32_t)host;
}

/* Groups hosts as the cluster does. Returns false where all of them are in one group there. */
static bool take_groups(struct hosts *hosts)
{
    const uint32_t *of_cluster = hosts->fabric->groups;
    bool is_split = false;
    for (size_t host = 0; host < hosts->count; host++) {
        size_t first = 0;
        while (of_cluster[first] != of_cluster[host])
            first++;
        hosts->groups[host] = (uint32_t)first;
        is_split = is_split || first > 0;
    }
    return is_split;
}

static size_t count_group(const struct hosts *hosts, size_t member)
{
    size_t count = 0;
    for (size_t host = 0; host < hosts->count; host++)
        count += hosts->groups[host] == hosts->groups[member];
    return count;
}

static ph_status check_groups(const struct hosts *hosts)
{
    const size_t first = count_group(hosts, 0);
    for (size_t host = 1; host < hosts->count; host++) {
        const size_t other = count_group(hosts, host);
        if (other != first)
            return ph_fail(PH_ERROR_CONFIG,
                "parallel.collective: 'hierarchical' requires groups of equal size, but the job has %zu "
                "hosts of the topology's group %u and %zu of group %u: take as many of each, or set ring or "
                "auto",
                first, hosts->fabric->groups[0], other, hosts->fabric->groups[host]);
    }
    return PH_OK;
}

/* Fills ns_out (num_sizes) with the times that a collective takes by the model of plan/order/. */
static ph_status price(
    const struct hosts *hosts, enum ph_collective kind, size_t num_sizes, const double *bytes, double *ns_out)
{
    static const enum ph__order_pattern patterns[] = {[PH_COLLECTIVE_EXCHANGE] = PH_ORDER_EXCHANGE,
        [PH_COLLECTIVE_HIERARCHICAL] = PH_ORDER_GROUPS,
        [PH_COLLECTIVE_RING] = PH_ORDER_RING};
    const struct ph__order_problem problem = {.fabric = hosts->fabric,
        .num_hosts = hosts->count,
        .ranks_per_host = hosts->ranks_per_host,
        .pattern = patterns[kind],
        .group_size = count_group(hosts, 0)};
    uint32_t *by_group = calloc(hosts->count, sizeof *by_group);
    size_t num_placed = 0;
    if (by_group == NULL)
        return ph__out_of_memory("the order of %zu hosts", hosts->count);
    for (size_t group = 0; group < hosts->count; group++)
        for (size_t host = 0; host < hosts->count; host++)
            if (hosts->groups[host] == group)
                by_group[num_placed++] = (uint32_t)host;
    const ph_status status = ph__order_times(
        &problem, kind == PH_COLLECTIVE_HIERARCHICAL ? by_group : NULL, num_sizes, bytes, ns_out);
    free(by_group);
    return status;
}

/* Tells whether a large sum takes less where each host is a group than by the groups. separate: (count) room.
 */
static ph_status compare_with_hosts(const struct hosts *hosts, uint32_t *separate, bool *is_faster_out)
{
    struct hosts apart = *hosts;
    const double bytes = LARGE_BYTES;
    double ns, separate_ns;
    apart.groups = separate;
    separate_hosts(separate, hosts->count);
    PH_TRY(price(hosts, PH_COLLECTIVE_HIERARCHICAL, 1, &bytes, &ns));
    PH_TRY(price(&apart, PH_COLLECTIVE_HIERARCHICAL, 1, &bytes, &separate_ns));
    *is_faster_out = separate_ns < ns;
    return PH_OK;
}

/* Groups hosts by the cluster's groups, or each by itself. The latter makes no hierarchy of hosts with one
 * rank each. */
static ph_status group_hosts(struct hosts *hosts)
{
    bool is_separate = hosts->fabric == NULL || !take_groups(hosts);
    if (!is_separate) {
        const ph_status status = check_groups(hosts);
        if (hosts->ranks_per_host == 1)
            return status;
        is_separate = status != PH_OK;
        if (!is_separate) /* a host of several ranks leaves room behind the hosts */
            PH_TRY(compare_with_hosts(hosts, hosts->groups + hosts->count, &is_separate));
    }
    if (is_separate)
        separate_hosts(hosts->groups, hosts->count);
    return PH_OK;
}

/* ---- settling ---- */

static ph_status check_room(const struct hosts *hosts, size_t world_size)
{
    const struct ph__fabric *fabric = hosts->fabric;
    const size_t room = fabric != NULL ? fabric->num_hosts * fabric->ranks_per_host : SIZE_MAX;
    return world_size <= room ? PH_OK
                              : ph_fail(PH_ERROR_CONFIG, "%s: the cluster has room for %zu ranks, not %zu",
                                    hosts->path, room, world_size);
}

static ph_status find_groups(const struct ph__topology *topology, struct hosts *hosts)
{
    hosts->ranks_per_host = hosts->fabric != NULL
                                ? ph__min(hosts->fabric->ranks_per_host, topology->world_size)
                                : topology->ranks_per_host;
    if (hosts->ranks_per_host == 0 || topology->world_size % hosts->ranks_per_host != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "parallel.collective: 'hierarchical' requires as many ranks on each host: start as many, or set "
            "ring");
    hosts->count = topology->world_size / hosts->ranks_per_host;
    return group_hosts(hosts);
}

/* Chooses what takes least time for each of a row of sizes; among equals the first. */
static ph_status choose_by_cost(const struct hosts *hosts, struct ph__collective_settings *settings)
{
    double bytes[PH_COLLECTIVE_SIZES], ns[PH_COLLECTIVE_AUTO][PH_COLLECTIVE_SIZES];
    for (size_t i = 0; i < PH_COLLECTIVE_SIZES; i++)
        bytes[i] = ldexp(1024, (int)i);
    settings->num_choices = 0;
    for (enum ph_collective kind = 0; kind < PH_COLLECTIVE_AUTO; kind++)
        if (kind != PH_COLLECTIVE_HIERARCHICAL || settings->has_groups)
            PH_TRY(price(hosts, kind, PH_COLLECTIVE_SIZES, bytes, ns[kind]));
    for (size_t i = 0; i < PH_COLLECTIVE_SIZES; i++) {
        enum ph_collective best = PH_COLLECTIVE_EXCHANGE;
        for (enum ph_collective kind = 0; kind < PH_COLLECTIVE_AUTO; kind++)
            if ((kind != PH_COLLECTIVE_HIERARCHICAL || settings->has_groups) && ns[kind][i] < ns[best][i])
                best = kind;
        settings->predicted_ns[i] = ns[best][i];
        if (i == 0 || settings->choices[settings->num_choices - 1].kind != best)
            settings->choices[settings->num_choices++] =
                (struct ph__collective_choice){i == 0 ? 0 : (uint64_t)bytes[i], best};
    }
    return PH_OK;
}

static ph_status settle(enum ph_collective collective, const struct ph__topology *topology,
    struct hosts *hosts, struct ph__collective_settings *settings)
{
    PH_TRY(check_room(hosts, topology->world_size));
    const ph_status status = find_groups(topology, hosts);
    settings->has_groups = status == PH_OK;
    if (collective == PH_COLLECTIVE_HIERARCHICAL)
        PH_TRY(status);
    else if (hosts->count > 0)
        PH_TRY(choose_by_cost(hosts, settings));
    for (size_t rank = topology->world_size; settings->has_groups && rank-- > 0;)
        hosts->groups[rank] = hosts->groups[rank / hosts->ranks_per_host];
    return PH_OK;
}

/* Writes such as "hierarchical", or "auto: exchange, from 65536 bytes hierarchical". */
static void describe(enum ph_collective collective, struct ph__collective_settings *settings)
{
    char *text = settings->text;
    const size_t size = sizeof settings->text;
    size_t length = (size_t)snprintf(text, size, "%s", ph__collective_name(collective));
    for (size_t i = 0; collective == PH_COLLECTIVE_AUTO && i < settings->num_choices && length < size; i++) {
        const struct ph__collective_choice *choice = &settings->choices[i];
        char from[48] = ": ";
        if (i > 0)
            snprintf(from, sizeof from, ", from %" PRIu64 " bytes ", choice->from_bytes);
        length +=
            (size_t)snprintf(text + length, size - length, "%s%s", from, ph__collective_name(choice->kind));
    }
}

ph_status ph__collectives_settle(const struct ph__train_job *job, const struct ph__topology *topology,
    struct ph__collective_settings *settings_out, uint32_t *groups_out)
{
    const enum ph_collective collective = job->parallel->collective;
    const char *path = job->parallel->topology;
    struct hosts hosts = {
        .fabric = job->fabric, .path = path != NULL ? path : "the topology", .groups = groups_out};
    struct ph__fabric fabric = {0};
    const bool is_auto = collective == PH_COLLECTIVE_AUTO, may_change = job->parallel->collective_retry;
    ph_status status = PH_OK;
    if (may_change && !is_auto)
        return ph_fail(PH_ERROR_CONFIG,
            "parallel.collective_retry requires parallel.collective: auto, not '%s': set that, or "
            "collective_retry: false",
            ph__collective_name(collective));
    *settings_out =
        (struct ph__collective_settings){.choices = {{0, is_auto ? PH_COLLECTIVE_EXCHANGE : collective}},
            .num_choices = 1,
            .may_change = may_change};
    if (job->fabric == NULL && path != NULL && (is_auto || collective == PH_COLLECTIVE_HIERARCHICAL)) {
        PH_TRY(ph__fabric_read(path, &fabric));
        hosts.fabric = &fabric;
    }
    if (collective == PH_COLLECTIVE_HIERARCHICAL || (is_auto && hosts.fabric != NULL))
        status = settle(collective, topology, &hosts, settings_out);
    ph__fabric_fini(&fabric);
    describe(collective, settings_out);
    return status;
}

/* ---- planning ---- */

_Static_assert((int)PH_PLAN_EXCHANGE == (int)PH_COLLECTIVE_EXCHANGE &&
                   (int)PH_PLAN_HIERARCHICAL == (int)PH_COLLECTIVE_HIERARCHICAL &&
                   (int)PH_PLAN_RING == (int)PH_COLLECTIVE_RING,
    "a plan's sums are the communicator's");

ph_status ph__collectives_of_plan(const struct ph__collective_settings *settings, const uint32_t *groups,
    size_t world_size, struct ph__arena *arena, struct ph__plan_sums *sums_out)
{
    struct ph__plan_sums sums = {.world_size = world_size, .num_ranges = settings->num_choices};
    uint32_t *positions = ph__arena_alloc_array(arena, world_size, sizeof *positions);
    const struct ph__group world = {.size = world_size};
    struct ph__comm_choices choices = {0};
    if (positions == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < sums.num_ranges; i++)
        sums.ranges[i] = (struct ph__plan_sum_range){
            settings->choices[i].from_bytes, (enum ph__plan_sum)settings->choices[i].kind};
    if (settings->has_groups) {
        PH_TRY(ph__choices_set(&choices, &world, NULL, 0, groups));
        for (uint32_t position = 0; position < world_size; position++)
            positions[choices.order[position]] = position;
        sums.num_groups = choices.outer.size;
        ph__choices_fini(&choices);
    }
    sums.positions = positions;
    *sums_out = sums;
    return PH_OK;
}

/* ---- agreeing ---- */

ph_status ph__collectives_set(
    struct ph_comm *comm, const struct ph__collective_settings *settings, const uint32_t *groups)
{
    if (settings->may_change)
        ph__comm_vary_collectives(comm);
    return ph__comm_set_collectives(
        comm, settings->choices, settings->num_choices, settings->has_groups ? groups : NULL);
}

static ph_status agree(struct ph_comm *comm, const struct ph__train_job *job,
    struct ph__collective_settings *settings, uint32_t *groups)
{
    const struct ph__topology topology = {ph_comm_world_size(comm), ph_comm_ranks_per_host(comm)};
    if (ph_comm_rank(comm) == 0)
        PH_TRY(ph__collectives_settle(job, &topology, settings, groups));
    PH_TRY(ph__comm_broadcast_once(comm, "choice of collectives", 0, settings, sizeof *settings));
    if (settings->has_groups)
        PH_TRY(ph__comm_broadcast_once(
            comm, "groups of the ranks", 0, groups, topology.world_size * sizeof *groups));
    return ph__collectives_set(comm, settings, groups);
}

ph_status ph__collectives_agree(
    struct ph_comm *comm, const struct ph__train_job *job, struct ph__collective_settings *settings_out)
{
    uint32_t *groups = calloc(ph_comm_world_size(comm), sizeof *groups);
    if (groups == NULL)
        return ph__out_of_memory("groups of %zu ranks", ph_comm_world_size(comm));
    const ph_status status = agree(comm, job, settings_out, groups);
    free(groups);
    return status;
}
