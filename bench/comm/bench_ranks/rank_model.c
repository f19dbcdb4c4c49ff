/* Builds and trains a rank's model: see rank_model.h. */
#include "rank_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "dlrm_case.h"
#include "figures.h"
#include "plan/plan_choice.h"
#include "shard/plan_distribution.h"
#include "training_step.h"

enum { MOST_TABLES = 64, DENSE_BATCHES = 4, BUCKET_BYTES = 1 << 20 /* parallel.bucket_bytes */ };

const int64_t dense_units[DENSE_LAYERS] = {1024, 1024, 512};

/* A program and its plan of exchanges, with overlap or without; a rank that is alone has one way for both. */
struct way {
    struct ph_distribution *distribution;
    struct step *step;
};

struct rank_model {
    const struct dlrm_case *of; /* NULL: the perceptron */
    struct ph_comm *comm;
    enum ph_wire_format wire;
    struct ph__plan plan;
    struct dlrm_data data;                        /* DLRM: this rank's share */
    struct ph_batch dense_batches[DENSE_BATCHES]; /* the perceptron's */
    struct way ways[2];
    const struct way *latest;
};

static const struct dlrm_case *find_case(const char *name)
{
    for (size_t i = 0; i < dlrm_num_cases; i++)
        if (strcmp(dlrm_cases[i].name, name) == 0)
            return &dlrm_cases[i];
    return NULL;
}

static size_t num_batches(const struct rank_model *model)
{
    return model->of != NULL ? DLRM_NUM_BATCHES : DENSE_BATCHES;
}

size_t rank_model_batch(const char *name)
{
    const struct dlrm_case *of = find_case(name);
    if (strcmp(name, RANK_MODEL_DENSE) == 0)
        return DENSE_BATCH;
    return of != NULL ? of->batch : 0;
}

/* ---- batches ---- */

static void make_shared_data(struct rank_model *model)
{
    static struct dlrm_data whole;
    dlrm_data_init(&whole, model->of);
    dlrm_data_share(&whole, ph_comm_rank(model->comm), ph_comm_world_size(model->comm), &model->data);
    dlrm_data_fini(&whole);
}

static ph_real *make_numbers(size_t count, struct ph__rng_sequence *random)
{
    ph_real *numbers;
    bench_check(ph__memory_alloc(count * sizeof *numbers, "a batch", (void **)&numbers));
    for (size_t i = 0; i < count; i++)
        numbers[i] = (ph_real)ph__rng_next_uniform(random);
    return numbers;
}

static struct ph_batch make_dense_batch(size_t rank, size_t world_size, struct ph__rng_sequence *random)
{
    static const uint32_t no_ids;
    const size_t first = DENSE_BATCH * rank / world_size,
                 count = DENSE_BATCH * (rank + 1) / world_size - first;
    return (struct ph_batch){.num_samples = count,
        .num_dense = DENSE_FEATURES,
        .num_tasks = 1,
        .num_global_samples = DENSE_BATCH,
        .first_sample = first,
        .dense = make_numbers(count * DENSE_FEATURES, random),
        .labels = make_numbers(count, random),
        .offsets = &no_ids};
}

static void make_batches(struct rank_model *model)
{
    const size_t rank = ph_comm_rank(model->comm), world_size = ph_comm_world_size(model->comm);
    struct ph__rng_sequence random = {.key = {.seed = rank}};
    if (model->of != NULL) {
        make_shared_data(model);
        return;
    }
    for (size_t i = 0; i < DENSE_BATCHES; i++)
        model->dense_batches[i] = make_dense_batch(rank, world_size, &random);
}

static void free_batches(struct rank_model *model)
{
    if (model->of != NULL) {
        dlrm_data_fini(&model->data);
        return;
    }
    for (size_t i = 0; i < DENSE_BATCHES; i++) {
        const struct ph_batch *batch = &model->dense_batches[i];
        const size_t bytes = batch->num_samples * sizeof(ph_real);
        ph__memory_free((void *)(uintptr_t)batch->dense, bytes * DENSE_FEATURES);
        ph__memory_free((void *)(uintptr_t)batch->labels, bytes);
    }
}

/* ---- the plan ---- */

