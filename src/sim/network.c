#include "sim/network.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "sim/network_state.h"

/* ---- creating ---- */

static ph_status init(struct ph__network *network, const struct ph__network_options *options)
{
    network->slack = options->slack;
    network->besides_ns = options->besides_ns;
    network->due_ns = (double)INFINITY;
    network->num_links = options->num_links;
    network->links = calloc(options->num_links + 1, sizeof *network->links);
    network->touched = calloc(options->num_links + 1, sizeof *network->touched);
    network->found_links = calloc(options->num_links + 1, sizeof *network->found_links);
    network->settled_links = calloc(options->num_links + 1, sizeof *network->settled_links);
    if (network->links == NULL || network->touched == NULL || network->found_links == NULL ||
        network->settled_links == NULL)
        return ph__out_of_memory("a network of %zu links", options->num_links);
    PH_TRY(ph__heap_reserve(&network->narrow, options->num_links));
    for (size_t i = 0; i < options->num_links; i++) {
        network->links[i].capacity = options->capacities[i];
        PH_TRY(ph__heap_items_add(&network->link_keys));
    }
    return PH_OK;
}

ph_status ph__network_create(const struct ph__network_options *options, struct ph__network **network_out)
{
    struct ph__network *network = calloc(1, sizeof *network);
    if (network == NULL)
        return ph__out_of_memory("a network");
    const ph_status status = init(network, options);
    if (status == PH_OK)
        *network_out = network;
    else
        ph__network_destroy(network);
    return status;
}

void ph__network_destroy(struct ph__network *network)
{
    if (network == NULL)
        return;
    for (size_t i = 0; network->links != NULL && i < network->num_links; i++)
        free(network->links[i].routes);
    for (size_t i = 0; i < network->num_routes; i++)
        ph__heap_fini(&network->services[i].flows);
    ph__heap_fini(&network->coming);
    ph__heap_fini(&network->running);
    ph__heap_fini(&network->narrow);
    ph__heap_items_fini(&network->flow_keys);
    ph__heap_items_fini(&network->route_keys);
    ph__heap_items_fini(&network->link_keys);
    free(network->links);
    free(network->routes);
    free(network->services);
    free(network->route_links);
    free(network->route_places);
    free(network->flows);
    free(network->free_flows);
    free(network->touched);
    free(network->events);
    free(network->found_links);
    free(network->settled_links);
    free(network->found_routes);
    free(network);
}

ph_status ph__network_add_route(
    struct ph__network *network, const uint32_t *links, size_t num_links, uint32_t *route_out)
{
    const size_t count = network->num_routes + 1, end = network->num_route_links + num_links;
    PH_TRY(ph__array_reserve(
        (void **)&network->routes, &network->routes_capacity, count, sizeof *network->routes));
    PH_TRY(ph__array_reserve(
        (void **)&network->services, &network->services_capacity, count, sizeof *network->services));
    PH_TRY(ph__array_reserve((void **)&network->found_routes, &network->found_routes_capacity, count,
        sizeof *network->found_routes));
    PH_TRY(ph__array_reserve((void **)&network->route_links, &network->route_links_capacity, end + 1,
        sizeof *network->route_links));
    PH_TRY(ph__array_reserve((void **)&network->route_places, &network->route_places_capacity, end + 1,
        sizeof *network->route_places));
    PH_TRY(ph__heap_reserve(&network->running, count));
    PH_TRY(ph__heap_items_add(&network->route_keys));
    memcpy(network->route_links + network->num_route_links, links, num_links * sizeof *links);
    network->routes[network->num_routes] = (struct ph__route){
        .first_link = (uint32_t)network->num_route_links, .num_links = (uint16_t)num_links};
    network->services[network->num_routes] = (struct ph__service){0};
    network->num_route_links = end;
    *route_out = (uint32_t)network->num_routes++;
    return PH_OK;
}

/* ---- the journal ---- */

/* Adds an event, and so sets the time. */
static ph_status note(struct ph__network *network, const struct ph__event *event)
{
    PH_TRY(ph__array_reserve((void **)&network->events, &network->events_capacity, network->num_events + 1,
        sizeof *network->events));
    network->events[network->num_events++] = *event;
    network->now_ns = event->at_ns;
    return PH_OK;
}

ph_status ph__network_note_rate(struct ph__network *network, uint32_t index, double at_ns)
{
    const struct ph__service *service = &network->services[index];
    const struct ph__event event = {.kind = PH_EVENT_RATE,
        .subject = index,
        .at_ns = at_ns,
        .rate = network->routes[index].rate,
        .served = service->served,
        .since_ns = service->since_ns};
    return note(network, &event);
}

