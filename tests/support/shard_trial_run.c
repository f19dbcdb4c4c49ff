/* Runs of shards on trial, and checks of their results: see shard_trial.h. */
#include <stdlib.h>
#include <string.h>

#include "support/shard_trial.h"

static bool is_synchronous(const struct shard_trial *trial)
{
    return trial->options.mode == PH_HUB_SYNCHRONOUS;
}

static bool is_in_arrival_order(const struct shard_trial *trial)
{
    return is_synchronous(trial) && trial->options.order == PH_HUB_ARRIVAL_ORDER;
}

static bool counts(const struct trial_link *link)
{
    return link->is_live || link->has_left;
}

/* ---- the serial loop, up to the shard's progress ---- */

/* Returns the rate that rank 0 set before it pushed this iteration, or the last one. */
static float learning_rate(
    const struct shard_trial *trial, uint32_t chunk, uint64_t iteration, bool has_pushed)
{
    const uint32_t optimizer = trial->optimizer_of_key[trial->layout->chunks[chunk].key];
    return has_pushed ? trial->chunks[chunk].learning_rates[iteration % PH_HUB_MAX_DEPTH]
                      : trial->learning_rates[trial->core_of_chunk[chunk]][optimizer];
}

static void use_push(struct shard_trial *trial, uint32_t chunk, const struct oracle_push *push)
{
    struct trial_request *request = shard_trial_request(trial, push->worker, chunk);
    trial_require(push->iteration == request->used + 1); /* no gradient is used twice or left out */
    request->used = push->iteration;
    request->version_of_push[push->iteration % PH_HUB_MAX_DEPTH] =
        shard_oracle_version(trial->oracle, chunk) + 1;
}

/* Takes the pushes of an iteration off the list, in their order of arrival. */
static size_t take_pushes(struct trial_chunk *chunk, uint64_t iteration, struct oracle_push *pushes_out)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < chunk->num_pushes; i++) {
        if (chunk->pushes[i].iteration == iteration)
            pushes_out[count++] = chunk->pushes[i];
        else
            chunk->pushes[kept++] = chunk->pushes[i];
    }
    chunk->num_pushes = kept;
    return count;
}

static int by_worker(const void *a, const void *b)
{
    const struct oracle_push *left = a, *right = b;
    if (left->worker != right->worker)
        return left->worker < right->worker ? -1 : 1;
    return left->iteration < right->iteration ? -1 : left->iteration > right->iteration;
}

static void sum_iteration(struct shard_trial *trial, uint32_t chunk)
{
    struct oracle_push pushes[TRIAL_MAX_WORKERS];
    const uint64_t iteration = shard_oracle_version(trial->oracle, chunk) + 1;
    const size_t count = take_pushes(&trial->chunks[chunk], iteration, pushes);
    if (!is_in_arrival_order(trial))
        qsort(pushes, count, sizeof *pushes, by_worker);
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
        if (counts(&trial->links[trial->core_of_chunk[chunk]][worker]))
            trial_require(shard_trial_request(trial, worker, chunk)->delivered >= iteration);
    }
    for (size_t i = 0; i < count; i++)
        use_push(trial, chunk, &pushes[i]);
    shard_oracle_sum(trial->oracle, chunk, pushes, count);
}

static void follow_iteration(struct shard_trial *trial, uint32_t chunk)
{
    const uint64_t iteration = shard_oracle_version(trial->oracle, chunk) + 1;
    if (!shard_oracle_is_summed(trial->oracle, chunk))
        sum_iteration(trial, chunk);
    const bool has_pushed = shard_trial_request(trial, 0, chunk)->delivered >= iteration;
    shard_oracle_step(trial->oracle, chunk, learning_rate(trial, chunk, iteration, has_pushed));
}

static void follow_gradient(struct shard_trial *trial, uint32_t chunk)
{
    struct trial_chunk *of = &trial->chunks[chunk];
    trial_require(of->num_pushes > 0);
    const struct oracle_push push = of->pushes[0];
    memmove(of->pushes, of->pushes + 1, --of->num_pushes * sizeof *of->pushes);
    use_push(trial, chunk, &push);
    shard_oracle_sum(trial->oracle, chunk, &push, 1);
    shard_oracle_step(trial->oracle, chunk, learning_rate(trial, chunk, push.iteration, push.worker == 0));
}

