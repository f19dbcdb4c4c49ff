#include "support/shard_oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dtype_numbers.h"

struct version {
    void *numbers; /* in the chunk's dtype */
    uint32_t num_contributors;
};

struct chunk {
    const struct ph__chunk_place *place;
    float *weights, *m, *s, *sums; /* (num_elements) */
    double squares;
    uint64_t version;
    uint32_t num_contributors; /* to the sums */
    bool is_summed;
    struct version *versions; /* (version + 1) */
};

struct shard_oracle {
    struct trial_job job;
    const struct ph__layout *layout;
    struct chunk *chunks; /* (num_chunks) */
    size_t num_summed;    /* in this round of clipping */
    float clip_factor;    /* of the last round */
};

_Noreturn void trial__broken(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s (last error: %s)\n", file, line, condition, ph_error_text());
    abort();
}

/* ---- numbers ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Draws a number. Magnitudes vary, so that a sum in another order has other bits. */
static float drawn_number(uint64_t seed, uint32_t worker, size_t element, uint64_t iteration)
{
    const uint64_t bits = mix(mix(mix(seed ^ worker) ^ iteration) ^ element);
    return ldexpf((float)(int32_t)(bits >> 32), -32 - (int)(bits % 8));
}

void shard_oracle_gradient(
    const struct shard_oracle *oracle, uint32_t worker, uint32_t chunk, uint64_t iteration, void *numbers_out)
{
    const struct ph__chunk_place *place = &oracle->layout->chunks[chunk];
    for (size_t i = 0; i < place->num_elements; i++)
        dtype_number_set(numbers_out, place->dtype, i,
            drawn_number(oracle->job.seed, worker, place->first_weight + i, iteration));
}

/* ---- versions ---- */

static void keep_version(struct chunk *chunk)
{
    chunk->versions = realloc(chunk->versions, (chunk->version + 1) * sizeof *chunk->versions);
    trial_require(chunk->versions != NULL);
    struct version *version = &chunk->versions[chunk->version];
    *version = (struct version){
        .numbers = malloc(chunk->place->gradient_bytes), .num_contributors = chunk->num_contributors};
    trial_require(version->numbers != NULL);
    for (size_t i = 0; i < chunk->place->num_elements; i++)
        dtype_number_set(version->numbers, chunk->place->dtype, i, chunk->weights[i]);
}

uint64_t shard_oracle_version(const struct shard_oracle *oracle, uint32_t chunk)
{
    return oracle->chunks[chunk].version;
}

bool shard_oracle_is(const struct shard_oracle *oracle, uint32_t chunk, uint64_t version, const void *numbers)
{
    const struct chunk *of = &oracle->chunks[chunk];
    return version <= of->version &&
           memcmp(of->versions[version].numbers, numbers, of->place->gradient_bytes) == 0;
}

uint32_t shard_oracle_contributors(const struct shard_oracle *oracle, uint32_t chunk, uint64_t version)
{
    trial_require(version <= oracle->chunks[chunk].version);
    return oracle->chunks[chunk].versions[version].num_contributors;
}

const float *shard_oracle_weights(const struct shard_oracle *oracle, uint32_t chunk)
{
    return oracle->chunks[chunk].weights;
}

void shard_oracle_assign(struct shard_oracle *oracle, uint32_t chunk)
{
    struct chunk *of = &oracle->chunks[chunk];
    trial_require(of->version == 0);
    shard_oracle_gradient(oracle, ORACLE_INITIAL, chunk, 0, of->versions[0].numbers);
    for (size_t i = 0; i < of->place->num_elements; i++)
        of->weights[i] = dtype_number(of->versions[0].numbers, of->place->dtype, i);
}

/* ---- sums and steps ---- */

static void find_clip_factor(struct shard_oracle *oracle)
{
    double sum = 0;
    for (size_t i = 0; i < oracle->layout->sizes.num_chunks; i++)
        sum += oracle->chunks[i].squares;
    const double factor = (double)oracle->job.clip_norm / (sqrt(sum) + 1e-6);
    oracle->clip_factor = factor < 1 ? (float)factor : 1.0F;
    oracle->num_summed = 0;
}

