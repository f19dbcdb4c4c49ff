/* Gradients of micro-batches, of a program that looks one table up in several ways, against those of the
 * whole batch; in a workspace that grows from micro-batch to micro-batch. */
#include "op/update/accumulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"
#include "train/loop/micro_batch.h"

enum { FEATURES = 3, ROWS = 11, DIM = 5, BATCH = 24, MOST_IDS = FEATURES * BATCH * BATCH, STEPS = 3 };

/* ---- the batch: later samples have more ids ---- */

struct samples {
    struct ph_batch batch;
    ph_real labels[BATCH], mask[BATCH], weights[BATCH], id_weights[MOST_IDS];
    uint32_t offsets[FEATURES * BATCH + 1];
    int64_t ids[MOST_IDS];
};

static struct samples *make_samples(size_t step)
{
    struct samples *samples = calloc(1, sizeof *samples);
    assert_non_null(samples);
    size_t num_ids = 0;
    for (size_t f = 0; f < FEATURES; f++)
        for (size_t b = 0; b < BATCH; b++) {
            samples->offsets[f * BATCH + b] = (uint32_t)num_ids;
            for (size_t i = 0; i < (b + f) % BATCH; i++, num_ids++) {
                samples->ids[num_ids] = (int64_t)((7 * b + 3 * i + step + f) % ROWS);
                samples->id_weights[num_ids] = (ph_real)((i + b) % 5) / 4;
            }
        }
    samples->offsets[FEATURES * BATCH] = (uint32_t)num_ids;
    for (size_t b = 0; b < BATCH; b++) {
        samples->labels[b] = (ph_real)((b * b + step) % 3 == 0);
        samples->mask[b] = b % 7 != 0;
        samples->weights[b] = (ph_real)(b % 4) / 2;
    }
    samples->batch = (struct ph_batch){.num_samples = BATCH,
        .num_sparse = FEATURES,
        .num_tasks = 1,
        .num_ids = num_ids,
        .labels = samples->labels,
        .label_mask = samples->mask,
        .weights = samples->weights,
        .offsets = samples->offsets,
        .ids = samples->ids,
        .id_weights = samples->id_weights};
    return samples;
}

/* ---- the program ---- */

/* Two features share their rows. */
static ph_value add_table(struct ph_builder *builder)
{
    static const struct ph_table_slice slices[FEATURES] = {{"a", ROWS}, {"b", ROWS}, {"a", ROWS}};
    return ph_table(builder, "table", FEATURES, slices, DIM, (struct ph_init){PH_INIT_NORMAL, .5});
}

/* The table is looked up as sums by weight, as means, and item by item. */
static ph_value add_mixture(struct ph_builder *builder)
{
    const ph_value table = add_table(builder);
    const ph_value weight =
        ph_parameter(builder, "weight", 2, (size_t[]){1, 3 * DIM}, (struct ph_init){PH_INIT_NORMAL, .5});
    const ph_value ids = ph_input_ids(builder, FEATURES), id_weights = ph_input_id_weights(builder);
    const ph_value bags = ph_feature_bags(builder, ids, 1);
    const ph_value items = ph_embedding_rows(builder, bags, table, 1, id_weights); /* (I,D) */
    const ph_value pooled[] = {
        ph_sum_features(builder, ph_embedding_bag(builder, ids, table, PH_POOL_SUM, id_weights)),
        ph_sum_features(builder, ph_embedding_bag(builder, ids, table, PH_POOL_MEAN, 0)),
        ph_pool_rows(builder, items, bags, 0)};
    const ph_value logits = ph_linear(builder, ph_concat(builder, 3, pooled, 1), weight, 0, PH_IDENTITY);
    return ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), ph_input_label_mask(builder, 1),
        ph_input_weights(builder));
}

/* All samples count alike, and what is made of one does not depend on the others. */
static ph_value add_machine(struct ph_builder *builder)
{
    const ph_value vectors =
        ph_embedding_bag(builder, ph_input_ids(builder, FEATURES), add_table(builder), PH_POOL_SUM, 0);
    const ph_value sum = ph_sum_features(builder, vectors);
    return ph_bce_with_logits(builder, ph_row_dots(builder, sum, sum), ph_input_labels(builder, 1), 0, 0);
}

static void add_learning(struct ph_builder *builder, ph_value objective, const struct ph__accumulation *parts)
{
    struct ph_optimizer optimizers[] = {{.rule.kind = PH_ROWWISE_ADAGRAD}, {.rule.kind = PH_ADAGRAD}};
    ph_value parameters[2], gradients[2];
    const size_t count = ph_builder_num_parameters(builder);
    for (size_t i = 0; i < count; i++) {
        parameters[i] = ph_builder_parameter(builder, i);
        optimizers[i].rule.epsilon = .1;
        optimizers[i].learning_rate_factor = 1;
    }
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, objective, count, parameters, gradients);
    if (parts != NULL)
        ph__accumulate_gradients(builder, parts, count, gradients);
    ph_builder_begin_entry(builder, "update");
    const ph_value rate = ph_input_scalar(builder, "rate"), step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < count; i++)
        ph_update(builder, parameters[i], gradients[i], &optimizers[i], rate, step, 0);
}

