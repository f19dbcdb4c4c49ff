#include "plan/order/order_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"

/* ---- the network ---- */

#define SEVERAL UINT32_MAX

/* Senders and receivers of a link. */
struct use {
    uint32_t sender, receiver; /* 1 + the only one; 0: none yet; SEVERAL */
    uint32_t trunk;            /* 1 + its number; 0: none */
};

static uint32_t add_end(uint32_t end, size_t host)
{
    return end == 0 || end == host + 1 ? (uint32_t)host + 1 : SEVERAL;
}

/* Sets what a pair takes, notes who uses the links of its route, and returns how many these are. */
static size_t look_at_pair(const struct ph__fabric *fabric, size_t from, size_t to,
    struct ph__order_network *network, struct use *uses)
{
    uint32_t links[PH_FABRIC_MAX_HOPS];
    const size_t count = ph__fabric_route_of_hosts(fabric, from, to, links);
    double *latency_ns = &network->latency_ns[from * network->num_hosts + to];
    double *ns_per_byte = &network->ns_per_byte[from * network->num_hosts + to];
    if (from == to) {
        *latency_ns = fabric->messages.host_latency_us * 1e3;
        *ns_per_byte = 1e9 / fabric->machine.host_bytes_per_s;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ph__fabric_link *link = &fabric->links[links[i]];
        struct use *use = &uses[links[i]];
        *latency_ns += link->latency_ns;
        *ns_per_byte = fmax(*ns_per_byte, 1 / link->bytes_per_ns);
        use->sender = add_end(use->sender, from);
        use->receiver = add_end(use->receiver, to);
    }
    return count;
}

static void number_trunks(
    const struct ph__fabric *fabric, struct ph__order_network *network, struct use *uses)
{
    for (size_t i = 0; i < fabric->num_links; i++)
        if (uses[i].sender == SEVERAL && uses[i].receiver == SEVERAL) {
            network->trunk_ns_per_byte[network->num_trunks++] = 1 / fabric->links[i].bytes_per_ns;
            uses[i].trunk = (uint32_t)network->num_trunks;
        }
}

static void list_trunks(
    const struct ph__fabric *fabric, struct ph__order_network *network, const struct use *uses)
{
    uint32_t links[PH_FABRIC_MAX_HOPS], total = 0;
    const size_t num_hosts = network->num_hosts;
    for (size_t pair = 0; pair < num_hosts * num_hosts; pair++) {
        const size_t count = ph__fabric_route_of_hosts(fabric, pair / num_hosts, pair % num_hosts, links);
        network->first_trunks[pair] = total;
        for (size_t i = 0; i < count; i++)
            if (uses[links[i]].trunk > 0)
                network->trunks[total++] = uses[links[i]].trunk - 1;
    }
    network->first_trunks[num_hosts * num_hosts] = total;
}

ph_status ph__order_network_make(const struct ph__fabric *fabric, size_t num_hosts, struct ph__arena *arena,
    struct ph__order_network *network_out)
{
    const size_t num_pairs = num_hosts * num_hosts;
    struct ph__order_network network = {.num_hosts = num_hosts,
        .latency_ns = ph__arena_alloc_array(arena, num_pairs, sizeof(double)),
        .ns_per_byte = ph__arena_alloc_array(arena, num_pairs, sizeof(double)),
        .message_ns = (fabric->messages.send_us + fabric->messages.receive_us) * 1e3,
        .trunk_ns_per_byte = ph__arena_alloc_array(arena, fabric->num_links + 1, sizeof(double)),
        .first_trunks = ph__arena_alloc_array(arena, num_pairs + 1, sizeof(uint32_t))};
    struct use *uses = ph__arena_alloc_array(arena, fabric->num_links + 1, sizeof *uses);
    size_t num_links = 0;
    if (network.latency_ns == NULL || network.ns_per_byte == NULL || network.trunk_ns_per_byte == NULL ||
        network.first_trunks == NULL || uses == NULL)
        return PH_ERROR_MEMORY;
    for (size_t pair = 0; pair < num_pairs; pair++)
        num_links += look_at_pair(fabric, pair / num_hosts, pair % num_hosts, &network, uses);
    network.trunks = ph__arena_alloc_array(arena, num_links + 1, sizeof(uint32_t));
    if (network.trunks == NULL)
        return PH_ERROR_MEMORY;
    number_trunks(fabric, &network, uses);
    list_trunks(fabric, &network, uses);
    *network_out = network;
    return PH_OK;
}