static void make_plan(struct rank_model *model, enum ph__shard_kind kind)
{
    const struct ph__topology topology = {
        ph_comm_world_size(model->comm), ph_comm_ranks_per_host(model->comm)};
    struct ph__table_facts facts[MOST_TABLES];
    struct ph__plan_choice choices[MOST_TABLES] = {0};
    char names[MOST_TABLES][32];
    struct ph__arena arena = {0};
    const size_t count = model->of != NULL ? model->of->tables : 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "embedding.C%zu", i + 1);
        facts[i] = (struct ph__table_facts){.name = names[i],
            .num_rows = model->of->rows,
            .dim = model->of->dim,
            .num_features = 1,
            .ids_per_sample = (double)model->of->pooling,
            .weight_bytes = model->of->dim * sizeof(ph_real),
            .slot_bytes = sizeof(ph_real),
            .row_slot_bytes = sizeof(ph_real)};
        choices[i].kind = kind;
    }
    bench_check(ph__plan_places(&topology, facts, count, choices, &arena));
    bench_check(ph__plan_build(&topology, facts, count, choices, &model->plan));
    ph__arena_fini(&arena);
}

/* ---- programs ---- */

static struct ph_program *dense_program(const struct ph_distribution *distribution)
{
    const struct ph_model_settings settings = {.kind = ph_model_find("dnn"),
        .embedding_dim = 1, /* there is no table */
        .hidden_units = dense_units,
        .num_hidden_units = DENSE_LAYERS,
        .activation = PH_RELU};
    const struct ph_model_features features = {.num_dense = DENSE_FEATURES, .num_tasks = 1};
    struct ph_builder *builder;
    bench_check(ph_builder_create(PH_TRAINING, &builder));
    return dlrm_learning_program(
        builder, ph_model_build(builder, &settings, &features), PH_ADAGRAD, distribution);
}

static struct ph_distribution *make_distribution(const struct rank_model *model, bool overlaps)
{
    struct ph_distribution *distribution;
    if (ph_comm_world_size(model->comm) == 1)
        return NULL;
    const struct ph__distribution_options options = {.comm = model->comm,
        .plan = &model->plan,
        .forward = model->wire,
        .backward = model->wire,
        .dense = model->wire,
        .bucket_bytes = BUCKET_BYTES,
        .overlaps = overlaps};
    bench_check(ph__distribution_create(&options, &distribution));
    return distribution;
}

static void make_way(struct rank_model *model, bool overlaps, size_t threads, const struct step *beside)
{
    struct way *way = &model->ways[overlaps];
    const bool is_dlrm = model->of != NULL;
    way->distribution = make_distribution(model, overlaps);
    const struct step_options options = {.program = is_dlrm
                                                        ? dlrm_training_program(model->of, PH_ROWWISE_ADAGRAD,
                                                              PH_PRECISION_FP32, way->distribution)
                                                        : dense_program(way->distribution),
        .batches = is_dlrm ? model->data.batches : model->dense_batches,
        .num_batches = num_batches(model),
        .threads = threads,
        .distribution = way->distribution,
        .beside = beside};
    way->step = step_create(&options);
}

struct rank_model *rank_model_create(const struct rank_settings *settings, struct ph_comm *comm)
{
    struct rank_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a rank's model"));
    model->of = find_case(settings->model);
    model->wire = settings->wire;
    model->comm = comm;
    make_batches(model);
    make_plan(model, settings->kind);
    make_way(model, true, settings->threads, NULL);
    if (ph_comm_world_size(comm) > 1)
        make_way(model, false, settings->threads, model->ways[true].step);
    for (size_t i = 0; i < 2; i++)
        rank_model_train(model, i == 0, num_batches(model));
    return model;
}

void rank_model_destroy(struct rank_model *model)
{
    for (size_t i = 0; i < 2; i++) { /* first the way that only borrows the parameters */
        if (model->ways[i].step != NULL)
            step_destroy(model->ways[i].step);
        ph__distribution_destroy(model->ways[i].distribution);
    }
    ph__plan_fini(&model->plan);
    free_batches(model);
    free(model);
}

double rank_model_train(struct rank_model *model, bool overlaps, size_t count)
{
    model->latest = &model->ways[overlaps || model->ways[false].step == NULL];
    return step_run(model->latest->step, count);
}

const struct step *rank_model_step(const struct rank_model *model)
{
    return model->latest->step;
}
