/* Wide aggregation, to compare with: all core threads work on one key together, as parameter servers do whose
 * unit is the key. The tall way (shard_update.c) sums a chunk on one core thread in one pass. Here a key has
 * a pass for each worker's copy and one for the optimizer; each core thread takes its stripe of every pass,
 * and no pass begins before the last has ended everywhere. The same sums in the same order, so the same bits.
 *
 * Chunks stay the unit of messages and have their shard, which counts pushes and replies. When all chunks of
 * a key are complete, the shard that counted the last adds the key to a list; all shards work the list off in
 * its order. A barrier is a number that grows: a shard that is ahead has nothing to do, and its thread serves
 * other jobs.
 *
 * Only synchronous jobs in worker order, without clipping and shrinking, whose workers stay to the end. */
#ifndef PH_HUB_SHARD_WIDE_H
#define PH_HUB_SHARD_WIDE_H

#include "hub/shard/shard.h"

struct ph__wide_key { /* a complete key */
    uint32_t key;
    float learning_rate;
    uint64_t iteration;
};

struct ph__wide_entry {
    _Atomic uint64_t sequence; /* 1 + index among all entries ever, once written */
    struct ph__wide_key content;
};

struct ph__wide_turn { /* progress of a core thread, which alone uses it */
    _Alignas(64) uint64_t entry;
    uint64_t pass; /* next pass; 0 to the number of workers: then the replies */
    bool is_begun; /* true: `content` is a copy of the entry's */
    struct ph__wide_key content;
};

struct ph__wide {
    uint16_t num_cores;
    uint64_t num_passes;            /* passes over a key */
    _Atomic uint32_t *num_ready;    /* (num_keys) chunks whose next iteration is complete */
    struct ph__wide_entry *entries; /* (mask + 1), a ring, which has a key at most once */
    uint64_t mask;
    _Atomic uint64_t num_entries; /* entries ever written */
    _Atomic uint64_t num_stripes; /* finished ever, of all passes */
    struct ph__wide_turn *turns;  /* (num_cores) */
};

/* Checks that a service can be aggregated wide; PH_ERROR_USAGE. */
ph_status ph__wide_check(const struct ph_hub_service *service);

/* PH_ERROR_MEMORY. */
ph_status ph__wide_create(
    size_t num_keys, uint32_t num_workers, uint16_t num_cores, struct ph__wide **wide_out);
void ph__wide_destroy(struct ph__wide *wide); /* NULL is fine */

/* Notes that the next iteration of a chunk is complete, in a wide job. */
void ph__shard_add_wide(struct ph__shard *shard, uint32_t chunk);
/* Takes its stripes of passes that may begin, until about max_bytes were summed in this run. Returns the
 * number of passes and replies done. */
size_t ph__shard_run_wide(struct ph__shard *shard, size_t max_bytes);
/* Returns true if ph__shard_run_wide would do something. */
bool ph__shard_has_wide_work(const struct ph__shard *shard);

#endif
