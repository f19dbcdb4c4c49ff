/* Snapshot: the state of a job's training at one iteration, with all that is needed to resume from there: the
 * contents of a checkpoint (job_checkpoint.h). Where several hubs share the keys, each hub's has its own
 * chunks.
 *
 * A snapshot does not refer to the job, so it can be written while the job runs on or has ended. Shards fill
 * it chunk by chunk without stopping the job, and read it back (shard_snapshot.c). */
#ifndef PH_HUB_SNAPSHOT_H
#define PH_HUB_SNAPSHOT_H

#include <stdint.h>

#include "hub/layout/layout.h"
#include "hub/wire/protocol.h"

struct ph__snapshot_chunk {
    uint64_t version;    /* updates made */
    float learning_rate; /* used by the last update */
};

struct ph__snapshot {
    struct ph__service_settings settings; /* settings at the service's creation */
    struct ph__init_key *keys;            /* (num_keys); none: a service that has not begun */
    size_t num_keys;
    size_t num_bytes;          /* memory that it takes */
    struct ph__layout *layout; /* places of the keys, with room for this hub's chunks; NULL without keys */
    float *weights, *m, *s;    /* (num_weights) as in job_memory.h, m and s NULL if no optimizer has them */
    struct ph__snapshot_chunk *chunks; /* (num_chunks) */
    /* Known when it is finished: */
    uint64_t iteration; /* iterations that each worker has done; 0 without chunks */
    float learning_rates[PH_HUB_MAX_OPTIMIZERS];
};

/* Creates a snapshot of zeros, with the learning rates of the settings. Copies settings and keys.
 * PH_ERROR_MEMORY, and the errors of ph__layout_create. num_keys may be 0. */
ph_status ph__snapshot_create(const struct ph__service_settings *settings, const struct ph__init_key *keys,
    size_t num_keys, size_t chunk_bytes, struct ph__snapshot **snapshot_out);
void ph__snapshot_destroy(struct ph__snapshot *snapshot); /* NULL is fine */

/* Returns the bytes of a snapshot of a job with these settings and this layout. */
size_t ph__snapshot_bytes(const struct ph__service_settings *settings, const struct ph__layout_sizes *sizes);

/* Gives ph__snapshot_bytes() before there is a layout, or less where several hubs share the keys, since this
 * hub's chunks are not known yet. The errors of ph__layout_measure. */
ph_status ph__snapshot_measure(const struct ph__service_settings *settings, const struct ph__init_key *keys,
    size_t num_keys, size_t chunk_bytes, size_t *bytes_out);

/* Sets the iteration and the learning rates, when all chunks are there. */
void ph__snapshot_finish(struct ph__snapshot *snapshot);

#endif