void shard_oracle_sum(
    struct shard_oracle *oracle, uint32_t chunk, const struct oracle_push *pushes, size_t num_pushes)
{
    struct chunk *of = &oracle->chunks[chunk];
    const size_t n = of->place->num_elements;
    void *gradient = malloc(of->place->gradient_bytes);
    trial_require(gradient != NULL && num_pushes > 0 && !of->is_summed);
    for (size_t p = 0; p < num_pushes; p++) {
        shard_oracle_gradient(oracle, pushes[p].worker, chunk, pushes[p].iteration, gradient);
        for (size_t i = 0; i < n; i++) {
            const float number = dtype_number(gradient, of->place->dtype, i);
            of->sums[i] = p == 0 ? number : of->sums[i] + number;
        }
    }
    for (size_t i = 0; i < n; i++)
        of->sums[i] *= oracle->job.is_mean ? 1.0F / (float)num_pushes : 1.0F;
    free(gradient);
    of->is_summed = true;
    of->num_contributors = (uint32_t)num_pushes;
    of->squares = oracle->job.kernels->sum_of_squares(n, of->sums, NULL, 0);
    if (++oracle->num_summed == oracle->layout->sizes.num_chunks)
        find_clip_factor(oracle);
}

bool shard_oracle_is_summed(const struct shard_oracle *oracle, uint32_t chunk)
{
    return oracle->chunks[chunk].is_summed;
}

static struct ph__optimizer_step step_of(
    const struct ph_hub_optimizer *optimizer, uint64_t version, float learning_rate, float gradient_scale)
{
    return (struct ph__optimizer_step){.kind = optimizer->rule.kind,
        .is_nesterov = optimizer->rule.is_nesterov,
        .learning_rate = learning_rate,
        .gradient_scale = gradient_scale,
        .l2 = optimizer->l2,
        .weight_decay = (float)optimizer->rule.weight_decay,
        .momentum = (float)optimizer->rule.momentum,
        .beta1 = (float)optimizer->rule.beta1,
        .beta2 = (float)optimizer->rule.beta2,
        .epsilon = (float)optimizer->rule.epsilon,
        .bias_correction1 = (float)(1 - pow(optimizer->rule.beta1, (double)version)),
        .bias_correction2 = (float)(1 - pow(optimizer->rule.beta2, (double)version))};
}

void shard_oracle_step(struct shard_oracle *oracle, uint32_t chunk, float learning_rate)
{
    struct chunk *of = &oracle->chunks[chunk];
    const struct ph_hub_optimizer *optimizer =
        &oracle->job.optimizers[oracle->job.keys[of->place->key].optimizer];
    const float factor = oracle->job.clip_norm > 0 ? oracle->clip_factor : 1.0F;
    trial_require(of->is_summed);
    of->is_summed = false;
    of->version++;
    const struct ph__optimizer_step step = step_of(optimizer, of->version, learning_rate, factor);
    for (size_t i = 0; optimizer->is_none && i < of->place->num_elements; i++)
        of->weights[i] = of->sums[i] * factor;
    if (!optimizer->is_none)
        oracle->job.kernels->optimizer_update(
            &step, of->place->num_elements, of->sums, of->weights, of->m, of->s);
    keep_version(of);
}

/* ---- creation ---- */

static float *zeros(size_t n)
{
    float *numbers = calloc(n, sizeof *numbers);
    trial_require(numbers != NULL);
    return numbers;
}

struct shard_oracle *shard_oracle_create(const struct trial_job *job, const struct ph__layout *layout)
{
    struct shard_oracle *oracle = calloc(1, sizeof *oracle);
    trial_require(oracle != NULL);
    *oracle = (struct shard_oracle){.job = *job, .layout = layout, .clip_factor = 1};
    oracle->chunks = calloc(layout->sizes.num_chunks, sizeof *oracle->chunks);
    trial_require(oracle->chunks != NULL);
    for (size_t i = 0; i < layout->sizes.num_chunks; i++) {
        struct chunk *chunk = &oracle->chunks[i];
        chunk->place = &layout->chunks[i];
        chunk->weights = zeros(chunk->place->num_elements);
        chunk->m = zeros(chunk->place->num_elements);
        chunk->s = zeros(chunk->place->num_elements);
        chunk->sums = zeros(chunk->place->num_elements);
        keep_version(chunk);
    }
    return oracle;
}

void shard_oracle_destroy(struct shard_oracle *oracle)
{
    if (oracle == NULL)
        return;
    for (size_t i = 0; i < oracle->layout->sizes.num_chunks; i++) {
        struct chunk *chunk = &oracle->chunks[i];
        for (uint64_t version = 0; version <= chunk->version; version++)
            free(chunk->versions[version].numbers);
        free(chunk->versions);
        free(chunk->weights);
        free(chunk->m);
        free(chunk->s);
        free(chunk->sums);
    }
    free(oracle->chunks);
    free(oracle);
}
