/* Closed tours through all hosts: the rings of order.c, seen as a travelling salesman's problem. */
#ifndef PH_PLAN_ORDER_TOUR_H
#define PH_PLAN_ORDER_TOUR_H

#include <stdbool.h>

#include "base/memory/arena.h"
#include "base/rng.h"
#include "phloem/status.h"

#define PH_TOUR_EXACT_HOSTS 16

/* Finds the best tour from host 0 by dynamic programming over sets of hosts (Held and Karp 1962), of
 * PH_TOUR_EXACT_HOSTS at most: with the least sum of edges, or the least longest edge. costs: (num_hosts,
 * num_hosts) by sender. PH_ERROR_MEMORY. */
ph_status ph__tour_exact(
    const double *costs, size_t num_hosts, bool is_bottleneck, struct ph__arena *arena, uint32_t *hosts);

/* Improves a tour from host 0, whose sum of edges is to be small, by reversing runs of hosts (2-opt), moving
 * short runs (Or-opt), and both again after random exchanges of runs. PH_ERROR_MEMORY. */
ph_status ph__tour_improve(const double *costs, size_t num_hosts, struct ph__rng_sequence *random,
    struct ph__arena *arena, uint32_t *hosts);

#endif