/* add: adds a model and returns its loss. */
typedef ph_value add_model(struct ph_builder *builder);

static struct ph_program *make_program(add_model *add, size_t num_micro_batches)
{
    struct ph_builder *builder;
    struct ph_program *program;
    struct ph__accumulation parts = {0, num_micro_batches};
    ph_value weight;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value loss = add(builder);
    if (num_micro_batches > 1) {
        parts.num_before = ph_input_scalar(builder, "num_before");
        const ph_value share =
            ph__share_of_batch(builder, loss, loss, ph_input_scalar(builder, "whole"), &weight);
        add_learning(builder, share, &parts);
    } else {
        add_learning(builder, loss, NULL);
    }
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* ---- learning ---- */

struct learner {
    bool counts_alike; /* samples */
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace; /* of one sample at first */
};

static void learner_init(struct learner *learner, add_model *add, size_t num_micro_batches)
{
    learner->counts_alike = add == add_machine;
    learner->program = make_program(add, num_micro_batches);
    assert_ok(ph_store_create(5, &learner->store));
    assert_ok(ph_state_create(&learner->state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2},
        &learner->backend));
    assert_ok(ph_executor_create(
        learner->program, learner->store, learner->state, learner->backend, &learner->executor));
    assert_ok(ph_workspace_create(learner->executor, 1, 1, &learner->workspace));
    assert_ok(ph_workspace_set_scalar(learner->workspace, "rate", .1));
}

static void learner_fini(struct learner *learner)
{
    ph_workspace_destroy(learner->workspace);
    ph_executor_destroy(learner->executor);
    ph_backend_destroy(learner->backend);
    ph_state_destroy(learner->state);
    ph_store_destroy(learner->store);
    ph_program_destroy(learner->program);
}

static void differentiate(struct learner *learner, const struct ph_batch *batch, size_t step)
{
    assert_ok(ph_workspace_bind(learner->workspace, batch, 1, step));
    assert_ok(ph_workspace_run(learner->workspace, "forward"));
    assert_ok(ph_workspace_run(learner->workspace, "backward"));
}

static void take_step(struct learner *learner, size_t step, size_t num_micro_batches)
{
    struct samples *samples = make_samples(step);
    struct ph__micro_batch micro = {0};
    if (learner->counts_alike)
        samples->batch.label_mask = samples->batch.weights = NULL;
    assert_ok(ph_workspace_set_scalar(learner->workspace, "step", (double)step + 1));
    if (num_micro_batches > 1)
        assert_ok(ph_workspace_set_scalar(
            learner->workspace, "whole", ph__batch_weight(&samples->batch, PH_KNOWN_LABEL)));
    for (size_t i = 0; i < num_micro_batches; i++) {
        assert_ok(ph__micro_batch_cut(&micro, &samples->batch, 1, i, num_micro_batches));
        if (num_micro_batches > 1)
            assert_ok(ph_workspace_set_scalar(learner->workspace, "num_before", (double)i));
        differentiate(learner, &micro.batch, step);
    }
    if (num_micro_batches > 1)
        assert_ok(ph_workspace_run(learner->workspace, "combine"));
    assert_ok(ph_workspace_run(learner->workspace, "update"));
    ph__micro_batch_fini(&micro);
    free(samples);
}

/* tolerance 0: to the bit. */
static void compare(const struct learner *parts, const struct learner *whole, double tolerance)
{
    for (size_t t = 0; t < ph_store_num_tensors(whole->store); t++) {
        const struct ph_tensor is = ph_store_tensor(parts->store, t);
        const struct ph_tensor should_be = ph_store_tensor(whole->store, t);
        const ph_real *a = is.data, *b = should_be.data;
        assert_string_equal(is.name, should_be.name);
        for (size_t i = 0; i < ph_shape_elements(&is.shape); i++)
            if (!(fabs((double)(a[i] - b[i])) <= tolerance * (1 + fabs((double)b[i]))))
                fail_msg("%s[%zu]: %.9g, of the whole batch %.9g", is.name, i, (double)a[i], (double)b[i]);
    }
}

static void check_parts(add_model *add, const size_t *parts, size_t num_parts, double tolerance)
{
    struct learner whole;
    learner_init(&whole, add, 1);
    for (size_t step = 0; step < STEPS; step++)
        take_step(&whole, step, 1);
    for (size_t i = 0; i < num_parts; i++) {
        struct learner cut;
        learner_init(&cut, add, parts[i]);
        take_step(&cut, 0, parts[i]);
        assert_true(ph_workspace_memory(cut.workspace).num_growths >= 2);
        for (size_t step = 1; step < STEPS; step++)
            take_step(&cut, step, parts[i]);
        compare(&cut, &whole, tolerance);
        learner_fini(&cut);
    }
    learner_fini(&whole);
}

