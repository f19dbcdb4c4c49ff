#include "plan/fabric/host_groups.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

struct join {
    size_t kept, dropped; /* groups, by their first hosts: kept < dropped */
    double distance;
};

struct linkage {
    size_t num_hosts;
    double *sums, *counts; /* (num_hosts, num_hosts) of the known distances between two groups */
    bool *is_dropped;
    struct join *joins; /* (num_hosts - 1) */
};

/* Returns a known number's logarithm, else NaN. */
static double log_of(double number)
{
    return isfinite(number) && number > 0 ? log(number) : (double)NAN;
}

static void fill(struct linkage *linkage, const double *numbers)
{
    const size_t n = linkage->num_hosts;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            const double there = log_of(numbers[i * n + k]), back = log_of(numbers[k * n + i]);
            const double both = isnan(there) ? back : isnan(back) ? there : (there + back) / 2;
            linkage->counts[i * n + k] = !isnan(both);
            linkage->sums[i * n + k] = isnan(both) ? 0 : both;
        }
    }
    memset(linkage->is_dropped, 0, n * sizeof *linkage->is_dropped);
}

/* Finds the nearest two groups. Of equal distances, the first counts. */
static struct join nearest(const struct linkage *linkage)
{
    const size_t n = linkage->num_hosts;
    struct join best = {.distance = (double)NAN};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            if (linkage->is_dropped[i] || linkage->is_dropped[k])
                continue;
            const double count = linkage->counts[i * n + k];
            const double distance = count > 0 ? linkage->sums[i * n + k] / count : HUGE_VAL;
            if (!(distance >= best.distance))
                best = (struct join){i, k, distance};
        }
    }
    return best;
}

static void merge(struct linkage *linkage, const struct join *join)
{
    const size_t n = linkage->num_hosts, a = join->kept, b = join->dropped;
    for (size_t k = 0; k < n; k++) {
        linkage->sums[k * n + a] = linkage->sums[a * n + k] += linkage->sums[b * n + k];
        linkage->counts[k * n + a] = linkage->counts[a * n + k] += linkage->counts[b * n + k];
    }
    linkage->is_dropped[b] = true;
}

/* Returns how many joins lie before the widest step, 0 where no step is wide enough. */
static size_t cut(const struct linkage *linkage)
{
    double widest = log(PH_HOST_GROUPS_RATIO);
    size_t num_joins = 0;
    for (size_t i = 1; i + 1 < linkage->num_hosts; i++) {
        const double step = linkage->joins[i].distance - linkage->joins[i - 1].distance;
        if (step >= widest) {
            widest = step;
            num_joins = i;
        }
    }
    return num_joins;
}

static void relabel(uint32_t *groups, size_t num_hosts, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < num_hosts; i++)
        if (groups[i] == from)
            groups[i] = to;
}

/* Applies the joins, then numbers the groups that are left. Returns how many. */
static size_t label(const struct linkage *linkage, size_t num_joins, uint32_t *groups)
{
    const size_t n = linkage->num_hosts;
    size_t num_groups = 0;
    for (size_t i = 0; i < n; i++)
        groups[i] = (uint32_t)i;
    for (size_t i = 0; i < num_joins; i++)
        relabel(groups, n, (uint32_t)linkage->joins[i].dropped, (uint32_t)linkage->joins[i].kept);
    for (size_t i = 0; i < n; i++) /* the number of a group is that of its first host, or its final one */
        if (groups[i] == i)
            relabel(groups, n, (uint32_t)i, (uint32_t)num_groups++);
    return num_groups;
}

/* Groups the hosts by these numbers; returns the number of groups, 1 where they are alike. */
static size_t group(struct linkage *linkage, const double *numbers, uint32_t *groups)
{
    fill(linkage, numbers);
    for (size_t i = 0; i + 1 < linkage->num_hosts; i++) {
        linkage->joins[i] = nearest(linkage);
        merge(linkage, &linkage->joins[i]);
    }
    const size_t num_joins = cut(linkage);
    return label(linkage, num_joins > 0 ? num_joins : linkage->num_hosts - 1, groups);
}

ph_status ph__host_groups_find(
    const struct ph__host_distances *measured, uint32_t *groups_out, size_t *num_groups_out)
{
    const size_t n = measured->num_hosts;
    struct linkage linkage = {n, calloc(n * n, sizeof(double)), calloc(n * n, sizeof(double)),
        calloc(n, sizeof(bool)), calloc(n, sizeof(struct join))};
    const bool has_memory =
        linkage.sums != NULL && linkage.counts != NULL && linkage.is_dropped != NULL && linkage.joins != NULL;
    if (has_memory && measured->ns_per_byte != NULL)
        *num_groups_out = group(&linkage, measured->ns_per_byte, groups_out);
    if (has_memory && (measured->ns_per_byte == NULL || *num_groups_out == 1) && measured->latency_ns != NULL)
        *num_groups_out = group(&linkage, measured->latency_ns, groups_out);
    free(linkage.joins);
    free(linkage.is_dropped);
    free(linkage.counts);
    free(linkage.sums);
    return has_memory ? PH_OK : ph__out_of_memory("the distances of %zu hosts", n);
}
