/* A factorisation machine of six tables, or what else a test adds, learnt by ranks that are threads, under
 * every kind of plan, against the same one learnt by one rank. It has no dense parameters, so that what a
 * rank makes of a sample has the same bits wherever it makes it: where rows are not cut, losses aside,
 * nothing may differ at all. */
#ifndef PH_TEST_SHARD_LEARNER_H
#define PH_TEST_SHARD_LEARNER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/distribution.h"
#include "phloem/op.h"
#include "shard/plan_distribution.h"
#include "store/tensor_list.h"
#include "support/thread_ranks.h"
#include "tensor/float16.h"

enum { NUM_FEATURES = 6, DIM = 32, BATCH = 26, NUM_STEPS = 4, MOST_IDS = 4 * NUM_FEATURES * BATCH };

/* Of BATCH samples, of fewer than ranks, of one. */
static const size_t batch_sizes[NUM_STEPS] = {BATCH, 5, 1, BATCH};

static const struct ph_table_slice slices[NUM_FEATURES] = {
    {"a", 50}, {"b", 7}, {"c", 300}, {"d", 20}, {"e", 1}, {"f", 90}};

/* What a rank, or the only one, is told. */
struct training {
    const char *plan; /* a file's text behind its head */
    size_t ranks_per_host;
    enum ph_pooling pooling;
    bool has_weights;
    enum ph_optimizer_kind optimizer;
    enum ph_wire_format wire;
    bool has_two_tables; /* in the place of one */
    bool is_fused;       /* no gradient of a table is made by the program */
    bool reads_gradient; /* so that it is made */
    double l2, clip;     /* clip 0: there is none */
    bool is_whole_table;
    enum ph_row_format row_format;
    /* In the place of a factorisation machine: of these slices (NUM_FEATURES; those of one name are one
     * table), the model that add makes with their table: vectors (B,...), NUM_FEATURES * DIM numbers a sample
     * at most, and logits (B,1). NULL: none */
    const struct ph_table_slice *slices;
    void (*add)(struct ph_builder *builder, const struct training *training, ph_value table,
        ph_value *vectors_out, ph_value *logits_out);
    /* In the place of both: a model with towers. */
    void (*add_towers)(struct ph_builder *builder, const struct training *training, ph_value *vectors_out,
        ph_value *logits_out);
    const struct ph__tower_facts *towers; /* (NUM_FEATURES) each feature's; NULL: there are none */
    bool sums_towers_over_world;          /* which is wrong: the learnt model must differ */
};

static inline const struct ph_table_slice *slices_of(const struct training *training)
{
    return training->slices != NULL ? training->slices : slices;
}

/* ---- the data: drawn by step, feature and sample ---- */

struct samples {
    struct ph_batch batch;
    ph_real labels[BATCH], weights[MOST_IDS];
    int32_t lengths[NUM_FEATURES * BATCH];
    uint32_t offsets[NUM_FEATURES * BATCH + 1];
    int64_t ids[MOST_IDS];
};

static inline uint32_t draw(size_t step, size_t feature, size_t sample, uint32_t number)
{
    const struct ph__rng_key key = {test_seed(), step, feature};
    return ph__rng_word(&key, sample, number);
}

/* The samples [first, last) of the step's batch; the third has no ids at all. */
static inline void make_samples(
    struct samples *samples, const struct training *training, size_t step, size_t first, size_t last)
{
    const size_t count = last - first;
    size_t num_ids = 0;
    for (size_t f = 0; f < NUM_FEATURES; f++)
        for (size_t b = first; b < last; b++) {
            const size_t length = b == 2 ? 0 : draw(step, f, b, 0) % 5;
            samples->offsets[f * count + b - first] = (uint32_t)num_ids;
            for (uint32_t i = 0; i < length; i++, num_ids++) {
                samples->ids[num_ids] =
                    (int64_t)(draw(step, f, b, 2 * i + 1) % slices_of(training)[f].num_rows);
                samples->weights[num_ids] = (ph_real)(draw(step, f, b, 2 * i + 2) % 64) / 32;
            }
        }
    samples->offsets[NUM_FEATURES * count] = (uint32_t)num_ids;
    for (size_t b = first; b < last; b++)
        samples->labels[b - first] = (ph_real)(draw(step, NUM_FEATURES, b, 0) % 2);
    samples->batch = (struct ph_batch){.num_samples = count,
        .num_sparse = NUM_FEATURES,
        .num_tasks = 1,
        .num_ids = num_ids,
        .num_global_samples = batch_sizes[step],
        .first_sample = first,
        .labels = samples->labels,
        .offsets = samples->offsets,
        .ids = samples->ids,
        .id_weights = samples->weights};
}

