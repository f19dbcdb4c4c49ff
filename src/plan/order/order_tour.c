#include "plan/order/order_tour.h"

#include <math.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

/* ---- exact ---- */

static double joined(double sum, double edge, bool is_bottleneck)
{
    return is_bottleneck ? fmax(sum, edge) : sum + edge;
}

/* best[set, last]: the cheapest way from host 0 through the set (of hosts 1 ...), which ends at `last`. */
static void fill_best(
    const double *costs, size_t num_hosts, bool is_bottleneck, double *best, uint8_t *before)
{
    const size_t count = num_hosts - 1;
    for (size_t set = 1; set < (size_t)1 << count; set++)
        for (size_t last = 0; last < count; last++) {
            double *entry = &best[set * count + last];
            const size_t rest = set & ~((size_t)1 << last);
            *entry = (double)INFINITY;
            if (rest == set)
                continue;
            if (rest == 0)
                *entry = costs[last + 1];
            for (size_t k = 0; k < count; k++) {
                if (!(rest >> k & 1))
                    continue;
                const double sum =
                    joined(best[rest * count + k], costs[(k + 1) * num_hosts + last + 1], is_bottleneck);
                if (sum < *entry) {
                    *entry = sum;
                    before[set * count + last] = (uint8_t)k;
                }
            }
        }
}

static void follow_best(const double *costs, size_t num_hosts, bool is_bottleneck, const double *best,
    const uint8_t *before, uint32_t *hosts)
{
    const size_t count = num_hosts - 1;
    size_t set = ((size_t)1 << count) - 1, last = 0;
    double least = (double)INFINITY;
    for (size_t k = 0; k < count; k++) {
        const double sum = joined(best[set * count + k], costs[(k + 1) * num_hosts], is_bottleneck);
        if (sum < least) {
            least = sum;
            last = k;
        }
    }
    for (size_t place = count; place > 0; place--) {
        const size_t former = before[set * count + last];
        hosts[place] = (uint32_t)last + 1;
        set &= ~((size_t)1 << last);
        last = former;
    }
    hosts[0] = 0;
}

ph_status ph__tour_exact(
    const double *costs, size_t num_hosts, bool is_bottleneck, struct ph__arena *arena, uint32_t *hosts)
{
    const size_t count = num_hosts - 1;
    double *best = ph__arena_alloc_array(arena, count << count, sizeof *best);
    uint8_t *before = ph__arena_alloc_array(arena, count << count, sizeof *before);
    if (best == NULL || before == NULL)
        return PH_ERROR_MEMORY;
    fill_best(costs, num_hosts, is_bottleneck, best, before);
    follow_best(costs, num_hosts, is_bottleneck, best, before, hosts);
    return PH_OK;
}

/* ---- improving ---- */

struct tour {
    const double *costs;
    size_t num_hosts;
    uint32_t *hosts, *moved;      /* moved: room for a tour */
    double *forwards, *backwards; /* (num_hosts) sums of the edges before a place, in either direction */
};

static double edge(const struct tour *tour, size_t from_place, size_t to_place)
{
    return tour->costs[tour->hosts[from_place] * tour->num_hosts + tour->hosts[to_place]];
}

static double sum_up(struct tour *tour)
{
    tour->forwards[0] = tour->backwards[0] = 0;
    for (size_t place = 1; place < tour->num_hosts; place++) {
        tour->forwards[place] = tour->forwards[place - 1] + edge(tour, place - 1, place);
        tour->backwards[place] = tour->backwards[place - 1] + edge(tour, place, place - 1);
    }
    return tour->forwards[tour->num_hosts - 1] + edge(tour, tour->num_hosts - 1, 0);
}

static void reverse(uint32_t *hosts, size_t first, size_t last)
{
    while (first < last) {
        const uint32_t host = hosts[first];
        hosts[first++] = hosts[last];
        hosts[last--] = host;
    }
}

/* Reverses the first run that shortens the tour so; returns false where none does. */
static bool reverse_run(struct tour *tour, double least_gain)
{
    for (size_t first = 1; first + 1 < tour->num_hosts; first++)
        for (size_t last = first + 1; last < tour->num_hosts; last++) {
            const size_t next = (last + 1) % tour->num_hosts;
            const double gain = edge(tour, first - 1, first) + tour->forwards[last] - tour->forwards[first] +
                                edge(tour, last, next) - edge(tour, first - 1, last) -
                                (tour->backwards[last] - tour->backwards[first]) - edge(tour, first, next);
            if (gain > least_gain) {
                reverse(tour->hosts, first, last);
                return true;
            }
        }
    return false;
}

