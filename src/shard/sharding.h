/* One program spread over ranks: the data that its passes, its operators and its requests share.
 *
 * The pass over lookups (shard_lookups.c) finds out, for every rank alike, which *streams* of requests each
 * rank gets and which *blocks* of vectors ranks give each other. request_exchange.c exchanges the streams,
 * vector_exchange.c (and item_exchange.c) the blocks; where a table's rows are cut over the ranks of one
 * host, host_sums.c first adds up that host's vectors. All ranks walk the same graph and the same plan, so
 * each knows what the others send without being told.
 *
 * A global batch of n samples lies on W ranks in order: rank r has the samples [n r / W, n (r + 1) / W). */
#ifndef PH_SHARD_SHARDING_H
#define PH_SHARD_SHARDING_H

#include "base/memory/arena.h"
#include "base/sizes.h"
#include "comm/collective/comm.h"
#include "graph/distribution.h"
#include "graph/graph.h"
#include "plan/plan.h"

/* Channels of a program's messages between ranks (comm/collective/comm.h). */
enum {
    PH_CHANNEL_LENGTHS = 1,
    PH_CHANNEL_IDS,
    PH_CHANNEL_ID_WEIGHTS,
    PH_CHANNEL_LOSS,
    PH_CHANNEL_EXCHANGES = 16,  /* PH_EXCHANGE_CHANNELS for each lookup */
    PH_CHANNEL_DENSE = 4096,    /* one for each bucket */
    PH_CHANNEL_REPLICAS = 6144, /* three: replicated tables are gathered one at a time (gather_rows.c) */
    PH_CHANNEL_STATISTICS = 7168,
    PH_CHANNEL_STATISTICS_GRADIENTS,
    PH_CHANNEL_TRIALS, /* of collectives, between steps */
    PH_CHANNEL_NORM = 7176,
    PH_CHANNEL_UNIT_SQUARES,
    PH_CHANNEL_UNIT_GATHERS = 7184,    /* PH_UNIT_CHANNELS: at most so many are in flight */
    PH_CHANNEL_UNIT_REDUCTIONS = 7188, /* likewise */
    PH_CHANNEL_SQUARES = 7680,         /* one for each table */
};

enum { PH_UNIT_CHANNELS = 4 };

/* Channels of a lookup: vectors, their gradients, and the same inside of hosts. */
enum { PH_EXCHANGE_CHANNELS = 4 };

enum {
    PH_MAX_EXCHANGES = (PH_CHANNEL_DENSE - PH_CHANNEL_EXCHANGES) / PH_EXCHANGE_CHANNELS,
    PH_MAX_BUCKETS = PH_CHANNEL_REPLICAS - PH_CHANNEL_DENSE
};

struct ph__distribution_options {
    struct ph_comm *comm;                  /* borrowed */
    const struct ph__plan *plan;           /* borrowed */
    enum ph_wire_format forward, backward; /* for vectors, and for their gradients */
    enum ph_wire_format dense;             /* for dense parameters' gradients */
    size_t bucket_bytes;                   /* bytes of dense gradients that are reduced as one */
    bool overlaps;                         /* gradients are exchanged while others are made */
    const struct ph_reducer *reducer;      /* borrowed: reduces dense gradients; NULL: comm does */
};

struct ph__unit;

/* The ids of a feature that lie in some rows of its table. */
struct ph__stream {
    uint32_t feature; /* index in the batch */
    const char *name; /* name of its slice, for errors */
    uint64_t first_row, num_rows, whole_rows;
};

struct ph__stream_list {
    struct ph__stream *items;
    size_t count, capacity;
};

/* Place of one vector of a block: the columns [first_column, + width of the block) of a feature of the
 * lookup. */
struct ph__piece {
    uint32_t feature, first_column;
    bool is_added; /* added to what an earlier block has put there: the rows are cut */
};

/* Vectors of rank `rank` for each sample of the rank that asks, `count` of `width` numbers: (B, count,
 * width). In a lookup item by item, one vector for each item that lies in the rows of a stream, in their
 * order. */
struct ph__block {
    uint32_t rank;
    uint32_t count, width;
    uint32_t stream; /* items: index of the rank's stream */
    bool is_mean;    /* sums of some rows, from which the rank that asks makes means */
    bool is_of_host; /* sums over a host, given by its rank with the place of the rank that asks */
    const struct ph__piece *pieces;
};

