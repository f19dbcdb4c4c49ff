#include "dlrm_case.h"

#include <stdio.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "figures.h"
#include "graph/distribution.h"
#include "ids.h"
#include "store/store.h"

enum { MAX_TABLES = 64, MAX_PARAMETERS = 64 };
static const int64_t bottom_units[] = {512, 256}, top_units[] = {512, 256};

const char *const dlrm_precisions[DLRM_NUM_PRECISIONS] = {
    [PH_PRECISION_FP32] = "fp32", [PH_PRECISION_BF16] = "bf16"};

const struct dlrm_case dlrm_cases[] = {
    {"pool1", 26, 100000, 64, 1, 2048, false},
    {"pool1.uniform", 26, 100000, 64, 1, 2048, true},
    {"pool20", 26, 100000, 64, 20, 2048, false},
    {"pool20.uniform", 26, 100000, 64, 20, 2048, true},
    {"large", 26, 1000000, 64, 10, 4096, false},
};
const size_t dlrm_num_cases = sizeof dlrm_cases / sizeof *dlrm_cases;

/* ---- batches ---- */

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    bench_check(ph__memory_alloc(bytes, "a batch", &memory));
    return memory;
}

/* Writable memory of a batch. */
struct contents {
    ph_real *dense, *labels;
    int64_t *ids;
};

static struct ph_batch empty_batch(const struct dlrm_case *of, struct contents *contents_out)
{
    const size_t bags = of->tables * of->batch, num_ids = bags * of->pooling;
    const struct contents contents = {
        .dense = allocate(of->batch * DLRM_NUM_DENSE * sizeof *contents.dense),
        .labels = allocate(of->batch * sizeof *contents.labels),
        .ids = allocate(num_ids * sizeof *contents.ids),
    };
    int32_t *lengths = allocate(bags * sizeof *lengths);
    uint32_t *offsets = allocate((bags + 1) * sizeof *offsets);
    for (size_t i = 0; i < bags; i++) {
        lengths[i] = (int32_t)of->pooling;
        offsets[i + 1] = (uint32_t)((i + 1) * of->pooling);
    }
    *contents_out = contents;
    return (struct ph_batch){.num_samples = of->batch,
        .num_dense = DLRM_NUM_DENSE,
        .num_sparse = of->tables,
        .num_tasks = 1,
        .num_ids = num_ids,
        .dense = contents.dense,
        .labels = contents.labels,
        .lengths = lengths,
        .offsets = offsets,
        .ids = contents.ids};
}

static struct ph_batch make_batch(
    const struct dlrm_case *of, const struct bench_ids *table_ids, struct ph__rng_sequence *rng)
{
    struct contents contents;
    const struct ph_batch batch = empty_batch(of, &contents);
    for (size_t i = 0; i < of->batch * DLRM_NUM_DENSE; i++)
        contents.dense[i] = (ph_real)ph__rng_next_uniform(rng);
    for (size_t i = 0; i < of->batch; i++)
        contents.labels[i] = ph__rng_next_uniform(rng) < 0.25 ? 1 : 0;
    for (size_t i = 0; i < batch.num_ids; i++)
        contents.ids[i] = bench_ids_draw(table_ids, rng);
    return batch;
}

/* Returns the samples [first, first + of->batch) of a batch. */
static struct ph_batch some_samples(
    const struct dlrm_case *of, const struct ph_batch *whole, size_t whole_samples, size_t first)
{
    struct contents contents;
    const struct ph_batch batch = empty_batch(of, &contents);
    memcpy(contents.dense, whole->dense + first * DLRM_NUM_DENSE,
        of->batch * DLRM_NUM_DENSE * sizeof *contents.dense);
    memcpy(contents.labels, whole->labels + first, of->batch * sizeof *contents.labels);
    for (size_t table = 0; table < of->tables; table++)
        memcpy(contents.ids + table * of->batch * of->pooling,
            whole->ids + (table * whole_samples + first) * of->pooling,
            of->batch * of->pooling * sizeof *contents.ids);
    return batch;
}

void dlrm_data_init(struct dlrm_data *data, const struct dlrm_case *of)
{
    const size_t ids_a_table = of->batch * of->pooling;
    struct ph__rng_sequence rng = {.key = {.seed = 1}};
    struct bench_ids ids;
    bench_ids_init(&ids, of->rows, ids_a_table, of->is_uniform ? 0 : bench_reuse(ids_a_table));
    data->of = *of;
    for (size_t i = 0; i < DLRM_NUM_BATCHES; i++)
        data->batches[i] = make_batch(of, &ids, &rng);
    bench_ids_fini(&ids);
}