/* Puts the run [first, last] behind the host at `behind`, perhaps reversed. */
static void put_run(struct tour *tour, size_t first, size_t last, size_t behind, bool is_reversed)
{
    const size_t length = last - first + 1;
    const size_t at = behind < first ? behind + 1 : behind + 1 - length;
    memcpy(tour->moved, tour->hosts + first, length * sizeof *tour->moved);
    if (is_reversed)
        reverse(tour->moved, 0, length - 1);
    memmove(tour->hosts + first, tour->hosts + last + 1, (tour->num_hosts - last - 1) * sizeof *tour->hosts);
    memmove(
        tour->hosts + at + length, tour->hosts + at, (tour->num_hosts - length - at) * sizeof *tour->hosts);
    memcpy(tour->hosts + at, tour->moved, length * sizeof *tour->moved);
}

/* Moves the run [first, last] to where it shortens the tour so. */
static bool move_run(struct tour *tour, size_t first, size_t last, double least_gain)
{
    const size_t num_hosts = tour->num_hosts, after = (last + 1) % num_hosts;
    const double freed =
        edge(tour, first - 1, first) + edge(tour, last, after) - edge(tour, first - 1, after);
    const double turned =
        tour->backwards[last] - tour->backwards[first] - (tour->forwards[last] - tour->forwards[first]);
    for (size_t behind = 0; behind < num_hosts; behind++) {
        const size_t next = (behind + 1) % num_hosts;
        if (behind + 1 >= first && behind <= last)
            continue;
        const double gain = freed + edge(tour, behind, next);
        const double straight = gain - edge(tour, behind, first) - edge(tour, last, next);
        const double reversed = gain - edge(tour, behind, last) - edge(tour, first, next) - turned;
        if (fmax(straight, reversed) > least_gain) {
            put_run(tour, first, last, behind, reversed > straight);
            return true;
        }
    }
    return false;
}

static bool move_short_run(struct tour *tour, double least_gain)
{
    for (size_t first = 1; first < tour->num_hosts; first++)
        for (size_t last = first; last < ph__min(first + 3, tour->num_hosts); last++)
            if (move_run(tour, first, last, least_gain))
                return true;
    return false;
}

/* Improves the tour as long as a move does, and returns its sum. */
static double settle(struct tour *tour)
{
    double sum = sum_up(tour);
    const double least_gain = 1e-9 * sum;
    while (move_short_run(tour, least_gain) || reverse_run(tour, least_gain))
        sum = sum_up(tour);
    return sum;
}

/* Exchanges two runs that lie side by side, at random (a double bridge). */
static void exchange_runs(struct tour *tour, struct ph__rng_sequence *random)
{
    const size_t most = ph__min(tour->num_hosts - 1, 50), span = 2 + ph__rng_below(random, most - 1);
    const size_t first = 1 + ph__rng_below(random, tour->num_hosts - span);
    const size_t middle = first + 1 + ph__rng_below(random, span - 1);
    put_run(tour, first, middle - 1, first + span - 1, false);
}

ph_status ph__tour_improve(const double *costs, size_t num_hosts, struct ph__rng_sequence *random,
    struct ph__arena *arena, uint32_t *hosts)
{
    const size_t num_kicks = ph__min(1000, 40000000 / (num_hosts * num_hosts));
    struct tour tour = {.costs = costs, .num_hosts = num_hosts, .hosts = hosts};
    uint32_t *best = ph__arena_alloc_array(arena, num_hosts, sizeof *best);
    tour.moved = ph__arena_alloc_array(arena, num_hosts, sizeof *tour.moved);
    tour.forwards = ph__arena_alloc_array(arena, num_hosts, sizeof *tour.forwards);
    tour.backwards = ph__arena_alloc_array(arena, num_hosts, sizeof *tour.backwards);
    if (best == NULL || tour.moved == NULL || tour.forwards == NULL || tour.backwards == NULL)
        return PH_ERROR_MEMORY;
    double least = settle(&tour);
    memcpy(best, hosts, num_hosts * sizeof *best);
    for (size_t kick = 0; num_hosts > 3 && kick < num_kicks; kick++) {
        exchange_runs(&tour, random);
        const double sum = settle(&tour);
        if (sum < least)
            memcpy(best, hosts, num_hosts * sizeof *best);
        else
            memcpy(hosts, best, num_hosts * sizeof *best);
        least = fmin(least, sum);
    }
    return PH_OK;
}
