/* Collectives as messages between two ranks, by named algorithms: most are played from the schedules of
 * preload/schedules.h. docs/SIMULATOR.md says which algorithm is chosen when. */
#ifndef PH_PRELOAD_SIM_COLLECTIVE_H
#define PH_PRELOAD_SIM_COLLECTIVE_H

#include "preload/schedules.h"
#include "preload/sim/sim_mpi.h"

#define KIB ((size_t)1024)

/* Returns the algorithm that the user has chosen for a collective, or else that of the rule. */
int ph__sim_choose(enum ph__run_collective collective, int by_rule);

/* A part of a buffer. */
struct ph__part {
    void *data;
    size_t bytes;
};

/* A buffer with a part for each rank. */
struct ph__parts {
    char *data;
    const int *counts, *places; /* (size) in items; NULL: `count` each, one behind the other */
    size_t count, item_bytes;
};
struct ph__part ph__sim_part(const struct ph__parts *parts, int rank);

/* Send, receive, or both at once, and wait for it. */
void ph__sim_send(const struct ph__sim_comm *comm, int to, const void *data, size_t bytes);
void ph__sim_receive(const struct ph__sim_comm *comm, int from, void *data, size_t bytes);
void ph__sim_exchange(
    const struct ph__sim_comm *comm, int to, struct ph__part sent, int from, struct ph__part received);

void ph__sim_bcast(const struct ph__sim_comm *comm, void *data, size_t bytes, int root);

/* A schedule that is played: its bytes are items of item_bytes. */
struct ph__play {
    const struct ph__sim_comm *comm;
    struct schedule schedule;
    uint32_t place;
    size_t item_bytes;
    char *buffer;
    const char *source; /* of an AlltoAll that sends from a buffer of its own; else NULL */
    const struct ph__sim_reduction *reduction;
};
void ph__sim_play(const struct ph__play *play);

#endif
