/* What the files of the pass over lookups share: shard_lookups.c (the pass), lookup_blocks.c (which rank
 * gives what, and which rank of a host has what of it) and local_tables.c (the tables that this rank holds).
 * Row-wise sums of squares (dense/share_squares.c) ask it for plans and shards. */
#ifndef PH_SHARD_LOOKUP_PASS_H
#define PH_SHARD_LOOKUP_PASS_H

#include "op/table/op_table.h"
#include "shard/lookup/host_sums.h"
#include "shard/lookup/vector_exchange.h"

/* How a shard is held: shards of one key and one table of the model are one table of the rank. */
struct ph__shard_key {
    uint32_t width;
    bool is_cut; /* in its rows */
};

/* What a rank gives to a lookup out of the shards of one key. */
struct ph__shard_group {
    struct ph__shard_key key;
    bool is_of_host; /* added up on the host before it goes to who asks */
    size_t count;
    struct ph__piece *pieces;
    size_t *streams; /* (count) ascending */
    size_t *slices;  /* (count) of the model's table */
};

/* A lookup of the model, as it is taken apart. */
struct ph__spread_lookup {
    ph_value output;
    struct ph__node node; /* as the model has it */
    ph_value ids;
    ph_value table;
    const struct ph__declaration *declaration; /* a copy */
    struct ph__feature_list features;
    size_t num_features;
    size_t *slices;                      /* (num_features) of the declaration */
    const struct ph__plan_table **plans; /* (num_features) */
    struct ph__vector_exchange *exchange;
    /* This rank's groups: what it gives by itself, beside its blocks, and what it has of its host's, beside
     * its parts. */
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
    uint32_t peer_symbol; /* samples of this rank's peers; 0: nobody asks */
    size_t front;         /* node before which the next nodes come to stand */
};

/* Zeroed room for count + 1 items in the graph's arena; NULL after failure, which sticks to the builder. */
void *ph__pass_take(struct ph__lookup_pass *pass, size_t count, size_t size);

/* ---- the plan ---- */

/* NULL after failure: the plan does not name the table. */
const struct ph__plan_table *ph__pass_find_plan(struct ph__lookup_pass *pass, const char *name);
/* The shard of a table that a rank has; NULL: none, or all of it, as every rank. */
const struct ph__table_shard *ph__pass_shard_of(
    const struct ph__lookup_pass *pass, const struct ph__plan_table *table, size_t rank);
bool ph__plan_is_replica(const struct ph__plan_table *table);
struct ph__shard_key ph__shard_key_of(
    const struct ph__table_shard *shard, const struct ph__plan_table *table);
bool ph__shard_key_equal(struct ph__shard_key a, struct ph__shard_key b);

/* ---- the parts of the pass ---- */

/* Works out the lookup's exchange, and which streams each rank gets for it, after all lookups before it. */
ph_status ph__plan_vector_exchange(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup);
/* The table of this rank's shards of a table of the model that have this key, or (key NULL) of what every
 * rank has; declared unless another lookup of the same table has done so. local_of (slices of the model's
 * table): which slice each one is here. */
ph_value ph__local_table(struct ph__lookup_pass *pass, const struct ph__declaration *table,
    const struct ph__shard_key *key, size_t *local_of);

#endif
