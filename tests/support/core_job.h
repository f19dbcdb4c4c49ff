/* A job of one shard for a core thread that a test drives itself: fp32, synchronous, without an optimizer, so
 * that results are sums of the workers' gradients. */
#ifndef PH_TEST_CORE_JOB_H
#define PH_TEST_CORE_JOB_H

#include "hub/shard/core.h"

enum { CORE_JOB_RING_CAPACITY = 16 };

struct core_job {
    struct ph__layout *layout;
    struct ph__job_memory *memory;
    uint16_t *core_of_chunk;
    struct ph__chunk_lists chunks_of_core;
    uint32_t optimizer_of_key;
    struct ph__shard_job job;
    struct ph__shard *shard;
    _Atomic unsigned num_failures; /* of workers */
};

/* Creates a job of one key of num_elements. has_payloads: links carry payloads. The job must not move until
 * core_job_fini(), which destroys the shard and its links. */
void core_job_init(
    struct core_job *job, size_t chunk_bytes, size_t num_elements, uint32_t num_workers, bool has_payloads);
void core_job_fini(struct core_job *job);

/* Makes the core thread run the shard, or stop running it. */
void core_job_start(struct core_job *job, struct ph__core *core);
void core_job_stop(struct core_job *job, struct ph__core *core);

/* Gives each worker a link whose other side runs in the core thread, too, and pushes a chunk again as soon as
 * the shard has replied: there is always work for all of the job's chunks, unless *is_resting, which belongs
 * to the core thread. */
void core_job_attach_tireless(struct core_job *job, const bool *is_resting);

#endif