/* ---- flows on their routes ---- */

void ph__route_place(struct ph__network *network, uint32_t index)
{
    const struct ph__service *service = &network->services[index];
    const double rate = network->routes[index].rate;
    if (service->flows.count > 0 && rate > 0) {
        const double goal = ph__heap_least(&service->flows);
        ph__heap_put(&network->running, &network->route_keys, index,
            service->since_ns + (goal - service->served) / rate);
    } else if (network->route_keys.places[index] != PH_HEAP_NOWHERE) {
        ph__heap_take(&network->running, &network->route_keys, index);
    }
}

static void leave_links(struct ph__network *network, const struct ph__route *route)
{
    const uint32_t *links = ph__route_links(network, route);
    const uint32_t *places = network->route_places + route->first_link;
    for (size_t i = 0; i < route->num_links; i++) {
        struct ph__link *link = &network->links[links[i]];
        const uint32_t last = link->routes[--link->num_routes];
        size_t moved = network->routes[last].first_link;
        while (network->route_links[moved] != links[i])
            moved++;
        link->routes[places[i]] = last;
        network->route_places[moved] = places[i];
    }
}

static ph_status join_links(struct ph__network *network, uint32_t index)
{
    const struct ph__route *route = &network->routes[index];
    const uint32_t *links = ph__route_links(network, route);
    for (size_t i = 0; i < route->num_links; i++) {
        struct ph__link *link = &network->links[links[i]];
        PH_TRY(ph__array_reserve(
            (void **)&link->routes, &link->routes_capacity, link->num_routes + 1, sizeof *link->routes));
    }
    for (size_t i = 0; i < route->num_links; i++) {
        struct ph__link *link = &network->links[links[i]];
        network->route_places[route->first_link + i] = (uint32_t)link->num_routes;
        link->routes[link->num_routes++] = index;
    }
    return PH_OK;
}

static void touch(struct ph__network *network, const struct ph__route *route)
{
    const uint32_t *links = ph__route_links(network, route);
    for (size_t i = 0; i < route->num_links; i++) {
        struct ph__link *link = &network->links[links[i]];
        if (!link->is_touched)
            network->touched[network->num_touched++] = links[i];
        link->is_touched = true;
    }
}

/* Counts a flow more, or one less, on a route and its links. */
static void count_flow(struct ph__network *network, struct ph__route *route, int change)
{
    const uint32_t *links = ph__route_links(network, route);
    route->num_flows += (uint32_t)change;
    for (size_t i = 0; i < route->num_links; i++)
        network->links[links[i]].num_flows += (size_t)change;
    touch(network, route);
}

/* Adds a flow to its route: it ends when that has served `goal`. */
static ph_status join_route(struct ph__network *network, uint32_t flow, double goal)
{
    const uint32_t index = network->flows[flow].route;
    struct ph__heap *flows = &network->services[index].flows;
    PH_TRY(ph__heap_reserve(flows, flows->count + 1));
    if (flows->count == 0)
        PH_TRY(join_links(network, index));
    ph__heap_put(flows, &network->flow_keys, flow, goal);
    count_flow(network, &network->routes[index], 1);
    ph__route_place(network, index);
    return PH_OK;
}

static void leave_route(struct ph__network *network, uint32_t flow)
{
    const uint32_t index = network->flows[flow].route;
    struct ph__heap *flows = &network->services[index].flows;
    ph__heap_take(flows, &network->flow_keys, flow);
    if (flows->count == 0)
        leave_links(network, &network->routes[index]);
    count_flow(network, &network->routes[index], -1);
    ph__route_place(network, index);
}

/* ---- events ---- */

/* Demands new rates in time for a flow of that duration, which has begun or ended. */
static void demand(struct ph__network *network, double at_ns, double duration_ns)
{
    const double due_ns = at_ns + network->slack * (duration_ns + network->besides_ns);
    if (due_ns < network->due_ns)
        network->due_ns = due_ns;
}

static bool takes_time(const struct ph__network *network, uint32_t flow)
{
    return network->flows[flow].bytes > 0 && network->routes[network->flows[flow].route].num_links > 0;
}

/* Returns the time that a flow would take, by the flows that its links have now. */
static double expected_ns(const struct ph__network *network, const struct ph__flow *flow)
{
    const struct ph__route *route = &network->routes[flow->route];
    const uint32_t *links = ph__route_links(network, route);
    double longest = 0;
    for (size_t i = 0; i < route->num_links; i++) {
        const struct ph__link *link = &network->links[links[i]];
        longest = fmax(longest, flow->bytes * (double)link->num_flows / link->capacity);
    }
    return longest;
}

