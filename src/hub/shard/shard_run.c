/* Runs a shard: queues and does its work, attaches and removes workers, touches memory first, and sleeps with
 * its thread. See shard.h. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "hub/shard/shard_state.h"
#include "hub/shard/shard_trace.h"
#include "hub/shard/shard_wide.h"

#define MESSAGES_A_TURN 512             /* most of one link, before the others and the work have a turn */
#define BYTES_A_TURN ((size_t)16 << 20) /* most that these make us copy */
#define TOUCHED_A_TURN ((size_t)256 << 10)

/* ---- first touch ---- */

/* A page of memory belongs to the NUMA node whose processor writes to it first. So each shard writes to all
 * pages of its chunks before anything else does, in its core thread. It does so in turns like its other work,
 * since a new page costs a fault: the job begins when all shards are done, and other jobs go on meanwhile.
 *
 * The write keeps the contents, since parameters may come from a checkpoint. Pages of 2 MiB hold chunks of
 * several shards, and belong to the shard of the first byte. Gradients from other hosts are received in
 * places that no chunk owns (shard_message.c): these are touched when something comes. */

static void touch(void *memory, size_t size, size_t page)
{
    char *begin = memory;
    for (size_t at = 0; at < size; at += page - (size_t)(begin + at) % page)
        __atomic_fetch_or(begin + at, 0, __ATOMIC_RELAXED);
}

/* Touches a chunk's part of an array of gradients or results in the region; NULL: none. Returns its bytes. */
static size_t touch_shared(
    const struct ph__region *region, char *array, const struct ph__chunk_place *place, size_t page)
{
    if (array == NULL)
        return 0;
    const size_t enlarged =
        ph__region_enlarge_pages(region, array + place->gradient_offset, place->gradient_bytes);
    touch(array + place->gradient_offset, place->gradient_bytes, page);
    return ph__max(enlarged, place->gradient_bytes);
}

static size_t touch_weights(float *array, const struct ph__chunk_place *place, size_t page)
{
    if (array == NULL)
        return 0;
    const size_t size = place->num_elements * sizeof *array;
    touch(array + place->first_weight, size, page);
    return size;
}

static size_t touch_worker(
    const struct ph__worker_memory *worker, const struct ph__chunk_place *place, size_t page)
{
    size_t size = 0;
    for (uint32_t i = 0; worker->received == NULL && i < PH_HUB_MAX_DEPTH; i++)
        size += touch_shared(&worker->region, worker->gradients[i], place, page) +
                touch_shared(&worker->region, worker->parameters[i], place, page);
    return size;
}

static size_t touch_job(const struct ph__job_memory *memory, const struct ph__chunk_place *place, size_t page)
{
    size_t size = touch_weights(memory->m, place, page) + touch_weights(memory->s, place, page);
    for (uint32_t i = 0; i < PH_HUB_MAX_DEPTH; i++) {
        size += touch_shared(&memory->region, memory->results[i], place, page) +
                touch_weights(memory->sums[i], place, page);
        if ((char *)memory->weights[i] != memory->results[i])
            size += touch_weights(memory->weights[i], place, page);
    }
    return size;
}

/* Touches a step: the job's memory of a chunk, or one worker's. */
static size_t touch_next(struct ph__shard *shard, size_t page)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const size_t steps_a_chunk = memory->num_workers + 1;
    const size_t chunk = shard->num_touched / steps_a_chunk, step = shard->num_touched % steps_a_chunk;
    const struct ph__chunk_place *place = &memory->layout->chunks[shard->chunks[chunk]];
    shard->num_touched++;
    return step == 0 ? touch_job(memory, place, page) : touch_worker(&memory->workers[step - 1], place, page);
}

void ph__shard_begin_touch(struct ph__shard *shard)
{
    shard->is_touching = true;
    shard->num_touched = 0;
}

/* Touches about max_bytes of memory. Returns the number of steps done. */
static size_t touch_memory(struct ph__shard *shard, size_t max_bytes, size_t *bytes_out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = ph__min(max_bytes, TOUCHED_A_TURN);
    const size_t all = shard->num_chunks * (shard->job->memory->num_workers + 1);
    size_t size = 0, count = 0;
    for (; shard->num_touched < all && size < most; count++)
        size += touch_next(shard, page);
    *bytes_out = size;
    if (shard->num_touched == all) {
        shard->is_touching = false;
        shard->callbacks.touched(shard->callbacks.context);
        count++;
    }
    return count;
}

/* ---- work ---- */

