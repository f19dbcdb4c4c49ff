/* Sums and steps: updates chunks whose gradients are there. Each is one call of the kernel `aggregate`, which
 * reads every gradient once and writes every result once. */
#include <math.h>
#include <stddef.h>

#include "hub/shard/shard_state.h"
#include "hub/shard/shard_trace.h"

struct ph__optimizer_step ph__shard_step(
    const struct ph_hub_optimizer *optimizer, float learning_rate, uint64_t version, float gradient_scale)
{
    struct ph__optimizer_step step = ph__optimizer_step(&optimizer->rule, (double)version);
    step.learning_rate = learning_rate;
    step.gradient_scale = gradient_scale;
    step.l2 = optimizer->l2;
    return step;
}

/* Returns rank 0's latest rate before its push of this iteration, or its last if it has not pushed. */
static float learning_rate_of(
    const struct ph__shard *shard, uint32_t chunk, uint64_t iteration, bool has_pushed)
{
    return has_pushed ? ph__shard_state(shard, chunk)->learning_rates[iteration % PH_HUB_MAX_DEPTH]
                      : shard->learning_rates[ph__shard_optimizer(shard, chunk)];
}

float ph__shard_learning_rate(const struct ph__shard *shard, uint32_t chunk)
{
    const uint64_t version = ph__shard_state(shard, chunk)->version + 1;
    return learning_rate_of(
        shard, chunk, version, ph__request(shard->job->memory, chunk, 0)->pushed >= version);
}

static void *at(char *region, const struct ph__chunk_place *place)
{
    return region + place->gradient_offset;
}

static float *weights_at(float *region, const struct ph__chunk_place *place)
{
    return region != NULL ? region + place->first_weight : NULL;
}

/* Gives the iteration of the worker's push that a version answers. false: none. */
static bool find_answered(const struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t version,
    uint64_t last_answerable, uint64_t *iteration_out)
{
    const struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    const bool is_synchronous = shard->job->service.mode == PH_HUB_SYNCHRONOUS;
    *iteration_out = is_synchronous ? version : request->counted;
    return is_synchronous || (request->answered < request->counted && request->counted <= last_answerable);
}

/* Lists where the new parameters go besides the weights: the results if separate, and the own parameters of
 * workers that asked for them and are answered now. Returns their number. */
static size_t list_results(struct ph__shard *shard, uint32_t chunk, uint64_t version)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    const size_t copy = version % memory->num_versions;
    const uint64_t last_answerable = ph__shard_last_answerable(shard, chunk);
    size_t count = 0;
    if (memory->results[copy] != (char *)memory->weights[copy])
        shard->results[count++] = at(memory->results[copy], place);
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        uint64_t iteration;
        if (memory->workers[worker].parameters[0] == NULL || !ph__shard_is_live(shard, worker) ||
            !find_answered(shard, chunk, worker, version, last_answerable, &iteration))
            continue;
        const struct ph__chunk_worker *request = ph__request(memory, chunk, worker);
        if (request->kinds[iteration % PH_HUB_MAX_DEPTH] == PH_HUB_PUSHPULL)
            shard->results[count++] =
                at(memory->workers[worker].parameters[iteration % memory->depth], place);
    }
    return count;
}

/* Returns the arguments that all passes over a chunk share. */
static struct ph__aggregate_args base_arguments(
    const struct ph__shard *shard, const struct ph__chunk_place *place)
{
    return (struct ph__aggregate_args){.n = place->num_elements,
        .dtype = place->dtype,
        .sum_scale = 1,
        .is_non_temporal = shard->job->is_non_temporal};
}

static void aggregate(
    struct ph__shard *shard, uint32_t chunk, const char *pass, const struct ph__aggregate_args *arguments)
{
    const bool is_traced = shard->job->trace != NULL;
    const uint64_t begin_ns = is_traced ? ph__shard_trace_begin(shard) : 0;
    shard->job->kernels->aggregate(arguments);
    if (is_traced)
        ph__shard_trace_end(shard, chunk, pass, begin_ns);
}

