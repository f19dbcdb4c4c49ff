/* Trainings on lists whose ids carry weights, against logistic regression written out here; and of a model
 * that adds losses, against their gradients. */
#include "train/config/training_program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/train/train_fixture.h"

enum { ROWS = 16, IDS = 12, STEPS = 10 };

/* Row b has (b % 4) ids, the j-th of them with a weight. */
static size_t num_ids_of(size_t b)
{
    return b % 4;
}

static size_t id_of(size_t b, size_t j)
{
    return (5 * b + 3 * j) % IDS;
}

static double weight_of(size_t b, size_t j)
{
    return 0.25 * (double)((3 * b + 5 * j) % 9) - 0.75;
}

static int label_of(size_t b)
{
    return b % 3 == 0;
}

/* The rows, id:weight with what stands between label and ids and between two of them. */
static const char *write_rows(const char *name, const char *header, char first, char between, bool is_one)
{
    char text[4096], *at = text + sprintf(text, "%s", header);
    for (size_t b = 0; b < ROWS; b++) {
        at += sprintf(at, "%d%c", label_of(b), first);
        for (size_t j = 0; j < num_ids_of(b); j++) {
            if (j > 0)
                *at++ = between;
            at += sprintf(at, "%zu:%g", id_of(b, j), is_one ? 1 : weight_of(b, j));
        }
        *at++ = '\n';
    }
    *at = '\0';
    return test_write_file(name, text);
}

static struct ph_encoder *encoder_of(const char *path, const char *yaml)
{
    struct ph_data_settings settings;
    const struct ph__section section = {&ph__data_options, &settings};
    const char *config = test_write_file("data.yaml", yaml);
    struct ph_encoder *encoder = NULL;
    assert_ok(ph__config_read(config, NULL, 0, &section, 1, &fixture.arena));
    settings.paths.train = path;
    assert_ok(ph_encoder_create(&settings, &encoder));
    return encoder;
}

/* Takes ten steps of gradient descent on all rows and measures the model on them. */
static struct ph_train_summary train_on(const char *model, const char *path, const char *yaml,
    enum ph_pooling pooling, double init_std, double clipping)
{
    struct setup *setup = set_up(model, "weighted");
    struct ph_encoder *encoder = encoder_of(path, yaml);
    setup->model.pooling = pooling;
    setup->model.interaction = PH_INTERACTION_CAT; /* there is one field */
    setup->model.embedding_init_std = init_std;
    setup->train.epochs = STEPS;
    setup->train.schedule = PH_SCHEDULE_CONSTANT;
    setup->train.max_gradient_norm = clipping;
    setup->optimizer = (struct ph_optimizer_settings){
        .rule.kind = PH_SGD, .learning_rate = 0.5, .embedding_learning_rate_factor = 1};
    setup->job.encoder = encoder;
    setup->job.reading.is_shuffled = false;
    setup->job.paths.train = setup->job.paths.test = path;
    setup->job.paths.valid = NULL;
    struct ph_train_summary summary = train(setup);
    ph_encoder_destroy(encoder);
    free(setup);
    return summary;
}

struct regression {
    double bias, weights[IDS];
};

static double coefficient(size_t b, size_t j, bool is_mean)
{
    return weight_of(b, j) / (is_mean ? (double)num_ids_of(b) : 1);
}

static double probability_of(const struct regression *model, size_t b, bool is_mean)
{
    double logit = model->bias;
    for (size_t j = 0; j < num_ids_of(b); j++)
        logit += coefficient(b, j, is_mean) * model->weights[id_of(b, j)];
    return 1 / (1 + exp(-logit));
}

/* Logloss after ten steps from zero. */
static double expected_logloss(bool is_mean)
{
    struct regression model = {0};
    double loss = 0;
    for (size_t step = 0; step < STEPS; step++) {
        struct regression next = model;
        for (size_t b = 0; b < ROWS; b++) {
            double error = 0.5 * (probability_of(&model, b, is_mean) - label_of(b)) / ROWS;
            next.bias -= error;
            for (size_t j = 0; j < num_ids_of(b); j++)
                next.weights[id_of(b, j)] -= error * coefficient(b, j, is_mean);
        }
        model = next;
    }
    for (size_t b = 0; b < ROWS; b++) {
        double p = probability_of(&model, b, is_mean);
        loss -= log(label_of(b) ? p : 1 - p) / ROWS;
    }
    return loss;
}

static struct ph_train_summary train_regression(const char *path, const char *yaml, enum ph_pooling pooling)
{
    return train_on("lr", path, yaml, pooling, 0, 0);
}

static const char libsvm[] = "data: {format: libsvm, encoding: raw, rows: 12}\n";
static const char weighted_list[] =
    "data: {fields: [{name: label, kind: label}, {name: ids, kind: id, list: true, "
    "weighted: true, encoding: raw, rows: 12}]}\n";
static const char plain_list[] =
    "data: {fields: [{name: label, kind: label}, {name: ids, kind: id, list: true, "
    "encoding: raw, rows: 12}]}\n";

static void weights_multiply_before_the_sum_or_the_mean(void **state)
{
    (void)state;
    const char *file = write_rows("weighted.svm", "", ' ', ' ', false);
    assert_near(train_regression(file, libsvm, PH_POOL_SUM).test.logloss, expected_logloss(false), 1e-6, 0);
    assert_near(train_regression(file, libsvm, PH_POOL_MEAN).test.logloss, expected_logloss(true), 1e-6, 0);
    assert_true(fabs(expected_logloss(false) - expected_logloss(true)) > 1e-3);
}

