/* Requests: before each step the ids of all ranks' samples go where their rows are.
 *
 * Two exchanges a step, three with weights, whatever the number of tables: the bags' lengths, then their ids.
 * What comes lies rank by rank, each rank's streams one behind the other; a program looks up streams, each
 * with the samples of all ranks in order, so that what has come is put in that order. Ids travel as 32 bits,
 * counted from their stream's first row. Source: the combined format of Mudigere et al. 2022 (arXiv
 * 2104.05158, section 4.4). */
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

/* Of the batch that was exchanged last: how many ids of this rank's samples lie in that stream of `rank`; and
 * where, in this rank's own stream, the ids of rank's samples begin (of rank world_size: its end). */
size_t ph__requests_sent(const struct ph__sharding *sharding, size_t rank, size_t stream);
size_t ph__requests_begin(const struct ph__sharding *sharding, size_t stream, size_t rank);

#endif
