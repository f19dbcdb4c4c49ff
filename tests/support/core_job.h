/* A job of one shard for a core thread that a test drives by itself: fp32, synchronous, without an optimizer,
 * so that what comes back is the sum of the workers' gradients. */
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

/* One key of so many elements. has_payloads: links carry them. The job stays where it is until
 * core_job_fini(), which destroys the shard and its links. */
void core_job_init(
    struct core_job *job, size_t chunk_bytes, size_t num_elements, uint32_t num_workers, bool has_payloads);
void core_job_fini(struct core_job *job);

/* The core thread runs the shard from here on; and no more. */
void core_job_start(struct core_job *job, struct ph__core *core);
void core_job_stop(struct core_job *job, struct ph__core *core);

/* Gives each worker a link whose other side lives in the core thread, too, and pushes a chunk again as soon
 * as it was answered: there is always work for all of the job's chunks, unless *is_resting, which belongs to
 * the core thread. */
void core_job_attach_tireless(struct core_job *job, const bool *is_resting);

#endif
