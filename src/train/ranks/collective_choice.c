#include "train/ranks/collective_choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "plan/collective_cost.h"

_Static_assert((int)PH_PLAN_EXCHANGE == (int)PH_COLLECTIVE_EXCHANGE &&
                   (int)PH_PLAN_HIERARCHICAL == (int)PH_COLLECTIVE_HIERARCHICAL &&
                   (int)PH_PLAN_RING == (int)PH_COLLECTIVE_RING &&
                   (int)PH_PLAN_MOST_RANGES <= (int)PH_COLLECTIVE_MOST_CHOICES,
    "a plan's collectives are the communicator's");

#define LARGE_BYTES 16777216. /* of the sum that groups are chosen for */

static const char *const names[] = {"exchange", "hierarchical", "ring", "auto"};

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
                "hosts "
                "of the topology's group %u and %zu of group %u: take as many of each, or set ring or auto",
                first, hosts->fabric->groups[0], other, hosts->fabric->groups[host]);
    }
    return PH_OK;
}

/* Tells whether a large sum takes less where each host is a group than by the groups. separate: (count) room.
 */
static ph_status compare_with_hosts(const struct hosts *hosts, uint32_t *separate, bool *is_faster_out)
{
    struct ph__collective_job job = {hosts->fabric, hosts->count, hosts->ranks_per_host, hosts->groups};
    const double bytes = LARGE_BYTES;
    double ns, separate_ns;
    PH_TRY(ph__collective_times(&job, PH_PLAN_HIERARCHICAL, 1, &bytes, &ns));
    separate_hosts(separate, hosts->count);
    job.groups = separate;
    PH_TRY(ph__collective_times(&job, PH_PLAN_HIERARCHICAL, 1, &bytes, &separate_ns));
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

static ph_status choose_by_cost(const struct hosts *hosts, struct ph__collective_settings *settings)
{
    const struct ph__collective_job job = {
        hosts->fabric, hosts->count, hosts->ranks_per_host, settings->has_groups ? hosts->groups : NULL};
    struct ph__collective_range ranges[PH_PLAN_MOST_RANGES];
    PH_TRY(ph__collective_ranges(&job, ranges, &settings->num_choices));
    for (size_t i = 0; i < settings->num_choices; i++)
        settings->choices[i] =
            (struct ph__collective_choice){ranges[i].from_bytes, (enum ph_collective)ranges[i].kind};
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

ph_status ph__collectives_settle(const struct ph__train_job *job, const struct ph__topology *topology,
    struct ph__collective_settings *settings_out, uint32_t *groups_out)
{
    const enum ph_collective collective = job->parallel->collective;
    const char *path = job->parallel->topology;
    struct hosts hosts = {
        .fabric = job->fabric, .path = path != NULL ? path : "the topology", .groups = groups_out};
    struct ph__fabric fabric = {0};
    *settings_out = (struct ph__collective_settings){{{0, collective}}, 1, false};
    if (collective == PH_COLLECTIVE_EXCHANGE || collective == PH_COLLECTIVE_RING)
        return PH_OK;
    if (job->fabric == NULL && path != NULL) {
        PH_TRY(ph__fabric_read(path, &fabric));
        hosts.fabric = &fabric;
    }
    if (collective == PH_COLLECTIVE_AUTO)
        settings_out->choices[0].kind = PH_COLLECTIVE_EXCHANGE;
    const bool is_settled = collective == PH_COLLECTIVE_AUTO && hosts.fabric == NULL;
    const ph_status status = is_settled ? PH_OK : settle(collective, topology, &hosts, settings_out);
    ph__fabric_fini(&fabric);
    return status;
}

void ph__collectives_describe(
    enum ph_collective collective, const struct ph__collective_settings *settings, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%s", names[collective]);
    for (size_t i = 0; collective == PH_COLLECTIVE_AUTO && i < settings->num_choices && length < size; i++) {
        const struct ph__collective_choice *choice = &settings->choices[i];
        if (i > 0)
            length += (size_t)snprintf(
                text + length, size - length, ", from %" PRIu64 " bytes", choice->from_bytes);
        if (length < size)
            length += (size_t)snprintf(
                text + length, size - length, "%s %s", i > 0 ? "" : ":", names[choice->kind]);
    }
}

/* ---- agreeing ---- */

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
    return ph__comm_set_collectives(
        comm, settings->choices, settings->num_choices, settings->has_groups ? groups : NULL);
}

ph_status ph__collectives_agree(
    struct ph_comm *comm, const struct ph__train_job *job, char *text_out, size_t size)
{
    struct ph__collective_settings settings = {0};
    uint32_t *groups = calloc(ph_comm_world_size(comm), sizeof *groups);
    if (groups == NULL)
        return ph__out_of_memory("groups of %zu ranks", ph_comm_world_size(comm));
    const ph_status status = agree(comm, job, &settings, groups);
    free(groups);
    if (status == PH_OK)
        ph__collectives_describe(job->parallel->collective, &settings, text_out, size);
    return status;
}