/* ---- largest of many numbers, of which some change ---- */

struct largest {
    size_t width;  /* of the leaves: a power of two */
    double *nodes; /* (2 width) the root is [1] */
};

static ph_status largest_make(struct largest *largest, size_t count, struct ph__arena *arena)
{
    largest->width = 1;
    while (largest->width < count)
        largest->width *= 2;
    largest->nodes = ph__arena_alloc_array(arena, 2 * largest->width, sizeof *largest->nodes);
    return largest->nodes != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static void largest_set(struct largest *largest, size_t index, double value)
{
    double *nodes = largest->nodes;
    size_t node = largest->width + index;
    nodes[node] = value;
    while (node > 1) {
        const double above = nodes[node] > nodes[node ^ 1] ? nodes[node] : nodes[node ^ 1];
        node /= 2;
        if (nodes[node] == above)
            return;
        nodes[node] = above;
    }
}

/* ---- rounds ---- */

/* Messages of a round. */
struct ph__order_load {
    struct largest places; /* by sender: what its message takes alone */
    struct largest trunks; /* what each takes for the bytes that cross it */
    uint32_t *crossing;    /* (num_trunks) messages */
    double sum_ns;         /* over places */
};

/* Adds the message that a place sends (is_there), or takes it away. */
static void put_message(struct ph__order_state *state, size_t number, size_t place, bool is_there)
{
    const struct ph__order_network *network = state->network;
    const struct ph__order_round *round = &state->rounds->rounds[number];
    struct ph__order_load *load = &state->loads[number];
    const size_t from = state->hosts[place], to = state->hosts[round->to[place]];
    const double ns = ph__order_pair_ns(network, round, from, to, state->bytes);
    const uint32_t *first = &network->first_trunks[from * network->num_hosts + to];
    load->sum_ns += is_there ? ns : -ns;
    if (is_there)
        largest_set(&load->places, place, ns);
    for (uint32_t i = first[0]; i < first[1]; i++) {
        const uint32_t trunk = network->trunks[i];
        load->crossing[trunk] += is_there ? 1 : UINT32_MAX;
        largest_set(&load->trunks, trunk,
            load->crossing[trunk] * round->share * state->bytes * network->trunk_ns_per_byte[trunk]);
    }
}

static void add_up(struct ph__order_state *state)
{
    state->ns = state->mean_ns = 0;
    for (size_t i = 0; i < state->rounds->num_rounds; i++) {
        const struct ph__order_load *load = &state->loads[i];
        const double slowest = fmax(load->places.nodes[1], load->trunks.nodes[1]);
        state->ns += state->rounds->rounds[i].times * (state->sums_edges ? load->sum_ns : slowest);
        state->mean_ns += state->rounds->rounds[i].times * load->sum_ns / (double)state->rounds->num_places;
    }
}

/* Adds the message of each place up to the root; what a trunk takes for all of a level's bytes slows each. */
static void climb_tree(struct ph__order_state *state)
{
    const struct ph__order_rounds *rounds = state->rounds;
    const struct ph__order_network *network = state->network;
    memset(state->done, 0, rounds->num_places * sizeof *state->done);
    for (size_t i = 0; i < rounds->num_rounds; i++) {
        const struct ph__order_round *round = &rounds->rounds[i];
        for (size_t place = 0; place < rounds->num_places; place++) {
            if (round->to[place] == PH_NO_PLACE)
                continue;
            const size_t from = state->hosts[place], to = state->hosts[round->to[place]];
            const uint32_t *first = &network->first_trunks[from * network->num_hosts + to];
            const double latency_ns = ph__order_pair_ns(network, round, from, to, 0);
            double ns = ph__order_pair_ns(network, round, from, to, state->bytes);
            for (uint32_t k = first[0]; k < first[1]; k++)
                ns = fmax(ns, latency_ns + state->loads[i].crossing[network->trunks[k]] * round->share *
                                               state->bytes * network->trunk_ns_per_byte[network->trunks[k]]);
            state->done[round->to[place]] = fmax(state->done[round->to[place]], state->done[place] + ns);
        }
    }
    state->ns = 2 * state->done[0];
}

static void finish(struct ph__order_state *state)
{
    add_up(state);
    if (state->rounds->is_tree)
        climb_tree(state);
}

ph_status ph__order_state_make(const struct ph__order_problem *problem,
    const struct ph__order_network *network, const struct ph__order_rounds *rounds, struct ph__arena *arena,
    struct ph__order_state *state_out)
{
    struct ph__order_state state = {.network = network,
        .rounds = rounds,
        .sums_edges = problem->sums_edges && problem->pattern == PH_ORDER_RING,
        .bytes = problem->bytes,
        .hosts = ph__arena_alloc_array(arena, rounds->num_places, sizeof *state.hosts),
        .loads = ph__arena_alloc_array(arena, rounds->num_rounds, sizeof *state.loads),
        .done = ph__arena_alloc_array(arena, rounds->num_places, sizeof *state.done)};
    if (state.hosts == NULL || state.loads == NULL || state.done == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < rounds->num_rounds; i++) {
        struct ph__order_load *load = &state.loads[i];
        PH_TRY(largest_make(&load->places, rounds->num_places, arena));
        PH_TRY(largest_make(&load->trunks, network->num_trunks, arena));
        load->crossing = ph__arena_alloc_array(arena, network->num_trunks + 1, sizeof *load->crossing);
        if (load->crossing == NULL)
            return PH_ERROR_MEMORY;
    }
    *state_out = state;
    return PH_OK;
}

void ph__order_state_set(struct ph__order_state *state, const uint32_t *hosts)
{
    const struct ph__order_rounds *rounds = state->rounds;
    memmove(state->hosts, hosts, rounds->num_places * sizeof *hosts);
    for (size_t i = 0; i < rounds->num_rounds; i++) {
        struct ph__order_load *load = &state->loads[i];
        memset(load->crossing, 0, state->network->num_trunks * sizeof *load->crossing);
        memset(load->trunks.nodes, 0, 2 * load->trunks.width * sizeof *load->trunks.nodes);
        load->sum_ns = 0;
        for (size_t place = 0; place < rounds->num_places; place++)
            if (rounds->rounds[i].to[place] != PH_NO_PLACE)
                put_message(state, i, place, true);
    }
    finish(state);
}

/* Lists the places whose messages in a round come from, or go to, one of two; each once. */
static size_t list_senders(const struct ph__order_round *round, size_t a, size_t b, uint32_t senders_out[4])
{
    const uint32_t candidates[] = {(uint32_t)a, (uint32_t)b, round->from[a], round->from[b]};
    size_t count = 0;
    for (size_t i = 0; i < 4; i++) {
        bool is_new = candidates[i] != PH_NO_PLACE && round->to[candidates[i]] != PH_NO_PLACE;
        for (size_t k = 0; k < count; k++)
            is_new &= senders_out[k] != candidates[i];
        if (is_new)
            senders_out[count++] = candidates[i];
    }
    return count;
}

void ph__order_state_swap(struct ph__order_state *state, size_t a, size_t b)
{
    uint32_t *hosts = state->hosts;
    const uint32_t host_a = hosts[a], host_b = hosts[b];
    uint32_t senders[4];
    for (size_t i = 0; i < state->rounds->num_rounds; i++) {
        const size_t count = list_senders(&state->rounds->rounds[i], a, b, senders);
        for (size_t k = 0; k < count; k++)
            put_message(state, i, senders[k], false);
        hosts[a] = host_b;
        hosts[b] = host_a;
        for (size_t k = 0; k < count; k++)
            put_message(state, i, senders[k], true);
        hosts[a] = host_a;
        hosts[b] = host_b;
    }
    hosts[a] = host_b;
    hosts[b] = host_a;
    finish(state);
}