static void lists_and_libsvm_lines_are_learnt_from_alike(void **state)
{
    (void)state;
    const char *lines = write_rows("lines.svm", "", ' ', ' ', false);
    const char *cells = write_rows("cells.csv", "label,ids\n", ',', '|', false);
    assert_near(train_regression(lines, libsvm, PH_POOL_SUM).test.logloss,
        train_regression(cells, weighted_list, PH_POOL_SUM).test.logloss, 0, 1e-15);
}

#define CLIPPING                                                                                           \
    0.05 /* a row without ids has steep gradients behind DHEN's layer norms: some seeds diverge without it \
          */

static void weights_of_one_change_no_bit(void **state)
{
    (void)state;
    char text[4096];
    const char *weighted = write_rows("ones.csv", "label,ids\n", ',', '|', true);
    char *at = text + sprintf(text, "label,ids\n");
    for (size_t b = 0; b < ROWS; b++) {
        at += sprintf(at, "%d,", label_of(b));
        for (size_t j = 0; j < num_ids_of(b); j++)
            at += sprintf(at, j > 0 ? "|%zu" : "%zu", id_of(b, j));
        at += sprintf(at, "\n");
    }
    const char *plain = test_write_file("plain.csv", text);
    for (size_t kind = 0; kind < ph_model_count(); kind += test_is_brief() ? 4 : 1) {
        for (int pooling = PH_POOL_SUM; pooling <= PH_POOL_MEAN; pooling++) {
            const char *model = ph_model_name((int)kind);
            struct ph_train_summary with =
                train_on(model, weighted, weighted_list, (enum ph_pooling)pooling, 0.1, CLIPPING);
            struct ph_train_summary without =
                train_on(model, plain, plain_list, (enum ph_pooling)pooling, 0.1, CLIPPING);
            assert_string_equal(with.checkpoint_sha256, without.checkpoint_sha256);
            assert_true(with.test.logloss == without.test.logloss);
        }
    }
}

/* ---- losses that the model adds ---- */

/* Gives every element of the tensor this value; returns them. */
static ph_real *fill(const struct ph_store *store, const char *name, double value)
{
    struct ph_tensor tensor;
    assert_ok(ph_store_find(store, name, &tensor));
    for (size_t i = 0; i < ph_shape_elements(&tensor.shape); i++)
        ((ph_real *)tensor.data)[i] = (ph_real)value;
    return tensor.data;
}

/* A step of gradient descent in FinalNet whose blocks, all else being 0, say nothing but their biases. */
static void step_of_two_blocks(
    const struct ph__train_job *job, const struct ph_batch *batch, double rate, double *first, double *second)
{
    const struct ph_model_features features = {.num_dense = batch->num_dense, .num_tasks = 1};
    struct ph__training_program training;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    assert_ok(ph__training_program_build(job, &features, NULL, &training));
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    assert_ok(ph_executor_create(training.program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, batch->num_samples, 0, &workspace));
    for (size_t i = 0; i < ph_store_num_tensors(store); i++)
        fill(store, ph_store_tensor(store, i).name, 0);
    ph_real *first_bias = fill(store, "first.output.bias", *first);
    ph_real *second_bias = fill(store, "second.output.bias", *second);
    ph_store_touch(store);
    assert_ok(ph_workspace_bind(workspace, batch, 1, 1));
    assert_ok(ph_workspace_set_scalar(workspace, "learning_rate", rate));
    assert_ok(ph_workspace_set_scalar(workspace, "step", 1));
    static const char *const entries[] = {"forward", "backward", "update"};
    for (size_t i = 0; i < COUNT(entries); i++)
        assert_ok(ph_workspace_run(workspace, entries[i]));
    *first = (double)first_bias[0];
    *second = (double)second_bias[0];
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(training.program);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Of a block with bias b, beside one with c: the loss of the labels is that of the logit m = (b + c) / 2, the
 * added one that of the logit b with sigmoid(m) for a label. */
static double gradient(double b, double c, double mean_label)
{
    const double p = sigmoid((b + c) / 2);
    return (p - mean_label) / 2 + sigmoid(b) - p;
}

static void losses_that_a_model_adds_are_learnt_from(void **state)
{
    (void)state;
    static const ph_real dense[] = {1, 2, 3, 4}, labels[] = {1, 0, 1, 1};
    const struct ph_batch batch = {
        .num_samples = 4, .num_dense = 1, .num_tasks = 1, .dense = dense, .labels = labels};
    const double rate = 0.5, first = 0.8, second = -1.2;
    double moved_first = first, moved_second = second;
    struct setup *setup = set_up("finalnet", "added");
    setup->train.max_gradient_norm = 0;
    setup->optimizer = (struct ph_optimizer_settings){.rule.kind = PH_SGD, .learning_rate = rate};
    step_of_two_blocks(&setup->job, &batch, rate, &moved_first, &moved_second);
    assert_near(moved_first, first - rate * gradient(first, second, 0.75), 1e-6, 0);
    assert_near(moved_second, second - rate * gradient(second, first, 0.75), 1e-6, 0);
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_multiply_before_the_sum_or_the_mean),
        cmocka_unit_test(lists_and_libsvm_lines_are_learnt_from_alike),
        cmocka_unit_test(weights_of_one_change_no_bit),
        cmocka_unit_test(losses_that_a_model_adds_are_learnt_from),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
