/* Shared by the files of the pass over lookups: shard_lookups.c (the pass), lookup_blocks.c (which rank gives
 * what, and which rank of a host has what of it) and local_tables.c (the tables that this rank holds).
 * Row-wise sums of squares (dense/share_squares.c) use it to find plans and shards. */
#ifndef PH_SHARD_LOOKUP_PASS_H
#define PH_SHARD_LOOKUP_PASS_H

#include "op/table/op_table.h"
#include "shard/lookup/host_sums.h"
#include "shard/lookup/vector_exchange.h"

/* A shard's storage: a rank's shards with one key, of one table of the model, are one table there. */
struct ph__shard_key {
    uint32_t width;
    bool is_cut; /* some rows only */
};

/* Vectors that a rank gives to a lookup from the shards of one key. */
struct ph__shard_group {
    struct ph__shard_key key;
    bool is_of_host; /* added up on the host before they go to the rank that asks */
    size_t count;
    struct ph__piece *pieces;
    size_t *streams; /* (count) ascending */
    size_t *slices;  /* (count) indices among the model table's slices */
};

/* A lookup of the model, as it is taken apart. */
struct ph__spread_lookup {
    ph_value output;
    struct ph__node node; /* copy of the model's node */
    ph_value ids;
    ph_value table;
    const struct ph__declaration *declaration; /* a copy */
    struct ph__feature_list features;
    size_t num_features;
    size_t *slices;                      /* (num_features) indices among the declaration's slices */
    const struct ph__plan_table **plans; /* (num_features) */
    struct ph__vector_exchange *exchange;
    struct ph__tower *tower; /* whose layers read it on one host; NULL: none */
    /* This rank's groups, one for each block that it gives by itself, and its groups of the host, one for
     * each of its parts of the host's blocks. */
    struct ph__shard_group *groups, *host_groups;
    size_t num_groups;
    struct ph__block *blocks; /* the exchange's */
};

struct ph__lookup_pass {
    struct ph__sharding *sharding;
    struct ph_builder *builder;
    struct ph__arena *arena; /* the graph's */
    struct ph__spread_lookup *lookups;
    size_t num_lookups, lookups_capacity;
    uint32_t peer_symbol; /* samples of this rank's peers; 0: not needed yet */
    size_t front;         /* node before which the next nodes are placed */
};

/* Returns zeroed room for count + 1 items in the graph's arena; NULL after failure, which sticks to the
 * builder. */
void *ph__pass_take(struct ph__lookup_pass *pass, size_t count, size_t size);

/* ---- the plan ---- */

/* Returns NULL after failure: the plan does not name the table. */
const struct ph__plan_table *ph__pass_find_plan(struct ph__lookup_pass *pass, const char *name);
/* Returns a rank's shard of a table; NULL when the rank has none, or every rank has all of the table. */
const struct ph__table_shard *ph__pass_shard_of(
    const struct ph__lookup_pass *pass, const struct ph__plan_table *table, size_t rank);
bool ph__plan_is_replica(const struct ph__plan_table *table);
struct ph__shard_key ph__shard_key_of(
    const struct ph__table_shard *shard, const struct ph__plan_table *table);
bool ph__shard_key_equal(struct ph__shard_key a, struct ph__shard_key b);

/* ---- the parts of the pass ---- */

/* Plans the lookup's exchange, and the streams that each rank gets for it, after all lookups before it. */
ph_status ph__plan_vector_exchange(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup);
/* Returns the table of this rank's shards with this key of a table of the model, or (key NULL) of the slices
 * that every rank has; declares it unless another lookup of the same table has done so. local_of (slices of
 * the model's table): the index of each slice here. */
ph_value ph__local_table(struct ph__lookup_pass *pass, const struct ph__declaration *table,
    const struct ph__shard_key *key, size_t *local_of);

#endif
