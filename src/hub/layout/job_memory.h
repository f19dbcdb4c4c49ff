/* Memory of one job on a hub: parameters, optimizer slots, each worker's gradients, and the state of each
 * chunk.
 *
 * Parameters are fp32 in `weights`, as num_versions copies: version v of a chunk lies in copy v %
 * num_versions. Workers read `results`, in the dtype of the keys; where all keys are fp32 the results are the
 * weights themselves. Workers of this host map the results, read-only, and write their gradients where the
 * hub reads them. Workers elsewhere get as much room, into which their gradients are received: shards deal it
 * out (shard_message.c). */
#ifndef PH_HUB_JOB_MEMORY_H
#define PH_HUB_JOB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/layout/layout.h"
#include "net/link/region.h"

#define PH_HUB_MAX_DEPTH 2

/* State of one chunk, for its shard. */
struct ph__chunk_state {
    _Alignas(64) uint64_t version;          /* updates made */
    uint32_t num_arrived[PH_HUB_MAX_DEPTH]; /* workers with an unused push of iteration i, at i % 2 */
    uint32_t num_sending[PH_HUB_MAX_DEPTH]; /* replies being read from version v, at v % 2 */
    uint32_t num_contributors;              /* gradients in its version */
    uint32_t num_added[PH_HUB_MAX_DEPTH];   /* arrival order: gradients in sums, at i % 2 */
    float learning_rates[PH_HUB_MAX_DEPTH]; /* rank 0's latest before its push of iteration i, at i % 2 */
    float learning_rate;                    /* used for its version */
    bool is_wanted;                         /* true: copy its version before the next update */
    bool is_waiting;                        /* true: its update waits for a reply to be sent */
    bool is_summed;                         /* true: waits for the clip factor */
    bool is_queued;                         /* true: its next iteration is complete and queued as work */
    double square; /* squared norm of its sum, to clip: the shard that finds the factor reads all chunks' */
};

/* Requests of one worker for one chunk. A cache line: neighbouring chunks may belong to other core
 * threads. */
struct ph__chunk_worker {
    _Alignas(64) uint64_t pushed;     /* iteration of its last push */
    uint64_t counted;                 /* iteration of the last push in num_arrived, or that was an update */
    uint64_t answered;                /* iteration of the last push that was answered */
    uint64_t pulled;                  /* iteration of the waiting pull */
    char *received[PH_HUB_MAX_DEPTH]; /* place of the gradient of iteration i, at i % depth, that came over a
                                       * connection; NULL: none, or its own (shard_message.c) */
    uint32_t num_sending[PH_HUB_MAX_DEPTH]; /* part of the chunk's num_sending */
    uint8_t kinds[PH_HUB_MAX_DEPTH];        /* kind of its push of iteration i, at i % 2 */
    uint8_t num_queued;                     /* gradients that are queued as work */
    bool is_pulling;
};

struct ph__worker_memory {
    struct ph__region region;           /* shared between the hub and a worker of this host */
    void *received;                     /* receives the gradients of a worker elsewhere; else NULL */
    char *gradients[PH_HUB_MAX_DEPTH];  /* (gradient_bytes) of iteration i, at i % depth */
    char *parameters[PH_HUB_MAX_DEPTH]; /* own results, at i % depth; NULL: it reads the shared ones */
};

struct ph__job_memory {
    const struct ph__layout *layout;
    size_t gradient_bytes; /* as in the layout */
    uint32_t num_workers, depth, num_versions;
    struct ph__region region;          /* the results; no worker can map it for writing */
    float *weights[PH_HUB_MAX_DEPTH];  /* (num_weights) each, num_versions of them */
    char *results[PH_HUB_MAX_DEPTH];   /* (gradient_bytes) */
    float *m, *s;                      /* (num_weights), NULL without an optimizer that has the slot */
    float *sums[PH_HUB_MAX_DEPTH];     /* (num_weights) at i % depth, NULL unless clipping or arrival order */
    struct ph__worker_memory *workers; /* (num_workers) */
    struct ph__chunk_state *chunks;    /* (num_chunks) */
    struct ph__chunk_worker *requests; /* (num_chunks, num_workers) */
};

struct ph__job_memory_options {
    const struct ph__layout *layout; /* borrowed until destroy */
    uint32_t num_workers, depth;
    uint32_t num_versions; /* 1 or 2; 2 where parameters are sent, so that a version stays while it is sent */
    bool has_m, has_s, has_sums;
};

/* Returns the bytes of a job's memory without its workers', for these sizes. The options need no layout. */
size_t ph__job_memory_bytes(
    const struct ph__job_memory_options *options, const struct ph__layout_sizes *sizes);

/* Creates memory of zeros, without workers. PH_ERROR_MEMORY. */
ph_status ph__job_memory_create(
    const struct ph__job_memory_options *options, struct ph__job_memory **memory_out);
void ph__job_memory_destroy(struct ph__job_memory *memory); /* NULL is fine */

/* Region that a worker of this host shares with the hub, which makes it: rings for each core thread, then
 * gradients, then the worker's own parameters. Both sides find their way by these sizes. */
struct ph__worker_region_sizes {
    size_t num_cores, ring_capacity, gradient_bytes, depth;
    bool has_own_parameters;
};
struct ph__worker_region {
    size_t ring_bytes;                  /* bytes of a core thread's rings; the first begin at 0 */
    size_t gradients, parameters, size; /* bytes from the beginning */
};
struct ph__worker_region ph__worker_region(const struct ph__worker_region_sizes *sizes);

/* Adds memory of a worker: a region if is_shared (a worker of this host), else room for its gradients. */
ph_status ph__job_memory_add_worker(struct ph__job_memory *memory, uint32_t worker, bool is_shared,
    const struct ph__worker_region_sizes *sizes);

static inline struct ph__chunk_worker *ph__request(
    const struct ph__job_memory *memory, uint32_t chunk, uint32_t worker)
{
    return &memory->requests[(size_t)chunk * memory->num_workers + worker];
}

#endif
