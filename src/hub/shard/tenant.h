/* A tenant: one job on the hub. Gathers its workers, builds what they need when all have told the same keys,
 * runs on the core threads, and goes back to gathering when the run ends. Where the hub keeps checkpoints,
 * the next run goes on from the last.
 *
 * Belongs to the control thread; its shards belong to the core threads from start to stop. */
#ifndef PH_HUB_TENANT_H
#define PH_HUB_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/keep/checkpoint_task.h"
#include "hub/layout/job_memory.h"
#include "hub/shard/autotune.h"
#include "hub/shard/core.h"
#include "hub/shard/shard.h"
#include "hub/wire/part_list.h"
#include "hub/wire/protocol.h"
#include "net/frame_key.h"
#include "net/link/link.h"

struct ph_session;

enum ph__tenant_state {
    PH_TENANT_GATHERING, /* workers join and tell their keys */
    PH_TENANT_CHOOSING,  /* of several hubs: rank 0 finds out which parts of its checkpoints fit together */
    PH_TENANT_LOADING,   /* its checkpoint is read */
    PH_TENANT_LINKING,   /* memory is there; workers make their links */
    PH_TENANT_RUNNING,
    PH_TENANT_ENDING /* its checkpoint is removed, and then it is */
};

struct ph__member {             /* a worker, by rank */
    struct ph_session *session; /* NULL: not there */
    bool is_shared, has_own_parameters;
    enum ph__way way;
    uint64_t token;    /* that connections for its links show */
    size_t keys_bytes; /* of memory that its keys may take on the way, until it has told them */
    bool has_keys, is_linked, is_ready, has_left;
    char addresses[256]; /* of this hub that its links over TCP go to, " " before each, as far as they fit */
};

struct ph__tenant;

/* A worker's end as the shards see it, told to the control thread: ph_error_text() says why. Called in a core
 * thread. */
typedef void (*ph__tenant_failure)(void *context, struct ph__tenant *tenant, uint32_t worker);
/* The memory of a tenant has been touched by all of its core threads (shard.h), or a snapshot of it has got
 * somewhere. Called in one of them. */
typedef void (*ph__tenant_news)(void *context);

struct ph__tenant_listener; /* what a shard's callbacks know */

/* What is left of shards and links that are no more. */
struct ph__tenant_past {
    struct ph__shard_counters counters;
    struct ph__traffic traffic;
};

/* Of a job that several hubs share: its parts (part_list.h), and what is agreed about them with the worker of
 * the lowest rank that is there, the lead. server_parts.c. */
struct ph__tenant_parts {
    struct ph__parts here; /* on the disk */
    /* Of this run: */
    bool is_chosen; /* `chosen` was: the part that the job goes on from; PH_NO_ITERATION: it begins anew */
    uint64_t chosen;
    uint64_t asked; /* iteration that a part is to be of, for a hub without chunks, which comes to none */
    uint64_t settled_end;          /* as in ph__saved, for a hub with chunks */
    uint32_t lead, num_unanswered; /* whom SAVED was last sent to, and how many KEEPs it may send */
    bool is_keep_due;              /* `keep` is to be carried out, when no other task is under way */
    struct ph__keep keep;
};

/* How a tenant is kept over deaths, its workers' and the hub's: by a file, and the snapshot that becomes the
 * next one. */
struct ph__tenant_saves {
    struct ph__snapshot *snapshot; /* of this run; NULL: none, or the task has it */
    bool is_wanted;                /* somebody waits for a checkpoint of what is there now */
    bool is_under_way;             /* shards fill the snapshot, or will when they have come to `version` */
    bool is_restoring;             /* shards read it back */
    bool is_watched;               /* asynchronous: a shard tells when it has come to the next checkpoint */
    uint64_t version;              /* that the last one was to be of */
    _Atomic uint32_t num_shards;   /* that are still at it */
    _Atomic bool has_reached;      /* what is_watched for */
    uint64_t num_begun;            /* checkpoints, ever: who waits for one knows its number */
    uint64_t num_runs;             /* that have ended */
    struct ph__checkpoint_task *task; /* NULL: none; there is one at a time */
    uint64_t task_number, task_run;   /* num_begun and num_runs when it began */
    bool has_file, has_parameters;    /* what the file holds; of several hubs the kept part */
    bool is_found;                    /* the file was there before the service was */
    uint64_t iteration;
    size_t chunk_bytes; /* ... or what open parts hold */
    struct ph__tenant_parts parts;
};

struct ph__tenant {
    struct ph__service_settings settings;
    enum ph__tenant_state state;
    struct ph__tenant_saves saves;
    struct ph__member *members; /* (num_workers) */
    uint32_t num_joined, num_with_keys, num_linked, num_ready;
    size_t max_keys_bytes;     /* of a frame that tells them, since the first worker joined */
    struct ph__init_key *keys; /* (num_keys), from the first worker that told them; NULL while none has */
    size_t num_keys;
    struct ph__tenant_past past;
    bool is_restored; /* goes on from a checkpoint, at first_iteration */
    uint64_t first_iteration;
    /* While it is linking or running: */
    bool must_end; /* it is to be destroyed when the run is over, for which its last workers are just leaving
                    */
    bool is_going; /* all workers have been told that they may begin */
    struct ph__layout *layout;
    uint16_t *core_of_chunk; /* (num_chunks), PH_ELSEWHERE: of another hub */
    struct ph__chunk_lists chunks_of_core;
    uint32_t *optimizer_of_key; /* (num_keys) */
    uint64_t cores_sum;
    size_t ring_capacity;
    uint64_t num_bytes; /* of memory, all workers' and its books included */
    struct ph__job_memory *memory;
    struct ph__shard_job job;
    struct ph__shard **shards;             /* (num_cores) */
    struct ph__tenant_listener *listeners; /* (num_cores) */
    struct ph__core *const *cores;         /* (num_cores), the hub's */
    uint16_t num_cores;
    struct ph__autotune_job chunks; /* what their size depends on */
    _Atomic uint16_t num_touched;   /* core threads that have touched its memory */
    bool has_begun;                 /* all have, and workers were told so */
    struct ph__tenant *next;        /* the hub's list */
};