void ph__shard_add_work(
    struct ph__shard *shard, enum ph__shard_work_kind kind, uint32_t chunk, uint32_t worker)
{
    assert(shard->works_begun - shard->works_ended <= shard->works_mask);
    shard->works[shard->works_begun & shard->works_mask] =
        (struct ph__shard_work){.chunk = chunk, .worker = (uint16_t)worker, .kind = (uint16_t)kind};
    shard->works_begun++;
}

void ph__shard_consider_gradients(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    while (ph__shard_counts(shard, worker) && request->counted + request->num_queued < request->pushed) {
        request->num_queued++;
        ph__shard_add_work(shard, PH_WORK_GRADIENT, chunk, worker);
    }
}

/* Adds the chunk to the wide list when all workers have pushed: wide jobs do not shrink. */
static void consider_wide(struct ph__shard *shard, uint32_t chunk)
{
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    if (state->num_arrived[(state->version + 1) % PH_HUB_MAX_DEPTH] < shard->job->service.num_workers ||
        ph__shard_must_wait(shard, chunk))
        return;
    state->is_queued = true;
    ph__shard_add_wide(shard, chunk);
}

void ph__shard_consider(struct ph__shard *shard, uint32_t chunk)
{
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    if (shard->job->service.mode != PH_HUB_SYNCHRONOUS) {
        for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++)
            ph__shard_consider_gradients(shard, chunk, worker);
        return;
    }
    if (state->is_queued || state->is_waiting || !ph__shard_is_complete(shard, state))
        return;
    if (shard->job->wide != NULL) {
        consider_wide(shard, chunk);
        return;
    }
    state->is_queued = true;
    ph__shard_add_work(shard, PH_WORK_ITERATION, chunk, 0);
}

static size_t move_links(struct ph__shard *shard, size_t max_messages)
{
    size_t num_moved = 0;
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        struct ph__shard_link *link = &shard->links[worker];
        size_t moved = 0;
        if (link->link == NULL || link->has_failed)
            continue;
        if (ph__link_progress(link->link, max_messages, &moved) != PH_OK)
            ph__shard_fail_worker(shard, worker);
        else
            num_moved += moved;
    }
    return num_moved;
}

size_t ph__shard_run(struct ph__shard *shard, size_t max_bytes, size_t *bytes_out)
{
    const uint64_t ended_before = shard->works_ended;
    if (shard->is_touching)
        return touch_memory(shard, max_bytes, bytes_out);
    shard->bytes_done = shard->bytes_carried = 0;
    size_t num_moved = move_links(shard, shard->messages_a_turn);
    ph__shard_look_for_steps(shard);
    while (shard->works_ended != shard->works_begun && shard->bytes_done < max_bytes && !shard->is_held) {
        const struct ph__shard_work work = shard->works[shard->works_ended & shard->works_mask];
        shard->works_ended++;
        ph__shard_work(shard, &work);
    }
    size_t num_works = (size_t)(shard->works_ended - ended_before);
    if (shard->job->wide != NULL)
        num_works += ph__shard_run_wide(shard, max_bytes);
    if (num_works > 0)
        num_moved += move_links(shard, 0); /* sends the replies */
    if (shard->job->trace != NULL)
        ph__shard_trace_replies_left(shard);
    *bytes_out = shard->bytes_done + shard->bytes_carried;
    return num_moved + num_works + (size_t)(shard->works_begun - shard->works_ended);
}

/* ---- workers ---- */

void ph__shard_fail_worker(struct ph__shard *shard, uint32_t worker)
{
    struct ph__shard_link *link = &shard->links[worker];
    if (link->has_failed)
        return;
    link->has_failed = true;
    shard->callbacks.worker_failed(shard->callbacks.context, worker);
}

void ph__shard_attach(struct ph__shard *shard, uint32_t worker, struct ph__link *link, bool has_payloads)
{
    assert(!ph__shard_is_live(shard, worker));
    shard->links[worker].link = link;
    shard->links[worker].has_payloads = has_payloads;
    shard->links[worker].has_failed = false;
    shard->links[worker].has_left = false;
    shard->num_live++;
    if (has_payloads)
        ph__shard_add_places(shard, worker);
}

struct ph__link *ph__shard_link(struct ph__shard *shard, uint32_t worker)
{
    return shard->links[worker].link;
}

/* Uncounts pushes of the worker that no sum holds. */
static void forget_pushes(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    const struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    for (uint64_t iteration = state->version + 1 + state->is_summed; iteration <= request->counted;
         iteration++)
        state->num_arrived[iteration % PH_HUB_MAX_DEPTH]--;
}