/* Makes the chunk's next version of the sum in the arguments. The version's copy of the weights is free. */
static void step_chunk(struct ph__shard *shard, uint32_t chunk, struct ph__aggregate_args *arguments,
    float learning_rate, float gradient_scale)
{
    struct ph__shard_job *job = shard->job;
    const struct ph__job_memory *memory = job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    const struct ph_hub_optimizer *optimizer = &job->service.optimizers[ph__shard_optimizer(shard, chunk)];
    const uint64_t version = state->version + 1;
    if (state->is_wanted)
        ph__shard_copy_chunk(shard, chunk);
    const struct ph__optimizer_step step = ph__shard_step(optimizer, learning_rate, version, gradient_scale);
    arguments->step = optimizer->is_none ? NULL : &step;
    if (optimizer->is_none)
        arguments->sum_scale *= gradient_scale;
    arguments->weight = weights_at(memory->weights[state->version % memory->num_versions], place);
    arguments->new_weight = weights_at(memory->weights[version % memory->num_versions], place);
    arguments->m = weights_at(memory->m, place);
    arguments->s = weights_at(memory->s, place);
    arguments->num_results = list_results(shard, chunk, version);
    arguments->results = shard->results;
    aggregate(shard, chunk, arguments->num_copies > 0 ? "sum and step" : "step", arguments);
    state->version = version;
    state->learning_rate = step.learning_rate;
    shard->counters.updates++;
    if (version == shard->snapshot_version)
        ph__shard_reach_version(shard, chunk);
}

bool ph__shard_must_wait(struct ph__shard *shard, uint32_t chunk)
{
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    state->is_waiting = state->num_sending[(state->version + 1) % shard->job->memory->num_versions] > 0;
    shard->counters.waits_for_replies += state->is_waiting;
    return state->is_waiting;
}

static float sum_scale(const struct ph__shard *shard, size_t num_gradients)
{
    return shard->job->service.is_mean ? 1.0F / (float)num_gradients : 1.0F;
}

static void count_bytes(struct ph__shard *shard, const struct ph__chunk_place *place, size_t num_gradients)
{
    const size_t bytes = place->gradient_bytes * num_gradients;
    shard->bytes_done += bytes;
    shard->counters.update_bytes += bytes;
}

/* Makes the chunk's next version in a synchronous job, and replies to all that wait for it. */
static void finish_version(
    struct ph__shard *shard, uint32_t chunk, struct ph__aggregate_args *arguments, float gradient_scale)
{
    step_chunk(shard, chunk, arguments, ph__shard_learning_rate(shard, chunk), gradient_scale);
    ph__shard_answer_iteration(shard, chunk);
    ph__shard_consider(shard, chunk);
}

/* ---- clipping ---- */

/* Returns min(1, norm / (|g| + 1e-6)), as the graph's clip_factor; sums squares in the order of chunks. */
static float clip_factor(const struct ph__shard_job *job)
{
    double sum = 0;
    for (size_t i = 0; i < job->memory->layout->sizes.num_chunks; i++)
        sum += job->memory->chunks[i].square;
    const double factor = (double)job->service.clip_norm / (sqrt(sum) + 1e-6);
    return factor < 1 ? (float)factor : 1.0F;
}

/* Sums a chunk, whose step waits for the sums of all chunks. The shard that sums the last chunk of a round
 * finds the factor. */
static void sum_chunk(struct ph__shard *shard, uint32_t chunk, struct ph__aggregate_args *arguments)
{
    struct ph__shard_job *job = shard->job;
    const struct ph__job_memory *memory = job->memory;
    const uint64_t num_chunks = memory->layout->sizes.num_chunks;
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    float *sums =
        weights_at(memory->sums[(state->version + 1) % memory->depth], &memory->layout->chunks[chunk]);
    arguments->new_weight = sums;
    arguments->is_non_temporal = false; /* read again soon */
    aggregate(shard, chunk, "sum", arguments);
    state->square = job->kernels->sum_of_squares(arguments->n, sums, NULL, 0);
    state->is_summed = true;
    const uint64_t num_summed = atomic_fetch_add_explicit(&job->num_summed, 1, memory_order_acq_rel) + 1;
    if (num_summed % num_chunks != 0)
        return;
    job->clip_factor = clip_factor(job);
    atomic_store(&job->rounds_clipped, num_summed / num_chunks); /* before a look at who sleeps: core.c */
    shard->callbacks.wake_others(shard->callbacks.context);
}

