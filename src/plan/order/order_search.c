/* Searches for the order of hosts that takes least time. */
#include "plan/order/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/statistics.h"
#include "plan/order/order_cost.h"
#include "plan/order/order_tour.h"

enum { EXHAUSTIVE_HOSTS = 9, RANDOM_STARTS = 8, RANDOM_ORDERS = 101 };
#define BOTTLENECK_POWER 8 /* a sum of so high powers goes by the longest edge, nearly */
#define MEAN_SHARE 1e-3    /* of the mean message: tells orders apart whose slowest ones are equal */
#define FEWEST_SWAPS 20000 /* of an annealing, and more: */
#define SWAPS_A_HOST 400   /* of an annealing */
#define MANY_ROUNDS 64     /* the square of as many rounds as leave time for few swaps */
#define HOTTEST 3e-2       /* part of the time that a swap may cost at first, and at last: */
#define COLDEST 1e-5

struct search {
    const struct ph__order_problem *problem;
    struct ph__arena arena;
    struct ph__order_network network;
    struct ph__order_rounds rounds;
    struct ph__order_state state;
    struct ph__rng_sequence random;
    size_t num_hosts;
    uint32_t *hosts; /* (num_hosts) of a start */
    uint32_t *best;
    double best_ns, best_value;
};

/* ---- one order ---- */

static double value_of(const struct ph__order_state *state)
{
    return state->ns + MEAN_SHARE * state->mean_ns;
}

static void keep_if_best(struct search *search)
{
    const double value = value_of(&search->state);
    if (value >= search->best_value)
        return;
    search->best_value = value;
    search->best_ns = search->state.ns;
    memcpy(search->best, search->state.hosts, search->num_hosts * sizeof *search->best);
}

static double cost_of(struct search *search, const uint32_t *hosts)
{
    ph__order_state_set(&search->state, hosts);
    return search->state.ns;
}

static void set_identity(struct search *search)
{
    for (size_t host = 0; host < search->num_hosts; host++)
        search->hosts[host] = (uint32_t)host;
}

/* ---- all orders ---- */

/* Tries all orders of the hosts behind the first `place` ones. */
static void try_all(struct search *search, size_t place)
{
    uint32_t *hosts = search->hosts;
    if (place == search->num_hosts) {
        cost_of(search, hosts);
        keep_if_best(search);
        return;
    }
    for (size_t i = place; i < search->num_hosts; i++) {
        const uint32_t host = hosts[i];
        hosts[i] = hosts[place];
        hosts[place] = host;
        try_all(search, place + 1);
        hosts[place] = hosts[i];
        hosts[i] = host;
    }
}

/* ---- annealing ---- */

/* Exchanges hosts of random places, from a start on: at first also where that costs time, later less and less
 * so (Kirkpatrick, Gelatt and Vecchi 1983). */
static void anneal(struct search *search, const uint32_t *hosts)
{
    struct ph__order_state *state = &search->state;
    const size_t num_others = search->num_hosts - 1, num_rounds = search->rounds.num_rounds;
    const size_t num_swaps =
        (FEWEST_SWAPS + SWAPS_A_HOST * search->num_hosts) / (1 + num_rounds * num_rounds / MANY_ROUNDS);
    ph__order_state_set(state, hosts);
    keep_if_best(search);
    double value = value_of(state), heat = HOTTEST * value;
    const double cooling = pow(COLDEST / HOTTEST, 1 / (double)num_swaps);
    for (size_t i = 0; i < num_swaps; i++, heat *= cooling) {
        const size_t a = 1 + ph__rng_below(&search->random, num_others);
        const size_t b = 1 + ph__rng_below(&search->random, num_others);
        if (a == b)
            continue;
        ph__order_state_swap(state, a, b);
        const double other = value_of(state);
        if (other > value && ph__rng_next_uniform(&search->random) >= exp((value - other) / heat)) {
            ph__order_state_swap(state, a, b);
            continue;
        }
        value = other;
        keep_if_best(search);
    }
}

/* ---- starts ---- */

/* Sorts hosts by their groups, host 0's first. */
static void start_by_groups(struct search *search)
{
    const struct ph__fabric *fabric = search->problem->fabric;
    size_t count = 0;
    for (size_t k = 0; k < fabric->num_groups; k++)
        for (size_t host = 0; host < search->num_hosts; host++)
            if ((fabric->groups[host] + fabric->num_groups - fabric->groups[0]) % fabric->num_groups == k)
                search->hosts[count++] = (uint32_t)host;
}

static double pair_ns(const struct search *search, size_t from, size_t to)
{
    return ph__order_pair_ns(&search->network, search->rounds.rounds, from, to, search->problem->bytes);
}

static void start_by_neighbours(struct search *search)
{
    set_identity(search);
    for (size_t place = 1; place < search->num_hosts; place++) {
        size_t nearest = place;
        for (size_t i = place; i < search->num_hosts; i++)
            if (pair_ns(search, search->hosts[place - 1], search->hosts[i]) <
                pair_ns(search, search->hosts[place - 1], search->hosts[nearest]))
                nearest = i;
        const uint32_t host = search->hosts[nearest];
        search->hosts[nearest] = search->hosts[place];
        search->hosts[place] = host;
    }
}

static void start_at_random(struct search *search)
{
    set_identity(search);
    ph__rng_shuffle(&search->random, search->hosts + 1, search->num_hosts - 1);
}

/* ---- rings ---- */

