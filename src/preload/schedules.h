/* Schedules of messages: what each rank sends and receives, step after step, in collectives by named
 * algorithms. Collectives of simulated programs (preload/sim) are played from them. Simulators and MPIs
 * run the same ones in benchmarks, so that only their times can differ. Includes nothing of Phloem: peers
 * compile it too.
 *
 * A step's messages are all posted, receives first; the next step begins when they are done. Sums are done
 * then. Nothing is stored: a step is computed where it is asked for.
 *
 * Sources: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH"
 * (2005); Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient Algorithms for All-to-All Communications in
 * Multiport Message-Passing Systems" (1997). */
#ifndef PH_PRELOAD_SCHEDULES_H
#define PH_PRELOAD_SCHEDULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum schedule_kind {
    SCHEDULE_RING,          /* AllReduce: reduce-scatter and gather, to the next rank */
    SCHEDULE_DOUBLING,      /* AllReduce: all bytes, between ranks at distances 1, 2, 4, ... */
    SCHEDULE_RABENSEIFNER,  /* AllReduce: halves, quarters, ... at distances 1, 2, ...; then backwards */
    SCHEDULE_PAIRWISE,      /* AlltoAll: in step s to the s-th rank ahead */
    SCHEDULE_AT_ONCE,       /* AlltoAll: all messages in one step */
    SCHEDULE_RING_ALLTOALL, /* AlltoAll: all that has not arrived, to the next rank */
    SCHEDULE_BRUCK,         /* AlltoAll: in step k what has bit k in its distance, to the 2^k-th rank ahead */
    SCHEDULE_TREE,          /* Bcast: binomial tree, from the first rank of the order */
    SCHEDULE_PIPELINE,      /* Bcast: byte after byte, from each rank of the order to the next */
    SCHEDULE_GATHER,        /* AllGather: parts, to the next rank */
    SCHEDULE_GATHER_BRUCK,  /* AllGather: all parts so far, to the rank 1, 2, 4, ... behind */
    SCHEDULE_REDUCE,        /* Reduce: binomial tree, to the first rank of the order */
    SCHEDULE_REDUCE_SCATTER, /* the first half of RING: a rank gets the sums of the next rank's part */
    SCHEDULE_PINGPONG,       /* all bytes from the first rank of the order to the second, and back */
    SCHEDULE_KINDS
};
extern const char *const schedule_names[SCHEDULE_KINDS]; /* "ring", "doubling", ... */

struct schedule {
    enum schedule_kind kind;
    uint32_t num_ranks;    /* at least 2; a power of two for DOUBLING and RABENSEIFNER */
    size_t bytes;          /* the vector; in an AlltoAll, what each rank sends to all, itself included */
    const uint32_t *order; /* (num_ranks) rank at each place of the algorithm; NULL: place = rank; borrowed */
};

/* One message of a step. A rank has two buffers: PAIRWISE and AT_ONCE send from one and receive into the
 * other, block by place. All others use the second alone.
 *
 * RING_ALLTOALL and BRUCK pass blocks on: block d of the buffer is for the place d ahead at the start, and
 * from the place d behind at the end. A step's two messages have the same bytes of the buffer, so a rank
 * first copies what it sends to a staging buffer, where the runs are packed. GATHER_BRUCK's part d is that of
 * the place d ahead. */
struct schedule_message {
    uint32_t peer;
    bool is_receive, is_sum;  /* is_sum: what is received is added */
    size_t offset, bytes;     /* first byte in the buffer; bytes of all runs */
    size_t run_bytes, stride; /* byte i is at offset + i / run_bytes * stride + i % run_bytes in the buffer */
};

/* Gives the kind of a name; SCHEDULE_KINDS: there is none. */
enum schedule_kind schedule_find(const char *name);
bool schedule_is_alltoall(enum schedule_kind kind);
bool schedule_passes_on(enum schedule_kind kind); /* RING_ALLTOALL, BRUCK */

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