/* ---- the model ---- */

static inline struct ph_optimizer optimizer_of(const struct training *training)
{
    return (struct ph_optimizer){.rule.kind = training->optimizer,
        .rule.momentum = .9,
        .rule.beta1 = .9,
        .rule.beta2 = .99,
        .rule.epsilon = 1e-6,
        .l2 = training->l2,
        .is_whole_table = training->is_whole_table,
        .learning_rate_factor = 1};
}

static inline void add_learning(struct ph_builder *builder, const struct training *training,
    const struct ph_distribution *distribution, ph_value loss)
{
    ph_value parameters[64], gradients[64];
    const ph_value *more = NULL;
    size_t num_more = 0;
    if (distribution != NULL)
        distribution->spread(distribution->context, builder, &more, &num_more);
    const size_t count = ph_builder_num_parameters(builder);
    for (size_t i = 0; i < count; i++)
        parameters[i] = ph_builder_parameter(builder, i);
    for (size_t i = 0; i < num_more; i++)
        parameters[count + i] = more[i];
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, count + num_more, parameters, gradients);
    if (distribution != NULL)
        distribution->reduce(distribution->context, builder, count + num_more, parameters, gradients);
    for (size_t i = 0; i < count && training->reads_gradient; i++) {
        char name[32];
        snprintf(name, sizeof name, "gradient%zu", i);
        ph_output(builder, name, gradients[i]);
    }
    ph_builder_begin_entry(builder, "update");
    const struct ph_optimizer optimizer = optimizer_of(training);
    const ph_value rate = ph_input_scalar(builder, "learning_rate"), step = ph_input_scalar(builder, "step");
    const ph_value clip = training->clip != 0 ? ph_input_scalar(builder, "clip") : 0;
    for (size_t i = 0; i < count; i++)
        ph_update(builder, parameters[i], gradients[i], &optimizer, rate, step, clip);
    if (distribution != NULL)
        distribution->complete(distribution->context, builder);
}

/* The vectors of the features [first, last), which have a table of their own. */
static inline ph_value look_up(
    struct ph_builder *builder, const struct training *training, const char *name, size_t first, size_t last)
{
    size_t features[NUM_FEATURES];
    for (size_t i = first; i < last; i++)
        features[i - first] = i;
    const ph_value table =
        ph_table(builder, name, last - first, slices + first, DIM, (struct ph_init){PH_INIT_NORMAL, .2});
    const ph_value ids = ph_input_ids(builder, NUM_FEATURES);
    const ph_value selected =
        last - first < NUM_FEATURES ? ph_select_features(builder, ids, last - first, features) : ids;
    return ph_embedding_bag(builder, selected, table, training->pooling,
        training->has_weights ? ph_input_id_weights(builder) : 0);
}

static inline ph_value look_up_both(struct ph_builder *builder, const struct training *training)
{
    const ph_value both[] = {look_up(builder, training, "first", 0, NUM_FEATURES / 2),
        look_up(builder, training, "second", NUM_FEATURES / 2, NUM_FEATURES)};
    return ph_concat(builder, 2, both, 1);
}

static inline void add_machine(
    struct ph_builder *builder, const struct training *training, ph_value *vectors_out, ph_value *logits_out)
{
    const ph_value x = training->has_two_tables ? look_up_both(builder, training)
                                                : look_up(builder, training, "table", 0, NUM_FEATURES);
    const ph_value s = ph_sum_features(builder, x); /* (B,D) */
    const ph_value first = ph_reshape(builder, ph_slice(builder, x, 1, 0, 1), 1, (size_t[]){DIM});
    *vectors_out = x;
    *logits_out = ph_add(builder, ph_row_dots(builder, s, s), ph_row_dots(builder, first, s));
}