/* Makes a tour the start: an exact one, or one improved from the start that there is. */
static ph_status tour(struct search *search, double power)
{
    const size_t num_hosts = search->num_hosts;
    double *costs = ph__arena_alloc_array(&search->arena, num_hosts * num_hosts, sizeof *costs), most = 0;
    if (costs == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_hosts * num_hosts; i++) {
        costs[i] = i / num_hosts == i % num_hosts ? 0 : pair_ns(search, i / num_hosts, i % num_hosts);
        most = fmax(most, costs[i]);
    }
    if (num_hosts <= PH_TOUR_EXACT_HOSTS)
        return ph__tour_exact(costs, num_hosts, !search->problem->sums_edges, &search->arena, search->hosts);
    for (size_t i = 0; i < num_hosts * num_hosts; i++)
        costs[i] = pow(costs[i] / most, power);
    return ph__tour_improve(costs, num_hosts, &search->random, &search->arena, search->hosts);
}

static ph_status search_tours(struct search *search)
{
    const bool sums_edges = search->problem->sums_edges;
    for (size_t i = 0; i < 2; i++) {
        start_by_neighbours(search);
        PH_TRY(tour(search, i == 0 ? 1 : BOTTLENECK_POWER));
        cost_of(search, search->hosts);
        keep_if_best(search);
        if (sums_edges || search->num_hosts <= PH_TOUR_EXACT_HOSTS)
            return PH_OK;
        anneal(search, search->hosts);
    }
    return PH_OK;
}

/* ---- the search ---- */

static ph_status look(struct search *search)
{
    const bool is_ring = search->problem->pattern == PH_ORDER_RING;
    const enum ph__order_method method = search->problem->method;
    set_identity(search);
    cost_of(search, search->hosts);
    keep_if_best(search);
    if (search->num_hosts < 3 || search->problem->pattern == PH_ORDER_EXCHANGE)
        return PH_OK;
    if (method != PH_ORDER_SEARCH && search->num_hosts <= EXHAUSTIVE_HOSTS) {
        try_all(search, 1);
        return PH_OK;
    }
    if (is_ring)
        PH_TRY(search_tours(search));
    if (is_ring && search->problem->sums_edges)
        return PH_OK;
    if (is_ring && search->num_hosts <= PH_TOUR_EXACT_HOSTS && search->network.num_trunks == 0)
        return PH_OK;
    start_by_groups(search);
    anneal(search, search->hosts);
    start_by_neighbours(search);
    anneal(search, search->hosts);
    for (size_t i = 0; i < RANDOM_STARTS; i++) {
        start_at_random(search);
        anneal(search, search->hosts);
    }
    return PH_OK;
}

static ph_status init(struct search *search, const struct ph__order_problem *problem)
{
    const size_t num_hosts = ph__order_num_hosts(problem);
    *search = (struct search){.problem = problem,
        .num_hosts = num_hosts,
        .best_value = (double)INFINITY,
        .random = {.key = {.seed = problem->seed, .stream = ph__hash_name("order of hosts")}}};
    PH_TRY(ph__order_network_make(problem->fabric, num_hosts, &search->arena, &search->network));
    PH_TRY(ph__order_rounds_make(problem, &search->arena, &search->rounds));
    search->hosts = ph__arena_alloc_array(&search->arena, num_hosts, sizeof *search->hosts);
    search->best = ph__arena_alloc_array(&search->arena, num_hosts, sizeof *search->best);
    if (search->hosts == NULL || search->best == NULL)
        return PH_ERROR_MEMORY;
    return ph__order_state_make(problem, &search->network, &search->rounds, &search->arena, &search->state);
}

static double random_ns(struct search *search)
{
    double ns[RANDOM_ORDERS];
    for (size_t i = 0; i < RANDOM_ORDERS; i++) {
        start_at_random(search);
        ns[i] = cost_of(search, search->hosts);
    }
    ph__sort_numbers(ns, RANDOM_ORDERS);
    return ph__sorted_median(ns, RANDOM_ORDERS);
}

static ph_status find(struct search *search, struct ph__order *order)
{
    PH_TRY(look(search));
    order->found_ns = order->ns = cost_of(search, search->best);
    set_identity(search);
    order->identity_ns = cost_of(search, search->hosts);
    order->is_identity = order->ns > (1 - search->problem->least_gain) * order->identity_ns;
    if (order->is_identity) {
        order->ns = order->identity_ns;
        memcpy(search->best, search->hosts, search->num_hosts * sizeof *search->best);
    }
    order->random_ns = random_ns(search);
    order->hosts = malloc(search->num_hosts * sizeof *order->hosts);
    if (order->hosts == NULL)
        return ph__out_of_memory("an order of %zu hosts", search->num_hosts);
    memcpy(order->hosts, search->best, search->num_hosts * sizeof *order->hosts);
    return PH_OK;
}

ph_status ph__order_find(const struct ph__order_problem *problem, struct ph__order *order_out)
{
    struct search search;
    struct ph__order order = {0};
    ph_status status = init(&search, problem);
    if (status == PH_OK)
        status = find(&search, &order);
    if (status == PH_OK)
        *order_out = order;
    ph__arena_fini(&search.arena);
    return status;
}

ph_status ph__order_times(const struct ph__order_problem *problem, const uint32_t *hosts, size_t num_sizes,
    const double *bytes, double *ns_out)
{
    struct search search;
    const ph_status status = init(&search, problem);
    if (status == PH_OK)
        set_identity(&search);
    for (size_t i = 0; i < num_sizes && status == PH_OK; i++) {
        search.state.bytes = bytes[i];
        ns_out[i] = cost_of(&search, hosts != NULL ? hosts : search.hosts);
    }
    ph__arena_fini(&search.arena);
    return status;
}
