#include "plan/collective_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"

enum { MOST_SIZES = PH_PLAN_MOST_RANGES };

/* A round; shares are parts of S. */
struct round {
    const struct ph__collective_job *job;
    size_t num_sizes;
    const double *bytes;
    double *ns;    /* (num_sizes) of the longest message */
    double *loads; /* (num_links) shares that go over each link */
};

/* Adds a message by itself, of one share. */
static void add_message(struct round *round, double latency_ns, double bytes_per_ns, double share)
{
    for (size_t i = 0; i < round->num_sizes; i++)
        round->ns[i] = fmax(round->ns[i], latency_ns + share * round->bytes[i] / bytes_per_ns);
}

/* Adds `count` messages from ranks of one host to another's. */
static void add_between(struct round *round, size_t from, size_t to, size_t count, double share)
{
    const struct ph__fabric *fabric = round->job->fabric;
    const uint64_t pair[] = {from, to};
    uint32_t links[PH_FABRIC_MAX_HOPS];
    const size_t num_links = ph__fabric_route(fabric, from, to, ph__hash_bytes(pair, sizeof pair), links);
    double latency_ns = 0, bytes_per_ns = (double)INFINITY;
    for (size_t i = 0; i < num_links; i++) {
        latency_ns += fabric->links[links[i]].latency_ns;
        bytes_per_ns = fmin(bytes_per_ns, fabric->links[links[i]].bytes_per_ns);
        round->loads[links[i]] += (double)count * share;
    }
    add_message(round, latency_ns, bytes_per_ns, share);
}

/* Adds `count` messages of each rank to others of its host, which follow each other. */
static void add_inside(struct round *round, size_t count, double share)
{
    const struct ph__fabric *fabric = round->job->fabric;
    if (count > 0)
        add_message(round, fabric->messages.host_latency_us * 1e3, fabric->machine.host_bytes_per_s * 1e-9,
            (double)count * share);
}

/* Adds `times` such rounds, in each of which a rank has num_messages, and clears the round. */
static void add_round(struct round *round, size_t times, size_t num_messages, double *ns_out)
{
    const struct ph__fabric *fabric = round->job->fabric;
    const double message_ns = (fabric->messages.send_us + fabric->messages.receive_us) * 1e3;
    double ns_per_byte = 0;
    for (size_t link = 0; link < fabric->num_links; link++)
        if (round->loads[link] > 0)
            ns_per_byte = fmax(ns_per_byte, round->loads[link] / fabric->links[link].bytes_per_ns);
    for (size_t i = 0; i < round->num_sizes; i++)
        ns_out[i] += (double)times *
                     (fmax(round->ns[i], round->bytes[i] * ns_per_byte) + (double)num_messages * message_ns);
    memset(round->loads, 0, fabric->num_links * sizeof *round->loads);
    memset(round->ns, 0, round->num_sizes * sizeof *round->ns);
}

/* ---- collectives ---- */

static void add_exchange(struct round *round, double *ns_out)
{
    const size_t num_hosts = round->job->num_hosts, local = round->job->ranks_per_host;
    const double share = 1 / (double)(num_hosts * local);
    for (size_t from = 0; from < num_hosts; from++)
        for (size_t to = 0; to < num_hosts; to++)
            if (from != to)
                add_between(round, from, to, local * local, share);
    add_inside(round, local - 1, share);
    add_round(round, 2, num_hosts * local - 1, ns_out);
}

/* Returns a host's place in its group. */
static size_t place_of(const struct ph__collective_job *job, size_t host)
{
    size_t place = 0;
    for (size_t other = 0; other < host; other++)
        place += job->groups[other] == job->groups[host];
    return place;
}

