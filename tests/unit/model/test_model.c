#include "support/test_support.h"

#include <stdio.h>
#include <string.h>

#include "phloem/model.h"

enum { ROWS_A = 5, ROWS_B = 7, ROWS = ROWS_A + ROWS_B, F = 2, D = 3, H0 = 8, H1 = 6 };

static const struct ph_table_slice sparse[F] = {{"a", ROWS_A}, {"bias", ROWS_B}};
static const int64_t units[] = {H0, H1}, bottom_units[] = {4};

static struct ph_model_settings settings_of(const char *model)
{
    return (struct ph_model_settings){
        .kind = ph_model_find(model),
        .embedding_dim = D,
        .embedding_init_std = 0.1,
        .hidden_units = units,
        .num_hidden_units = 2,
        .bottom_units = bottom_units,
        .num_bottom_units = 1,
        .activation = PH_RELU,
    };
}

static struct ph_model_features features_of(size_t num_dense, size_t num_sparse, size_t num_tasks)
{
    return (struct ph_model_features){
        .num_dense = num_dense, .num_sparse = num_sparse, .num_tasks = num_tasks, .sparse = sparse};
}

static size_t elements_of(const struct ph_builder *builder, ph_value value)
{
    struct ph_type type = ph_value_type(builder, value);
    size_t elements = 1;
    for (uint32_t i = 0; i < type.num_dims; i++)
        elements *= type.dims[i].extent;
    return elements;
}

/* Weights of a model, and that its logits are (B,T). */
static size_t weights_of(const struct ph_model_settings *settings, const struct ph_model_features *features)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value logits = ph_model_build(builder, settings, features);
    assert_ok(ph_builder_status(builder));
    struct ph_type type = ph_value_type(builder, logits);
    assert_int_equal(type.num_dims, 2);
    assert_int_equal(type.dims[0].symbol, PH_SYMBOL_BATCH);
    assert_int_equal(type.dims[1].extent, features->num_tasks);
    size_t weights = 0;
    for (size_t i = 0; i < ph_builder_num_parameters(builder); i++)
        weights += elements_of(builder, ph_builder_parameter(builder, i));
    ph_builder_destroy(builder);
    return weights;
}

static size_t count(const char *model, size_t num_dense, size_t num_sparse, size_t num_tasks)
{
    struct ph_model_settings settings = settings_of(model);
    struct ph_model_features features = features_of(num_dense, num_sparse, num_tasks);
    return weights_of(&settings, &features);
}

/* in -> H0 -> H1 -> T, weights and biases */
static size_t perceptron(size_t in, size_t num_tasks)
{
    return in * H0 + H0 + H0 * H1 + H1 + H1 * num_tasks + num_tasks;
}

static void models_have_the_weights_of_their_formulas(void **state)
{
    (void)state;
    for (size_t t = 1; t <= 3; t += 2) {
        for (size_t n = 0; n <= 4; n += 4) {
            size_t linear = ROWS * t + t + n * t;
            assert_int_equal(count("lr", n, F, t), linear);
            assert_int_equal(count("fm", n, F, t), linear + ROWS * D + n * D);
            assert_int_equal(count("dnn", n, F, t), ROWS * D + perceptron(F * D + n, t));
            assert_int_equal(count("wide_deep", n, F, t), linear + ROWS * D + perceptron(F * D + n, t));
            assert_int_equal(
                count("deepfm", n, F, t), linear + ROWS * D + n * D + perceptron((F + n) * D, t));
        }
    }
}

static void dlrm_has_a_bottom_for_dense_features_and_a_top_for_the_interaction(void **state)
{
    (void)state;
    struct ph_model_settings settings = settings_of("dlrm");
    struct ph_model_features with_dense = features_of(5, F, 1), without = features_of(0, F, 1);
    size_t bottom = 5 * 4 + 4 + 4 * D + D;
    settings.interaction = PH_INTERACTION_DOT;
    assert_int_equal(weights_of(&settings, &with_dense), ROWS * D + bottom + perceptron(D + 3, 1));
    assert_int_equal(weights_of(&settings, &without), ROWS * D + perceptron(1, 1));
    struct ph_model_features single = features_of(0, 1, 1);
    assert_int_equal(weights_of(&settings, &single), single.sparse[0].num_rows * D + perceptron(D, 1));
    settings.interaction = PH_INTERACTION_CAT;
    assert_int_equal(weights_of(&settings, &with_dense), ROWS * D + bottom + perceptron((F + 1) * D, 1));
    assert_int_equal(weights_of(&settings, &without), ROWS * D + perceptron(F * D, 1));
}

static void top_units_go_before_hidden_units(void **state)
{
    (void)state;
    const int64_t top[] = {2};
    struct ph_model_settings settings = settings_of("dlrm");
    settings.interaction = PH_INTERACTION_CAT;
    settings.top_units = top;
    settings.num_top_units = 1;
    struct ph_model_features features = features_of(0, F, 1);
    assert_int_equal(weights_of(&settings, &features), ROWS * D + F * D * 2 + 2 + 2 + 1);
}

static void batch_norm_adds_a_scale_and_a_shift_a_unit(void **state)
{
    (void)state;
    struct ph_model_settings settings = settings_of("dnn");
    struct ph_model_features features = features_of(0, F, 1);
    size_t plain = weights_of(&settings, &features);
    settings.batch_norm = true;
    assert_int_equal(weights_of(&settings, &features), plain + 2 * (H0 + H1));
}