static void follow(struct shard_trial *trial, uint16_t shard)
{
    for (uint32_t chunk = shard; chunk < trial->layout->sizes.num_chunks;
         chunk += trial->options.num_shards) {
        const struct ph__chunk_state *state = &trial->memory.chunks[chunk];
        while (shard_oracle_version(trial->oracle, chunk) < state->version)
            is_synchronous(trial) ? follow_iteration(trial, chunk) : follow_gradient(trial, chunk);
        if (state->is_summed && !shard_oracle_is_summed(trial->oracle, chunk))
            sum_iteration(trial, chunk);
    }
}

/* ---- results that must exist when there is nothing to do ---- */

static bool is_being_sent(struct shard_trial *trial, uint32_t chunk, uint64_t version)
{
    const uint8_t copy = (uint8_t)(version % trial->memory.num_versions);
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
        const struct trial_link *link = shard_trial_link(trial, worker, chunk);
        if (link->is_live && trial->options.transports[worker] == TRIAL_PAYLOADS &&
            payload_link_num_sending(link->hub_link, chunk, copy) > 0)
            return true;
    }
    return false;
}

static bool is_complete(struct shard_trial *trial, uint32_t chunk, uint64_t iteration)
{
    size_t num_there = 0;
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
        if (!counts(shard_trial_link(trial, worker, chunk)))
            continue;
        num_there++;
        if (shard_trial_request(trial, worker, chunk)->delivered < iteration)
            return false;
    }
    return num_there > 0;
}

static void check_nothing_is_left(struct shard_trial *trial, uint16_t shard)
{
    for (uint32_t chunk = shard; chunk < trial->layout->sizes.num_chunks;
         chunk += trial->options.num_shards) {
        const uint64_t next = shard_oracle_version(trial->oracle, chunk) + 1;
        if (shard_oracle_is_summed(trial->oracle, chunk) || is_being_sent(trial, chunk, next))
            continue;
        trial_require(
            is_synchronous(trial) ? !is_complete(trial, chunk, next) : trial->chunks[chunk].num_pushes == 0);
    }
}

/* ---- runs ---- */

size_t shard_trial_run(struct shard_trial *trial, uint16_t shard, size_t max_bytes)
{
    size_t num_moved;
    const size_t num_done = ph__shard_run(trial->shards[shard], max_bytes, &trial->num_bytes);
    if (!trial->options.is_lawless) {
        follow(trial, shard);
        if (num_done == 0)
            check_nothing_is_left(trial, shard);
    }
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
        const struct trial_link *link = &trial->links[shard][worker];
        if (link->is_live && trial->options.transports[worker] == TRIAL_PAYLOADS)
            payload_link_receive(link->hub_link);
        else if (link->is_live)
            trial_require(ph__link_progress(link->worker_link, SIZE_MAX, &num_moved) == PH_OK);
    }
    return num_done;
}

void shard_trial_run_all(struct shard_trial *trial)
{
    bool is_busy = true;
    while (is_busy) {
        is_busy = false;
        for (uint16_t shard = 0; shard < trial->options.num_shards; shard++)
            is_busy |= shard_trial_run(trial, shard, SIZE_MAX) > 0;
    }
}

/* Sorts waiting pushes by worker, in asynchronous jobs: after waiting for replies to leave, the hub takes
 * them up worker by worker. */
static void sort_what_waits(struct shard_trial *trial, uint16_t shard)
{
    for (uint32_t chunk = shard; chunk < trial->layout->sizes.num_chunks;
         chunk += trial->options.num_shards) {
        struct trial_chunk *of = &trial->chunks[chunk];
        if (!is_synchronous(trial) && of->num_pushes > 0)
            qsort(of->pushes, of->num_pushes, sizeof *of->pushes, by_worker);
    }
}

void shard_trial_let_leave(struct shard_trial *trial, uint16_t shard, uint32_t worker, size_t count)
{
    shard_trial_run_all(trial);
    sort_what_waits(trial, shard);
    payload_link_allow(trial->links[shard][worker].hub_link, count);
    shard_trial_run(trial, shard, SIZE_MAX);
    payload_link_allow(trial->links[shard][worker].hub_link, 0);
    shard_trial_run_all(trial);
}