/* A lookup of the model, (B, num_features, dim) or, of the items of one feature, (I, dim), and the blocks
 * that this rank gets for it, by rank. The own_count blocks from own_first on are own blocks, which this rank
 * gives to itself and to others: each holds the vectors of the global batch, made by one local lookup, or,
 * for a block of its host, those of its peers' samples (host_sums.h). */
struct ph__host_sums;
struct ph__vector_exchange {
    struct ph__sharding *sharding;
    uint32_t channel; /* for vectors; the next channel is for gradients */
    const char *what, *what_gradient;
    size_t num_features, dim;
    bool is_of_items;
    struct ph_dim items, own_items; /* I, and the items of this rank's lookup */
    const struct ph__block *blocks;
    size_t num_blocks, own_first, own_count;
    struct ph_dim peer_samples; /* dimension of a block of its host */
    struct ph__host_sums *sums; /* NULL: no block is of a host */
    size_t num_replicas;
    const uint32_t *replicas; /* (num_replicas) features whose tables every rank has */
    ph_value in_flight;       /* own lookups' vectors */
};

/* A tower whose layers run on one host (tower/tower_pass.h). Its exchange carries the vectors that the layers
 * make for the peers' samples; the exchange's sums are the layers' input. */
struct ph__tower {
    const char *name;
    uint32_t host;
    ph_value lookup, output; /* the model's */
    struct ph__vector_exchange *exchange;
    ph_value *wait_inputs; /* (num_wait_inputs) of the host's sums, on the tower's host */
    size_t num_wait_inputs;
    ph_value *parameters; /* (num_parameters) of its layers */
    size_t num_parameters;
};

/* Streams and blocks last as long as the program; bounds and requests are the bound batch's. */
struct ph__sharding {
    /* Copies of struct ph__distribution_options, since most exchanges need one of them. */
    struct ph_comm *comm;
    const struct ph__plan *plan;
    enum ph_wire_format forward, backward, dense;
    size_t bucket_bytes;
    bool overlaps;
    const struct ph_reducer *reducer;

    size_t rank, world_size;
    struct ph__arena arena;

    struct ph__stream_list *streams; /* by rank */
    bool has_weights;                /* requests carry weights */
    struct ph__vector_exchange **exchanges;
    size_t num_exchanges, exchanges_capacity;
    struct ph__tower *towers; /* those to which the plan gives a host */
    size_t num_towers;
    const struct ph__group *tower_group; /* ranks whose gradients of towers are summed: those of the host */
    const char **tables; /* names of the model's spread tables, in the same order on every rank */
    size_t num_tables, tables_capacity;

    /* Sharded dense parameters (units/units.h): the ranks that have one copy together, and those that have
     * the same shards of other copies. */
    struct ph__group *unit_group, *unit_peers; /* NULL: there are no units */
    struct ph__unit *units;                    /* (num_units) in the order of their first use */
    size_t num_units;

    size_t *bounds; /* (world_size + 1) of the ranks' samples in the bound global batch */
    struct ph__request_buffers *requests;
};

/* Returns the first of rank's samples in a global batch of num_samples; num_samples for rank world_size. */
static inline size_t ph__sharding_bound(const struct ph__sharding *sharding, size_t num_samples, size_t rank)
{
    return ph__range_start(num_samples, rank, sharding->world_size);
}

/* Counts the samples of a rank in the bound batch. */
static inline size_t ph__sharding_samples(const struct ph__sharding *sharding, size_t rank)
{
    return sharding->bounds[rank + 1] - sharding->bounds[rank];
}

/* Returns true for a parameter of a tower's layers. */
static inline bool ph__is_of_tower(const struct ph__sharding *sharding, ph_value parameter)
{
    for (size_t t = 0; t < sharding->num_towers; t++)
        for (size_t i = 0; i < sharding->towers[t].num_parameters; i++)
            if (sharding->towers[t].parameters[i] == parameter)
                return true;
    return false;
}

/* Spreads lookups: a lookup of a table that the plan cuts becomes lookups of this rank's shards and an
 * exchange of vectors. Of a tower, only the local lookups and the exchange inside its host are added
 * (tower/tower_pass.h). Returns the number of nodes that were moved to the front. Errors stick to the
 * builder: PH_ERROR_CONFIG for a table not in the plan. */
size_t ph__shard_lookups(struct ph__sharding *sharding, struct ph_builder *builder);

#endif
