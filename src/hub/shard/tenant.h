/* Tenant: one job on the hub. Gathers its workers, builds memory and shards when all workers have sent the
 * same keys, runs on the core threads, and goes back to gathering when the run ends. Where the hub keeps
 * checkpoints, the next run resumes from the last.
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
    PH_TENANT_GATHERING, /* workers join and send their keys */
    PH_TENANT_CHOOSING,  /* several hubs: rank 0 chooses among the parts of checkpoints */
    PH_TENANT_LOADING,   /* the checkpoint is read */
    PH_TENANT_LINKING,   /* memory is there; workers make their links */
    PH_TENANT_RUNNING,
    PH_TENANT_ENDING /* the checkpoint is removed, then the tenant */
};

struct ph__member {             /* a worker, by rank */
    struct ph_session *session; /* NULL: not there */
    bool is_shared, has_own_parameters;
    enum ph__way way;
    uint64_t token;    /* shown by connections for its links */
    size_t keys_bytes; /* most that its keys may take in buffers, until it has sent them */
    bool has_keys, is_linked, is_ready, has_left;
    char addresses[256]; /* addresses of this hub for its TCP links, " " before each, as many as fit */
};

struct ph__tenant;

/* Reports to the control thread that a worker or its link has failed; ph_error_text() says why. Called in a
 * core thread. */
typedef void (*ph__tenant_failure)(void *context, struct ph__tenant *tenant, uint32_t worker);
/* Tells that all core threads have touched a tenant's memory (shard.h), or that a snapshot of it has
 * progressed. Called in a core thread. */
typedef void (*ph__tenant_news)(void *context);

struct ph__tenant_listener; /* context of a shard's callbacks */

/* Counts of shards and links that were destroyed. */
struct ph__tenant_past {
    struct ph__shard_counters counters;
    struct ph__traffic traffic;
};

/* Parts (part_list.h) of a job that several hubs share, and the agreement on them with the lead, the worker
 * of the lowest rank that is there. server_parts.c. */
struct ph__tenant_parts {
    struct ph__parts here; /* on the disk */
    /* State of this run: */
    bool is_chosen; /* `chosen` is set: the part to resume from; PH_NO_ITERATION: begin anew */
    uint64_t chosen;
    uint64_t asked;       /* iteration of a wanted part, for a hub without chunks, which reaches none */
    uint64_t settled_end; /* like ph__saved's, for a hub with chunks */
    uint32_t lead, num_unanswered; /* receiver of the last SAVED, and the KEEPs that it may send */
    bool is_keep_due;              /* true: carry `keep` out when no other task is under way */
    struct ph__keep keep;
};

/* Checkpoint state of a tenant, which survives the death of workers and of the hub: a file, and the snapshot
 * that becomes the next one. */
struct ph__tenant_saves {
    struct ph__snapshot *snapshot;    /* snapshot of this run; NULL: none, or the task has it */
    bool is_wanted;                   /* true: a checkpoint of the current state is awaited */
    bool is_under_way;                /* true: shards fill the snapshot, or will at `version` */
    bool is_restoring;                /* true: shards read the snapshot back */
    bool is_watched;                  /* asynchronous: a shard will tell when the next checkpoint is due */
    uint64_t version;                 /* version of the last snapshot that was begun */
    _Atomic uint32_t num_shards;      /* shards that are still copying */
    _Atomic bool has_reached;         /* set when is_watched's version is reached */
    uint64_t num_begun;               /* checkpoints ever begun: their numbers */
    uint64_t num_runs;                /* runs that have ended */
    struct ph__checkpoint_task *task; /* the only one at a time; NULL: none */
    uint64_t task_number, task_run;   /* num_begun and num_runs when the task began */
    bool has_file, has_parameters;    /* the file's contents; of several hubs the kept part's */
    bool is_found;                    /* true: the file is older than the service */
    uint64_t iteration;
    size_t chunk_bytes; /* chunk size in the file, or in open parts */
    struct ph__tenant_parts parts;
};

struct ph__tenant {
    struct ph__service_settings settings;
    enum ph__tenant_state state;
    struct ph__tenant_saves saves;
    struct ph__member *members; /* (num_workers) */
    uint32_t num_joined, num_with_keys, num_linked, num_ready;
    size_t max_keys_bytes;     /* most of a frame with keys, since the first worker joined */
    struct ph__init_key *keys; /* (num_keys), from the first worker that sent them; else NULL */
    size_t num_keys;
    struct ph__tenant_past past;
    bool is_restored; /* true: resumes from a checkpoint, at first_iteration */
    uint64_t first_iteration;
    /* While it is linking or running: */
    bool must_end; /* true: destroy it when its last workers, which are leaving, have left */
    bool is_going; /* true: all workers were told to begin */
    struct ph__layout *layout;
    uint16_t *core_of_chunk; /* (num_chunks), PH_ELSEWHERE: on another hub */
    struct ph__chunk_lists chunks_of_core;
    uint32_t *optimizer_of_key; /* (num_keys) */
    uint64_t cores_sum;
    size_t ring_capacity;
    uint64_t num_bytes; /* memory that it takes, with all workers' and the chunks' state */
    struct ph__job_memory *memory;
    struct ph__shard_job job;
    struct ph__shard **shards;             /* (num_cores) */
    struct ph__tenant_listener *listeners; /* (num_cores) */
    struct ph__core *const *cores;         /* (num_cores), borrowed of the hub */
    uint16_t num_cores;
    struct ph__autotune_job chunks; /* choose the chunk size */
    _Atomic uint16_t num_touched;   /* core threads that have touched its memory */
    bool has_begun;                 /* true: all have, and workers were told so */
    struct ph__tenant *next;        /* next in the hub's list */
};

