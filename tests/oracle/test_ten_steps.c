/* Ten steps of LR and DNN against ten_steps.txt, which an independent NumPy implementation printed
 * (ten_steps.py, where the formulas of batches and initial weights stand, too). Built for float and for
 * double. */
#include "support/test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/config/training_program.h"

#define B 16
#define NUM_DENSE 2
#define NUM_SPARSE 3
#define STEPS 10
#define TOLERANCE (sizeof(ph_real) == sizeof(double) ? 1e-10 : 3e-5)

static const size_t table_rows[NUM_SPARSE] = {5, 7, 11};

static void fill_tensor(struct ph_tensor tensor)
{
    double base =
        strlen(tensor.name) > 5 && strcmp(tensor.name + strlen(tensor.name) - 5, "gamma") == 0 ? 1 : 0;
    double phase = 0;
    for (const char *c = tensor.name; *c != '\0'; c++)
        phase += 1.7 * (double)(unsigned char)*c;
    for (size_t i = 0; i < ph_shape_elements(&tensor.shape); i++)
        ((ph_real *)tensor.data)[i] = (ph_real)(base + 0.3 * sin(phase + 0.37 * (double)i));
}

struct batch_memory {
    ph_real dense[B * NUM_DENSE], labels[B];
    int32_t lengths[NUM_SPARSE * B];
    uint32_t offsets[NUM_SPARSE * B + 1];
    int64_t ids[NUM_SPARSE * B * 2];
};

static struct ph_batch make_batch(struct batch_memory *memory, size_t step)
{
    size_t num_ids = 0;
    for (size_t b = 0; b < B; b++) {
        memory->labels[b] = (7 * b + step) % 3 == 0 ? 1 : 0;
        for (size_t d = 0; d < NUM_DENSE; d++)
            memory->dense[b * NUM_DENSE + d] = (ph_real)sin((double)(b + 2 * d + step));
    }
    for (size_t f = 0; f < NUM_SPARSE; f++)
        for (size_t b = 0; b < B; b++) {
            memory->lengths[f * B + b] = (int32_t)((b + f) % 3);
            memory->offsets[f * B + b] = (uint32_t)num_ids;
            for (size_t j = 0; j < (b + f) % 3; j++)
                memory->ids[num_ids++] = (int64_t)((31 * b + 17 * f + 7 * j + 13 * step) % table_rows[f]);
        }
    memory->offsets[NUM_SPARSE * B] = (uint32_t)num_ids;
    return (struct ph_batch){.num_samples = B,
        .num_dense = NUM_DENSE,
        .num_sparse = NUM_SPARSE,
        .num_tasks = 1,
        .num_ids = num_ids,
        .dense = memory->dense,
        .labels = memory->labels,
        .lengths = memory->lengths,
        .offsets = memory->offsets,
        .ids = memory->ids};
}

static double expected_loss(const char *model, size_t step)
{
    FILE *file = fopen(PH_SOURCE_DIR "/tests/oracle/ten_steps.txt", "r");
    assert_non_null(file);
    char name[16];
    size_t at = 0;
    double loss = NAN;
    bool is_found = false;
    while (!is_found && fscanf(file, "%15s %zu %lf", name, &at, &loss) == 3)
        is_found = strcmp(name, model) == 0 && at == step;
    fclose(file);
    assert_true(is_found);
    return loss;
}

static void train_ten_steps(struct ph_workspace *workspace, const char *model, bool has_clip)
{
    struct batch_memory memory;
    for (size_t step = 1; step <= STEPS; step++) {
        struct ph_batch batch = make_batch(&memory, step);
        double loss = 0;
        assert_ok(ph_workspace_bind(workspace, &batch, 1, step));
        assert_ok(ph_workspace_set_scalar(workspace, "step", (double)step));
        assert_ok(ph_workspace_run(workspace, "forward"));
        assert_ok(ph_workspace_scalar(workspace, "loss", &loss));
        assert_near(loss, expected_loss(model, step), 0, TOLERANCE);
        assert_ok(ph_workspace_run(workspace, "backward"));
        if (has_clip)
            assert_ok(ph_workspace_run(workspace, "clip"));
        assert_ok(ph_workspace_run(workspace, "update"));
    }
}

static void check_model(const struct ph__train_job *job, const char *model)
{
    const struct ph_table_slice slices[NUM_SPARSE] = {
        {"C1", table_rows[0]}, {"C2", table_rows[1]}, {"C3", table_rows[2]}};
    const struct ph_model_features features = {
        .num_dense = NUM_DENSE, .num_sparse = NUM_SPARSE, .num_tasks = 1, .sparse = slices};
    struct ph__training_program training = {0};
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    assert_ok(ph__training_program_build(job, &features, NULL, &training));
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2}, &backend));
    assert_ok(ph_executor_create(training.program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, B, NUM_SPARSE * B * 2, &workspace));
    for (size_t i = 0; i < ph_store_num_tensors(store); i++)
        fill_tensor(ph_store_tensor(store, i));
    ph_store_touch(store);
    assert_ok(ph_workspace_set_scalar(workspace, "learning_rate", job->optimizer->learning_rate));
    train_ten_steps(workspace, model, training.has_clip);
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(training.program);
}

static void losses_of_lr_are_those_of_numpy(void **state)
{
    (void)state;
    const struct ph_model_settings model = {.kind = ph_model_find("lr"), .embedding_dim = 4};
    const struct ph_train_settings train = {0};
    const struct ph_optimizer_settings optimizer = {.rule.kind = PH_MOMENTUM,
        .learning_rate = 0.1,
        .rule.momentum = 0.9,
        .embedding_learning_rate_factor = 1,
        .embedding_scope = PH_SCOPE_WHOLE};
    const struct ph__train_job job = {.model = &model, .train = &train, .optimizer = &optimizer};
    check_model(&job, "lr");
}

static void losses_of_dnn_are_those_of_numpy(void **state)
{
    (void)state;
    const struct ph_model_settings model = {.kind = ph_model_find("dnn"),
        .embedding_dim = 4,
        .hidden_units = (int64_t[]){8, 6},
        .num_hidden_units = 2,
        .batch_norm = true,
        .activation = PH_RELU};
    const struct ph_train_settings train = {.max_gradient_norm = 0.5};
    const struct ph_optimizer_settings optimizer = {.rule.kind = PH_ADAM,
        .learning_rate = 0.01,
        .rule.beta1 = 0.9,
        .rule.beta2 = 0.999,
        .rule.epsilon = 1e-8,
        .embedding_learning_rate_factor = 1,
        .embedding_l2 = 0.05,
        .embedding_scope = PH_SCOPE_WHOLE};
    const struct ph__train_job job = {.model = &model, .train = &train, .optimizer = &optimizer};
    check_model(&job, "dnn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_of_lr_are_those_of_numpy),
        cmocka_unit_test(losses_of_dnn_are_those_of_numpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
