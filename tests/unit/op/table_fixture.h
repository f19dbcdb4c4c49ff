/* A small model over a table for tests of the table operators, and a naive copy of it in double:
 *
 *   z[b,f,:] = pooled rows of bag (f,b) + x[b,f] v[f,:] + c[f,:],  loss = mean BCE of z against labels
 * (B,F*D)
 *
 * The table has F slices; v (F,D) and c (F*D) are dense parameters. Batches are random (test_seed()). */
#ifndef PH_TEST_TABLE_FIXTURE_H
#define PH_TEST_TABLE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/graph.h"
#include "phloem/graph.h"
#include "phloem/op.h"
#include "store/store.h"
#include "support/test_support.h"

struct table_case {
    size_t num_features, dim, num_rows; /* rows of each slice */
    size_t num_slices;                  /* feature f has slice f % num_slices; 0: each its own */
    size_t num_samples, max_ids;
    bool is_mean, has_id_weights;
    struct ph_optimizer optimizer;
    double max_norm;     /* 0: no clipping */
    bool reads_gradient; /* the table's gradient is an output, so that nothing is fused */
    size_t num_threads;
    enum ph_row_format row_format;
    /* How (B,F,D) is looked up; NULL: pooled, all features at once. */
    ph_value (*look_up)(struct ph_builder *builder, ph_value ids, ph_value table);
};

struct table_model {
    const struct table_case *trial;
    struct ph__rng_sequence random;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph_parameter *table, *vectors, *bias;
    struct ph_batch batch;
};

static inline size_t table_slice_of(const struct table_case *trial, size_t feature)
{
    return trial->num_slices > 0 ? feature % trial->num_slices : feature;
}

static inline ph_value table_model_loss(struct ph_builder *builder, const struct table_case *trial)
{
    const size_t width = trial->num_features * trial->dim;
    const struct ph_init normal = {PH_INIT_NORMAL, 0.5};
    struct ph_table_slice slices[8];
    char names[8][16];
    for (size_t f = 0; f < trial->num_features; f++) {
        snprintf(names[f], sizeof names[f], "table.f%zu", table_slice_of(trial, f) % 8);
        slices[f] = (struct ph_table_slice){names[f], trial->num_rows};
    }
    ph_value table = ph_table(builder, "table", trial->num_features, slices, trial->dim, normal);
    ph_value vectors =
        ph_parameter(builder, "vectors", 2, (size_t[]){trial->num_features, trial->dim}, normal);
    ph_value bias = ph_parameter(builder, "bias", 1, &width, normal);
    ph_value ids = ph_input_ids(builder, trial->num_features);
    ph_value pooled = trial->look_up != NULL
                          ? trial->look_up(builder, ids, table)
                          : ph_embedding_bag(builder, ids, table, trial->is_mean ? PH_POOL_MEAN : PH_POOL_SUM,
                                trial->has_id_weights ? ph_input_id_weights(builder) : 0);
    ph_value scaled = ph_dense_embedding(builder, ph_input_dense(builder, trial->num_features), vectors);
    ph_value sum = ph_reshape(builder, ph_add(builder, pooled, scaled), 1, &width);
    return ph_bce_with_logits(builder, ph_add(builder, sum, bias), ph_input_labels(builder, width), 0, 0);
}

static inline void table_model_build(struct table_model *model)
{
    const struct table_case *trial = model->trial;
    struct ph_builder *builder;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value loss = table_model_loss(builder, trial);
    ph_output(builder, "loss", loss);
    ph_builder_begin_entry(builder, "backward");
    ph_value parameters[3], gradients[3];
    for (size_t i = 0; i < 3; i++)
        parameters[i] = ph_builder_parameter(builder, i);
    ph_backward(builder, loss, 3, parameters, gradients);
    if (trial->reads_gradient)
        ph_output(builder, "gradient", gradients[0]);
    ph_builder_begin_entry(builder, "update");
    const struct ph_optimizer optimizers[] = {trial->optimizer, trial->optimizer, trial->optimizer};
    ph_value clip = trial->max_norm > 0
                        ? ph_clip_factor(builder, 3, parameters, gradients, optimizers, trial->max_norm)
                        : 0;
    ph_output(builder, "clip", clip);
    for (size_t i = 0; i < 3; i++)
        ph_update(builder, parameters[i], gradients[i], &trial->optimizer,
            ph_input_scalar(builder, "learning_rate"), ph_input_scalar(builder, "step"), clip);
    assert_ok(ph_builder_finish(builder, &model->program));
    ph_builder_destroy(builder);
}

static inline struct ph_parameter *table_model_parameter(struct table_model *model, const char *name)
{
    struct ph_parameter *parameter = NULL;
    for (size_t i = 0; i < model->program->graph.num_declarations; i++)
        if (strcmp(model->program->graph.declarations[i].name, name) == 0)
            assert_ok(ph__store_add(model->store, &model->program->graph.declarations[i], NULL, &parameter));
    assert_non_null(parameter);
    return parameter;
}

