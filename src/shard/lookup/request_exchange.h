/* Requests: before each step the ids of all ranks' samples go to the ranks that have their rows.
 *
 * Two exchanges a step, three with weights, for any number of tables: the bags' lengths, then their ids.
 * Received ids lie rank by rank, each rank's streams one behind the other; a program looks up streams, each
 * with the samples of all ranks in order, so the ids are put in that order. Ids travel as 32 bits, counted
 * from their stream's first row. Source: the combined format of Mudigere et al. 2022 (arXiv 2104.05158,
 * section 4.4). */
#ifndef PH_SHARD_REQUEST_EXCHANGE_H
#define PH_SHARD_REQUEST_EXCHANGE_H

#include "shard/sharding.h"

struct ph__request_buffers;

ph_status ph__request_buffers_create(struct ph__request_buffers **buffers_out); /* PH_ERROR_MEMORY */
void ph__request_buffers_destroy(struct ph__request_buffers *buffers);

/* Exchanges the batch's ids and sets the bounds of its ranks' samples. requests_out is borrowed until the
 * next exchange. Memory grows only while batches grow. PH_ERROR_DATA: an id outside its table; errors of
 * ph__comm_wait. */
ph_status ph__requests_exchange(
    struct ph__sharding *sharding, const struct ph_batch *batch, struct ph__requests *requests_out);

/* ph__requests_sent counts, for the batch exchanged last, the ids of this rank's samples in a stream of
 * `rank`; ph__requests_begin returns where the ids of rank's samples begin in this rank's own stream (for
 * rank world_size: where the stream ends). */
size_t ph__requests_sent(const struct ph__sharding *sharding, size_t rank, size_t stream);
size_t ph__requests_begin(const struct ph__sharding *sharding, size_t stream, size_t rank);

#endif
