/* Shard: the chunks of one job that belong to one core thread, and all work on them.
 *
 * Messages of the job's workers go in. When a chunk has what it waits for, it is summed and stepped in one
 * pass (the kernel `aggregate`) and the replies go out: the reply to the last push is the pull. A chunk
 * belongs to one shard for ever, so nothing here is locked. A shard allocates nothing after its creation. It
 * uses links, not sockets: its test drives it by hand.
 *
 * Iterations count the updates of a chunk that a worker has pushed for, from 1. Synchronous: version v of a
 * chunk is made of the pushes of iteration v, and a pull brings the version that the worker has pushed for.
 * In the other modes each push makes a version.
 *
 * Each message is checked before anything is done (place in shard_message.c); an invalid one is PH_ERROR_PEER
 * of that worker.
 *
 * Source: arXiv:1805.07891, sections 3.2 (chunks, tall aggregation) and 3.3; bounded staleness: Ho et al.,
 * NIPS 2013. */
#ifndef PH_HUB_SHARD_H
#define PH_HUB_SHARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/layout/job_memory.h"
#include "hub/layout/spread.h"
#include "kernel/kernel.h"
#include "net/link/link.h"
#include "phloem/hub.h"

/* Values of ph__message.kind. */
enum ph__hub_message_kind {
    /* From a worker. PUSH, PUSHPULL and ASSIGN come with the chunk's gradient (ASSIGN: its parameters). */
    PH_HUB_PUSH = 1,
    PH_HUB_PULL,
    PH_HUB_PUSHPULL,
    PH_HUB_ASSIGN,        /* rank 0, before the first push: the chunk's initial parameters */
    PH_HUB_LEARNING_RATE, /* rank 0, for its next pushes: `chunk`: bits of a float, `count`: optimizer */
    /* To a worker; `iteration` is that of its request. */
    PH_HUB_TAKEN, /* a push or an assignment was taken */
    PH_HUB_VALUE  /* the parameters, with `count` gradients in them */
};

/* Data that all shards of a job share. Immutable while shards run, except where stated. */
struct ph__shard_job {
    const struct ph__kernels *kernels;
    struct ph__job_memory *memory; /* shards write the state of their own chunks */
    const uint16_t *core_of_chunk; /* (num_chunks), PH_ELSEWHERE: on another hub */
    const struct ph__chunk_lists *chunks_of_core;
    struct ph_hub_service service; /* checked; members without effect are 0; borrows its optimizers */
    bool is_non_temporal;
    const uint32_t *optimizer_of_key;
    struct ph__job_trace *trace; /* NULL: no trace (shard_trace.h) */
    struct ph__wide *wide;       /* NULL: tall (shard_wide.h) */
    /* Clipping: all shards write. */
    _Atomic uint64_t num_summed;     /* chunks, in all iterations since the shards were made */
    _Atomic uint64_t rounds_clipped; /* rounds of all chunks whose factor is known */
    float clip_factor;               /* factor of the last round; written before rounds_clipped, read after */
};

struct ph__shard;

struct ph__shard_callbacks {
    void *context;
    /* The other shards of this job have more work: a clip factor is known. */
    void (*wake_others)(void *context);
    /* A worker or its link has broken the rules: ph_error_text() says how. Called once for each worker, whose
     * link is not used any more. Iterations wait for the worker until it is removed, which must not happen
     * inside the callback: the shard is at work. */
    void (*worker_failed)(void *context, uint32_t worker);
    void (*touched)(void *context); /* ph__shard_begin_touch's work is done */
    /* All chunks of this shard were copied into a snapshot, or read back from one. */
    void (*copied)(void *context);
    /* A watched version was reached. */
    void (*reached)(void *context);
};

struct ph__shard_counters {
    uint64_t updates, update_bytes; /* bytes of gradients that were summed */
    uint64_t pushes, pulls;
    uint64_t waits_for_replies; /* updates that had to wait because a reply was still being sent */
};

