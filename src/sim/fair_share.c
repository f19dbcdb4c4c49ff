/* Max-min fair rates, by progressive filling: the narrowest link, whose rest of capacity gives each of its
 * open flows the least, settles their rates; and so on with what is left.
 *
 * The order of lists must not matter, so that a network that goes back in time finds the same bits again: a
 * link that loses several flows at once loses their rate times their number. */
#include <math.h>

#include "base/memory/memory.h"
#include "sim/network_state.h"

/* ---- the part of the network that is concerned ---- */

struct concerned {
    size_t num_links, num_routes;
};

static void find_link(struct ph__network *network, uint32_t index, struct concerned *concerned)
{
    struct ph__link *link = &network->links[index];
    if (link->is_found)
        return;
    link->is_found = true;
    link->rest = link->capacity;
    link->num_open = link->num_flows;
    network->found_links[concerned->num_links++] = index;
}

static void find_route(struct ph__network *network, uint32_t index, struct concerned *concerned)
{
    struct ph__route *route = &network->routes[index];
    if (route->is_found)
        return;
    route->is_found = true;
    route->is_settled = false;
    network->found_routes[concerned->num_routes++] = index;
    const uint32_t *links = ph__route_links(network, route);
    for (size_t i = 0; i < route->num_links; i++)
        find_link(network, links[i], concerned);
}

static struct concerned find_concerned(struct ph__network *network)
{
    struct concerned concerned = {0};
    for (size_t i = 0; i < network->num_touched; i++) {
        network->links[network->touched[i]].is_touched = false;
        find_link(network, network->touched[i], &concerned);
    }
    network->num_touched = 0;
    for (size_t i = 0; i < concerned.num_links; i++) {
        const struct ph__link *link = &network->links[network->found_links[i]];
        for (size_t k = 0; k < link->num_routes; k++)
            find_route(network, link->routes[k], &concerned);
    }
    return concerned;
}

/* ---- filling ---- */

static void place_link(struct ph__network *network, uint32_t index, double least)
{
    const struct ph__link *link = &network->links[index];
    const double share = link->rest / (double)link->num_open;
    ph__heap_put(&network->narrow, &network->link_keys, index, share > least ? share : least);
}

/* Settles the open flows of a link. Returns how many links have lost flows: settled_links. */
static size_t settle_flows(struct ph__network *network, uint32_t narrow, double share)
{
    const struct ph__link *link = &network->links[narrow];
    size_t num_settled = 0;
    for (size_t k = 0; k < link->num_routes; k++) {
        struct ph__route *route = &network->routes[link->routes[k]];
        if (route->is_settled)
            continue;
        route->is_settled = true;
        route->next_rate = share;
        const uint32_t *links = ph__route_links(network, route);
        for (size_t i = 0; i < route->num_links; i++) {
            struct ph__link *other = &network->links[links[i]];
            if (other->num_settled == 0)
                network->settled_links[num_settled++] = links[i];
            other->num_settled += route->num_flows;
        }
    }
    return num_settled;
}

static void settle(struct ph__network *network, uint32_t narrow, double share)
{
    const size_t num_settled = settle_flows(network, narrow, share);
    for (size_t i = 0; i < num_settled; i++) {
        struct ph__link *link = &network->links[network->settled_links[i]];
        link->rest -= (double)link->num_settled * share;
        link->num_open -= link->num_settled;
        link->num_settled = 0;
        if (link->num_open == 0)
            ph__heap_take(&network->narrow, &network->link_keys, network->settled_links[i]);
        else
            place_link(network, network->settled_links[i], share);
    }
}

/* ---- the new rates ---- */

/* Changes a route's rate. A first rate holds from the beginning of the first flow on. */
static ph_status change_rate(struct ph__network *network, uint32_t index, double at_ns)
{
    struct ph__route *route = &network->routes[index];
    struct ph__service *service = &network->services[index];
    PH_TRY(ph__network_note_rate(network, index, at_ns));
    if (route->rate > 0) {
        service->served += route->rate * (at_ns - service->since_ns);
        service->since_ns = at_ns;
    }
    route->rate = route->next_rate;
    ph__route_place(network, index);
    return PH_OK;
}

/* Returns true when a route's fair rate has changed by more than half the slack. */
static bool is_rate_new(const struct ph__network *network, const struct ph__route *route)
{
    return fabs(route->next_rate - route->rate) > network->slack / 2 * route->rate;
}

ph_status ph__network_share(struct ph__network *network, double at_ns)
{
    const struct concerned concerned = find_concerned(network);
    for (size_t i = 0; i < concerned.num_links; i++) {
        network->links[network->found_links[i]].is_found = false;
        if (network->links[network->found_links[i]].num_open > 0)
            place_link(network, network->found_links[i], 0);
    }
    while (network->narrow.count > 0)
        settle(network, ph__heap_first(&network->narrow), ph__heap_least(&network->narrow));
    for (size_t i = 0; i < concerned.num_routes; i++) {
        struct ph__route *route = &network->routes[network->found_routes[i]];
        route->is_found = false;
        if (is_rate_new(network, route))
            PH_TRY(change_rate(network, network->found_routes[i], at_ns));
    }
    return PH_OK;
}