static inline void add_other(
    struct ph_builder *builder, const struct training *training, ph_value *vectors_out, ph_value *logits_out)
{
    const ph_value table =
        ph_table(builder, "table", NUM_FEATURES, training->slices, DIM, (struct ph_init){PH_INIT_NORMAL, .2});
    training->add(builder, training, table, vectors_out, logits_out);
}

static inline ph_status build(const struct training *training, const struct ph_distribution *distribution,
    struct ph_program **program_out)
{
    struct ph_builder *builder;
    PH_TRY(ph_builder_create(PH_TRAINING, &builder));
    ph_value vectors, logits;
    if (training->add_towers != NULL)
        training->add_towers(builder, training, &vectors, &logits);
    else if (training->add != NULL)
        add_other(builder, training, &vectors, &logits);
    else
        add_machine(builder, training, &vectors, &logits);
    const ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    ph_output(builder, "vectors", vectors);
    ph_output(builder, "loss", loss);
    add_learning(builder, training, distribution, loss);
    const ph_status status = ph_builder_finish(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}

/* A trained model, and what it made on the way. */
struct learner {
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    const struct training *training;
    size_t width;                                           /* of a sample's vectors */
    ph_real vectors[NUM_STEPS][BATCH * NUM_FEATURES * DIM]; /* of its samples, where they are in the batch */
    double losses[NUM_STEPS];
};

static inline void learner_fini(struct learner *learner)
{
    ph_workspace_destroy(learner->workspace);
    ph_executor_destroy(learner->executor);
    ph_backend_destroy(learner->backend);
    ph_state_destroy(learner->state);
    ph_store_destroy(learner->store);
    ph_program_destroy(learner->program);
}

static inline ph_status make_learner(
    const struct training *training, const struct ph_distribution *distribution, struct learner *learner)
{
    memset(learner, 0, sizeof *learner);
    learner->training = training;
    PH_TRY(build(training, distribution, &learner->program));
    PH_TRY(ph_store_create(7, &learner->store));
    ph__store_learn_rows(learner->store, training->row_format);
    PH_TRY(ph_state_create(&learner->state));
    PH_TRY(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &learner->backend));
    PH_TRY(ph_executor_create(
        learner->program, learner->store, learner->state, learner->backend, &learner->executor));
    return distribution != NULL ? distribution->create_workspace(
                                      distribution->context, learner->executor, 1, 1, &learner->workspace)
                                : ph_workspace_create(learner->executor, 1, 1, &learner->workspace);
}

static inline ph_status take_step(struct learner *learner, const struct ph_distribution *distribution,
    size_t step, size_t first, size_t last)
{
    struct samples samples;
    const ph_real *vectors;
    struct ph_shape shape;
    struct ph_workspace *workspace = learner->workspace;
    make_samples(&samples, learner->training, step, first, last);
    if (distribution != NULL)
        PH_TRY(distribution->bind(distribution->context, workspace, &samples.batch, 1, step));
    else
        PH_TRY(ph_workspace_bind(workspace, &samples.batch, 1, step));
    PH_TRY(ph_workspace_set_scalar(workspace, "learning_rate", .1));
    PH_TRY(ph_workspace_set_scalar(workspace, "step", (double)step + 1));
    if (learner->training->clip != 0)
        PH_TRY(ph_workspace_set_scalar(workspace, "clip", learner->training->clip));
    PH_TRY(ph_workspace_run(workspace, "forward"));
    PH_TRY(ph_workspace_output(workspace, "vectors", &vectors, &shape));
    if (last > first) {
        learner->width = ph_shape_elements(&shape) / (last - first);
        memcpy(learner->vectors[step] + first * learner->width, vectors,
            ph_shape_elements(&shape) * sizeof *vectors);
    }
    PH_TRY(ph_workspace_scalar(workspace, "loss", &learner->losses[step]));
    PH_TRY(ph_workspace_run(workspace, "backward"));
    return ph_workspace_run(workspace, "update");
}

/* ---- one rank against all ---- */

struct comparison {
    const struct training *training;
    const struct learner *alone;
    const char *plan_path;
    double tolerance;     /* relative to 1; 0: the same bits */
    uint64_t *sent_bytes; /* (world size) that each rank has sent to all others; NULL: nobody asks */
};