/* Uncounts replies to the worker that are still being sent. */
static void forget_replies(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    for (size_t copy = 0; copy < PH_HUB_MAX_DEPTH; copy++) {
        state->num_sending[copy] -= request->num_sending[copy];
        request->num_sending[copy] = 0;
    }
    state->is_waiting = false; /* a waiting chunk is considered again */
}

static void end_link(struct ph__shard *shard, uint32_t worker)
{
    ph__link_destroy(shard->links[worker].link);
    shard->links[worker].link = NULL;
    for (size_t i = 0; i < shard->num_chunks; i++)
        forget_replies(shard, shard->chunks[i], worker);
}

void ph__shard_remove_worker(struct ph__shard *shard, uint32_t worker)
{
    if (!ph__shard_is_live(shard, worker))
        return;
    end_link(shard, worker);
    shard->num_live--;
    for (size_t i = 0; i < shard->num_chunks; i++) {
        const uint32_t chunk = shard->chunks[i];
        if (shard->job->service.mode == PH_HUB_SYNCHRONOUS)
            forget_pushes(shard, chunk, worker);
        else
            ph__shard_answer_gradients(shard, chunk, false);
        ph__shard_consider(shard, chunk);
    }
}

/* Fails workers that have pushed an iteration that will never be complete. */
static void fail_those_ahead(struct ph__shard *shard, uint32_t chunk)
{
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        if (!ph__shard_is_live(shard, worker))
            continue;
        const uint64_t pushed = ph__request(shard->job->memory, chunk, worker)->pushed;
        if (ph__shard_check_nobody_left(shard, chunk, pushed) != PH_OK)
            ph__shard_fail_worker(shard, worker);
    }
}

void ph__shard_retire_worker(struct ph__shard *shard, uint32_t worker)
{
    if (shard->job->service.mode != PH_HUB_SYNCHRONOUS || !ph__shard_is_live(shard, worker)) {
        ph__shard_remove_worker(shard, worker);
        return;
    }
    end_link(shard, worker);
    shard->links[worker].has_left = true;
    shard->num_left++;
    for (size_t i = 0; i < shard->num_chunks; i++) {
        fail_those_ahead(shard, shard->chunks[i]);
        ph__shard_consider(shard, shard->chunks[i]);
    }
}

/* ---- creation ---- */

/* Returns the capacity of the works: each chunk has at most one iteration, one step and one copy to do, and
 * where gradients are work of their own, also as many as each worker may push ahead. */
static size_t count_works(const struct ph_hub_service *service, size_t num_chunks)
{
    const size_t num_pushes = (size_t)service->num_workers * service->depth;
    const size_t a_chunk = 3 + (ph__shard_takes_gradients(service) ? num_pushes : 0);
    size_t capacity = 1;
    while (capacity < ph__max(num_chunks, 1) * a_chunk)
        capacity *= 2;
    return capacity;
}

static ph_status allocate(struct ph__shard *shard)
{
    const size_t num_workers = shard->job->service.num_workers, num_chunks = shard->num_chunks;
    const size_t num_works = count_works(&shard->job->service, num_chunks);
    const size_t messages_of_bytes = BYTES_A_TURN / shard->job->memory->layout->chunk_bytes;
    shard->messages_a_turn = ph__min(MESSAGES_A_TURN, ph__max(messages_of_bytes, 1));
    shard->works_mask = num_works - 1;
    shard->links = calloc(num_workers, sizeof *shard->links);
    shard->works = calloc(num_works, sizeof *shard->works);
    shard->places =
        calloc(ph__max(num_chunks, 1) * num_workers * shard->job->service.depth, sizeof *shard->places);
    shard->learning_rates = calloc(shard->job->service.num_optimizers, sizeof *shard->learning_rates);
    shard->copies = calloc(num_workers, sizeof *shard->copies);
    shard->results = calloc(num_workers + 1, sizeof *shard->results);
    if (shard->links == NULL || shard->works == NULL || shard->places == NULL ||
        shard->learning_rates == NULL || shard->copies == NULL || shard->results == NULL)
        return ph__out_of_memory("a shard of %zu chunks", num_chunks);
    return PH_OK;
}

