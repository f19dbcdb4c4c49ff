/* Shards on trial: the shards of one job, and workers that a test moves by hand, over shared memory or over
 * links with payloads of their own. Every run compares the hub's results, and each reply to a worker, bit by
 * bit with the serial loop of shard_oracle.h; a mismatch ends the process. One thread, unless stated
 * otherwise.
 *
 * A worker reads a value where the contract of phloem/hub.h places it, and again at the last moment: before
 * the push that lets the hub overwrite it. A gradient is overwritten as soon as the hub has said that it was
 * taken. */
#ifndef PH_TEST_SHARD_TRIAL_H
#define PH_TEST_SHARD_TRIAL_H

#include "hub/shard/shard.h"
#include "support/payload_link.h"
#include "support/shard_oracle.h"

enum { TRIAL_MAX_WORKERS = 5, TRIAL_MAX_SHARDS = 3 };

enum trial_transport {
    TRIAL_SHARED, /* results that all workers read; synchronous jobs */
    TRIAL_OWN,    /* shared memory, each worker with its own parameters */
    TRIAL_PAYLOADS
};

struct shard_trial_options {
    struct trial_job job;
    enum ph_hub_mode mode;
    enum ph_hub_order order;
    uint32_t num_workers, depth, staleness;
    uint32_t num_versions; /* 0: as the hub chooses */
    uint16_t num_shards;
    bool is_non_temporal;
    enum trial_transport transports[TRIAL_MAX_WORKERS];
    size_t ring_capacity; /* 0: room for all messages */
    bool is_lawless;      /* some worker breaks the rules: nothing is compared with the oracle */
};

/* The link between one worker and one shard. */
struct trial_link {
    struct shard_trial *trial;
    struct ph__link_owner hub;    /* the shard's owner; the trial's lies before it */
    struct ph__link *hub_link;    /* the shard's */
    struct ph__link *worker_link; /* NULL for links with payloads */
    void *ring;
    uint32_t worker;
    uint16_t shard;
    bool is_live, has_left;
};

/* State of one worker and one chunk, as both sides should have it. */
struct trial_request {
    uint64_t pushed, delivered, used, answered; /* iterations sent, at the shard, in a version, replied to */
    uint64_t pulled;
    uint64_t value, value_version; /* iteration and version of the last parameters that arrived */
    uint64_t version_of_push[PH_HUB_MAX_DEPTH]; /* version that holds iteration i, at i % 2 */
    uint8_t kinds[PH_HUB_MAX_DEPTH];
    bool is_pulling, has_value;
};

struct trial_chunk {
    struct oracle_push *pushes; /* arrived and in no version yet, in their order */
    size_t num_pushes;
    float learning_rates[PH_HUB_MAX_DEPTH]; /* of rank 0's push of iteration i, at i % 2 */
};

struct shard_trial {
    struct shard_trial_options options;
    struct ph__layout *layout;
    struct ph__job_memory memory;
    uint16_t *core_of_chunk;
    struct ph__chunk_lists chunks_of_core;
    uint32_t *optimizer_of_key;
    struct ph__shard_job job;
    struct ph__shard *shards[TRIAL_MAX_SHARDS];
    struct trial_link links[TRIAL_MAX_SHARDS][TRIAL_MAX_WORKERS];
    struct shard_oracle *oracle;
    struct trial_request *requests;                                /* (num_chunks, num_workers) */
    struct trial_chunk *chunks;                                    /* (num_chunks) */
    float learning_rates[TRIAL_MAX_SHARDS][PH_HUB_MAX_OPTIMIZERS]; /* that the shard got last */
    _Atomic size_t num_wakes;                                      /* of other shards */
    size_t num_copied, num_reached;                                /* snapshots, awaited versions */
    size_t num_failures[TRIAL_MAX_WORKERS];                        /* of links */
    char failure[256];                                             /* of the last failure */
    size_t num_bytes;                                              /* that the last run processed */
    uint64_t num_replies, num_values;                              /* that workers got */
};

struct shard_trial *shard_trial_create(const struct shard_trial_options *options);
void shard_trial_destroy(struct shard_trial *trial);

static inline struct trial_request *shard_trial_request(
    const struct shard_trial *trial, uint32_t worker, uint32_t chunk)
{
    return &trial->requests[chunk * trial->options.num_workers + worker];
}

static inline struct trial_link *shard_trial_link(struct shard_trial *trial, uint32_t worker, uint32_t chunk)
{
    return &trial->links[trial->core_of_chunk[chunk]][worker];
}

/* ---- actions of workers; messages are on their way on return, and arrive with the shard's next run ---- */

/* Tells whether a live worker may push: within the depth, and not before the reply to a pull whose parameters
 * the push would overwrite. */
bool shard_trial_may_push(const struct shard_trial *trial, uint32_t worker, uint32_t chunk);
/* Sends PH_HUB_PUSH or PH_HUB_PUSHPULL for the chunk's next iteration. */
void shard_trial_push(
    struct shard_trial *trial, uint32_t worker, uint32_t chunk, enum ph__hub_message_kind kind);
void shard_trial_pull(struct shard_trial *trial, uint32_t worker, uint32_t chunk);
void shard_trial_assign(struct shard_trial *trial, uint32_t chunk);                            /* rank 0 */
void shard_trial_set_learning_rate(struct shard_trial *trial, uint32_t optimizer, float rate); /* rank 0 */
/* Sends any message. payload_bytes: for links with payloads. */
void shard_trial_send(struct shard_trial *trial, uint16_t shard, uint32_t worker,
    const struct ph__message *message, size_t payload_bytes);

/* ---- progress ---- */

/* Runs a shard once; then its workers read their messages. Returns what ph__shard_run returns. */
size_t shard_trial_run(struct shard_trial *trial, uint16_t shard, size_t max_bytes);
/* Runs all shards until there is nothing to do, but lets no more replies leave over links with payloads. */
void shard_trial_run_all(struct shard_trial *trial);
/* Does all other work, lets `count` replies leave to a worker whose link has payloads, and does all work
 * again. */
void shard_trial_let_leave(struct shard_trial *trial, uint16_t shard, uint32_t worker, size_t count);
/* Runs until there is nothing left to do, replies over links with payloads included. */
void shard_trial_settle(struct shard_trial *trial);

/* Removes a worker from one shard, or from all. In arrival order, and in asynchronous jobs, the shards
 * process their input before. */
void shard_trial_remove(struct shard_trial *trial, uint16_t shard, uint32_t worker);
void shard_trial_remove_everywhere(struct shard_trial *trial, uint32_t worker);
void shard_trial_retire(struct shard_trial *trial, uint32_t worker);

/* Settles everything and checks the end: every live worker has pushed num_iterations iterations of each
 * chunk, all are in versions and replied to, and the hub's memory holds the last versions. */
void shard_trial_check_end(struct shard_trial *trial, uint64_t num_iterations);

#endif