static inline bool is_close(const struct comparison *comparison, double a, double b)
{
    return comparison->tolerance > 0 ? fabs(a - b) <= comparison->tolerance * (1 + fabs(b)) : a == b;
}

static inline ph_status read_plan(
    const struct comparison *comparison, struct ph_comm *comm, struct ph__plan *plan)
{
    struct ph__table_facts facts[NUM_FEATURES];
    char names[NUM_FEATURES][16];
    const struct ph__topology topology = {ph_comm_world_size(comm), ph_comm_ranks_per_host(comm)};
    size_t count = 0;
    for (size_t i = 0; i < NUM_FEATURES; i++) {
        const struct ph_table_slice *slice = &slices_of(comparison->training)[i];
        size_t known = 0;
        while (known < count && strcmp(facts[known].name, slice->name) != 0)
            known++;
        snprintf(names[known], sizeof names[known], "%s", slice->name);
        if (known == count)
            facts[count++] = (struct ph__table_facts){.name = names[known],
                .num_rows = slice->num_rows,
                .dim = DIM,
                .weight_bytes = DIM * sizeof(ph_real),
                .tower = comparison->training->towers != NULL ? &comparison->training->towers[i] : NULL};
        facts[known].num_features++;
        facts[known].ids_per_sample += 2;
    }
    return ph__plan_read(comparison->plan_path, &topology, facts, count, plan);
}

static inline ph_status compare_vectors(const struct comparison *comparison, const struct learner *learner,
    size_t step, size_t first, size_t last)
{
    const size_t row = learner->width;
    for (size_t i = first * row; i < last * row; i++)
        if (!is_close(
                comparison, (double)learner->vectors[step][i], (double)comparison->alone->vectors[step][i]))
            return ph_fail(PH_ERROR_BUG, "step %zu, sample %zu, feature %zu, column %zu: %.9g, alone %.9g",
                step, i / row, i % row / DIM, i % DIM, (double)learner->vectors[step][i],
                (double)comparison->alone->vectors[step][i]);
    const double loss_tolerance = comparison->tolerance > 0 ? comparison->tolerance : 1e-7;
    if (!(fabs(learner->losses[step] - comparison->alone->losses[step]) <=
            loss_tolerance * fmax(comparison->alone->losses[step], 1e-2)))
        return ph_fail(PH_ERROR_BUG, "step %zu: loss %.9g, alone %.9g", step, learner->losses[step],
            comparison->alone->losses[step]);
    return PH_OK;
}

static inline double number_at(const struct ph_tensor *tensor, size_t i)
{
    return tensor->dtype == PH_BF16 ? (double)ph__float_from_bfloat(((const uint16_t *)tensor->data)[i])
                                    : (double)((const ph_real *)tensor->data)[i];
}

/* Weights, a slot with a number for each of them, or (rows) a slot with one for each row. */
static inline ph_status compare_tensor(
    const struct comparison *comparison, const struct ph_tensor *part, const struct ph_tensor *whole)
{
    const bool is_per_row = part->shape.num_dims == 1;
    const size_t columns = is_per_row ? 1 : part->shape.dims[1];
    const size_t whole_columns = is_per_row ? 1 : whole->shape.dims[1];
    const size_t first_column = is_per_row ? 0 : part->first_column;
    for (size_t i = 0; i < ph_shape_elements(&part->shape); i++) {
        const size_t row = part->first_row + i / columns, column = first_column + i % columns;
        const double is = number_at(part, i), should_be = number_at(whole, row * whole_columns + column);
        if (!is_close(comparison, is, should_be))
            return ph_fail(PH_ERROR_BUG, "table %s, row %zu, column %zu: %.9g, alone %.9g", part->name, row,
                column, is, should_be);
    }
    return PH_OK;
}

static inline ph_status compare_tensors(const struct comparison *comparison,
    const struct ph__tensor_list *parts, const struct ph__tensor_list *wholes)
{
    for (size_t i = 0; i < parts->count; i++) {
        size_t k = 0;
        while (k < wholes->count && strcmp(wholes->tensors[k].name, parts->tensors[i].name) != 0)
            k++;
        RANK_CHECK(k < wholes->count);
        PH_TRY(compare_tensor(comparison, &parts->tensors[i], &wholes->tensors[k]));
    }
    return PH_OK;
}

