/* Chooses the chunk size of a job where neither the job nor the hub names one.
 *
 * The first job of a kind – over shared memory alone, or with a worker over TCP – makes the hub measure how
 * long the same gradients take in chunks of 8 KiB to 2 MiB, with its own links, shards and kernels
 * (autotune_measure.h). Later jobs reuse the result. Workers learn the size with the layout of their job;
 * other hubs do not learn it.
 *
 * Sums and steps are made element by element, so their bits do not follow the size. The norm of clipping
 * does, since its squares are added up chunk by chunk: a job that clips gets PH_AUTOTUNE_DEFAULT_BYTES on
 * every hub. One thread at a time. */
#ifndef PH_HUB_AUTOTUNE_H
#define PH_HUB_AUTOTUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/shard/autotune_measure.h"
#include "phloem/hub_server.h"

#define PH_AUTOTUNE_DEFAULT_BYTES ((uint32_t)32 << 10) /* the paper's, the best guess unmeasured */
#define PH_AUTOTUNE_TEXT_BYTES 160

/* Returns the size to use. Candidates take 5% less time than the default size, in three quarters of the
 * rounds and in the fastest of each. Over shared memory it is the smallest within 5% of the best; over TCP
 * the largest within 15%, since there each piece of a chunk may also wake a thread, which a trial in one
 * thread does not measure. Without a candidate, or with fewer than PH_AUTOTUNE_MIN_ROUNDS, it is the default
 * size. ratio_out: its time over the default's, the median of the rounds. */
uint32_t ph__autotune_choose(
    const struct ph__autotune_times *times, enum ph__autotune_path path, double *ratio_out);

/* Returns chunk_bytes, or less for a job too small to give each core thread 8 chunks: then a power of two, at
 * least 4 KiB. */
uint32_t ph__autotune_limit(uint32_t chunk_bytes, uint64_t num_bytes, uint16_t num_cores);

/* Returns chunk_bytes, doubled until a job of num_bytes has no more chunks than a layout may. */
uint32_t ph__autotune_fit(uint32_t chunk_bytes, uint64_t num_bytes);

struct ph__autotune { /* zero-initialised except kernels */
    const struct ph__kernels *kernels;
    enum ph_hub_results results;
    uint32_t hub_bytes; /* the hub's setting; 0: none */
    struct {
        bool is_measured; /* or was tried: chunk_bytes is valid */
        uint32_t chunk_bytes;
        char why[PH_AUTOTUNE_TEXT_BYTES];
    } paths[PH_AUTOTUNE_NUM_PATHS];
};

struct ph__autotune_job {
    uint32_t wanted_bytes; /* size named by the job, or by the checkpoint that it resumes; 0: none */
    enum ph__autotune_path path;
    uint64_t num_bytes; /* bytes of a worker's gradients */
    uint16_t num_cores;
    /* Nothing is measured for a job when: */
    bool clips;              /* set: bits follow the size */
    bool is_of_several_hubs; /* set: the hubs have to agree without knowing each other */
};

/* Returns the job's chunk size. May measure, which takes about a tenth of a second of the calling thread and
 * 24 MiB of memory. If that fails, the default is used. */
uint32_t ph__autotune_chunk_bytes(struct ph__autotune *tuning, const struct ph__autotune_job *job);

/* Tells why ph__autotune_chunk_bytes() gives this job its size: for logs. */
void ph__autotune_describe(const struct ph__autotune *tuning, const struct ph__autotune_job *job,
    char text_out[PH_AUTOTUNE_TEXT_BYTES]);

#endif