/* Returns true if several hubs share its keys, so that its checkpoints are parts. */
static inline bool ph__tenant_has_parts(const struct ph__tenant *tenant)
{
    return tenant->settings.share.num_hubs > 1;
}

/* Returns true if it is being destroyed: no worker may join any more. */
static inline bool ph__tenant_is_ending(const struct ph__tenant *tenant)
{
    return tenant->must_end || tenant->state == PH_TENANT_ENDING;
}

static inline bool ph__tenant_is_touched(const struct ph__tenant *tenant)
{
    return atomic_load(&tenant->num_touched) == tenant->num_cores;
}

/* Returns true if all shards have finished their copies, to or from a snapshot. */
static inline bool ph__tenant_is_copied(const struct ph__tenant *tenant)
{
    return atomic_load(&tenant->saves.num_shards) == 0;
}

/* Creates a tenant, and copies the settings. PH_ERROR_MEMORY. */
ph_status ph__tenant_create(const struct ph__service_settings *settings, struct ph__tenant **tenant_out);
void ph__tenant_destroy(struct ph__tenant *tenant); /* not while it is running */

/* Checks the keys that a worker initialises: PH_ERROR_USAGE naming a bad one. */
ph_status ph__tenant_check_keys(
    const struct ph__tenant *tenant, const struct ph__init_key *keys, size_t num_keys);

struct ph__tenant_options {
    struct ph__core *const *cores; /* (num_cores) */
    uint16_t num_cores;
    const struct ph__kernels *kernels;
    struct ph__autotune *tuning; /* choice for a job that names no chunk size */
    enum ph_hub_results results;
    bool is_wide;
    uint64_t max_bytes; /* most that it may take */
    ph__tenant_failure failure;
    ph__tenant_news has_news;
    void *context;           /* passed to both callbacks */
    bool has_snapshots;      /* true: allocate memory for snapshots */
    struct ph__trace *trace; /* NULL: none */
    const char *trace_name;  /* the tenant's name in the trace; borrowed until that is written */
};

/* Builds layout, memory and shards, when all workers are there with their keys: PH_TENANT_LINKING. A job that
 * is_restored resumes from saves.snapshot. PH_ERROR_MEMORY, also beyond max_bytes; PH_ERROR_USAGE for bad
 * keys. */
ph_status ph__tenant_build(struct ph__tenant *tenant, const struct ph__tenant_options *options);

/* ---- memory of a tenant ---- */

/* Returns the bytes that it takes now: num_bytes, a snapshot of an ended run until it is written, and buffers
 * for the keys of workers that have not sent them. */
uint64_t ph__tenant_bytes(const struct ph__tenant *tenant);

/* ---- links, and the run: tenant_run.c ---- */

/* Returns the sizes of the region of a worker of this host. */
struct ph__worker_region_sizes ph__tenant_region_sizes(const struct ph__tenant *tenant, uint32_t worker);

/* Makes the links of a worker of this host, and gives the worker's ends of their doorbells, one for each core
 * thread, which the caller closes. */
ph_status ph__tenant_link_shared(struct ph__tenant *tenant, uint32_t worker, int *doorbells_out);

/* Makes the link of a worker elsewhere to one core thread. The link owns the socket and the keys (NULL:
 * none); on failure they are closed and destroyed. PH_ERROR_PEER when the link exists already. */
ph_status ph__tenant_link_tcp(struct ph__tenant *tenant, uint32_t worker, uint16_t core, int socket,
    struct ph__frame_key *send_key, struct ph__frame_key *receive_key);
bool ph__tenant_is_linked(const struct ph__tenant *tenant, uint32_t worker); /* all core threads */

/* Starts the core threads' work on it, with touching its memory. PH_ERROR_MEMORY when they have too many jobs
 * or links already. */
ph_status ph__tenant_start(struct ph__tenant *tenant);

/* Goes on without a worker that has failed. */
void ph__tenant_remove_worker(struct ph__tenant *tenant, uint32_t worker);
/* Lets a worker go that has left in good order. A synchronous job that may not shrink ends with the worker's
 * last iteration. */
void ph__tenant_retire_worker(struct ph__tenant *tenant, uint32_t worker);

/* Ends the run, or the linking, and frees keys and parameters: back to PH_TENANT_GATHERING. */
void ph__tenant_stop(struct ph__tenant *tenant);

/* ---- snapshots of a running tenant ---- */

/* Holds all shards: nothing is updated until release, begin_snapshot or watch. Returns the largest
 * version of a chunk. */
uint64_t ph__tenant_hold(struct ph__tenant *tenant);
void ph__tenant_release(struct ph__tenant *tenant);
/* Begins to fill saves.snapshot, see ph__shard_begin_snapshot(), and releases. */
void ph__tenant_begin_snapshot(struct ph__tenant *tenant, uint64_t version);
/* Sets saves.has_reached when the first chunk has reached this version, and releases. */
void ph__tenant_watch(struct ph__tenant *tenant, uint64_t version);

#endif
