/* Trace events (base/trace.h) of chunks on their way through the hub. Their thread is the core thread's
 * index:
 *
 *     pushes          from the first worker's push of an iteration to the last worker's
 *     sum, step, ...  the passes over the chunk
 *     reply           from there until the reply to a worker has left; over shared memory: is visible
 *
 * Events have the numbers of chunk, iteration and worker, and the job's name as category. Times are taken
 * only while there is room for events; a job that is not traced pays for a look at a pointer. The functions
 * below are called in the shard's thread, for jobs that have a trace. */
#ifndef PH_HUB_SHARD_TRACE_H
#define PH_HUB_SHARD_TRACE_H

#include "base/trace.h"
#include "hub/shard/shard.h"

struct ph__chunk_times {
    uint64_t first_push_ns, last_push_ns; /* 0: none yet */
    uint64_t stepped_ns;
};

struct ph__job_trace;

/* PH_ERROR_MEMORY. */
ph_status ph__job_trace_create(struct ph__trace *events, const char *job, size_t num_chunks,
    uint16_t num_cores, struct ph__job_trace **trace_out);
void ph__job_trace_destroy(struct ph__job_trace *trace); /* NULL is fine */

void ph__shard_trace_push(struct ph__shard *shard, const struct ph__message *message);
uint64_t ph__shard_trace_begin(const struct ph__shard *shard); /* time that a pass begins; 0: no room */
void ph__shard_trace_end(struct ph__shard *shard, uint32_t chunk, const char *pass, uint64_t begin_ns);
/* trace_reply notes a reply without payload, which leaves when all links are moved (trace_replies_left).
 * trace_reply_left notes that a reply with payload has left. */
void ph__shard_trace_reply(struct ph__shard *shard, uint32_t worker, const struct ph__message *message);
void ph__shard_trace_replies_left(struct ph__shard *shard);
void ph__shard_trace_reply_left(struct ph__shard *shard, uint32_t worker, const struct ph__message *message);

#endif
