/* How one program is spread over ranks: what its passes, its operators and its requests share.
 *
 * The pass over lookups (shard_lookups.c) finds out, for every rank alike, which *streams* of requests each
 * rank gets and which *blocks* of vectors ranks give each other; request_exchange.c brings the one,
 * vector_exchange.c (and item_exchange.c) the other; where a table's rows are cut over the ranks of one host,
 * host_sums.c adds up what they have before. All ranks walk the same graph and the same plan, so that each
 * knows what the others send without being told.
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

/* The channels of what a program sends between ranks (comm/collective/comm.h). */
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

/* Channels of a lookup: vectors, their gradients, and the same inside of hosts. */
enum { PH_EXCHANGE_CHANNELS = 4 };

enum {
    PH_MAX_EXCHANGES = (PH_CHANNEL_DENSE - PH_CHANNEL_EXCHANGES) / PH_EXCHANGE_CHANNELS,
    PH_MAX_BUCKETS = PH_CHANNEL_REPLICAS - PH_CHANNEL_DENSE
};

struct ph__distribution_options {
    struct ph_comm *comm;                  /* borrowed */
    const struct ph__plan *plan;           /* borrowed */
    enum ph_wire_format forward, backward; /* of vectors, of their gradients */
    enum ph_wire_format dense;             /* of dense parameters' gradients */
    size_t bucket_bytes;                   /* of dense gradients that are reduced as one */
    bool overlaps;                         /* gradients are exchanged while others are made */
    const struct ph_reducer *reducer;      /* borrowed: who reduces them; NULL: comm */
};

/* The ids of a feature that lie in some rows of its table. */
struct ph__stream {
    uint32_t feature; /* of the batch */
    const char *name; /* of its slice, for errors */
    uint64_t first_row, num_rows, whole_rows;
};

struct ph__stream_list {
    struct ph__stream *items;
    size_t count, capacity;
};

/* Where one vector of a block belongs: the columns [first_column, + width of the block) of a feature of the
 * lookup. */
struct ph__piece {
    uint32_t feature, first_column;
    bool is_added; /* to what an earlier block has put there: the rows are cut */
};

/* For each sample of whoever asks, `count` vectors of `width` numbers that rank `rank` has for it: (B, count,
 * width). Of a lookup item by item: for each item that lies in the rows of a stream, one vector, in their
 * order. */
struct ph__block {
    uint32_t rank;
    uint32_t count, width;
    uint32_t stream; /* of items: which of the rank's */
    bool is_mean;    /* sums of some rows, of which the one who asks makes means */
    bool is_of_host; /* of all ranks of a host together, by the one that has the place of who asks */
    const struct ph__piece *pieces;
};

/* A lookup of the model, (B, num_features, dim) or, of the items of one feature, (I, dim), and the blocks
 * that this rank gets for it, by rank. The first own_count blocks from own_first on are what it gives itself,
 * and others as well: of each the vectors of the global batch, made by one local lookup, or, of its host,
 * those of its peers' samples (host_sums.h). */
struct ph__host_sums;
struct ph__vector_exchange {
    struct ph__sharding *sharding;
    uint32_t channel; /* of vectors; the next is that of gradients */
    const char *what, *what_gradient;
    size_t num_features, dim;
    bool is_of_items;
    struct ph_dim items, own_items; /* I, and those that this rank's lookup has */
    const struct ph__block *blocks;
    size_t num_blocks, own_first, own_count;
    struct ph_dim peer_samples; /* of a block of its host */
    struct ph__host_sums *sums; /* NULL: there is no such block */
    size_t num_replicas;
    const uint32_t *replicas; /* (num_replicas) features whose tables every rank has */
    ph_value in_flight;       /* what its lookups give, on its way */
};

/* All times of a batch that is bound. */
struct ph__sharding {
    /* The options' (struct ph__distribution_options), since most of what ranks exchange asks for one of them.
     */
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
    const char **tables; /* names of the model's tables that are spread: in the same order on every rank */
    size_t num_tables, tables_capacity;

    size_t *bounds; /* (world_size + 1) of the ranks' samples in the global batch that is bound */
    struct ph__request_buffers *requests;
};

/* Gives the first of rank's samples in a global batch of n; of rank world_size: n. */
static inline size_t ph__sharding_bound(const struct ph__sharding *sharding, size_t num_samples, size_t rank)
{
    return ph__range_start(num_samples, rank, sharding->world_size);
}

/* Counts the samples of a rank in the batch that is bound. */
static inline size_t ph__sharding_samples(const struct ph__sharding *sharding, size_t rank)
{
    return sharding->bounds[rank + 1] - sharding->bounds[rank];
}

/* The pass over lookups: each that reads a table which the plan cuts becomes lookups of this rank's shards
 * and an exchange of vectors. Errors stick to the builder: PH_ERROR_CONFIG for a table that the plan does not
 * name. */
void ph__shard_lookups(struct ph__sharding *sharding, struct ph_builder *builder);

#endif
