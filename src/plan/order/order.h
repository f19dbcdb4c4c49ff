/* Orders of hosts for a collective: which host takes which place in its pattern of messages, so that pairs
 * that send most, or together, have the network's fast links between them.
 *
 * A collective is a table of rounds; in each, a place sends bytes to another. With N hosts, S bytes:
 *
 *   ring          2 (N - 1) rounds; place p sends S/N to p + 1
 *   halving       reduce-scatter by halving, then all-gather by doubling (Rabenseifner): log2 N rounds, each
 *                 twice; in round k place p sends S/2^(k+1) to p xor 2^k
 *   far-halving   reduce-scatter by halving, the farthest first: in round k place p sends S/2^(k+1) to p xor
 *                 N/2^(k+1); as LightGBM sums histograms
 *   doubling      recursive doubling: log2 N rounds; place p sends S to p xor 2^k
 *   tree          reduce, then broadcast, over a binomial tree
 *   hierarchical  in groups of m places side by side: each sends S/m to each of its group, then S/N to the
 *                 places like its own in other groups, and both again for the sums
 *   exchange      each place sends S/N to each other one, twice; no order helps, so hosts keep theirs
 *
 * For another number of hosts than a power of two, the surplus places of halvings and doubling first send S
 * to their neighbours, and get S back, or their part of the sums.
 *
 * A round takes as long as its slowest message, a rank's time for it + latency + bytes / bandwidth of the
 * route, or as the link that needs longest for the bytes of all messages that cross it. Messages to several
 * places are one round after the other, which have the latency once. A tree's place is done when the last of
 * its children's messages has come, each as slow as the busiest link makes it.
 *
 * Where hosts have R ranks each, exchange, hierarchical and ring are those of comm/ (comm_collectives.h),
 * over ranks: a place's messages are its ranks', and the ranks of a host send to each other, too.
 *
 * Sources: arXiv 2105.14088 (Cloud Collectives); Thakur, Rabenseifner, Gropp: "Optimization of collective
 * communication operations in MPICH" (2005), for the patterns. Pure: no clock, no global state. */
#ifndef PH_PLAN_ORDER_H
#define PH_PLAN_ORDER_H

#include "plan/fabric/fabric.h"

#define PH_ORDER_PATTERN_LIST(X)           \
    X(PH_ORDER_RING, "ring")               \
    X(PH_ORDER_HALVING, "halving")         \
    X(PH_ORDER_FAR_HALVING, "far-halving") \
    X(PH_ORDER_DOUBLING, "doubling")       \
    X(PH_ORDER_TREE, "tree")               \
    X(PH_ORDER_GROUPS, "hierarchical")     \
    X(PH_ORDER_EXCHANGE, "exchange")

#define PH_ORDER_PATTERN_ENUM(name, text) name,
enum ph__order_pattern { PH_ORDER_PATTERN_LIST(PH_ORDER_PATTERN_ENUM) PH_ORDER_PATTERN_COUNT };
#undef PH_ORDER_PATTERN_ENUM

/* EXHAUSTIVE: 9 hosts at most. */
enum ph__order_method { PH_ORDER_AUTO, PH_ORDER_EXHAUSTIVE, PH_ORDER_SEARCH };

struct ph__order_problem {           /* zero-initialise what is not set */
    const struct ph__fabric *fabric; /* borrowed */
    size_t num_hosts;                /* the first of its hosts take part; 0: all */
    size_t ranks_per_host;           /* 0: 1 */
    enum ph__order_pattern pattern;
    double bytes;      /* S */
    size_t group_size; /* m, of hierarchical; 0: size of the fabric's groups, if all are equal */
    bool sums_edges;   /* a ring costs the sum of its messages, not the slowest: right where latency counts */
    enum ph__order_method method;
    uint64_t seed;
    double least_gain; /* share of the time below which hosts keep their order: .05 */
};

struct ph__order {
    uint32_t *hosts;        /* (num_hosts) by place; host 0 has place 0. The caller frees it */
    double ns, identity_ns; /* predicted for this order, and for the hosts' own */
    double random_ns;       /* median of 101 random orders */
    double found_ns;        /* of the best order found, which is not taken if it gains too little */
    bool is_identity;
};

/* Finds an order; the same problem and seed give the same one. Exhaustive up to 9 hosts; a ring whose
 * messages share no link by Held and Karp's method up to 16; else by search from groups in a row, nearest
 * neighbours and random orders. PH_ERROR_CONFIG: hierarchical without groups of one size; PH_ERROR_MEMORY. */
ph_status ph__order_find(const struct ph__order_problem *problem, struct ph__order *order_out);

/* Fills ns_out (num_sizes) with the predicted nanoseconds of so many bytes each, which stand for the
 * problem's, in an order of the hosts that the caller has checked; NULL: their own. */
ph_status ph__order_times(const struct ph__order_problem *problem, const uint32_t *hosts, size_t num_sizes,
    const double *bytes, double *ns_out);

#endif
