/* A snapshot: what a job has learnt, as it was at one iteration, and all that is needed to go on from there:
 * what a checkpoint holds (job_checkpoint.h).
 *
 * Of several hubs that share the keys each has its own chunks' part.
 *
 * It stands by itself, so that it can be written while the job runs on, or has ended. Shards fill it chunk by
 * chunk without stopping the job, and read it back (shard_snapshot.c). */
#ifndef PH_HUB_SNAPSHOT_H
#define PH_HUB_SNAPSHOT_H

#include <stdint.h>

#include "hub/layout/layout.h"
#include "hub/wire/protocol.h"

struct ph__snapshot_chunk {
    uint64_t version;    /* updates made */
    float learning_rate; /* that the last of them was made with */
};

struct ph__snapshot {
    struct ph__service_settings settings; /* as the service was created */
    struct ph__init_key *keys;            /* (num_keys); none: a service that has not begun */
    size_t num_keys;
    size_t num_bytes;          /* of memory */
    struct ph__layout *layout; /* of the keys, with room for this hub's chunks; NULL without */
    float *weights, *m, *s; /* (num_weights) as in job_memory.h, m and s NULL where no optimizer has them */
    struct ph__snapshot_chunk *chunks; /* (num_chunks) */
    /* Known when it is whole: */
    uint64_t iteration; /* that each worker has done; 0 without chunks */
    float learning_rates[PH_HUB_MAX_OPTIMIZERS];
};

/* Zeros; learning rates as in the settings. Settings and keys are copied. PH_ERROR_MEMORY, and the errors of
 * ph__layout_create. num_keys may be 0. */
ph_status ph__snapshot_create(const struct ph__service_settings *settings, const struct ph__init_key *keys,
    size_t num_keys, size_t chunk_bytes, struct ph__snapshot **snapshot_out);
void ph__snapshot_destroy(struct ph__snapshot *snapshot); /* NULL is fine */

/* What one of a job with these settings and this layout takes. */
size_t ph__snapshot_bytes(const struct ph__service_settings *settings, const struct ph__layout_sizes *sizes);

/* The same before there is a layout, or less where several hubs share the keys: which chunks are this one's
 * is not known yet. The errors of ph__layout_measure. */
ph_status ph__snapshot_measure(const struct ph__service_settings *settings, const struct ph__init_key *keys,
    size_t num_keys, size_t chunk_bytes, size_t *bytes_out);

/* All chunks are there: finds the iteration and the learning rates. */
void ph__snapshot_finish(struct ph__snapshot *snapshot);

#endif