/* Returns the bytes of a shard with num_chunks chunks, without its links. */
size_t ph__shard_bytes(const struct ph_hub_service *service, size_t num_chunks);
ph_status ph__shard_create(struct ph__shard_job *job, uint16_t core,
    const struct ph__shard_callbacks *callbacks, struct ph__shard **shard_out);
void ph__shard_destroy(struct ph__shard *shard); /* destroys its links */

/* link_owner returns the owner that the worker's link has to be made with; attach passes the link to the
 * shard, which owns it. Attach all workers before the first run: an iteration waits for those that are
 * attached. */
struct ph__link_owner ph__shard_link_owner(struct ph__shard *shard, uint32_t worker);
void ph__shard_attach(struct ph__shard *shard, uint32_t worker, struct ph__link *link, bool has_payloads);
struct ph__link *ph__shard_link(struct ph__shard *shard, uint32_t worker); /* NULL: none any more */

/* Removes a worker that has failed: destroys its link; iterations wait for the others alone. Its pushes count
 * only in sums that were begun. */
void ph__shard_remove_worker(struct ph__shard *shard, uint32_t worker);

/* Retires a worker that has left in good order: destroys its link. Synchronous: iterations up to its last
 * push still hold its gradients; a worker that pushes a later iteration, or has done so, fails. In the other
 * modes like remove_worker. */
void ph__shard_retire_worker(struct ph__shard *shard, uint32_t worker);

/* Makes the first runs, before any message, write to all memory of the shard's chunks, so that the memory
 * belongs to the NUMA node of the thread that runs it. */
void ph__shard_begin_touch(struct ph__shard *shard);

/* Moves all links on, and works until about max_bytes are done: gradients, and sums and parameters where
 * these are passes of their own. Returns the messages and works that were done or are left; 0: nothing to do
 * until a message comes. bytes_out: bytes done, and bytes carried to and from workers elsewhere. */
size_t ph__shard_run(struct ph__shard *shard, size_t max_bytes, size_t *bytes_out);

/* begin_sleep has links ring from now on; false: something has come meanwhile, or work is left. Its thread
 * then waits at an epoll that watches the shard. end_sleep has to follow in any case; a link whose peer has
 * gone fails then. */
bool ph__shard_begin_sleep(struct ph__shard *shard);
void ph__shard_end_sleep(struct ph__shard *shard);
ph_status ph__shard_watch_links(
    const struct ph__shard *shard, int epoll); /* all its links. PH_ERROR_MEMORY */
size_t ph__shard_num_workers(const struct ph__shard *shard);

/* Gives the least and the largest version of its chunks; without chunks UINT64_MAX and 0. */
void ph__shard_versions(const struct ph__shard *shard, uint64_t *least_out, uint64_t *most_out);

/* ---- snapshots: shard_snapshot.c ---- */

struct ph__snapshot;

#define PH_SNAPSHOT_NOW UINT64_MAX

/* Stops updates while held, so that the versions of a job's shards can be compared. */
void ph__shard_hold(struct ph__shard *shard);
void ph__shard_release(struct ph__shard *shard);

/* Copies every chunk into the snapshot, at `version`, which no chunk has passed, or PH_SNAPSHOT_NOW, and then
 * calls `copied`. Borrows the snapshot until then. May be called again before any chunk has reached
 * `version`. */
void ph__shard_begin_snapshot(struct ph__shard *shard, struct ph__snapshot *snapshot, uint64_t version);

/* Calls `reached` when a chunk has reached this version. Not while a snapshot is under way. */
void ph__shard_watch(struct ph__shard *shard, uint64_t version);

/* Restores the chunks from the snapshot, borrowed until `copied`. Called before the first run, when the
 * chunks' versions are set already. */
void ph__shard_begin_restore(struct ph__shard *shard, struct ph__snapshot *snapshot);

const struct ph__shard_counters *ph__shard_counters(const struct ph__shard *shard);
void ph__shard_counters_add(struct ph__shard_counters *sum, const struct ph__shard_counters *part);

#endif
