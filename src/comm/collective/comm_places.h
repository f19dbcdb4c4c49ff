/* Which ranks there are and which are on one host, from what each has said of itself. */
#ifndef PH_COMM_COMM_PLACES_H
#define PH_COMM_COMM_PLACES_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_patience.h"

/* What a rank says of itself before anything else. */
struct ph_greeting {
    char transport[16]; /* as it was asked for */
    double timeout_seconds;
    uint64_t ranks_per_host;
    bool has_failed;
    char task[48];
    char host[64], boot[48]; /* two machines may share a name, two containers a boot */
    int64_t process;
    struct ph_processors processors;
};

/* Who is where. Hosts are counted in the order of their ranks. */
struct ph_comm_places {
    struct ph_greeting *greetings; /* by rank */
    uint32_t *ranks, *peer_ranks;  /* 0, 1, 2 ...; and those of `peers` */
    struct ph_group world, host, peers;
    size_t num_hosts, own_host, ranks_per_host; /* ranks_per_host 0: they differ */
    /* On this machine, even where hosts are emulated: */
    size_t num_neighbours;   /* ranks, this one too */
    uint64_t num_processors; /* that they may keep busy together */
};

/* The world, with greetings of zeros. PH_ERROR_MEMORY; then fini is fine. */
ph_status ph__comm_places_init(struct ph_comm_places *places, size_t rank, size_t world_size);
void ph__comm_places_fini(struct ph_comm_places *places);

/* All the rest, from the greetings, whose ranks_per_host is one and the same and divides the world. PH_ERROR_CONFIG: the
 * ranks are not numbered host by host. */
ph_status ph__comm_places_find(struct ph_comm_places *places);

/* Whether two ranks run on one machine. */
bool ph__comm_places_are_neighbours(const struct ph_comm_places *places, size_t a, size_t b);

#endif