static void add_hierarchy(struct round *round, double *ns_out)
{
    const struct ph__collective_job *job = round->job;
    const size_t num_hosts = job->num_hosts, local = job->ranks_per_host;
    size_t group_hosts = 0;
    for (size_t host = 0; host < num_hosts; host++)
        group_hosts += job->groups[host] == job->groups[0];
    const double inner = 1 / (double)(group_hosts * local), outer = 1 / (double)(num_hosts * local);
    for (size_t from = 0; from < num_hosts; from++)
        for (size_t to = 0; to < num_hosts; to++)
            if (from != to && job->groups[from] == job->groups[to])
                add_between(round, from, to, local * local, inner);
    add_inside(round, local - 1, inner);
    add_round(round, 2, group_hosts * local - 1, ns_out);
    for (size_t from = 0; from < num_hosts; from++)
        for (size_t to = 0; to < num_hosts; to++)
            if (job->groups[from] != job->groups[to] && place_of(job, from) == place_of(job, to))
                add_between(round, from, to, local, outer);
    add_round(round, 2, num_hosts / group_hosts - 1, ns_out);
}

static void add_ring(struct round *round, double *ns_out)
{
    const size_t num_hosts = round->job->num_hosts, local = round->job->ranks_per_host;
    const double share = 1 / (double)(num_hosts * local);
    for (size_t host = 0; num_hosts > 1 && host < num_hosts; host++)
        add_between(round, host, (host + 1) % num_hosts, 1, share);
    add_inside(round, local > 1, share);
    add_round(round, 2 * (num_hosts * local - 1), 1, ns_out);
}

ph_status ph__collective_times(const struct ph__collective_job *job, enum ph__plan_collective kind,
    size_t num_sizes, const double *bytes, double *ns_out)
{
    static void (*const add[PH_PLAN_COLLECTIVE_COUNT])(struct round *, double *) = {
        add_exchange, add_hierarchy, add_ring};
    struct round round = {.job = job,
        .num_sizes = num_sizes,
        .bytes = bytes,
        .ns = calloc(num_sizes, sizeof *round.ns),
        .loads = calloc(job->fabric->num_links + 1, sizeof *round.loads)};
    const bool has_room = round.ns != NULL && round.loads != NULL;
    memset(ns_out, 0, num_sizes * sizeof *ns_out);
    if (has_room)
        add[kind](&round, ns_out);
    free(round.ns);
    free(round.loads);
    return has_room ? PH_OK : ph__out_of_memory("the times of collectives");
}

/* ---- the best ---- */

ph_status ph__collective_ranges(const struct ph__collective_job *job,
    struct ph__collective_range ranges_out[PH_PLAN_MOST_RANGES], size_t *num_ranges_out)
{
    double bytes[MOST_SIZES], ns[PH_PLAN_COLLECTIVE_COUNT][MOST_SIZES];
    size_t num_ranges = 0;
    for (size_t i = 0; i < MOST_SIZES; i++)
        bytes[i] = ldexp(1024, (int)i); /* 1 KiB to 1 GiB */
    for (enum ph__plan_collective kind = 0; kind < PH_PLAN_COLLECTIVE_COUNT; kind++)
        if (kind != PH_PLAN_HIERARCHICAL || job->groups != NULL)
            PH_TRY(ph__collective_times(job, kind, MOST_SIZES, bytes, ns[kind]));
    for (size_t i = 0; i < MOST_SIZES; i++) {
        enum ph__plan_collective best = PH_PLAN_EXCHANGE;
        for (enum ph__plan_collective kind = 1; kind < PH_PLAN_COLLECTIVE_COUNT; kind++)
            if ((kind != PH_PLAN_HIERARCHICAL || job->groups != NULL) && ns[kind][i] < ns[best][i])
                best = kind;
        if (num_ranges == 0 || ranges_out[num_ranges - 1].kind != best)
            ranges_out[num_ranges++] = (struct ph__collective_range){i == 0 ? 0 : (uint64_t)bytes[i], best};
    }
    *num_ranges_out = num_ranges;
    return PH_OK;
}
