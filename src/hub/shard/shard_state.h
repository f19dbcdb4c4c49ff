/* The inside of a shard, for the files that it is made of: shard_run.c (its work, its workers and its sleep),
 * shard_message.c (what comes in, where it is received to, and what goes back), shard_update.c (sums and
 * steps), shard_snapshot.c, and what other headers have: shard_wide.h, shard_trace.h. */
#ifndef PH_HUB_SHARD_STATE_H
#define PH_HUB_SHARD_STATE_H

#include "hub/shard/shard.h"

/* A link's end here, and the owner's context of it. */
struct ph__shard_link {
    struct ph__shard *shard;
    struct ph__link *link; /* NULL: the worker is not there */
    uint32_t worker;
    bool has_payloads; /* parameters are sent, not shared */
    bool has_failed;   /* waits to be removed */
    bool has_left;     /* in good order, from a synchronous job: what it has pushed still counts */
};

enum ph__shard_work_kind {
    PH_WORK_ITERATION, /* synchronous: all gradients of the chunk's next iteration are there */
    PH_WORK_GRADIENT,  /* one worker's gradient: to be added, or to be an update of its own */
    PH_WORK_STEP,      /* the chunk's sum is there and the clip factor is known */
    PH_WORK_COPY,      /* into the snapshot */
    PH_WORK_RESTORE    /* from it */
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
    uint32_t num_left;      /* among them: those that have_left */
    const uint32_t *chunks; /* (num_chunks) that are its own, ascending; the job's */
    size_t num_chunks;
    struct ph__shard_link *links; /* (num_workers) */
    struct ph__shard_work *works; /* a ring */
    uint64_t works_mask, works_begun, works_ended;
    uint64_t rounds_stepped; /* of clipping */
    size_t bytes_done;       /* in this run, by its work */
    size_t bytes_carried;    /* ... and over a network */
    size_t messages_a_turn;  /* of one link, before the others and the work have their turn */
    size_t num_touched;      /* steps, while is_touching */
    bool is_touching;
    bool is_held;                  /* no work is done */
    struct ph__snapshot *snapshot; /* that is being filled or read; NULL: none */
    uint64_t snapshot_version;     /* that chunks are copied or watched for at; UINT64_MAX: none */
    size_t num_uncopied;           /* chunks, and one while it begins */
    char **places; /* (num_places) free ones, the next at the end; room for all there can be */
    size_t num_places;
    float *learning_rates; /* (num_optimizers) */
    const void **copies;   /* (num_workers), scratch of an update */
    void **results;        /* (num_workers + 1) */
};

static inline bool ph__shard_is_live(const struct ph__shard *shard, uint32_t worker)
{
    return shard->links[worker].link != NULL;
}

/* Whether its gradients are still used. */
static inline bool ph__shard_counts(const struct ph__shard *shard, uint32_t worker)
{
    return ph__shard_is_live(shard, worker) || shard->links[worker].has_left;
}

static inline struct ph__chunk_state *ph__shard_state(const struct ph__shard *shard, uint32_t chunk)
{
    return &shard->job->memory->chunks[chunk];
}

/* Whether each gradient is work of its own when it comes. */
static inline bool ph__shard_takes_gradients(const struct ph_hub_service *service)
{
    return service->mode != PH_HUB_SYNCHRONOUS || service->order == PH_HUB_ARRIVAL_ORDER;
}

/* Synchronous: whether all gradients of the chunk's next iteration are there. */
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
/* ... of the worker's gradients, where each is work of its own. */
void ph__shard_consider_gradients(struct ph__shard *shard, uint32_t chunk, uint32_t worker);
/* ph_error_text() says how. */
void ph__shard_fail_worker(struct ph__shard *shard, uint32_t worker);

/* ---- shard_message.c ---- */

/* Whether those that have left have pushed this iteration too: without them it cannot be. */
ph_status ph__shard_check_nobody_left(const struct ph__shard *shard, uint32_t chunk, uint64_t iteration);

/* The room of a worker whose gradients are received; before the first run. */
void ph__shard_add_places(struct ph__shard *shard, uint32_t worker);
/* Again, of all such workers, for the layout that there is now. While nothing is under way. */
void ph__shard_deal_places(struct ph__shard *shard);
/* Gives the place where a worker's gradient lies. */
char *ph__shard_gradient(const struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration);
/* It was used, and is not read any more. */
void ph__shard_free_place(struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration);

void ph__shard_reply(struct ph__shard *shard, uint32_t worker, uint32_t chunk, enum ph__hub_message_kind kind,
    uint64_t iteration);
/* Answers the chunk's pushes up to its version, and the pulls that waited for it. */
void ph__shard_answer_iteration(struct ph__shard *shard, uint32_t chunk);
/* Of pushes that are updates of their own: the last iteration that staleness allows to answer. */
uint64_t ph__shard_last_answerable(const struct ph__shard *shard, uint32_t chunk);
/* Answers what may be answered. is_written: the chunk's last version has just been made, and lies already in
 * the own parameters of those whose last push it answers. */
void ph__shard_answer_gradients(struct ph__shard *shard, uint32_t chunk, bool is_written);

/* ---- shard_update.c ---- */

void ph__shard_work(struct ph__shard *shard, const struct ph__shard_work *work);
void ph__shard_assign(struct ph__shard *shard, uint32_t chunk);
struct ph__optimizer_step ph__shard_step(
    const struct ph_hub_optimizer *optimizer, float learning_rate, uint64_t version, float gradient_scale);
/* Of the chunk's next version, of a synchronous job. */
float ph__shard_learning_rate(const struct ph__shard *shard, uint32_t chunk);
/* Whether the copy that the next version goes to is being sent to a worker; when it has left, the chunk is
 * considered again. */
bool ph__shard_must_wait(struct ph__shard *shard, uint32_t chunk);
/* Steps that wait for a clip factor, when it is known. */
void ph__shard_look_for_steps(struct ph__shard *shard);

/* Makes the results of the chunk's weights. */
void ph__shard_publish(struct ph__shard *shard, uint32_t chunk);

/* ---- shard_snapshot.c ---- */

void ph__shard_copy_chunk(struct ph__shard *shard, uint32_t chunk); /* because it is_wanted */
/* The chunk's version is snapshot_version, by an update. */
void ph__shard_reach_version(struct ph__shard *shard, uint32_t chunk);
void ph__shard_work_copy(struct ph__shard *shard, uint32_t chunk);
void ph__shard_work_restore(struct ph__shard *shard, uint32_t chunk);

#endif