static ph_status end_flow(struct ph__network *network, uint32_t flow, double at_ns)
{
    const struct ph__event event = {
        .kind = PH_EVENT_END, .subject = flow, .at_ns = at_ns, .due_ns = network->due_ns};
    return note(network, &event);
}

/* Counts from 0 what a route serves, when it gets its first flow. */
static ph_status open_route(struct ph__network *network, uint32_t index, double at_ns)
{
    PH_TRY(ph__network_note_rate(network, index, at_ns));
    network->routes[index].rate = 0;
    network->services[index].served = 0;
    network->services[index].since_ns = at_ns;
    return PH_OK;
}

static ph_status begin(struct ph__network *network, uint32_t index, double at_ns)
{
    const struct ph__flow *flow = &network->flows[index];
    const struct ph__service *service = &network->services[flow->route];
    const struct ph__event event = {
        .kind = PH_EVENT_BEGIN, .subject = index, .at_ns = at_ns, .due_ns = network->due_ns};
    ph__heap_take(&network->coming, &network->flow_keys, index);
    if (service->flows.count == 0)
        PH_TRY(open_route(network, flow->route, at_ns));
    PH_TRY(note(network, &event));
    if (!takes_time(network, index))
        return end_flow(network, index, at_ns);
    const double rate = network->routes[flow->route].rate;
    return join_route(network, index, service->served + rate * (at_ns - service->since_ns) + flow->bytes);
}

/* Begins all flows that come at this time, before any of them demands new rates: their order is chance. */
static ph_status begin_all(struct ph__network *network, double at_ns)
{
    const size_t first = network->num_events;
    while (ph__heap_least(&network->coming) <= at_ns)
        PH_TRY(begin(network, ph__heap_first(&network->coming), at_ns));
    for (size_t i = first; i < network->num_events; i++) {
        const struct ph__event *event = &network->events[i];
        if (event->kind == PH_EVENT_BEGIN && takes_time(network, event->subject))
            demand(network, at_ns, expected_ns(network, &network->flows[event->subject]));
    }
    return PH_OK;
}

/* Ends the first flow of the route that has the first end. */
static ph_status end_first(struct ph__network *network, double at_ns)
{
    const uint32_t index = ph__heap_first(&network->services[ph__heap_first(&network->running)].flows);
    PH_TRY(end_flow(network, index, at_ns));
    leave_route(network, index);
    demand(network, at_ns, at_ns - network->flows[index].begin_ns);
    return PH_OK;
}

static ph_status share(struct ph__network *network)
{
    const double at_ns = network->due_ns;
    const struct ph__event event = {.kind = PH_EVENT_SHARED, .at_ns = at_ns, .due_ns = at_ns};
    PH_TRY(ph__network_share(network, at_ns));
    network->due_ns = (double)INFINITY;
    return note(network, &event);
}

/* Returns the time of the next event. */
static double next_event_ns(const struct ph__network *network)
{
    const double begin_ns = ph__heap_least(&network->coming);
    const double end_ns = ph__heap_least(&network->running);
    return fmax(network->now_ns, fmin(network->due_ns, fmin(begin_ns, end_ns)));
}

double ph__network_next_ns(const struct ph__network *network)
{
    for (size_t i = network->num_told; i < network->num_events; i++)
        if (network->events[i].kind == PH_EVENT_END)
            return network->events[i].at_ns;
    return next_event_ns(network);
}

/* Lets the next event happen. Rates are calculated behind all that begins and ends at the same time. */
static ph_status step(struct ph__network *network)
{
    const double begin_ns = ph__heap_least(&network->coming);
    const double end_ns = ph__heap_least(&network->running);
    if (begin_ns <= end_ns && begin_ns <= network->due_ns)
        return begin_all(network, begin_ns);
    return end_ns <= network->due_ns ? end_first(network, fmax(network->now_ns, end_ns)) : share(network);
}

/* ---- going back ---- */

static void undo_rate(struct ph__network *network, const struct ph__event *event)
{
    struct ph__service *service = &network->services[event->subject];
    network->routes[event->subject].rate = event->rate;
    service->served = event->served;
    service->since_ns = event->since_ns;
    ph__route_place(network, event->subject);
}

static ph_status undo_end(struct ph__network *network, uint32_t index)
{
    return takes_time(network, index) ? join_route(network, index, network->flow_keys.keys[index]) : PH_OK;
}

static void undo_begin(struct ph__network *network, uint32_t index)
{
    if (takes_time(network, index))
        leave_route(network, index);
    ph__heap_put(&network->coming, &network->flow_keys, index, network->flows[index].begin_ns);
}

