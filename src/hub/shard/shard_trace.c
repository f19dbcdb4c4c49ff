/* Adds trace events; see shard_trace.h. */
#include "hub/shard/shard_trace.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "hub/shard/shard_state.h"

#define MAX_REPLIES 64 /* most of a core thread in one turn; others are left out */

struct traced_reply {
    uint32_t chunk, worker;
    uint64_t iteration;
};

struct traced_replies {
    uint32_t count;
    struct traced_reply replies[MAX_REPLIES];
};

struct ph__job_trace {
    struct ph__trace *events;       /* borrowed */
    const char *job;                /* borrowed until the events are written */
    struct ph__chunk_times *times;  /* (num_chunks, PH_HUB_MAX_DEPTH); written by the chunk's own shard */
    struct traced_replies *replies; /* (num_cores) that have not left yet */
};

ph_status ph__job_trace_create(struct ph__trace *events, const char *job, size_t num_chunks,
    uint16_t num_cores, struct ph__job_trace **trace_out)
{
    struct ph__job_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return ph__out_of_memory("cannot trace %zu chunks", num_chunks);
    trace->events = events;
    trace->job = job;
    trace->times = calloc(num_chunks * PH_HUB_MAX_DEPTH, sizeof *trace->times);
    trace->replies = calloc(num_cores, sizeof *trace->replies);
    if (trace->times == NULL || trace->replies == NULL) {
        ph__job_trace_destroy(trace);
        return ph__out_of_memory("cannot trace %zu chunks", num_chunks);
    }
    *trace_out = trace;
    return PH_OK;
}

void ph__job_trace_destroy(struct ph__job_trace *trace)
{
    if (trace == NULL)
        return;
    free(trace->times);
    free(trace->replies);
    free(trace);
}

/* Returns the times of a chunk's iteration. Iterations of a chunk overlap in synchronous jobs of depth 2. In
 * the other modes workers' iterations do not correspond, and share a slot. */
static struct ph__chunk_times *times_of(const struct ph__shard *shard, uint32_t chunk, uint64_t iteration)
{
    const size_t slot = shard->job->service.mode == PH_HUB_SYNCHRONOUS ? iteration % PH_HUB_MAX_DEPTH : 0;
    return &shard->job->trace->times[(size_t)chunk * PH_HUB_MAX_DEPTH + slot];
}

static void add(const struct ph__shard *shard, const char *name, uint64_t begin_ns, uint64_t end_ns,
    uint32_t chunk, uint64_t iteration, const uint32_t *worker)
{
    const struct ph__trace_argument arguments[] = {
        {"chunk", chunk}, {"iteration", iteration}, {"worker", worker != NULL ? *worker : 0}};
    ph__trace_add_with(shard->job->trace->events, name, shard->job->trace->job, shard->core, begin_ns,
        end_ns - begin_ns, arguments, worker != NULL ? 3 : 2);
}

void ph__shard_trace_push(struct ph__shard *shard, const struct ph__message *message)
{
    struct ph__chunk_times *times = times_of(shard, message->chunk, message->iteration);
    if (ph__trace_is_full(shard->job->trace->events))
        return;
    times->last_push_ns = ph__clock_ns();
    if (times->first_push_ns == 0)
        times->first_push_ns = times->last_push_ns;
}

uint64_t ph__shard_trace_begin(const struct ph__shard *shard)
{
    return ph__trace_is_full(shard->job->trace->events) ? 0 : ph__clock_ns();
}

void ph__shard_trace_end(struct ph__shard *shard, uint32_t chunk, const char *pass, uint64_t begin_ns)
{
    const uint64_t iteration = ph__shard_state(shard, chunk)->version + 1;
    struct ph__chunk_times *times = times_of(shard, chunk, iteration);
    if (begin_ns == 0)
        return;
    if (times->first_push_ns != 0)
        add(shard, "pushes", times->first_push_ns, times->last_push_ns, chunk, iteration, NULL);
    times->first_push_ns = times->last_push_ns = 0;
    times->stepped_ns = ph__clock_ns();
    add(shard, pass, begin_ns, times->stepped_ns, chunk, iteration, NULL);
}

/* ---- replies ---- */

static void add_reply(const struct ph__shard *shard, uint32_t worker, uint32_t chunk, uint64_t iteration)
{
    const uint64_t stepped_ns = times_of(shard, chunk, iteration)->stepped_ns;
    if (stepped_ns != 0 && !ph__trace_is_full(shard->job->trace->events))
        add(shard, "reply", stepped_ns, ph__clock_ns(), chunk, iteration, &worker);
}

void ph__shard_trace_reply(struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    struct traced_replies *replies = &shard->job->trace->replies[shard->core];
    if (replies->count < MAX_REPLIES)
        replies->replies[replies->count++] =
            (struct traced_reply){.chunk = message->chunk, .worker = worker, .iteration = message->iteration};
}

void ph__shard_trace_replies_left(struct ph__shard *shard)
{
    struct traced_replies *replies = &shard->job->trace->replies[shard->core];
    for (uint32_t i = 0; i < replies->count; i++)
        add_reply(
            shard, replies->replies[i].worker, replies->replies[i].chunk, replies->replies[i].iteration);
    replies->count = 0;
}

void ph__shard_trace_reply_left(struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    add_reply(shard, worker, message->chunk, message->iteration);
}
