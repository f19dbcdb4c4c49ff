/* A whole training step of DLRM allocates nothing once it is warm. */
#include "support/test_support.h"

#include "support/count_allocations.h"
#include "train/config/training_program.h"

#define MAX_BATCH 300
#define NUM_DENSE 5
#define NUM_SPARSE 4
#define POOLING 3
#define ROWS 50

struct batch_memory {
    ph_real dense[MAX_BATCH * NUM_DENSE], labels[MAX_BATCH];
    int32_t lengths[NUM_SPARSE * MAX_BATCH];
    uint32_t offsets[NUM_SPARSE * MAX_BATCH + 1];
    int64_t ids[NUM_SPARSE * MAX_BATCH * POOLING];
};

static struct ph_batch make_batch(struct batch_memory *memory, size_t num_samples, size_t step)
{
    size_t bags = NUM_SPARSE * num_samples;
    for (size_t i = 0; i < num_samples * NUM_DENSE; i++)
        memory->dense[i] = (ph_real)((i * 7 + step) % 11) / 11;
    for (size_t i = 0; i < num_samples; i++)
        memory->labels[i] = (i + step) % 3 == 0 ? 1 : 0;
    for (size_t i = 0; i < bags; i++) {
        memory->lengths[i] = POOLING;
        memory->offsets[i + 1] = (uint32_t)((i + 1) * POOLING);
    }
    for (size_t i = 0; i < bags * POOLING; i++)
        memory->ids[i] = (int64_t)((i * 13 + step) % ROWS);
    return (struct ph_batch){.num_samples = num_samples,
        .num_dense = NUM_DENSE,
        .num_sparse = NUM_SPARSE,
        .num_tasks = 1,
        .num_ids = bags * POOLING,
        .dense = memory->dense,
        .labels = memory->labels,
        .lengths = memory->lengths,
        .offsets = memory->offsets,
        .ids = memory->ids};
}

static ph_status run_step(struct ph_workspace *workspace, const struct ph_batch *batch, size_t step)
{
    static const char *const entries[] = {"forward", "backward", "clip", "update"};
    PH_TRY(ph_workspace_bind(workspace, batch, 1, step));
    PH_TRY(ph_workspace_set_scalar(workspace, "step", (double)step));
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        PH_TRY(ph_workspace_run(workspace, entries[i]));
    return PH_OK;
}

static struct ph_program *build_dlrm(enum ph_precision precision)
{
    static const struct ph_table_slice slices[NUM_SPARSE] = {
        {"C1", ROWS}, {"C2", ROWS}, {"C3", ROWS}, {"C4", ROWS}};
    const struct ph_model_features features = {
        .num_dense = NUM_DENSE, .num_sparse = NUM_SPARSE, .num_tasks = 1, .sparse = slices};
    const struct ph_model_settings model = {.kind = ph_model_find("dlrm"),
        .embedding_dim = 16,
        .embedding_init_std = 0.1,
        .bottom_units = (int64_t[]){32},
        .num_bottom_units = 1,
        .top_units = (int64_t[]){64, 32},
        .num_top_units = 2,
        .batch_norm = true,
        .dropout = 0.2,
        .activation = PH_RELU,
        .interaction = PH_INTERACTION_DOT};
    const struct ph_train_settings train = {.max_gradient_norm = 1, .precision = precision};
    const struct ph_optimizer_settings optimizer = {.rule.kind = PH_ADAM,
        .rule.beta1 = 0.9,
        .rule.beta2 = 0.999,
        .rule.epsilon = 1e-8,
        .embedding_learning_rate_factor = 1,
        .embedding_scope = PH_SCOPE_TOUCHED};
    const struct ph__train_job job = {.model = &model, .train = &train, .optimizer = &optimizer};
    struct ph__training_program training = {0};
    assert_ok(ph__training_program_build(&job, &features, NULL, &training));
    return training.program;
}

static void check_warm_step(enum ph_precision precision)
{
    static struct batch_memory memory;
    struct ph_store *store = NULL;
    struct ph_state *carried = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    struct ph_program *program = build_dlrm(precision);
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&carried));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2}, &backend));
    assert_ok(ph_executor_create(program, store, carried, backend, &executor));
    assert_ok(ph_workspace_create(executor, 256, NUM_SPARSE * 256 * POOLING, &workspace));
    assert_ok(ph_workspace_set_scalar(workspace, "learning_rate", 0.01));
    const unsigned ours = num_allocations(ALLOCATOR_OURS), of_libraries = num_allocations(ALLOCATOR_LIBRARY);
    const size_t sizes[] = {256, 100}; /* full batches, and the last of an epoch */
    for (size_t step = 1; step <= 10; step++) {
        struct ph_batch batch = make_batch(&memory, sizes[step % 2], step);
        count_allocations(step > 2);
        ph_status status = run_step(workspace, &batch, step);
        count_allocations(false);
        assert_ok(status);
    }
    print_message("allocations in 8 warm steps: %u ours, %u of libraries\n",
        num_allocations(ALLOCATOR_OURS) - ours, num_allocations(ALLOCATOR_LIBRARY) - of_libraries);
    assert_int_equal(num_allocations(ALLOCATOR_OURS), ours);
    assert_int_equal(ph_workspace_memory(workspace).num_growths, 0);
    struct ph_batch larger = make_batch(&memory, MAX_BATCH, 11);
    count_allocations(true);
    ph_status status = run_step(workspace, &larger, 11);
    count_allocations(false);
    assert_ok(status);
    assert_int_equal(ph_workspace_memory(workspace).num_growths, 1); /* growth is counted, */
    if (allocations_are_counted())
        assert_true(num_allocations(ALLOCATOR_OURS) > ours); /* and the interposed malloc sees it */
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(carried);
    ph_store_destroy(store);
    ph_program_destroy(program);
}

static void warm_training_step_allocates_nothing(void **state)
{
    (void)state;
    check_warm_step(PH_PRECISION_FP32);
    check_warm_step(PH_PRECISION_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_training_step_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
