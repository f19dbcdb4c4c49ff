/* Aggregates keys wide; see shard_wide.h. */
#include "hub/shard/shard_wide.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "hub/shard/shard_state.h"

#define STRIPE_ELEMENTS \
    64 /* stripes begin at multiples: a cache line of every dtype, so no two threads write to one */

ph_status ph__wide_check(const struct ph_hub_service *service)
{
    if (service->mode == PH_HUB_SYNCHRONOUS && service->order == PH_HUB_WORKER_ORDER &&
        service->on_death == PH_HUB_ABORT && service->clip_norm == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE,
        "service '%s': this hub aggregates wide, and takes only synchronous jobs in worker order without "
        "clipping or shrinking",
        service->name);
}

ph_status ph__wide_create(
    size_t num_keys, uint32_t num_workers, uint16_t num_cores, struct ph__wide **wide_out)
{
    struct ph__wide *wide = calloc(1, sizeof *wide);
    void *turns = NULL;
    if (wide == NULL)
        return ph__out_of_memory("%zu keys", num_keys);
    wide->num_cores = num_cores;
    wide->num_passes = (uint64_t)num_workers + 1;
    while (wide->mask + 1 < num_keys)
        wide->mask = 2 * wide->mask + 1;
    wide->num_ready = calloc(num_keys, sizeof *wide->num_ready);
    wide->entries = calloc(wide->mask + 1, sizeof *wide->entries);
    ph_status status =
        wide->num_ready == NULL || wide->entries == NULL
            ? ph__out_of_memory("%zu keys", num_keys)
            : ph__memory_alloc(num_cores * sizeof *wide->turns, "turns of core threads", &turns);
    wide->turns = turns;
    if (status != PH_OK) {
        ph__wide_destroy(wide);
        return status;
    }
    *wide_out = wide;
    return PH_OK;
}

void ph__wide_destroy(struct ph__wide *wide)
{
    if (wide == NULL)
        return;
    ph__memory_free(wide->turns, wide->num_cores * sizeof *wide->turns);
    free(wide->num_ready);
    free(wide->entries);
    free(wide);
}

/* ---- the list ---- */

void ph__shard_add_wide(struct ph__shard *shard, uint32_t chunk)
{
    struct ph__wide *wide = shard->job->wide;
    const struct ph__layout *layout = shard->job->memory->layout;
    const uint32_t key = layout->chunks[chunk].key;
    /* Acquires the counts of the other chunks' shards, for the shards that read the entry. */
    if (atomic_fetch_add_explicit(&wide->num_ready[key], 1, memory_order_acq_rel) + 1 <
        layout->keys[key].num_chunks)
        return;
    atomic_store_explicit(&wide->num_ready[key], 0, memory_order_relaxed);
    const uint64_t place = atomic_fetch_add_explicit(&wide->num_entries, 1, memory_order_relaxed);
    struct ph__wide_entry *entry = &wide->entries[place & wide->mask];
    entry->content = (struct ph__wide_key){.key = key,
        .learning_rate = ph__shard_learning_rate(shard, chunk),
        .iteration = ph__shard_state(shard, chunk)->version + 1};
    atomic_store(&entry->sequence, place + 1); /* before a look at who sleeps: core.c */
    shard->callbacks.wake_others(shard->callbacks.context);
}

static bool is_written(const struct ph__wide *wide, uint64_t place)
{
    return atomic_load(&wide->entries[place & wide->mask].sequence) == place + 1;
}

/* Returns true if all stripes of the passes before the turn's are finished. */
static bool may_begin(const struct ph__wide *wide, const struct ph__wide_turn *turn)
{
    const uint64_t num_before = turn->entry * wide->num_passes + turn->pass;
    return atomic_load(&wide->num_stripes) >= num_before * wide->num_cores;
}

bool ph__shard_has_wide_work(const struct ph__shard *shard)
{
    const struct ph__wide *wide = shard->job->wide;
    const struct ph__wide_turn *turn = &wide->turns[shard->core];
    return (turn->is_begun || is_written(wide, turn->entry)) && may_begin(wide, turn);
}

/* ---- stripes ---- */

struct stripe {
    size_t first, count; /* elements of the key */
};

static struct stripe stripe_of(const struct ph__shard *shard, size_t num_elements)
{
    const size_t num_blocks = ph__divide_up(num_elements, STRIPE_ELEMENTS),
                 num_cores = shard->job->wide->num_cores;
    const size_t begin = num_blocks * shard->core / num_cores * STRIPE_ELEMENTS;
    const size_t end = num_blocks * (shard->core + 1u) / num_cores * STRIPE_ELEMENTS;
    return (struct stripe){.first = begin, .count = ph__min(end, num_elements) - begin};
}