void shard_trial_settle(struct shard_trial *trial)
{
    size_t num_waiting = 1;
    shard_trial_run_all(trial);
    while (num_waiting > 0) {
        num_waiting = 0;
        for (uint16_t shard = 0; shard < trial->options.num_shards; shard++) {
            for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
                const struct trial_link *link = &trial->links[shard][worker];
                if (!link->is_live || trial->options.transports[worker] != TRIAL_PAYLOADS)
                    continue;
                num_waiting += payload_link_num_waiting(link->hub_link);
                shard_trial_let_leave(trial, shard, worker, SIZE_MAX);
            }
        }
    }
}

/* ---- ends ---- */

/* Drops a worker's pushes that are in no sum: when each gradient waits on its own, they are lost with the
 * worker. */
static void forget_pushes(struct shard_trial *trial, uint16_t shard, uint32_t worker)
{
    for (uint32_t chunk = shard; chunk < trial->layout->sizes.num_chunks;
         chunk += trial->options.num_shards) {
        struct trial_chunk *of = &trial->chunks[chunk];
        size_t kept = 0;
        for (size_t i = 0; i < of->num_pushes; i++) {
            if (of->pushes[i].worker != worker)
                of->pushes[kept++] = of->pushes[i];
        }
        of->num_pushes = kept;
    }
}

void shard_trial_remove(struct shard_trial *trial, uint16_t shard, uint32_t worker)
{
    struct trial_link *link = &trial->links[shard][worker];
    const bool has_order = !is_synchronous(trial) || is_in_arrival_order(trial);
    if (has_order)
        shard_trial_run_all(trial);
    ph__shard_remove_worker(trial->shards[shard], worker);
    link->is_live = false;
    link->hub_link = NULL;
    if (!is_in_arrival_order(trial))
        forget_pushes(trial, shard, worker);
    sort_what_waits(trial, shard);
    if (has_order)
        shard_trial_run_all(trial);
}

void shard_trial_remove_everywhere(struct shard_trial *trial, uint32_t worker)
{
    for (uint16_t shard = 0; shard < trial->options.num_shards; shard++)
        shard_trial_remove(trial, shard, worker);
}

void shard_trial_retire(struct shard_trial *trial, uint32_t worker)
{
    shard_trial_run_all(trial);
    for (uint16_t shard = 0; shard < trial->options.num_shards; shard++) {
        ph__shard_retire_worker(trial->shards[shard], worker);
        trial->links[shard][worker].is_live = false;
        trial->links[shard][worker].has_left = is_synchronous(trial);
        trial->links[shard][worker].hub_link = NULL;
    }
    shard_trial_run_all(trial);
}

/* Returns the version that a chunk must have reached. */
static uint64_t last_version(const struct shard_trial *trial, uint32_t chunk, uint64_t num_iterations)
{
    uint64_t num_used = 0;
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
        const struct trial_request *request = shard_trial_request(trial, worker, chunk);
        num_used += request->used;
        if (!trial->links[trial->core_of_chunk[chunk]][worker].is_live)
            continue;
        trial_require(request->used == num_iterations && request->pushed == num_iterations);
        trial_require(request->answered == num_iterations && !request->is_pulling);
    }
    return is_synchronous(trial) ? num_iterations : num_used;
}

void shard_trial_check_end(struct shard_trial *trial, uint64_t num_iterations)
{
    const struct ph__job_memory *memory = &trial->memory;
    shard_trial_settle(trial);
    for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk++) {
        const struct ph__chunk_place *place = &trial->layout->chunks[chunk];
        const uint64_t version = memory->chunks[chunk].version, copy = version % memory->num_versions;
        trial_require(version == last_version(trial, chunk, num_iterations));
        trial_require(
            memcmp(memory->weights[copy] + place->first_weight, shard_oracle_weights(trial->oracle, chunk),
                place->num_elements * sizeof(float)) == 0);
        trial_require(
            shard_oracle_is(trial->oracle, chunk, version, memory->results[copy] + place->gradient_offset));
    }
}