size_t ph__shard_bytes(const struct ph_hub_service *service, size_t num_chunks)
{
    const size_t num_works = count_works(service, num_chunks);
    const size_t a_chunk = service->num_workers * service->depth * sizeof(char *);
    const size_t a_worker = sizeof(struct ph__shard_link) + sizeof(void *) + sizeof(void *);
    return sizeof(struct ph__shard) + ph__max(num_chunks, 1) * a_chunk +
           num_works * sizeof(struct ph__shard_work) + service->num_workers * a_worker + sizeof(void *) +
           service->num_optimizers * sizeof(float);
}

ph_status ph__shard_create(struct ph__shard_job *job, uint16_t core,
    const struct ph__shard_callbacks *callbacks, struct ph__shard **shard_out)
{
    struct ph__shard *shard = calloc(1, sizeof *shard);
    if (shard == NULL)
        return ph__out_of_memory("a shard");
    shard->job = job;
    shard->core = core;
    shard->callbacks = *callbacks;
    shard->chunks = job->chunks_of_core->chunks + job->chunks_of_core->first[core];
    shard->num_chunks = job->chunks_of_core->first[core + 1] - job->chunks_of_core->first[core];
    const ph_status status = allocate(shard);
    if (status != PH_OK) {
        ph__shard_destroy(shard);
        return status;
    }
    for (uint32_t worker = 0; worker < job->service.num_workers; worker++)
        shard->links[worker] = (struct ph__shard_link){.shard = shard, .worker = worker};
    for (uint32_t i = 0; i < job->service.num_optimizers; i++)
        shard->learning_rates[i] = job->service.optimizers[i].learning_rate;
    for (size_t i = 0; i < shard->num_chunks; i++)
        ph__shard_state(shard, shard->chunks[i])->learning_rate =
            shard->learning_rates[ph__shard_optimizer(shard, shard->chunks[i])];
    shard->snapshot_version = UINT64_MAX;
    *shard_out = shard;
    return PH_OK;
}

void ph__shard_destroy(struct ph__shard *shard)
{
    if (shard == NULL)
        return;
    for (uint32_t worker = 0; shard->links != NULL && worker < shard->job->service.num_workers; worker++)
        ph__link_destroy(shard->links[worker].link);
    free(shard->links);
    free(shard->works);
    free(shard->places);
    free(shard->learning_rates);
    free(shard->copies);
    free(shard->results);
    free(shard);
}

void ph__shard_versions(const struct ph__shard *shard, uint64_t *least_out, uint64_t *most_out)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < shard->num_chunks; i++) {
        const uint64_t version = ph__shard_state(shard, shard->chunks[i])->version;
        least = version < least ? version : least;
        most = version > most ? version : most;
    }
    *least_out = least;
    *most_out = most;
}

const struct ph__shard_counters *ph__shard_counters(const struct ph__shard *shard)
{
    return &shard->counters;
}

void ph__shard_counters_add(struct ph__shard_counters *sum, const struct ph__shard_counters *part)
{
    sum->updates += part->updates;
    sum->update_bytes += part->update_bytes;
    sum->pushes += part->pushes;
    sum->pulls += part->pulls;
    sum->waits_for_replies += part->waits_for_replies;
}

/* ---- sleep ---- */

static bool is_moved(const struct ph__shard_link *link)
{
    return link->link != NULL && !link->has_failed;
}

size_t ph__shard_num_workers(const struct ph__shard *shard)
{
    return shard->job->service.num_workers;
}

/* Returns true if there is work, which other shards may have brought without a message. */
static bool has_work(const struct ph__shard *shard)
{
    const struct ph__shard_job *job = shard->job;
    return shard->works_ended != shard->works_begun || shard->is_touching ||
           atomic_load(&job->rounds_clipped) != shard->rounds_stepped ||
           (job->wide != NULL && ph__shard_has_wide_work(shard));
}

bool ph__shard_begin_sleep(struct ph__shard *shard)
{
    bool may_sleep = !has_work(shard);
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        if (is_moved(&shard->links[worker]))
            may_sleep &= ph__link_begin_sleep(shard->links[worker].link);
    }
    return may_sleep;
}

void ph__shard_end_sleep(struct ph__shard *shard)
{
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        if (!is_moved(&shard->links[worker]) || ph__link_end_sleep(shard->links[worker].link))
            continue;
        ph_fail(PH_ERROR_PEER, "the process has ended");
        ph__shard_fail_worker(shard, worker);
    }
}

ph_status ph__shard_watch_links(const struct ph__shard *shard, int epoll)
{
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        if (is_moved(&shard->links[worker]))
            PH_TRY(ph__link_watch(shard->links[worker].link, epoll));
    }
    return PH_OK;
}