static ph_status undo(struct ph__network *network, const struct ph__event *event)
{
    if (event->kind == PH_EVENT_RATE) {
        undo_rate(network, event);
        return PH_OK;
    }
    network->due_ns = event->due_ns;
    if (event->kind == PH_EVENT_BEGIN)
        undo_begin(network, event->subject);
    return event->kind == PH_EVENT_END ? undo_end(network, event->subject) : PH_OK;
}

/* Finds again the links whose flows have changed since rates were calculated. */
static void touch_again(struct ph__network *network)
{
    for (size_t i = 0; i < network->num_touched; i++)
        network->links[network->touched[i]].is_touched = false;
    network->num_touched = 0;
    for (size_t i = network->num_events; i-- > network->num_forgotten;) {
        const struct ph__event *event = &network->events[i];
        if (event->kind == PH_EVENT_SHARED)
            break;
        if (event->kind != PH_EVENT_RATE)
            touch(network, &network->routes[network->flows[event->subject].route]);
    }
}

/* Undoes all that has happened at at_ns or later. */
static ph_status go_back(struct ph__network *network, double at_ns)
{
    while (network->num_events > network->num_forgotten &&
           network->events[network->num_events - 1].at_ns >= at_ns)
        PH_TRY(undo(network, &network->events[--network->num_events]));
    if (network->num_told > network->num_events)
        network->num_told = network->num_events;
    network->now_ns = network->num_events > network->num_forgotten
                          ? network->events[network->num_events - 1].at_ns
                          : network->forgotten_ns;
    network->done_ns = at_ns;
    touch_again(network);
    return PH_OK;
}

void ph__network_forget(struct ph__network *network, double before_ns)
{
    size_t last = network->num_forgotten;
    for (size_t i = network->num_forgotten; i < network->num_told && network->events[i].at_ns < before_ns;
         i++)
        if (network->events[i].kind == PH_EVENT_SHARED)
            last = i + 1;
    for (size_t i = network->num_forgotten; i < last; i++)
        if (network->events[i].kind == PH_EVENT_END)
            network->free_flows[network->num_free++] = network->events[i].subject;
    if (last > network->num_forgotten)
        network->forgotten_ns = network->events[last - 1].at_ns;
    network->num_forgotten = last;
    if (last < network->num_events / 2)
        return;
    memmove(network->events, network->events + last, (network->num_events - last) * sizeof *network->events);
    network->num_events -= last;
    network->num_told -= last;
    network->num_forgotten = 0;
}

/* ---- flows ---- */

static ph_status take_number(struct ph__network *network, uint32_t *flow_out)
{
    if (network->num_free > 0) {
        *flow_out = network->free_flows[--network->num_free];
        return PH_OK;
    }
    const size_t count = network->num_flows + 1;
    PH_TRY(
        ph__array_reserve((void **)&network->flows, &network->flows_capacity, count, sizeof *network->flows));
    PH_TRY(ph__array_reserve(
        (void **)&network->free_flows, &network->free_capacity, count, sizeof *network->free_flows));
    PH_TRY(ph__heap_reserve(&network->coming, count));
    PH_TRY(ph__heap_items_add(&network->flow_keys));
    *flow_out = (uint32_t)network->num_flows++;
    return PH_OK;
}

ph_status ph__network_start(
    struct ph__network *network, uint32_t route, double at_ns, double bytes, uint32_t *flow_out)
{
    if (at_ns < network->done_ns || at_ns <= network->now_ns)
        PH_TRY(go_back(network, at_ns));
    PH_TRY(take_number(network, flow_out));
    network->flows[*flow_out] = (struct ph__flow){.route = route, .bytes = bytes, .begin_ns = at_ns};
    ph__heap_put(&network->coming, &network->flow_keys, *flow_out, at_ns);
    return PH_OK;
}

static bool find_end(struct ph__network *network, struct ph__network_end *end_out)
{
    while (network->num_told < network->num_events) {
        const struct ph__event *event = &network->events[network->num_told++];
        if (event->kind == PH_EVENT_END) {
            *end_out = (struct ph__network_end){event->at_ns, event->subject};
            return true;
        }
    }
    return false;
}

ph_status ph__network_next_end(
    struct ph__network *network, double until_ns, bool *has_ended_out, struct ph__network_end *end_out)
{
    bool has_ended = find_end(network, end_out);
    for (double next_ns; !has_ended && (next_ns = next_event_ns(network)) < until_ns;) {
        PH_TRY(step(network));
        network->done_ns = next_ns;
        has_ended = find_end(network, end_out);
    }
    if (!has_ended && until_ns > network->done_ns)
        network->done_ns = until_ns;
    *has_ended_out = has_ended;
    return PH_OK;
}
