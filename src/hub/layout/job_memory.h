/* The memory of one job on a hub: the parameters and the optimizer's slots, each worker's gradients, and what
 * is known of each chunk.
 *
 * Parameters are fp32 in `weights`, as num_versions copies: version v of a chunk lies in copy v %
 * num_versions. What workers read are `results`, in the dtype of the keys: where all keys are fp32 they are
 * the weights themselves. Workers of this host map the results, read-only, and write their gradients where
 * the hub reads them; for others there is as much room, to receive gradients to: shards deal it out
 * (shard_message.c). */
#ifndef PH_HUB_JOB_MEMORY_H
#define PH_HUB_JOB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/layout/layout.h"
#include "net/link/region.h"

#define PH_HUB_MAX_DEPTH 2

/* One chunk, as its shard sees it. */
struct ph__chunk_state {
    _Alignas(64) uint64_t version;          /* updates made */
    uint32_t num_arrived[PH_HUB_MAX_DEPTH]; /* workers that have pushed iteration i, at i % 2, and were not
                                               used yet */
    uint32_t num_sending[PH_HUB_MAX_DEPTH]; /* replies that are read from version v, at v % 2 */
    uint32_t num_contributors;              /* gradients in its version */
    uint32_t num_added[PH_HUB_MAX_DEPTH];   /* arrival order: gradients in sums, at i % 2 */
    float learning_rates[PH_HUB_MAX_DEPTH]; /* of iteration i, at i % 2: what rank 0 said before it pushed */
    float learning_rate;                    /* that its version was made with */
    bool is_wanted;                         /* its version is to be copied before it is updated */
    bool is_waiting;                        /* for a reply to be sent, before it can be updated */
    bool is_summed;                         /* waits for the clip factor */
    bool is_queued;                         /* its next iteration is complete, and is work to do */
    double square; /* of its sum, for clipping: whoever finds the factor reads all chunks' */
};

/* What one worker has asked of one chunk: a cache line, for the chunks beside it may belong to other core
 * threads. */
struct ph__chunk_worker {
    _Alignas(64) uint64_t pushed;     /* iteration of its last push */
    uint64_t counted;                 /* ... of the last that num_arrived holds, or that was an update */
    uint64_t answered;                /* ... of the last that was answered */
    uint64_t pulled;                  /* ... of the pull that waits */
    char *received[PH_HUB_MAX_DEPTH]; /* the place of the gradient of iteration i, at i % depth, that came
                                       * over a connection; NULL: none, or its own (shard_message.c) */
    uint32_t num_sending[PH_HUB_MAX_DEPTH]; /* its part of the chunk's num_sending */
    uint8_t kinds[PH_HUB_MAX_DEPTH];        /* what its push of iteration i was, at i % 2 */
    uint8_t num_queued;                     /* its gradients that are work to do */
    bool is_pulling;
};

struct ph__worker_memory {
    struct ph__region region;           /* what a worker of this host shares with the hub */
    void *received;                     /* where another's gradients are received to; NULL: none */
    char *gradients[PH_HUB_MAX_DEPTH];  /* (gradient_bytes) of iteration i, at i % depth */
    char *parameters[PH_HUB_MAX_DEPTH]; /* the worker's own results, at i % depth; NULL where it reads the
                                           shared ones */
};

struct ph__job_memory {
    const struct ph__layout *layout;
    size_t gradient_bytes; /* of the layout */
    uint32_t num_workers, depth, num_versions;
    struct ph__region region;          /* the results; nobody can map it for writing */
    float *weights[PH_HUB_MAX_DEPTH];  /* (num_weights) each, num_versions of them */
    char *results[PH_HUB_MAX_DEPTH];   /* (gradient_bytes) */
    float *m, *s;                      /* (num_weights), NULL where no optimizer has such a slot */
    float *sums[PH_HUB_MAX_DEPTH];     /* (num_weights) clipping and arrival order, NULL else; at i % depth */
    struct ph__worker_memory *workers; /* (num_workers) */
    struct ph__chunk_state *chunks;    /* (num_chunks) */
    struct ph__chunk_worker *requests; /* (num_chunks, num_workers) */
};

struct ph__job_memory_options {
    const struct ph__layout *layout; /* borrowed until destroy */
    uint32_t num_workers, depth;
    uint32_t num_versions; /* 1 or 2; 2 where parameters are sent, so that a version stays while it is */
    bool has_m, has_s, has_sums;
};

/* What it takes, without the workers', where the layout has these sizes. The options need none yet. */
size_t ph__job_memory_bytes(
    const struct ph__job_memory_options *options, const struct ph__layout_sizes *sizes);

/* Zeros, without workers. PH_ERROR_MEMORY. */
ph_status ph__job_memory_create(
    const struct ph__job_memory_options *options, struct ph__job_memory **memory_out);
void ph__job_memory_destroy(struct ph__job_memory *memory); /* NULL is fine */

/* What a worker of this host shares with the hub, which makes it: rings for each core thread, then gradients,
 * then its own parameters. Both sides find their way by this. */
struct ph__worker_region_sizes {
    size_t num_cores, ring_capacity, gradient_bytes, depth;
    bool has_own_parameters;
};
struct ph__worker_region {
    size_t ring_bytes;                  /* of one core thread; the first begins at 0 */
    size_t gradients, parameters, size; /* bytes from the beginning */
};
struct ph__worker_region ph__worker_region(const struct ph__worker_region_sizes *sizes);

/* Memory of one worker, of this host or of another: then only its gradients. */
ph_status ph__job_memory_add_worker(struct ph__job_memory *memory, uint32_t worker, bool is_shared,
    const struct ph__worker_region_sizes *sizes);

static inline struct ph__chunk_worker *ph__request(
    const struct ph__job_memory *memory, uint32_t chunk, uint32_t worker)
{
    return &memory->requests[(size_t)chunk * memory->num_workers + worker];
}

#endif
