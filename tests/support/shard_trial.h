/* Shards on trial: the shards of one job, and workers that a test moves by hand, over shared memory or over
 * links with payloads of their own. After every run what the hub has made, and each reply that a worker gets,
 * is held against the serial loop of shard_oracle.h to the bit; what does not hold ends the process. One
 * thread, but for what says otherwise.
 *
 * A worker reads a value where the contract of phloem/hub.h says that it lies, and again at its last moment:
 * before the push that lets the hub overwrite it. A gradient is spoilt as soon as the hub has said that it
 * was taken. */
#ifndef PH_TEST_SHARD_TRIAL_H
#define PH_TEST_SHARD_TRIAL_H

#include "hub/shard/shard.h"
#include "support/payload_link.h"
#include "support/shard_oracle.h"

enum { TRIAL_MAX_WORKERS = 5, TRIAL_MAX_SHARDS = 3 };

enum trial_transport {
    TRIAL_SHARED, /* results that all workers read; synchronous jobs */
    TRIAL_OWN,    /* shared memory, parameters of its own */
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
    size_t ring_capacity; /* 0: room for all */
    bool is_lawless;      /* somebody breaks the rules: nothing is held against the oracle */
};

/* What lies between one worker and one shard. */
struct trial_link {
    struct shard_trial *trial;
    struct ph__link_owner hub;    /* the shard's own: the trial listens in between */
    struct ph__link *hub_link;    /* the shard's */
    struct ph__link *worker_link; /* NULL where payloads are sent */
    void *ring;
    uint32_t worker;
    uint16_t shard;
    bool is_live, has_left;
};

/* One worker and one chunk, as both sides should know it. */
struct trial_request {
    uint64_t pushed, delivered, used,
        answered; /* iterations: sent, come to the shard, in a version, told of */
    uint64_t pulled;
    uint64_t value, value_version; /* iteration and version of the last parameters that have come */
    uint64_t version_of_push[PH_HUB_MAX_DEPTH]; /* that holds iteration i, at i % 2 */
    uint8_t kinds[PH_HUB_MAX_DEPTH];
    bool is_pulling, has_value;
};

struct trial_chunk {
    struct oracle_push *pushes; /* that have come and are in no version yet, in their order */
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
    float learning_rates[TRIAL_MAX_SHARDS][PH_HUB_MAX_OPTIMIZERS]; /* that the shard was told last */
    _Atomic size_t num_wakes;                                      /* of other shards */
    size_t num_copied, num_reached;         /* snapshots, versions that were watched for */
    size_t num_failures[TRIAL_MAX_WORKERS]; /* of links */
    char failure[256];                      /* the last */
    size_t num_bytes;                       /* that the last run went through */
    uint64_t num_replies, num_values;       /* that workers got */
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

/* ---- what workers do; it is on its way when these return, and comes with the shard's next run ---- */

/* Not before a pull has come whose parameters would be overwritten. */
bool shard_trial_may_push(const struct shard_trial *trial, uint32_t worker, uint32_t chunk);
/* PH_HUB_PUSH or PH_HUB_PUSHPULL of the chunk's next iteration. */
void shard_trial_push(
    struct shard_trial *trial, uint32_t worker, uint32_t chunk, enum ph__hub_message_kind kind);
void shard_trial_pull(struct shard_trial *trial, uint32_t worker, uint32_t chunk);
void shard_trial_assign(struct shard_trial *trial, uint32_t chunk);                            /* rank 0 */
void shard_trial_set_learning_rate(struct shard_trial *trial, uint32_t optimizer, float rate); /* rank 0 */
/* Anything. payload_bytes: of payload links. */
void shard_trial_send(struct shard_trial *trial, uint16_t shard, uint32_t worker,
    const struct ph__message *message, size_t payload_bytes);

/* ---- what happens to them ---- */

/* One run of a shard, then its workers read what has come for them. Returns what ph__shard_run returns. */
size_t shard_trial_run(struct shard_trial *trial, uint16_t shard, size_t max_bytes);
/* Runs all shards until there is nothing to do, but lets no more replies leave over links with payloads. */
void shard_trial_run_all(struct shard_trial *trial);
/* So many replies leave to a worker whose link has payloads, after all else has been done; then all is done
 * again. */
void shard_trial_let_leave(struct shard_trial *trial, uint16_t shard, uint32_t worker, size_t count);
/* Until nothing is left to do at all. */
void shard_trial_settle(struct shard_trial *trial);

/* From one shard, or from all. Arrival order and asynchronous: what has come is worked off before. */
void shard_trial_remove(struct shard_trial *trial, uint16_t shard, uint32_t worker);
void shard_trial_remove_everywhere(struct shard_trial *trial, uint32_t worker);
void shard_trial_retire(struct shard_trial *trial, uint32_t worker);

/* When all is settled: every worker that is still there has pushed so many iterations of each chunk, all are
 * in versions and answered, and the last versions are what the hub's memory holds. */
void shard_trial_check_end(struct shard_trial *trial, uint64_t num_iterations);

#endif
