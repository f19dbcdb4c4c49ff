/* A network of links that flows share fairly, from event to event.
 *
 * A flow sends bytes over a route, a set of links, from a given time on. At any time the rates of all flows
 * are max-min fair: no flow could be faster unless a flow that is no faster became slower. Rates change only
 * when flows begin and end. All flows of one route have the same rate, so a route is what is shared and
 * calculated: it knows the bytes that each of its flows has been served, and flows end in the order of the
 * totals that they wait for.
 *
 * A flow may begin in the past. What followed is then undone by a journal, and calculated again when time
 * goes on, by the same arithmetic: all ends have the bits that they would have if the flows had been started
 * in the order of their times. Nothing depends on the order of calls; network_forget frees the journal.
 *
 * Times are in nanoseconds, rates in bytes a nanosecond (1 is 8 Gb/s). One thread at a time.
 *
 * Sources: Bertsekas and Gallager, "Data Networks", 2nd edition, section 6.5.2, for max-min fairness by
 * progressive filling; arXiv 2505.01616 for the idea of going back in time. */
#ifndef PH_SIM_NETWORK_H
#define PH_SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

struct ph__network;

struct ph__network_options {
    const double *capacities; /* (num_links) bytes a nanosecond, above 0; copied */
    size_t num_links;
    /* 0: rates are exact at any time. Else they are calculated anew only when a flow that has begun or ended
     * could gain or lose about this share of its duration: 0.01 costs little accuracy and saves most of the
     * time where many flows begin and end one after the other. */
    double slack;
    /* Added to each duration that the slack is a share of: what a flow takes besides, such as latency. Else
     * very short flows would demand new rates at each event. */
    double besides_ns;
};

/* PH_ERROR_MEMORY. */
ph_status ph__network_create(const struct ph__network_options *options, struct ph__network **network_out);
void ph__network_destroy(struct ph__network *network);

/* Adds a route over links, which are all different; its flows share each of them. A flow over a route without
 * links takes no time. PH_ERROR_MEMORY. */
ph_status ph__network_add_route(
    struct ph__network *network, const uint32_t *links, size_t num_links, uint32_t *route_out);

/* Starts a flow, whose number is one that is not in use. at_ns must not lie before the time that
 * ph__network_forget was given last. PH_ERROR_MEMORY. */
ph_status ph__network_start(
    struct ph__network *network, uint32_t route, double at_ns, double bytes, uint32_t *flow_out);

/* Goes on to the next end of a flow before until_ns, and returns it; else sets *has_ended_out to false, when
 * all that happens before until_ns is done. Ends come in the order of their times. When a flow has begun in
 * the past, the ends from then on come again. PH_ERROR_MEMORY. */
struct ph__network_end {
    double at_ns;
    uint32_t flow;
};
ph_status ph__network_next_end(
    struct ph__network *network, double until_ns, bool *has_ended_out, struct ph__network_end *end_out);

/* Returns the time of the next event, or of an end that has not been returned yet. INFINITY: nothing is left
 * to do. */
double ph__network_next_ns(const struct ph__network *network);

/* Gives up the past: no flow will begin before before_ns. Numbers of flows whose ends have been returned, and
 * came before, may be used again. */
void ph__network_forget(struct ph__network *network, double before_ns);

#endif