/* Whether several hubs share its keys, so that its checkpoints are parts. */
static inline bool ph__tenant_has_parts(const struct ph__tenant *tenant)
{
    return tenant->settings.share.num_hubs > 1;
}

/* Whether it is being destroyed: nobody joins it any more. */
static inline bool ph__tenant_is_ending(const struct ph__tenant *tenant)
{
    return tenant->must_end || tenant->state == PH_TENANT_ENDING;
}

/* Whether all core threads have touched its memory. */
static inline bool ph__tenant_is_touched(const struct ph__tenant *tenant)
{
    return atomic_load(&tenant->num_touched) == tenant->num_cores;
}

/* Whether all shards have copied what they had to, to or from a snapshot. */
static inline bool ph__tenant_is_copied(const struct ph__tenant *tenant)
{
    return atomic_load(&tenant->saves.num_shards) == 0;
}

/* The settings are copied. PH_ERROR_MEMORY. */
ph_status ph__tenant_create(const struct ph__service_settings *settings, struct ph__tenant **tenant_out);
void ph__tenant_destroy(struct ph__tenant *tenant); /* one that is not running */

/* Whether a worker may initialise such keys: PH_ERROR_USAGE naming the one that cannot be. */
ph_status ph__tenant_check_keys(
    const struct ph__tenant *tenant, const struct ph__init_key *keys, size_t num_keys);

struct ph__tenant_options {
    struct ph__core *const *cores; /* (num_cores) */
    uint16_t num_cores;
    const struct ph__kernels *kernels;
    struct ph__autotune *tuning; /* for a job that names no chunk size */
    enum ph_hub_results results;
    bool is_wide;
    uint64_t max_bytes; /* that it may take */
    ph__tenant_failure failure;
    ph__tenant_news has_news;
    void *context;           /* of both */
    bool has_snapshots;      /* memory for them */
    struct ph__trace *trace; /* NULL: none */
    const char *trace_name;  /* what the tenant is called in it; borrowed until it is written */
};

/* When all workers are there with their keys: layout, memory and shards, in the state PH_TENANT_LINKING. A
 * job that is_restored goes on from saves.snapshot. PH_ERROR_MEMORY, also beyond max_bytes; PH_ERROR_USAGE
 * for keys that cannot be. */
ph_status ph__tenant_build(struct ph__tenant *tenant, const struct ph__tenant_options *options);

/* ---- what a tenant takes ---- */

/* What it takes now: num_bytes; a snapshot whose run has ended, until it is written; what its workers may say
 * until they have told their keys. */
uint64_t ph__tenant_bytes(const struct ph__tenant *tenant);

/* ---- links, and the run: tenant_run.c ---- */

/* Where a worker of this host finds its things. */
struct ph__worker_region_sizes ph__tenant_region_sizes(const struct ph__tenant *tenant, uint32_t worker);

/* Makes the links of a worker of this host, and gives the worker's ends of their doorbells, one for each core
 * thread, to be closed by the caller. */
ph_status ph__tenant_link_shared(struct ph__tenant *tenant, uint32_t worker, int *doorbells_out);

/* Makes the link of a worker elsewhere to one core thread. The socket and the keys (NULL: none) are the
 * link's from now on, or closed and destroyed. PH_ERROR_PEER when it is there already. */
ph_status ph__tenant_link_tcp(struct ph__tenant *tenant, uint32_t worker, uint16_t core, int socket,
    struct ph__frame_key *send_key, struct ph__frame_key *receive_key);
bool ph__tenant_is_linked(const struct ph__tenant *tenant, uint32_t worker); /* to all core threads */

/* From now on core threads work on it; they begin by touching its memory. PH_ERROR_MEMORY when they have too
 * many jobs or links already. */
ph_status ph__tenant_start(struct ph__tenant *tenant);

/* A running tenant goes on without the worker. */
void ph__tenant_remove_worker(struct ph__tenant *tenant, uint32_t worker);
/* The worker has left in good order. A synchronous job that may not shrink ends with its last iteration. */
void ph__tenant_retire_worker(struct ph__tenant *tenant, uint32_t worker);

/* Ends the run, or the linking, and forgets keys and parameters: back to PH_TENANT_GATHERING. */
void ph__tenant_stop(struct ph__tenant *tenant);

/* ---- snapshots of a running tenant ---- */

/* Holds all shards: nothing is updated until one of the next three. Returns the largest version of a chunk.
 */
uint64_t ph__tenant_hold(struct ph__tenant *tenant);
void ph__tenant_release(struct ph__tenant *tenant);
/* Begins to fill saves.snapshot, see ph__shard_begin_snapshot(), and releases. */
void ph__tenant_begin_snapshot(struct ph__tenant *tenant, uint64_t version);
/* Sets saves.has_reached when the first chunk has come to this version, and releases. */
void ph__tenant_watch(struct ph__tenant *tenant, uint64_t version);

#endif