/* Adds the worker's copy to the sum: pass `worker`. */
static void add_copy(
    struct ph__shard *shard, const struct ph__wide_key *content, uint64_t worker, const struct stripe *stripe)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__key_place *key = &memory->layout->keys[content->key];
    float *sums = memory->sums[content->iteration % memory->depth] + key->first_weight + stripe->first;
    const size_t element_bytes = ph_dtype_size(key->dtype);
    shard->copies[0] = memory->workers[worker].gradients[content->iteration % memory->depth] +
                       key->gradient_offset + stripe->first * element_bytes;
    const struct ph__aggregate_args arguments = {.n = stripe->count,
        .sum_so_far = worker > 0 ? sums : NULL,
        .num_copies = 1,
        .copies = shard->copies,
        .dtype = key->dtype,
        .sum_scale = 1,
        .new_weight = sums};
    shard->job->kernels->aggregate(&arguments);
    shard->bytes_done += stripe->count * element_bytes;
    shard->counters.update_bytes += stripe->count * element_bytes;
}

static size_t list_results(struct ph__shard *shard, const struct ph__wide_key *content, size_t offset)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const size_t copy = content->iteration % memory->num_versions;
    size_t count = 0;
    if (memory->results[copy] != (char *)memory->weights[copy])
        shard->results[count++] = memory->results[copy] + offset;
    for (uint32_t worker = 0; worker < memory->num_workers; worker++) {
        char *parameters = memory->workers[worker].parameters[content->iteration % memory->depth];
        if (parameters != NULL)
            shard->results[count++] = parameters + offset;
    }
    return count;
}

static float *at(float *region, size_t offset)
{
    return region != NULL ? region + offset : NULL;
}

/* Makes the key's next version of its sum: the last pass. */
static void step(struct ph__shard *shard, const struct ph__wide_key *content, const struct stripe *stripe)
{
    const struct ph__shard_job *job = shard->job;
    const struct ph__job_memory *memory = job->memory;
    const struct ph__key_place *key = &memory->layout->keys[content->key];
    const struct ph_hub_optimizer *optimizer = &job->service.optimizers[job->optimizer_of_key[content->key]];
    const size_t weight = key->first_weight + stripe->first;
    const struct ph__optimizer_step step =
        ph__shard_step(optimizer, content->learning_rate, content->iteration, 1);
    const struct ph__aggregate_args arguments = {.n = stripe->count,
        .sum_so_far = memory->sums[content->iteration % memory->depth] + weight,
        .dtype = key->dtype,
        .step = optimizer->is_none ? NULL : &step,
        .sum_scale = job->service.is_mean ? 1.0F / (float)job->service.num_workers : 1,
        .weight = memory->weights[(content->iteration - 1) % memory->num_versions] + weight,
        .new_weight = memory->weights[content->iteration % memory->num_versions] + weight,
        .m = at(memory->m, weight),
        .s = at(memory->s, weight),
        .num_results =
            list_results(shard, content, key->gradient_offset + stripe->first * ph_dtype_size(key->dtype)),
        .results = shard->results,
        .is_non_temporal = job->is_non_temporal};
    job->kernels->aggregate(&arguments);
}

/* Finishes a key: each shard replies for its own chunks. */
static void finish(struct ph__shard *shard, const struct ph__wide_key *content)
{
    const struct ph__key_place *key = &shard->job->memory->layout->keys[content->key];
    for (uint32_t chunk = key->first_chunk; chunk < key->first_chunk + key->num_chunks; chunk++) {
        struct ph__chunk_state *state = ph__shard_state(shard, chunk);
        if (shard->job->core_of_chunk[chunk] != shard->core)
            continue;
        state->num_arrived[content->iteration % PH_HUB_MAX_DEPTH] = 0;
        state->num_contributors = shard->job->service.num_workers;
        state->is_queued = false;
        state->version = content->iteration;
        shard->counters.updates++;
        ph__shard_answer_iteration(shard, chunk);
        ph__shard_consider(shard, chunk);
    }
}

/* ---- turns ---- */

static void run_pass(struct ph__shard *shard, const struct ph__wide_turn *turn)
{
    struct ph__wide *wide = shard->job->wide;
    const struct ph__wide_key *content = &turn->content;
    const struct stripe stripe =
        stripe_of(shard, shard->job->memory->layout->keys[content->key].num_elements);
    if (stripe.count > 0 && turn->pass < shard->job->service.num_workers)
        add_copy(shard, content, turn->pass, &stripe);
    else if (stripe.count > 0)
        step(shard, content, &stripe);
    const uint64_t num_stripes = atomic_fetch_add(&wide->num_stripes, 1) + 1;
    if (num_stripes % wide->num_cores == 0)
        shard->callbacks.wake_others(shard->callbacks.context);
}

size_t ph__shard_run_wide(struct ph__shard *shard, size_t max_bytes)
{
    struct ph__wide *wide = shard->job->wide;
    struct ph__wide_turn *turn = &wide->turns[shard->core];
    size_t num_done = 0;
    for (; shard->bytes_done < max_bytes && ph__shard_has_wide_work(shard); num_done++) {
        if (!turn->is_begun)
            turn->content = wide->entries[turn->entry & wide->mask].content;
        turn->is_begun = turn->pass < wide->num_passes;
        if (turn->is_begun) {
            run_pass(shard, turn);
            turn->pass++;
            continue;
        }
        finish(shard, &turn->content);
        turn->pass = 0;
        turn->entry++;
    }
    return num_done;
}