static inline ph_status list_tensors(const struct learner *learner, struct ph__tensor_list *list)
{
    PH_TRY(ph__tensor_list_add_store(list, learner->store));
    return ph__tensor_list_add_slots(list, learner->store);
}

/* Weights and the optimizer's slots. */
static inline ph_status compare_stores(const struct comparison *comparison, const struct learner *learner)
{
    struct ph__tensor_list parts = {0}, wholes = {0};
    ph_status status = list_tensors(learner, &parts);
    if (status == PH_OK)
        status = list_tensors(comparison->alone, &wholes);
    if (status == PH_OK)
        status = compare_tensors(comparison, &parts, &wholes);
    ph__tensor_list_fini(&parts);
    ph__tensor_list_fini(&wholes);
    return status;
}

static inline ph_status train_and_compare(const struct comparison *comparison, struct ph_comm *comm,
    const struct ph_distribution *distribution, struct learner *learner)
{
    const size_t rank = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    PH_TRY(make_learner(comparison->training, distribution, learner));
    RANK_CHECK(
        !comparison->training->is_fused || ph_program_num_nodes(learner->program, "embedding_gradient") == 0);
    for (size_t step = 0; step < NUM_STEPS; step++) {
        const size_t first = batch_sizes[step] * rank / world_size,
                     last = batch_sizes[step] * (rank + 1) / world_size;
        PH_TRY(take_step(learner, distribution, step, first, last));
        if (!comparison->training->sums_towers_over_world)
            PH_TRY(compare_vectors(comparison, learner, step, first, last));
    }
    for (size_t i = 0; i < world_size && comparison->sent_bytes != NULL; i++)
        comparison->sent_bytes[rank] += ph__comm_counters(comm).sent_bytes[i];
    return compare_stores(comparison, learner);
}

static inline ph_status run_rank(struct ph_comm *comm, void *context)
{
    const struct comparison *comparison = context;
    const enum ph_wire_format wire = comparison->training->wire;
    struct ph__plan plan = {0};
    struct ph_distribution *distribution;
    struct learner *learner = calloc(1, sizeof *learner);
    const struct ph__distribution_options options = {.comm = comm,
        .plan = &plan,
        .forward = wire,
        .backward = wire,
        .dense = wire,
        .bucket_bytes = 1 << 20,
        .overlaps = true};
    PH_TRY(read_plan(comparison, comm, &plan));
    PH_TRY(ph__distribution_create(&options, &distribution));
    if (comparison->training->sums_towers_over_world)
        ((struct ph__sharding *)distribution->context)->tower_group = ph__comm_world(comm);
    const ph_status status = train_and_compare(comparison, comm, distribution, learner);
    learner_fini(learner);
    ph__distribution_destroy(distribution);
    ph__plan_fini(&plan);
    free(learner);
    return status;
}

/* sent_bytes: (world_size) zeros, or NULL. */
static inline void check_counting(
    const struct training *training, size_t world_size, double tolerance, uint64_t *sent_bytes)
{
    struct learner *alone = calloc(1, sizeof *alone);
    char text[1024];
    snprintf(text, sizeof text, "version: 1\nworld_size: %zu\n%s", world_size, training->plan);
    assert_ok(make_learner(training, NULL, alone));
    for (size_t step = 0; step < NUM_STEPS; step++)
        assert_ok(take_step(alone, NULL, step, 0, batch_sizes[step]));
    struct comparison comparison = {
        training, alone, test_write_file("plan.yaml", text), tolerance, sent_bytes};
    const struct thread_ranks ranks = {.world_size = world_size,
        .options = {.ranks_per_host = training->ranks_per_host > 0 ? training->ranks_per_host : world_size}};
    thread_ranks_run(&ranks, run_rank, &comparison, NULL);
    learner_fini(alone);
    free(alone);
}

static inline void check(const struct training *training, size_t world_size, double tolerance)
{
    check_counting(training, world_size, tolerance, NULL);
}

static const size_t worlds[] = {1, 2, 3, 4, 8};

static inline void check_worlds(const struct training *training, double tolerance)
{
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        check(training, worlds[i], tolerance);
}

#endif