void ph__shard_look_for_steps(struct ph__shard *shard)
{
    const uint64_t rounds = atomic_load_explicit(&shard->job->rounds_clipped, memory_order_acquire);
    for (; shard->rounds_stepped < rounds; shard->rounds_stepped++) {
        for (size_t i = 0; i < shard->num_chunks; i++)
            ph__shard_add_work(shard, PH_WORK_STEP, shard->chunks[i], 0);
    }
}

static void step_clipped(struct ph__shard *shard, uint32_t chunk)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    struct ph__aggregate_args arguments = base_arguments(shard, place);
    arguments.sum_so_far = weights_at(memory->sums[(state->version + 1) % memory->depth], place);
    state->is_summed = false;
    shard->bytes_done += place->gradient_bytes;
    finish_version(shard, chunk, &arguments, shard->job->clip_factor);
}

/* ---- synchronous ---- */

/* Lists the gradients of the next iteration, in the order of the workers that count. Returns their number. */
static size_t list_gradients(struct ph__shard *shard, uint32_t chunk)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const uint64_t iteration = ph__shard_state(shard, chunk)->version + 1;
    size_t count = 0;
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        if (ph__shard_counts(shard, worker) && ph__request(memory, chunk, worker)->counted >= iteration)
            shard->copies[count++] = ph__shard_gradient(shard, chunk, worker, iteration);
    }
    return count;
}

static void free_places(struct ph__shard *shard, uint32_t chunk, uint64_t iteration)
{
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++)
        ph__shard_free_place(shard, chunk, worker, iteration);
}

/* Clears the counts of the gradients that `arguments` sums, and steps the chunk, or sums it for clipping. */
static void finish_iteration(
    struct ph__shard *shard, uint32_t chunk, struct ph__aggregate_args *arguments, size_t num_gradients)
{
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    const size_t slot = (state->version + 1) % PH_HUB_MAX_DEPTH;
    state->num_arrived[slot] = 0;
    state->num_added[slot] = 0;
    state->num_contributors = (uint32_t)num_gradients;
    arguments->sum_scale = sum_scale(shard, num_gradients);
    if (shard->job->service.clip_norm > 0)
        sum_chunk(shard, chunk, arguments);
    else
        finish_version(shard, chunk, arguments, 1);
}

static void update_iteration(struct ph__shard *shard, uint32_t chunk)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    struct ph__aggregate_args arguments = base_arguments(shard, place);
    state->is_queued = false;
    if (!ph__shard_is_complete(shard, state) ||
        ph__shard_must_wait(shard, chunk)) /* not complete: all workers have gone */
        return;
    const uint64_t iteration = state->version + 1;
    if (shard->job->service.order == PH_HUB_ARRIVAL_ORDER) {
        arguments.sum_so_far = weights_at(memory->sums[iteration % memory->depth], place);
        shard->bytes_done += place->gradient_bytes;
        finish_iteration(shard, chunk, &arguments, state->num_added[iteration % PH_HUB_MAX_DEPTH]);
        return;
    }
    arguments.num_copies = list_gradients(shard, chunk);
    arguments.copies = shard->copies;
    count_bytes(shard, place, arguments.num_copies);
    finish_iteration(shard, chunk, &arguments, arguments.num_copies);
    free_places(shard, chunk, iteration);
}

/* ---- each gradient by itself ---- */

