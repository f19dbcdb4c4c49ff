/* A shard: the chunks of one job that belong to one core thread, and everything that happens to them.
 *
 * Messages of the job's workers go in; when a chunk has what it waits for, it is summed and stepped in one
 * pass (the kernel `aggregate`) and the replies go out: the reply to the last push is the pull. A chunk
 * belongs to one shard for ever, so nothing here is locked. A shard allocates nothing after it was made. It
 * knows links, not sockets: its test drives it by hand.
 *
 * Iterations count the updates of a chunk that a worker has pushed for, from 1. Synchronous: version v of a
 * chunk is made of the pushes of iteration v, and a pull brings the version that the worker has pushed for.
 * Otherwise each push makes a version.
 *
 * What a message says is checked before anything is done (place in shard_message.c); what is wrong is
 * PH_ERROR_PEER, of that worker.
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

/* What ph__message.kind says. */
enum ph__hub_message_kind {
    /* From a worker. PUSH, PUSHPULL and ASSIGN come with the chunk's gradient (ASSIGN: its parameters). */
    PH_HUB_PUSH = 1,
    PH_HUB_PULL,
    PH_HUB_PUSHPULL,
    PH_HUB_ASSIGN,        /* rank 0, before the first push: the chunk's parameters to begin with */
    PH_HUB_LEARNING_RATE, /* rank 0, for its pushes from now on: `chunk` is the bits of a float, `count` the
                             optimizer */
    /* To a worker; `iteration` is that of its request. */
    PH_HUB_TAKEN, /* a push or an assignment was taken */
    PH_HUB_VALUE  /* the parameters, with `count` gradients in them */
};

/* What all shards of a job share, and the updates of their chunks need. Immutable while shards run, but for
 * what says otherwise. */
struct ph__shard_job {
    const struct ph__kernels *kernels;
    struct ph__job_memory *memory; /* its contents are the shards', each chunk's its own shard's */
    const uint16_t *core_of_chunk; /* (num_chunks), PH_ELSEWHERE: of another hub */
    const struct ph__chunk_lists *chunks_of_core;
    struct ph_hub_service service; /* checked: what its mode makes no use of is 0; borrows its optimizers */
    bool is_non_temporal;
    const uint32_t *optimizer_of_key;
    struct ph__job_trace *trace; /* NULL: none (shard_trace.h) */
    struct ph__wide *wide;       /* NULL: tall (shard_wide.h) */
    /* Clipping: written by all shards. */
    _Atomic uint64_t num_summed;     /* chunks, of all iterations since the shards were made */
    _Atomic uint64_t rounds_clipped; /* rounds of all chunks whose factor is known */
    float clip_factor;               /* of the last: written before, read after */
};

struct ph__shard;

struct ph__shard_callbacks {
    void *context;
    /* The work of the other shards of this job has grown: a clip factor is known. */
    void (*wake_others)(void *context);
    /* A worker has broken the rules or its link has: ph_error_text() says how. Called once for each; its link
     * is not used any more. Iterations wait for it until it is removed, which has to be later: the shard is
     * at work. */
    void (*worker_failed)(void *context, uint32_t worker);
    void (*touched)(void *context); /* after ph__shard_begin_touch: it is done */
    /* A snapshot has all chunks of this shard, or they have all been read back from one. */
    void (*copied)(void *context);
    /* A version that was watched for. */
    void (*reached)(void *context);
};

struct ph__shard_counters {
    uint64_t updates, update_bytes; /* bytes of gradients that were summed */
    uint64_t pushes, pulls;
    uint64_t waits_for_replies; /* updates that had to wait because a reply was still being sent */
};

/* What one takes that has so many chunks, without its links. */
size_t ph__shard_bytes(const struct ph_hub_service *service, size_t num_chunks);
ph_status ph__shard_create(struct ph__shard_job *job, uint16_t core,
    const struct ph__shard_callbacks *callbacks, struct ph__shard **shard_out);
void ph__shard_destroy(struct ph__shard *shard); /* destroys its links */

/* What to make a worker's link with, and the link: owned by the shard from now on. All workers are attached
 * before the first run: an iteration waits for those that are there. */
struct ph__link_owner ph__shard_link_owner(struct ph__shard *shard, uint32_t worker);
void ph__shard_attach(struct ph__shard *shard, uint32_t worker, struct ph__link *link, bool has_payloads);
struct ph__link *ph__shard_link(struct ph__shard *shard, uint32_t worker); /* NULL: none any more */

/* The worker is no more: its link goes, and iterations wait for the others alone. What it has pushed is in no
 * sum that was not begun. */
void ph__shard_remove_worker(struct ph__shard *shard, uint32_t worker);

/* The worker has left in good order: its link goes. Synchronous: iterations up to its last push still hold
 * its gradients; a worker that pushes a later one, or has, fails. Otherwise as if it was removed. */
void ph__shard_retire_worker(struct ph__shard *shard, uint32_t worker);

/* Its first runs, before any message, write to all memory of its chunks, so that this belongs to the NUMA
 * node of the thread that runs it. */
void ph__shard_begin_touch(struct ph__shard *shard);

/* Moves all links on, and works until it has gone through about max_bytes: of gradients, and of sums and
 * parameters where these are passes of their own. Returns how much was done or is left, in messages and
 * works; 0: nothing to do until a message comes. bytes_out: gone through, and carried to and from workers
 * elsewhere. */
size_t ph__shard_run(struct ph__shard *shard, size_t max_bytes, size_t *bytes_out);

/* Before its thread sleeps: from now on links ring. false: something has come meanwhile, or there is work
 * left. Afterwards end_sleep, always; a link whose other side has gone fails then. In between the thread
 * waits at an epoll that watches the shard. */
bool ph__shard_begin_sleep(struct ph__shard *shard);
void ph__shard_end_sleep(struct ph__shard *shard);
ph_status ph__shard_watch_links(
    const struct ph__shard *shard, int epoll); /* all its links. PH_ERROR_MEMORY */
size_t ph__shard_num_workers(const struct ph__shard *shard);

/* The least and the largest version of its chunks; without chunks UINT64_MAX and 0. */
void ph__shard_versions(const struct ph__shard *shard, uint64_t *least_out, uint64_t *most_out);

/* ---- snapshots: shard_snapshot.c ---- */

struct ph__snapshot;

#define PH_SNAPSHOT_NOW UINT64_MAX

/* While it is held, the shard updates nothing: the versions of a job's shards can be looked at together. */
void ph__shard_hold(struct ph__shard *shard);
void ph__shard_release(struct ph__shard *shard);

/* Copies every chunk into the snapshot: as its version `version` is, which none has passed, or as it is now;
 * and then calls `copied`. The snapshot is borrowed until then. May be called again before any chunk has come
 * to `version`. */
void ph__shard_begin_snapshot(struct ph__shard *shard, struct ph__snapshot *snapshot, uint64_t version);

/* Calls `reached` when a chunk has come to this version. While no snapshot is under way. */
void ph__shard_watch(struct ph__shard *shard, uint64_t version);

/* Before the first run: the shard goes on from the snapshot, borrowed until `copied`. The versions of its
 * chunks are set already. */
void ph__shard_begin_restore(struct ph__shard *shard, struct ph__snapshot *snapshot);

const struct ph__shard_counters *ph__shard_counters(const struct ph__shard *shard);
void ph__shard_counters_add(struct ph__shard_counters *sum, const struct ph__shard_counters *part);

#endif
