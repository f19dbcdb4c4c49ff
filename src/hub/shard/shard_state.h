/* Inside of a shard, for the files that it is made of: shard_run.c (work, workers and sleep), shard_message.c
 * (messages, places of gradients, replies), shard_update.c (sums and steps), shard_snapshot.c, and those with
 * headers of their own: shard_wide.h, shard_trace.h. */
#ifndef PH_HUB_SHARD_STATE_H
#define PH_HUB_SHARD_STATE_H

#include "hub/shard/shard.h"

/* This end of a worker's link, and the context of its owner. */
struct ph__shard_link {
    struct ph__shard *shard;
    struct ph__link *link; /* NULL: the worker is not there */
    uint32_t worker;
    bool has_payloads; /* true: parameters are sent, not shared */
    bool has_failed;   /* true: waits to be removed */
    bool has_left;     /* true: left a synchronous job in good order; its pushes still count */
};

enum ph__shard_work_kind {
    PH_WORK_ITERATION, /* synchronous: all gradients of the chunk's next iteration are there */
    PH_WORK_GRADIENT,  /* add one worker's gradient, or update with it */
    PH_WORK_STEP,      /* the chunk's sum is there and the clip factor is known */
    PH_WORK_COPY,      /* copy the chunk into the snapshot */
    PH_WORK_RESTORE    /* read the chunk back from the snapshot */
};

struct ph__shard_work {
    uint32_t chunk;
    uint16_t worker;
    uint16_t kind;
};

struct ph__shard {
    struct ph__shard_job *job;
    struct ph__shard_callbacks callbacks;
    struct ph__shard_counters counters;
    uint16_t core;
    uint32_t num_live;      /* workers whose gradients an iteration waits for */
    uint32_t num_left;      /* workers among these that have_left */
    const uint32_t *chunks; /* (num_chunks) its own, ascending; borrowed of the job */
    size_t num_chunks;
    struct ph__shard_link *links; /* (num_workers) */
    struct ph__shard_work *works; /* a ring */
    uint64_t works_mask, works_begun, works_ended;
    uint64_t rounds_stepped; /* rounds of clipping */
    size_t bytes_done;       /* bytes of its work in this run */
    size_t bytes_carried;    /* bytes over a network in this run */
    size_t messages_a_turn;  /* most of one link in a turn */
    size_t num_touched;      /* steps, while is_touching */
    bool is_touching;
    bool is_held;                  /* true: no work is done */
    struct ph__snapshot *snapshot; /* being filled or read; NULL: none */
    uint64_t snapshot_version;     /* version to copy or watch chunks at; UINT64_MAX: none */
    size_t num_uncopied;           /* chunks, and 1 more while it begins */
    char **places;                 /* (num_places) free ones, the next at the end; has room for all */
    size_t num_places;
    float *learning_rates; /* (num_optimizers) */
    const void **copies;   /* (num_workers), scratch of an update */
    void **results;        /* (num_workers + 1), scratch of an update */
};

static inline bool ph__shard_is_live(const struct ph__shard *shard, uint32_t worker)
{
    return shard->links[worker].link != NULL;
}

/* Returns true if the worker's gradients are still used. */
static inline bool ph__shard_counts(const struct ph__shard *shard, uint32_t worker)
{
    return ph__shard_is_live(shard, worker) || shard->links[worker].has_left;
}

static inline struct ph__chunk_state *ph__shard_state(const struct ph__shard *shard, uint32_t chunk)
{
    return &shard->job->memory->chunks[chunk];
}

/* Returns true if each gradient is work of its own when it comes. */
static inline bool ph__shard_takes_gradients(const struct ph_hub_service *service)
{
    return service->mode != PH_HUB_SYNCHRONOUS || service->order == PH_HUB_ARRIVAL_ORDER;
}

/* Returns true if all gradients of the chunk's next iteration are there; synchronous jobs. */
static inline bool ph__shard_is_complete(const struct ph__shard *shard, const struct ph__chunk_state *state)
{
    const uint32_t num_arrived = state->num_arrived[(state->version + 1) % PH_HUB_MAX_DEPTH];
    return num_arrived > 0 && num_arrived >= shard->num_live;
}