/* Arrival order: adds a gradient to the sum of its iteration; the last also makes the update, in one pass. */
static void add_gradient(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    struct ph__chunk_worker *request = ph__request(memory, chunk, worker);
    struct ph__aggregate_args arguments = base_arguments(shard, place);
    const uint64_t iteration = ++request->counted;
    const size_t slot = iteration % PH_HUB_MAX_DEPTH;
    float *sums = weights_at(memory->sums[iteration % memory->depth], place);
    shard->copies[0] = ph__shard_gradient(shard, chunk, worker, iteration);
    arguments.sum_so_far = state->num_added[slot] > 0 ? sums : NULL;
    arguments.copies = shard->copies;
    arguments.num_copies = 1;
    state->num_arrived[slot]++;
    state->num_added[slot]++;
    count_bytes(shard, place, 1);
    const bool is_last = iteration == state->version + 1 && ph__shard_is_complete(shard, state);
    if (is_last && !ph__shard_must_wait(shard, chunk)) {
        finish_iteration(shard, chunk, &arguments, state->num_added[slot]);
    } else {
        arguments.new_weight = sums;
        arguments.is_non_temporal = false;
        aggregate(shard, chunk, "add", &arguments);
    }
    ph__shard_free_place(shard, chunk, worker, iteration);
}

/* Asynchronous and bounded: makes an update of a gradient. */
static void apply_gradient(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    struct ph__chunk_worker *request = ph__request(memory, chunk, worker);
    struct ph__aggregate_args arguments = base_arguments(shard, place);
    if (ph__shard_must_wait(shard, chunk))
        return;
    const uint64_t iteration = ++request->counted;
    ph__shard_state(shard, chunk)->num_contributors = 1;
    shard->copies[0] = ph__shard_gradient(shard, chunk, worker, iteration);
    arguments.copies = shard->copies;
    arguments.num_copies = 1;
    count_bytes(shard, place, 1);
    step_chunk(shard, chunk, &arguments, learning_rate_of(shard, chunk, iteration, worker == 0), 1);
    ph__shard_free_place(shard, chunk, worker, iteration);
    ph__shard_answer_gradients(shard, chunk, true);
}

static void update_gradient(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    request->num_queued--;
    if (!ph__shard_counts(shard, worker))
        return;
    if (shard->job->service.mode == PH_HUB_SYNCHRONOUS)
        add_gradient(shard, chunk, worker);
    else
        apply_gradient(shard, chunk, worker);
}

void ph__shard_work(struct ph__shard *shard, const struct ph__shard_work *work)
{
    switch ((enum ph__shard_work_kind)work->kind) {
    case PH_WORK_ITERATION:
        update_iteration(shard, work->chunk);
        break;
    case PH_WORK_GRADIENT:
        update_gradient(shard, work->chunk, work->worker);
        break;
    case PH_WORK_STEP:
        step_clipped(shard, work->chunk);
        break;
    case PH_WORK_COPY:
        ph__shard_work_copy(shard, work->chunk);
        break;
    case PH_WORK_RESTORE:
        ph__shard_work_restore(shard, work->chunk);
        break;
    }
}

void ph__shard_assign(struct ph__shard *shard, uint32_t chunk)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    struct ph__aggregate_args arguments = base_arguments(shard, place);
    shard->copies[0] = ph__shard_gradient(shard, chunk, 0, 0);
    shard->bytes_done += place->gradient_bytes;
    shard->results[0] = at(memory->results[0], place);
    arguments.copies = shard->copies;
    arguments.num_copies = 1;
    arguments.new_weight = weights_at(memory->weights[0], place);
    arguments.results = shard->results;
    arguments.num_results = memory->results[0] != (char *)memory->weights[0];
    shard->job->kernels->aggregate(&arguments);
    ph__shard_free_place(shard, chunk, 0, 0);
    ph__shard_reply(shard, 0, chunk, PH_HUB_TAKEN, 0);
}

void ph__shard_publish(struct ph__shard *shard, uint32_t chunk)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    const size_t copy = ph__shard_state(shard, chunk)->version % memory->num_versions;
    struct ph__aggregate_args arguments = base_arguments(shard, place);
    if (memory->results[copy] == (char *)memory->weights[copy])
        return;
    shard->results[0] = at(memory->results[copy], place);
    arguments.sum_so_far = weights_at(memory->weights[copy], place);
    arguments.results = shard->results;
    arguments.num_results = 1;
    shard->job->kernels->aggregate(&arguments);
}