void dlrm_data_first(const struct dlrm_data *data, size_t samples, struct dlrm_data *first_out)
{
    first_out->of = data->of;
    first_out->of.batch = samples;
    for (size_t i = 0; i < DLRM_NUM_BATCHES; i++)
        first_out->batches[i] = some_samples(&first_out->of, &data->batches[i], data->of.batch, 0);
}

void dlrm_data_share(
    const struct dlrm_data *data, size_t rank, size_t world_size, struct dlrm_data *share_out)
{
    const size_t samples = data->of.batch, first = samples * rank / world_size;
    struct dlrm_case of = data->of;
    of.batch = samples * (rank + 1) / world_size - first;
    share_out->of = data->of;
    for (size_t i = 0; i < DLRM_NUM_BATCHES; i++) {
        share_out->batches[i] = some_samples(&of, &data->batches[i], samples, first);
        share_out->batches[i].num_global_samples = samples;
        share_out->batches[i].first_sample = first;
    }
}

static void release(const void *memory, size_t bytes)
{
    ph__memory_free((void *)(uintptr_t)memory, bytes);
}

void dlrm_data_fini(struct dlrm_data *data)
{
    for (size_t i = 0; i < DLRM_NUM_BATCHES; i++) {
        const struct ph_batch *batch = &data->batches[i];
        const size_t bags = data->of.tables * batch->num_samples;
        release(batch->dense, batch->num_samples * DLRM_NUM_DENSE * sizeof *batch->dense);
        release(batch->labels, batch->num_samples * sizeof *batch->labels);
        release(batch->lengths, bags * sizeof *batch->lengths);
        release(batch->offsets, (bags + 1) * sizeof *batch->offsets);
        release(batch->ids, batch->num_ids * sizeof *batch->ids);
    }
}

/* ---- for peers ---- */

static struct ph__writer *open_file(const char *folder, const char *name)
{
    char path[512];
    struct ph__writer *writer;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bench_check(ph__writer_open(path, &writer));
    return writer;
}

static void finish_file(struct ph__writer *writer)
{
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
}

static void write_description(const struct dlrm_case *of, const char *folder)
{
    struct ph__writer *writer = open_file(folder, "case.json");
    bench_check(ph__writer_printf(writer,
        "{\"num_dense\": %d, \"tables\": %zu, \"rows\": %zu, \"dim\": %zu, \"batch\": %zu, \"pooling\": %zu, "
        "\"num_batches\": %d, \"bottom\": [512, 256], \"top\": [512, 256]}\n",
        DLRM_NUM_DENSE, of->tables, of->rows, of->dim, of->batch, of->pooling, DLRM_NUM_BATCHES));
    finish_file(writer);
}

void dlrm_data_write(const struct dlrm_data *data, const char *folder)
{
    bench_check(ph__directory_create(folder));
    write_description(&data->of, folder);
    struct ph__writer *dense = open_file(folder, "dense.f32"), *labels = open_file(folder, "labels.f32"),
                      *ids = open_file(folder, "ids.i64");
    for (size_t i = 0; i < DLRM_NUM_BATCHES; i++) {
        const struct ph_batch *batch = &data->batches[i];
        const size_t samples = batch->num_samples;
        bench_check(ph__writer_write(dense, batch->dense, samples * DLRM_NUM_DENSE * sizeof *batch->dense));
        bench_check(ph__writer_write(labels, batch->labels, samples * sizeof *batch->labels));
        bench_check(ph__writer_write(ids, batch->ids, batch->num_ids * sizeof *batch->ids));
    }
    finish_file(dense);
    finish_file(labels);
    finish_file(ids);
}

/* ---- the model ---- */

static ph_value build_logits(struct ph_builder *builder, const struct dlrm_case *of, bool is_lean)
{
    struct ph_table_slice slices[MAX_TABLES];
    char names[MAX_TABLES][24];
    for (size_t i = 0; i < of->tables; i++) {
        snprintf(names[i], sizeof names[i], "C%zu", i + 1);
        slices[i] = (struct ph_table_slice){names[i], of->rows};
    }
    const struct ph_model_settings settings = {.kind = ph_model_find("dlrm"),
        .embedding_dim = (int64_t)of->dim,
        .embedding_init_std = 0.01,
        .bottom_units = bottom_units,
        .num_bottom_units = sizeof bottom_units / sizeof *bottom_units,
        .top_units = top_units,
        .num_top_units = sizeof top_units / sizeof *top_units,
        .block_norm = is_lean,
        .bias = is_lean ? PH_BIAS_LAST : PH_BIAS_ALL,
        .activation = is_lean ? PH_HARD_SWISH : PH_RELU,
        .interaction = PH_INTERACTION_DOT};
    const struct ph_model_features features = {
        .num_dense = DLRM_NUM_DENSE, .num_sparse = of->tables, .num_tasks = 1, .sparse = slices};
    return ph_model_build(builder, &settings, &features);
}

