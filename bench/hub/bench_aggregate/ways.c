#include "ways.h"

#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sum/checksum.h"
#include "figures.h"
#include "pinned.h"

enum { STRIPE_NUMBERS = 16 /* a cache line, so threads share none */ };

const char *const way_names[NUM_WAYS] = {
    "tall", "wide", "wide_asleep", "separate", "chunkwise", "replies", "replies_non_temporal"};

/* ---- memory ---- */

static float *numbers_create(size_t count)
{
    void *pointer = NULL;
    bench_check(ph__memory_alloc(count * sizeof(float), "workers' gradients", &pointer));
    memset(pointer, 0, count * sizeof(float));
    return pointer;
}

static void fill(float *numbers, size_t count, uint64_t stream)
{
    struct ph__rng_sequence rng = {.key = {.seed = 1, .stream = stream}};
    enum { PERIOD = 4093 };
    for (size_t i = 0; i < count; i++)
        numbers[i] = i < PERIOD ? (float)(ph__rng_next_uniform(&rng) - 0.5) : numbers[i - PERIOD];
}

struct hub_memory hub_memory_create(size_t numbers, size_t reply_numbers, size_t scratch_numbers)
{
    struct hub_memory memory = {
        .numbers = numbers, .reply_numbers = reply_numbers, .scratch_numbers = scratch_numbers};
    for (size_t i = 0; i < MAX_WORKERS; i++) {
        memory.copies[i] = numbers_create(numbers);
        fill(memory.copies[i], numbers, i);
        memory.results[i] = numbers_create(reply_numbers);
    }
    memory.weight = numbers_create(numbers);
    memory.m = numbers_create(numbers);
    memory.sum = numbers_create(numbers);
    for (size_t i = 0; i < MAX_OWNERS; i++)
        memory.scratch[i] = numbers_create(scratch_numbers);
    return memory;
}

void hub_memory_destroy(struct hub_memory *memory)
{
    for (size_t i = 0; i < MAX_WORKERS; i++) {
        ph__memory_free(memory->copies[i], memory->numbers * sizeof(float));
        ph__memory_free(memory->results[i], memory->reply_numbers * sizeof(float));
    }
    ph__memory_free(memory->weight, memory->numbers * sizeof(float));
    ph__memory_free(memory->m, memory->numbers * sizeof(float));
    ph__memory_free(memory->sum, memory->numbers * sizeof(float));
    for (size_t i = 0; i < MAX_OWNERS; i++)
        ph__memory_free(memory->scratch[i], memory->scratch_numbers * sizeof(float));
}

/* ---- one span ---- */

static struct ph__optimizer_step mean_step(const struct job *job)
{
    return (struct ph__optimizer_step){.kind = PH_MOMENTUM,
        .learning_rate = 1e-3F,
        .gradient_scale = 1 / (float)job->num_workers,
        .momentum = 0.9F};
}

static void step_span(const struct job *job, struct span span, const float *sum)
{
    const struct ph__optimizer_step step = mean_step(job);
    const struct hub_memory *memory = job->memory;
    job->kernels->optimizer_update(
        &step, span.n, sum, memory->weight + span.first, memory->m + span.first, NULL);
}

/* Sums the span into `sum`; NULL: into the weights, through the optimizer. */
static void sum_span(const struct job *job, struct span span, float *sum, enum way way)
{
    const struct hub_memory *memory = job->memory;
    const struct ph__optimizer_step step = mean_step(job);
    const void *copies[MAX_WORKERS];
    void *results[MAX_WORKERS];
    for (size_t i = 0; i < job->num_workers; i++) {
        copies[i] = memory->copies[i] + span.first;
        results[i] = memory->results[i] + span.first;
    }
    float *weight = memory->weight + span.first;
    const bool has_replies = way == WAY_REPLIES || way == WAY_REPLIES_NT;
    const struct ph__aggregate_args args = {.n = span.n,
        .num_copies = job->num_workers,
        .copies = copies,
        .dtype = PH_F32,
        .step = sum == NULL ? &step : NULL,
        .sum_scale = 1,
        .weight = weight,
        .new_weight = sum == NULL ? weight : sum,
        .m = memory->m + span.first,
        .num_results = has_replies ? job->num_workers : 0,
        .results = results,
        .is_non_temporal = way == WAY_REPLIES_NT};
    job->kernels->aggregate(&args);
}

/* ---- ways ---- */

