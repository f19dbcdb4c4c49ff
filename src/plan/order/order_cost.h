/* The time that an order takes, kept up to date while hosts change places. For the files of this folder. */
#ifndef PH_PLAN_ORDER_COST_H
#define PH_PLAN_ORDER_COST_H

#include "plan/order/order_pattern.h"

/* The network as pairs of hosts, and links that many pairs share. */
struct ph__order_network {
    size_t num_hosts;
    double *latency_ns, *ns_per_byte; /* (num_hosts, num_hosts) by sender; of a host itself: inside of it */
    double message_ns;                /* a rank's time for a message */
    size_t num_trunks;                /* links that several senders and several receivers share */
    double *trunk_ns_per_byte;        /* (num_trunks) */
    uint32_t *first_trunks, *trunks;  /* those of pair i begin at first_trunks[i] */
};

/* PH_ERROR_MEMORY. All memory is the arena's. */
ph_status ph__order_network_make(const struct ph__fabric *fabric, size_t num_hosts, struct ph__arena *arena,
    struct ph__order_network *network_out);

/* Gives what the messages of one host to another take alone in a round, of S bytes. */
static inline double ph__order_pair_ns(const struct ph__order_network *network,
    const struct ph__order_round *round, size_t from, size_t to, double bytes)
{
    const size_t pair = from * network->num_hosts + to;
    return (round->is_joined ? 0 : network->latency_ns[pair]) + round->num_messages * network->message_ns +
           round->share * bytes * network->ns_per_byte[pair];
}

/* An order with the time that it takes. */
struct ph__order_state {
    const struct ph__order_network *network;
    const struct ph__order_rounds *rounds;
    bool sums_edges;
    double bytes;                 /* S */
    uint32_t *hosts;              /* (num_places) */
    struct ph__order_load *loads; /* (num_rounds) */
    double *done;                 /* (num_places) of a tree */
    double ns;                    /* predicted */
    double mean_ns;               /* of messages, summed over rounds: says which of two equal orders is nearer
                                   * to a better one */
};

ph_status ph__order_state_make(const struct ph__order_problem *problem,
    const struct ph__order_network *network, const struct ph__order_rounds *rounds, struct ph__arena *arena,
    struct ph__order_state *state_out);
void ph__order_state_set(struct ph__order_state *state, const uint32_t *hosts);
/* Lets the hosts of two places change: O(rounds log places), of a tree O(places). */
void ph__order_state_swap(struct ph__order_state *state, size_t a, size_t b);

#endif