static inline uint32_t ph__shard_optimizer(const struct ph__shard *shard, uint32_t chunk)
{
    return shard->job->optimizer_of_key[shard->job->memory->layout->chunks[chunk].key];
}

/* ---- shard_run.c ---- */

void ph__shard_add_work(
    struct ph__shard *shard, enum ph__shard_work_kind kind, uint32_t chunk, uint32_t worker);
/* Adds the work that the chunk has become ready for. */
void ph__shard_consider(struct ph__shard *shard, uint32_t chunk);
/* Adds the worker's gradients as work, where each is work of its own. */
void ph__shard_consider_gradients(struct ph__shard *shard, uint32_t chunk, uint32_t worker);
/* Reports the failure to the callback; ph_error_text() says why. */
void ph__shard_fail_worker(struct ph__shard *shard, uint32_t worker);

/* ---- shard_message.c ---- */

/* Checks that no worker has left before pushing this iteration, which would then never be complete.
 * PH_ERROR_PEER. */
ph_status ph__shard_check_nobody_left(const struct ph__shard *shard, uint32_t chunk, uint64_t iteration);

/* Adds the places of a worker whose gradients are received. Before the first run. */
void ph__shard_add_places(struct ph__shard *shard, uint32_t worker);
/* Deals all places out anew for the current layout. While nothing is under way. */
void ph__shard_deal_places(struct ph__shard *shard);
/* Returns the place of a worker's gradient. */
char *ph__shard_gradient(const struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration);
/* Frees the place of a gradient that was used and is not read any more. */
void ph__shard_free_place(struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration);

void ph__shard_reply(struct ph__shard *shard, uint32_t worker, uint32_t chunk, enum ph__hub_message_kind kind,
    uint64_t iteration);
/* Answers the chunk's pushes up to its version, and the pulls that waited for it. */
void ph__shard_answer_iteration(struct ph__shard *shard, uint32_t chunk);
/* Returns the last iteration that staleness allows to answer, of pushes that are updates of their own. */
uint64_t ph__shard_last_answerable(const struct ph__shard *shard, uint32_t chunk);
/* Answers pushes and pulls that may be answered. is_written: the chunk's last version has just been made, and
 * is already in the own parameters of workers whose last push it answers. */
void ph__shard_answer_gradients(struct ph__shard *shard, uint32_t chunk, bool is_written);

/* ---- shard_update.c ---- */

void ph__shard_work(struct ph__shard *shard, const struct ph__shard_work *work);
void ph__shard_assign(struct ph__shard *shard, uint32_t chunk);
struct ph__optimizer_step ph__shard_step(
    const struct ph_hub_optimizer *optimizer, float learning_rate, uint64_t version, float gradient_scale);
/* Returns the learning rate of the chunk's next version; synchronous jobs. */
float ph__shard_learning_rate(const struct ph__shard *shard, uint32_t chunk);
/* Returns true if the copy for the next version is still being sent to a worker. The chunk is considered
 * again when it has been sent. */
bool ph__shard_must_wait(struct ph__shard *shard, uint32_t chunk);
/* Adds the steps that waited for a clip factor, when it is known. */
void ph__shard_look_for_steps(struct ph__shard *shard);

/* Makes the results of the chunk's weights. */
void ph__shard_publish(struct ph__shard *shard, uint32_t chunk);

/* ---- shard_snapshot.c ---- */

void ph__shard_copy_chunk(struct ph__shard *shard, uint32_t chunk); /* called when is_wanted */
/* Handles an update that has brought the chunk to snapshot_version. */
void ph__shard_reach_version(struct ph__shard *shard, uint32_t chunk);
void ph__shard_work_copy(struct ph__shard *shard, uint32_t chunk);
void ph__shard_work_restore(struct ph__shard *shard, uint32_t chunk);

#endif