static struct ph_program *finish(struct ph_builder *builder)
{
    struct ph_program *program = NULL;
    bench_check(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* Trained parameters, followed by the values whose gradients other ranks want. */
struct learnt {
    size_t count, num_values;
    ph_value parameters[MAX_PARAMETERS], gradients[MAX_PARAMETERS];
};

static struct learnt list_learnt(struct ph_builder *builder, const ph_value *more, size_t num_more)
{
    struct learnt learnt = {.count = ph_builder_num_parameters(builder)};
    learnt.num_values = learnt.count + num_more;
    if (learnt.num_values > MAX_PARAMETERS)
        bench_check(ph_fail(PH_ERROR_BUG, "the model has %zu parameters, more than the benchmark can hold",
            learnt.num_values));
    for (size_t i = 0; i < learnt.count; i++)
        learnt.parameters[i] = ph_builder_parameter(builder, i);
    for (size_t i = 0; i < num_more; i++)
        learnt.parameters[learnt.count + i] = more[i];
    return learnt;
}

static void build_backward(struct ph_builder *builder, ph_value loss,
    const struct ph_distribution *distribution, struct learnt *learnt)
{
    const ph_value *more = NULL;
    size_t num_more = 0;
    if (distribution != NULL)
        distribution->spread(distribution->context, builder, &more, &num_more);
    *learnt = list_learnt(builder, more, num_more);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, learnt->num_values, learnt->parameters, learnt->gradients);
    if (distribution != NULL)
        distribution->reduce(
            distribution->context, builder, learnt->num_values, learnt->parameters, learnt->gradients);
}

static void build_update(struct ph_builder *builder, enum ph_optimizer_kind kind,
    const struct ph_distribution *distribution, const struct learnt *learnt)
{
    const struct ph_optimizer optimizer = {
        .rule.kind = kind, .rule.epsilon = 1e-10, .learning_rate_factor = 1};
    ph_builder_begin_entry(builder, "update");
    const ph_value rate = ph_input_scalar(builder, "learning_rate"), step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < learnt->count; i++)
        ph_update(builder, learnt->parameters[i], learnt->gradients[i], &optimizer, rate, step, 0);
    if (distribution != NULL)
        distribution->complete(distribution->context, builder);
}

struct ph_program *dlrm_learning_program(struct ph_builder *builder, ph_value logits,
    enum ph_optimizer_kind optimizer, const struct ph_distribution *distribution)
{
    struct learnt learnt;
    const ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    ph_output(builder, "loss", loss);
    build_backward(builder, loss, distribution, &learnt);
    build_update(builder, optimizer, distribution, &learnt);
    return finish(builder);
}

struct ph_program *dlrm_training_program(const struct dlrm_case *of, enum ph_optimizer_kind optimizer,
    enum ph_precision precision, const struct ph_distribution *distribution)
{
    struct ph_builder *builder = NULL;
    bench_check(ph_builder_create(PH_TRAINING, &builder));
    ph_builder_set_precision(builder, precision);
    return dlrm_learning_program(builder, build_logits(builder, of, false), optimizer, distribution);
}

struct ph_program *dlrm_lean_program(
    const struct dlrm_case *of, enum ph_optimizer_kind optimizer, enum ph_precision precision)
{
    struct ph_builder *builder = NULL;
    bench_check(ph_builder_create(PH_TRAINING, &builder));
    ph_builder_set_precision(builder, precision);
    return dlrm_learning_program(builder, build_logits(builder, of, true), optimizer, NULL);
}

struct ph_program *dlrm_recipes_program(const struct dlrm_case *of, enum ph_optimizer_kind optimizer,
    const struct ph_site_recipe *recipes, size_t num_recipes)
{
    struct ph_builder *builder = NULL;
    bench_check(ph_builder_create(PH_TRAINING, &builder));
    ph_builder_set_recipes(builder, recipes, num_recipes);
    return dlrm_learning_program(builder, build_logits(builder, of, false), optimizer, NULL);
}

struct ph_program *dlrm_inference_program(const struct dlrm_case *of, enum ph_precision precision)
{
    struct ph_builder *builder = NULL;
    bench_check(ph_builder_create(PH_INFERENCE, &builder));
    ph_builder_set_precision(builder, precision);
    ph_output(builder, "probability", ph_sigmoid(builder, build_logits(builder, of, false)));
    return finish(builder);
}

ph_real *dlrm_table(const struct ph_store *store)
{
    for (size_t i = 0; i < ph__store_num_parameters(store); i++)
        if (ph__store_parameter(store, i)->is_table)
            return ph__store_parameter(store, i)->data;
    return NULL;
}