static inline void table_model_init(struct table_model *model, const struct table_case *trial)
{
    *model = (struct table_model){.trial = trial, .random = {.key = {.seed = test_seed()}}};
    const struct ph_backend_options options = {
        .size = sizeof options, .num_threads = trial->num_threads > 0 ? trial->num_threads : 1};
    table_model_build(model);
    assert_ok(ph_store_create(test_seed(), &model->store));
    ph__store_learn_rows(model->store, trial->row_format);
    assert_ok(ph_state_create(&model->state));
    assert_ok(ph_backend_create(&options, &model->backend));
    assert_ok(
        ph_executor_create(model->program, model->store, model->state, model->backend, &model->executor));
    assert_ok(ph_workspace_create(model->executor, 1, 1, &model->workspace));
    model->table = table_model_parameter(model, "table");
    model->vectors = table_model_parameter(model, "vectors");
    model->bias = table_model_parameter(model, "bias");
}

static inline void table_model_free_batch(struct ph_batch *batch)
{
    const void *arrays[] = {
        batch->dense, batch->labels, batch->lengths, batch->offsets, batch->ids, batch->id_weights};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free((void *)(uintptr_t)arrays[i]);
    *batch = (struct ph_batch){0};
}

static inline void table_model_fini(struct table_model *model)
{
    table_model_free_batch(&model->batch);
    ph_workspace_destroy(model->workspace);
    ph_executor_destroy(model->executor);
    ph_program_destroy(model->program);
    ph_backend_destroy(model->backend);
    ph_state_destroy(model->state);
    ph_store_destroy(model->store);
}

static inline ph_real *table_model_uniforms(struct table_model *model, size_t count)
{
    ph_real *values = calloc(count + 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (ph_real)ph__rng_next_uniform(&model->random);
    return values;
}

/* A new random batch; every bag has 0 .. max_ids ids below num_rows. */
static inline void table_model_next_batch(struct table_model *model)
{
    const struct table_case *trial = model->trial;
    struct ph_batch *batch = &model->batch;
    table_model_free_batch(batch);
    const size_t num_bags = trial->num_features * trial->num_samples;
    int32_t *lengths = calloc(num_bags + 1, sizeof *lengths);
    uint32_t *offsets = calloc(num_bags + 1, sizeof *offsets);
    int64_t *ids = calloc(num_bags * trial->max_ids + 1, sizeof *ids);
    assert_true(lengths != NULL && offsets != NULL && ids != NULL);
    for (size_t bag = 0; bag < num_bags; bag++) {
        lengths[bag] = (int32_t)ph__rng_below(&model->random, trial->max_ids + 1);
        offsets[bag + 1] = offsets[bag] + (uint32_t)lengths[bag];
    }
    for (size_t i = 0; i < offsets[num_bags]; i++)
        ids[i] = (int64_t)ph__rng_below(&model->random, trial->num_rows);
    *batch = (struct ph_batch){.num_samples = trial->num_samples,
        .num_dense = trial->num_features,
        .num_sparse = trial->num_features,
        .num_tasks = trial->num_features * trial->dim,
        .num_ids = offsets[num_bags],
        .dense = table_model_uniforms(model, trial->num_samples * trial->num_features),
        .labels = table_model_uniforms(model, trial->num_samples * trial->num_features * trial->dim),
        .lengths = lengths,
        .offsets = offsets,
        .ids = ids,
        .id_weights = trial->has_id_weights ? table_model_uniforms(model, offsets[num_bags]) : NULL};
}

#define TABLE_LEARNING_RATE 0.05

/* Forward, backward and update on the current batch; step counts from 1. */
static inline ph_status table_model_run(struct table_model *model, uint64_t step)
{
    struct ph_workspace *workspace = model->workspace;
    PH_TRY(ph_workspace_bind(workspace, &model->batch, test_seed(), step));
    PH_TRY(ph_workspace_set_scalar(workspace, "learning_rate", TABLE_LEARNING_RATE));
    PH_TRY(ph_workspace_set_scalar(workspace, "step", (double)step));
    PH_TRY(ph_workspace_run(workspace, "forward"));
    PH_TRY(ph_workspace_run(workspace, "backward"));
    return ph_workspace_run(workspace, "update");
}

static inline size_t table_model_count(const struct table_model *model, const char *operator_name)
{
    return ph_program_num_nodes(model->program, operator_name);
}

static inline struct ph_optimizer table_optimizer(enum ph_optimizer_kind kind, bool is_whole_table, double l2)
{
    return (struct ph_optimizer){.rule.kind = kind,
        .rule.is_nesterov = kind == PH_MOMENTUM && l2 != 0,
        .rule.momentum = 0.8,
        .rule.beta1 = 0.9,
        .rule.beta2 = 0.95,
        .rule.epsilon = 1e-3,
        .rule.weight_decay = kind == PH_ADAMW ? 0.1 : 0,
        .l2 = l2,
        .learning_rate_factor = 2,
        .is_whole_table = is_whole_table};
}

/* All bits of parameters and slots are equal. */
static inline void assert_same_parameter(const struct ph_parameter *a, const struct ph_parameter *b)
{
    assert_int_equal(a->elements, b->elements);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->memory, b->memory, a->bytes);
    assert_int_equal(a->num_slots, b->num_slots);
    for (size_t i = 0; i < a->num_slots; i++)
        assert_memory_equal(a->slots[i].data, b->slots[i].data, a->slots[i].elements * sizeof(ph_real));
}

static inline void assert_same_model(const struct table_model *a, const struct table_model *b)
{
    assert_same_parameter(a->table, b->table);
    assert_same_parameter(a->vectors, b->vectors);
    assert_same_parameter(a->bias, b->bias);
}

#endif
