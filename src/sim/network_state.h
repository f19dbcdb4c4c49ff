/* The state of a network, shared by its two files: network.c goes from event to event and back, fair_share.c
 * calculates rates. */
#ifndef PH_SIM_NETWORK_STATE_H
#define PH_SIM_NETWORK_STATE_H

#include "sim/heap.h"

struct ph__link {
    double capacity;
    size_t num_flows;
    uint32_t *routes; /* (num_routes) that have flows here */
    size_t num_routes, routes_capacity;
    bool is_touched; /* flows have begun or ended here since rates were calculated */
    /* While rates are calculated: whether the link is concerned, what its capacity leaves for flows whose
     * rates are not known yet, how many those are, and how many get to know theirs by another link. */
    bool is_found;
    double rest;
    size_t num_open, num_settled;
};

/* The part of a route that is read again and again while rates are calculated: half a cache line. */
struct ph__route {
    uint32_t first_link; /* into route_links */
    uint32_t num_flows;
    uint16_t num_links;
    bool is_found, is_settled; /* while rates are calculated */
    double rate;      /* of each flow; 0: it has not been calculated since the first flow has begun */
    double next_rate; /* while rates are calculated */
};

/* A route's flows, which end in the order of the value of `served` that they wait for. */
struct ph__service {
    double served;         /* bytes that each flow has been served by since_ns, from some time on */
    double since_ns;       /* when the rate began to hold */
    struct ph__heap flows; /* by the value of `served` at which they end */
};

struct ph__flow {
    uint32_t route;
    double bytes, begin_ns;
};

/* Kinds of events, which can be undone. */
enum ph__event_kind { PH_EVENT_BEGIN, PH_EVENT_END, PH_EVENT_RATE, PH_EVENT_SHARED };

struct ph__event {
    enum ph__event_kind kind;
    uint32_t subject; /* BEGIN, END: flow; RATE: route */
    double at_ns;
    double due_ns;                 /* former; not RATE */
    double rate, served, since_ns; /* former; RATE only */
};

struct ph__network {
    double slack, besides_ns;
    struct ph__link *links;
    size_t num_links;
    struct ph__route *routes;     /* (num_routes) */
    struct ph__service *services; /* (num_routes) */
    size_t num_routes, routes_capacity, services_capacity;
    /* The links of all routes; and the place of each in its link's list, while the route has flows. */
    uint32_t *route_links, *route_places;
    size_t num_route_links, route_links_capacity, route_places_capacity;
    struct ph__flow *flows;
    size_t num_flows, flows_capacity;
    uint32_t *free_flows; /* (num_free) numbers that may be used again */
    size_t num_free, free_capacity;

    struct ph__heap_items flow_keys;  /* begin_ns of a flow to come; of a running one, the key in its route */
    struct ph__heap coming;           /* flows */
    struct ph__heap_items route_keys; /* time at which the first flow of a route ends */
    struct ph__heap running;          /* routes with a rate */
    double now_ns;                    /* time of the last event */
    double done_ns;                   /* all events before it have happened */
    double forgotten_ns;              /* time of the last event that the journal has lost */
    double due_ns;                    /* when rates are to be calculated; INFINITY: they hold */
    uint32_t *touched;                /* (num_touched) links */
    size_t num_touched;

    struct ph__event *events; /* [num_forgotten, num_events) in the order of their times */
    size_t num_forgotten, num_events, events_capacity;
    size_t num_told; /* events up to here have been looked at for ends */

    struct ph__heap_items link_keys;                      /* while rates are calculated: shares */
    struct ph__heap narrow;                               /* links */
    uint32_t *found_links, *settled_links, *found_routes; /* lists, as long as all there are */
    size_t found_routes_capacity;
};

/* Returns a route's links. */
static inline const uint32_t *ph__route_links(
    const struct ph__network *network, const struct ph__route *route)
{
    return network->route_links + route->first_link;
}

/* Adds a route's rate, which is about to change, to the journal. PH_ERROR_MEMORY. */
ph_status ph__network_note_rate(struct ph__network *network, uint32_t route, double at_ns);
/* Puts a route to its place among those that run, by the end of its first flow. */
void ph__route_place(struct ph__network *network, uint32_t route);

/* Calculates the rates of all flows that share links, directly or through others, with the touched links; and
 * gives them to their routes from at_ns on. PH_ERROR_MEMORY. */
ph_status ph__network_share(struct ph__network *network, double at_ns);

#endif
