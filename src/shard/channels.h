/* The channels of what a program sends between ranks (comm/collective/comm.h). */
#ifndef PH_SHARD_CHANNELS_H
#define PH_SHARD_CHANNELS_H

#include "comm/collective/comm.h"

enum {
    PH_CHANNEL_LENGTHS = 1,
    PH_CHANNEL_IDS,
    PH_CHANNEL_ID_WEIGHTS,
    PH_CHANNEL_LOSS,
    PH_CHANNEL_EXCHANGES = 16,  /* PH_EXCHANGE_CHANNELS for each lookup */
    PH_CHANNEL_DENSE = 4096,    /* a bucket each */
    PH_CHANNEL_REPLICAS = 6144, /* three, for one table that every rank has at a time (gather_rows.c) */
    PH_CHANNEL_STATISTICS = 7168,
    PH_CHANNEL_STATISTICS_GRADIENTS,
    PH_CHANNEL_NORM = 7176,
    PH_CHANNEL_SQUARES = 7680, /* a table each */
};

/* Of a lookup: vectors, their gradients, and the same inside of hosts. */
enum { PH_EXCHANGE_CHANNELS = 4 };

enum {
    PH_MAX_EXCHANGES = (PH_CHANNEL_DENSE - PH_CHANNEL_EXCHANGES) / PH_EXCHANGE_CHANNELS,
    PH_MAX_BUCKETS = PH_CHANNEL_REPLICAS - PH_CHANNEL_DENSE
};

#endif