/* Block norm has no parameters; (H0 + H1) biases of hidden layers are gone, the logit's stays. */
static void biases_may_be_the_logits_alone(void **state)
{
    (void)state;
    struct ph_model_settings settings = settings_of("dnn");
    const struct ph_model_features features = features_of(2, F, 1);
    const size_t whole = weights_of(&settings, &features);
    settings.block_norm = true;
    assert_int_equal(weights_of(&settings, &features), whole);
    settings.bias = PH_BIAS_LAST;
    assert_int_equal(weights_of(&settings, &features), whole - H0 - H1);
}

static void dense_features_alone_are_enough(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ph_model_count(); kind++)
        assert_true(count(ph_model_name((int)kind), 4, 0, 1) > 0);
}

static void both_modes_declare_the_same_parameters(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ph_model_count(); kind++) {
        struct ph_builder *builders[2] = {NULL, NULL};
        struct ph_model_settings settings = settings_of(ph_model_name((int)kind));
        settings.batch_norm = true;
        settings.dropout = 0.5;
        struct ph_model_features features = features_of(4, F, 1);
        for (size_t mode = 0; mode < 2; mode++) {
            assert_ok(ph_builder_create(mode == 0 ? PH_TRAINING : PH_INFERENCE, &builders[mode]));
            ph_model_build(builders[mode], &settings, &features);
            assert_ok(ph_builder_status(builders[mode]));
        }
        size_t num_parameters = ph_builder_num_parameters(builders[0]);
        assert_int_equal(num_parameters, ph_builder_num_parameters(builders[1]));
        for (size_t i = 0; i < num_parameters; i++)
            assert_string_equal(ph_value_name(builders[0], ph_builder_parameter(builders[0], i)),
                ph_value_name(builders[1], ph_builder_parameter(builders[1], i)));
        ph_builder_destroy(builders[0]);
        ph_builder_destroy(builders[1]);
    }
}

/* The logit of one sample: bag 0 is empty, bag 1 holds the ids. weights NULL: the model takes none. */
static double logit_of(size_t kind, size_t num_ids, const int64_t *ids, const ph_real *weights)
{
    struct ph_model_settings settings = settings_of(ph_model_name((int)kind));
    struct ph_model_features features = features_of(0, F, 1);
    struct ph_builder *builder;
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    features.has_id_weights = weights != NULL;
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", ph_model_build(builder, &settings, &features));
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    assert_ok(ph_store_create(test_seed(), &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, 1, num_ids, &workspace));

    const ph_real *logits;
    struct ph_shape shape;
    const int32_t lengths[] = {0, (int32_t)num_ids};
    const uint32_t offsets[] = {0, 0, (uint32_t)num_ids};
    const struct ph_batch batch = {.num_samples = 1,
        .num_sparse = F,
        .num_tasks = 1,
        .num_ids = num_ids,
        .lengths = lengths,
        .offsets = offsets,
        .ids = ids,
        .id_weights = weights};
    assert_ok(ph_workspace_bind(workspace, &batch, 0, 0));
    assert_ok(ph_workspace_run(workspace, "forward"));
    assert_ok(ph_workspace_output(workspace, "logits", &logits, &shape));
    const double logit = (double)logits[0];
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
    return logit;
}

static void an_id_of_weight_two_counts_as_two_ids(void **state)
{
    (void)state;
    const int64_t ids[] = {3, 3, 5};
    const ph_real weights[] = {2, 0, 1};
    for (size_t kind = 0; kind < ph_model_count(); kind++)
        assert_near(logit_of(kind, 3, ids, weights), logit_of(kind, 3, ids, NULL), 1e-9, 1e-5);
    assert_true(logit_of(0, 1, ids, weights) != logit_of(0, 1, ids, NULL));
}

static void fails_with(
    const struct ph_model_settings *settings, struct ph_model_features features, const char *part)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    assert_int_equal(ph_model_build(builder, settings, &features), 0);
    assert_fails(ph_builder_status(builder), PH_ERROR_CONFIG, part);
    ph_builder_destroy(builder);
}

static void what_cannot_be_built_is_refused(void **state)
{
    (void)state;
    struct ph_model_settings settings = settings_of("dnn");
    fails_with(&settings, features_of(0, 0, 1), "at least one id or dense feature");
    fails_with(&settings, features_of(1, F, 0), "at least one label");
    settings.batch_norm = settings.block_norm = true;
    fails_with(&settings, features_of(1, F, 1), "model.batch_norm and model.block_norm are both true");
    settings.kind = 99;
    fails_with(&settings, features_of(1, F, 1), "unknown model 99");
    settings = settings_of("dnn");
    settings.embedding_dim = 0;
    fails_with(&settings, features_of(1, F, 1), "embedding_dim");
}

static void registry_finds_models_by_name(void **state)
{
    (void)state;
    assert_string_equal(ph_model_name(ph_model_find("deepfm")), "deepfm");
    assert_int_equal(ph_model_find("deep"), -1);
    assert_null(ph_model_name(-1));
    assert_null(ph_model_description((int)ph_model_count()));
    assert_true(strlen(ph_model_description(0)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_have_the_weights_of_their_formulas),
        cmocka_unit_test(dlrm_has_a_bottom_for_dense_features_and_a_top_for_the_interaction),
        cmocka_unit_test(top_units_go_before_hidden_units),
        cmocka_unit_test(batch_norm_adds_a_scale_and_a_shift_a_unit),
        cmocka_unit_test(biases_may_be_the_logits_alone),
        cmocka_unit_test(dense_features_alone_are_enough),
        cmocka_unit_test(both_modes_declare_the_same_parameters),
        cmocka_unit_test(an_id_of_weight_two_counts_as_two_ids),
        cmocka_unit_test(what_cannot_be_built_is_refused),
        cmocka_unit_test(registry_finds_models_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