struct sample {
    const struct job *job;
    enum way way;
};

static void run_tall(const struct sample *sample, size_t member)
{
    const struct job *job = sample->job;
    const struct span *chunks = job->chunks->of[member];
    float *scratch = job->memory->scratch[member];
    for (size_t i = 0; i < job->chunks->count[member]; i++) {
        if (sample->way == WAY_CHUNKWISE) {
            sum_span(job, chunks[i], scratch, sample->way);
            step_span(job, chunks[i], scratch);
        } else if (sample->way == WAY_SEPARATE) {
            sum_span(job, chunks[i], job->memory->sum + chunks[i].first, sample->way);
        } else {
            sum_span(job, chunks[i], NULL, sample->way);
        }
    }
}

static void run_separate_step(const struct job *job, size_t member)
{
    const struct span *chunks = job->chunks->of[member];
    for (size_t i = 0; i < job->chunks->count[member]; i++)
        step_span(job, chunks[i], job->memory->sum + chunks[i].first);
}

/* Returns the member's part of a key. */
static struct span stripe_of(struct span key, size_t member, size_t num_members)
{
    const size_t lines = (key.n + STRIPE_NUMBERS - 1) / STRIPE_NUMBERS;
    const size_t first = lines * member / num_members * STRIPE_NUMBERS;
    const size_t end = lines * (member + 1) / num_members * STRIPE_NUMBERS;
    return (struct span){key.first + first, (end < key.n ? end : key.n) - first};
}

static void run_wide(
    struct bench_gang *gang, const struct job *job, size_t member, void (*meet)(struct bench_gang *gang))
{
    const struct hub_memory *memory = job->memory;
    for (size_t k = 0; k < job->keys->num_keys; k++) {
        const struct span stripe = stripe_of(job->keys->keys[k], member, bench_gang_size(gang));
        float *sum = memory->sum + stripe.first;
        memcpy(sum, memory->copies[0] + stripe.first, stripe.n * sizeof *sum);
        meet(gang);
        for (size_t i = 1; i < job->num_workers; i++) {
            job->kernels->add(stripe.n, sum, memory->copies[i] + stripe.first, sum);
            meet(gang);
        }
        step_span(job, stripe, sum);
        meet(gang);
    }
}

static void run_way(struct bench_gang *gang, size_t member, void *argument)
{
    const struct sample *sample = argument;
    if (sample->way == WAY_WIDE)
        run_wide(gang, sample->job, member, bench_gang_meet);
    else if (sample->way == WAY_WIDE_ASLEEP)
        run_wide(gang, sample->job, member, bench_gang_meet_asleep);
    else
        run_tall(sample, member);
    if (sample->way == WAY_SEPARATE)
        run_separate_step(sample->job, member);
}

double way_seconds(const struct job *job, enum way way)
{
    struct sample sample = {job, way};
    return bench_gang_run(ph__team_num_threads(job->team), run_way, &sample);
}

double way_bytes_a_number(enum way way, size_t num_workers)
{
    const double workers = (double)num_workers, state = 4; /* weight and momentum, read and written */
    const double written = 2;                              /* the line is read before */
    double numbers = workers + state;
    if (way == WAY_WIDE || way == WAY_WIDE_ASLEEP)
        numbers = 1 + written + 3 * (workers - 1) + 1 + state;
    else if (way == WAY_SEPARATE)
        numbers = workers + written + 1 + state;
    else if (way == WAY_REPLIES)
        numbers = workers + written * workers + state;
    else if (way == WAY_REPLIES_NT)
        numbers = workers + workers + state;
    return numbers * sizeof(float);
}

/* ---- the same bits ---- */

/* Returns the checksum of weights and momentum after two steps from zero. */
static uint64_t checksum_after(const struct job *job, enum way way)
{
    const struct hub_memory *memory = job->memory;
    const size_t bytes = job->keys->numbers * sizeof(float);
    memset(memory->weight, 0, bytes);
    memset(memory->m, 0, bytes);
    for (int step = 0; step < 2; step++)
        way_seconds(job, way);
    return ph__checksum(memory->weight, bytes) ^ ph__checksum(memory->m, bytes);
}

void way_check(const struct job *job, enum way way)
{
    if (checksum_after(job, way) != checksum_after(job, WAY_TALL))
        bench_check(ph_fail(PH_ERROR_BUG, "%s and tall make different weights", way_names[way]));
}