static void gradients_of_micro_batches_add_up_while_memory_grows(void **state)
{
    (void)state;
    check_parts(add_mixture, (const size_t[]){2, 3, 5, 24}, 4, 1e-5);
}

/* Ids are merged in the order in which they come with one batch. Micro-batches are of a power of two of
 * samples: then their weights do not round. */
static void a_table_is_learnt_to_the_bit(void **state)
{
    (void)state;
    check_parts(add_machine, (const size_t[]){3, 6, 12, 24}, 4, 0);
}

/* A step that was given up, however far it had come, leaves nothing to the next. */
static void the_first_micro_batch_begins_anew(void **state)
{
    (void)state;
    struct learner whole, cut;
    struct samples *samples = make_samples(7);
    learner_init(&whole, add_mixture, 1);
    learner_init(&cut, add_mixture, 4);
    take_step(&whole, 0, 1);
    assert_ok(ph_workspace_set_scalar(cut.workspace, "whole", 1));
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ph_workspace_set_scalar(cut.workspace, "num_before", (double)i));
        differentiate(&cut, &samples->batch, 7);
    }
    take_step(&cut, 0, 4);
    compare(&cut, &whole, 1e-5);
    learner_fini(&whole);
    learner_fini(&cut);
    free(samples);
}

/* A table whose update reads the gradient alone has none in memory: it is summed while rows are stepped. */
static void updates_fuse_with_what_is_kept(void **state)
{
    (void)state;
    struct ph_builder *builder;
    struct ph_program *program;
    struct ph__accumulation parts = {0, 4};
    const struct ph_optimizer optimizer = {.rule.kind = PH_SGD, .learning_rate_factor = 1};
    ph_value gradient, weight;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value table =
        ph_table(builder, "table", 1, &(struct ph_table_slice){"a", ROWS}, 1, (struct ph_init){0});
    const ph_value ids = ph_input_ids(builder, 1), labels = ph_input_labels(builder, 1);
    const ph_value x = ph_sum_features(builder, ph_embedding_bag(builder, ids, table, PH_POOL_SUM, 0));
    const ph_value loss = ph_bce_with_logits(builder, x, labels, 0, 0);
    parts.num_before = ph_input_scalar(builder, "num_before");
    const ph_value share =
        ph__share_of_batch(builder, loss, loss, ph_input_scalar(builder, "whole"), &weight);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, share, 1, &table, &gradient);
    ph__accumulate_gradients(builder, &parts, 1, &gradient);
    ph_builder_begin_entry(builder, "update");
    ph_update(builder, table, gradient, &optimizer, ph_input_scalar(builder, "rate"),
        ph_input_scalar(builder, "step"), 0);
    assert_ok(ph_builder_finish(builder, &program));
    assert_int_equal(ph_program_num_nodes(program, "merge"), 1);
    assert_int_equal(ph_program_num_nodes(program, "entries"), 0);
    assert_int_equal(ph_program_num_nodes(program, "embedding_gradient"), 0);
    assert_int_equal(ph_program_num_nodes(program, "embedding_update"), 1);
    ph_builder_destroy(builder);
    ph_program_destroy(program);
}

/* Their shares in the batch's would not be the same. */
static void losses_of_other_weights_are_refused(void **state)
{
    (void)state;
    struct ph_builder *builder;
    struct ph_program *program;
    ph_value weight;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value x = ph_input_dense(builder, 1), labels = ph_input_labels(builder, 1);
    const ph_value loss = ph_bce_with_logits(builder, x, labels, ph_input_label_mask(builder, 1), 0);
    ph_add_loss(builder, "other", ph_bce_with_logits(builder, x, labels, 0, 0), 1);
    ph_output(builder, "share",
        ph__share_of_batch(builder, loss, loss, ph_input_scalar(builder, "whole"), &weight));
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "micro-batches");
    ph_builder_destroy(builder);
}

/* Cross entropy is a mean by weight, squared error one by element: alike only without weights. */
static void a_squared_error_beside_cross_entropy_is_alike_without_weights(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ph_builder *builder;
        assert_ok(ph_builder_create(PH_TRAINING, &builder));
        const ph_value x = ph_input_dense(builder, 1), labels = ph_input_labels(builder, 1);
        const ph_value weights = i == 0 ? 0 : ph_input_weights(builder);
        ph_bce_with_logits(builder, x, labels, 0, weights);
        ph_squared_error(builder, x, labels, weights);
        assert_int_equal(ph__losses_weigh_alike(builder), i == 0);
        ph_builder_destroy(builder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_micro_batches_add_up_while_memory_grows),
        cmocka_unit_test(a_table_is_learnt_to_the_bit),
        cmocka_unit_test(the_first_micro_batch_begins_anew),
        cmocka_unit_test(updates_fuse_with_what_is_kept),
        cmocka_unit_test(losses_of_other_weights_are_refused),
        cmocka_unit_test(a_squared_error_beside_cross_entropy_is_alike_without_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
