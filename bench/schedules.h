/* Schedules of messages: what each rank sends and receives, step after step, in collectives by named
 * algorithms. Simulators and MPIs run the same schedules, so that only their times can differ. Includes
 * nothing of Phloem: peers compile it too.
 *
 * A step's messages are all posted, receives first; the next step begins when they are done. Sums are done
 * then. Nothing is stored: a step is computed where it is asked for.
 *
 * Sources: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH"
 * (2005). */
#ifndef PH_BENCH_SCHEDULES_H
#define PH_BENCH_SCHEDULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum schedule_kind {
    SCHEDULE_RING,         /* AllReduce: reduce-scatter and gather, to the next rank */
    SCHEDULE_DOUBLING,     /* AllReduce: all bytes, between ranks at distances 1, 2, 4, ... */
    SCHEDULE_RABENSEIFNER, /* AllReduce: halves, quarters, ... at distances 1, 2, ...; then backwards */
    SCHEDULE_PAIRWISE,     /* AlltoAll: in step s to the s-th rank behind */
    SCHEDULE_AT_ONCE,      /* AlltoAll: all messages in one step */
    SCHEDULE_TREE,         /* Bcast: binomial tree, from the first rank of the order */
    SCHEDULE_GATHER,       /* AllGather: parts, to the next rank */
    SCHEDULE_PINGPONG,     /* all bytes from the first rank of the order to the second, and back */
    SCHEDULE_KINDS
};
extern const char *const schedule_names[SCHEDULE_KINDS]; /* "ring", "doubling", ... */

struct schedule {
    enum schedule_kind kind;
    uint32_t num_ranks;    /* at least 2; a power of two for DOUBLING and RABENSEIFNER */
    size_t bytes;          /* the vector; in an AlltoAll, what each rank sends to all, itself included */
    const uint32_t *order; /* (num_ranks) rank at each place of the algorithm; NULL: place = rank; borrowed */
};

/* One message of a step. A rank has two buffers: AlltoAlls send from one and receive into the other, all
 * others use the second alone. */
struct schedule_message {
    uint32_t peer;
    bool is_receive, is_sum; /* is_sum: what is received is added */
    size_t offset, bytes;    /* in the buffer */
};

/* Gives the kind of a name; SCHEDULE_KINDS: there is none. */
enum schedule_kind schedule_find(const char *name);
bool schedule_is_alltoall(enum schedule_kind kind);

size_t schedule_num_steps(const struct schedule *schedule);
/* Returns the length of the longest list that schedule_step gives. */
size_t schedule_most_messages(const struct schedule *schedule);
/* Lists what a place of the order posts in a step; returns how many messages, possibly none. */
size_t schedule_step(
    const struct schedule *schedule, uint32_t place, size_t step, struct schedule_message *messages_out);

/* Orders over racks of `rack` ranks each, which have consecutive numbers. */
enum schedule_order { ORDER_GROUPED, ORDER_INTERLEAVED, ORDER_RANDOM, SCHEDULE_ORDERS };
extern const char *const schedule_order_names[SCHEDULE_ORDERS]; /* "grouped", "interleaved", "random" */
enum schedule_order schedule_order_find(const char *name);      /* SCHEDULE_ORDERS: there is none */
/* Fills order_out (num_ranks): grouped keeps racks together; interleaved takes a rank of each rack in turn;
 * random is always the same. */
void schedule_fill_order(enum schedule_order order, uint32_t num_ranks, uint32_t rack, uint32_t *order_out);

#endif
