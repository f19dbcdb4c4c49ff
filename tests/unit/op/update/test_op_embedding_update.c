/* When backward and update of a table become one sweep, and that the bits are the same. */
#include "graph/executor.h"
#include "unit/op/table_fixture.h"

static struct table_case usual_case(enum ph_optimizer_kind kind)
{
    return (struct table_case){.num_features = 3,
        .dim = 5,
        .num_rows = 400,
        .num_samples = 1500,
        .max_ids = 5,
        .optimizer = table_optimizer(kind, false, 0.01)};
}

static void run_steps(struct table_model *model, const struct table_case *trial)
{
    table_model_init(model, trial);
    for (uint64_t step = 1; step <= 3; step++) {
        table_model_next_batch(model);
        assert_ok(table_model_run(model, step));
    }
}

static const enum ph_row_format row_formats[] = {
    PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
enum { NUM_ROW_FORMATS = sizeof row_formats / sizeof *row_formats };

static void fused_and_unfused_updates_have_the_same_bits(void **state)
{
    (void)state;
    const size_t dims[] = {1, 5, 16, 64, 67};
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT * NUM_ROW_FORMATS; kind++)
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
            struct table_case fused = usual_case((enum ph_optimizer_kind)(kind / NUM_ROW_FORMATS));
            fused.row_format = row_formats[kind % NUM_ROW_FORMATS];
            fused.num_samples = 150;
            fused.dim = dims[i];
            fused.is_mean = i % 2 == 0;
            fused.has_id_weights = i > 2;
            struct table_case unfused = fused;
            unfused.reads_gradient = true;
            struct table_model a, b;
            run_steps(&a, &fused);
            run_steps(&b, &unfused);
            assert_int_equal(table_model_count(&a, "embedding_update"), 1);
            assert_int_equal(table_model_count(&b, "embedding_update"), 0);
            assert_same_model(&a, &b);
            table_model_fini(&a);
            table_model_fini(&b);
        }
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT * NUM_ROW_FORMATS; kind++)
        for (int variant = 0; variant < 4; variant++) {
            struct table_case trial = usual_case((enum ph_optimizer_kind)(kind / NUM_ROW_FORMATS));
            trial.row_format = row_formats[kind % NUM_ROW_FORMATS];
            trial.optimizer.is_whole_table = variant == 1;
            trial.max_norm = variant == 2 ? 0.001 : 0;
            trial.reads_gradient = variant == 3;
            struct table_model one;
            run_steps(&one, &trial);
            for (size_t threads = test_is_brief() ? 3 : 2; threads <= 3; threads++) {
                struct table_case threaded = trial;
                threaded.num_threads = threads;
                struct table_model many;
                run_steps(&many, &threaded);
                assert_same_model(&one, &many);
                table_model_fini(&many);
            }
            table_model_fini(&one);
        }
}

static void assert_fused(const struct table_case *trial, bool is_fused)
{
    struct table_model model;
    table_model_init(&model, trial);
    assert_int_equal(table_model_count(&model, "embedding_update"), is_fused);
    assert_int_equal(table_model_count(&model, "embedding_gradient"), !is_fused);
    assert_int_equal(table_model_count(&model, "update_table"), !is_fused);
    table_model_fini(&model);
}

static void only_an_update_of_touched_rows_that_nobody_watches_is_fused(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++) {
        const struct table_case touched = usual_case((enum ph_optimizer_kind)kind);
        assert_fused(&touched, true);
        struct table_case clipped = touched, whole = touched, watched = touched;
        clipped.max_norm = 1;
        assert_fused(&clipped, false);
        whole.optimizer.is_whole_table = true;
        assert_fused(&whole, false);
        watched.reads_gradient = true;
        assert_fused(&watched, false);
    }
}

/* Without decay, SGD and Adagrad leave rows without a gradient as they are: the whole table is the touched
 * rows. */
static void a_whole_table_that_stays_put_is_fused(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++) {
        struct table_case trial = usual_case((enum ph_optimizer_kind)kind);
        trial.optimizer.is_whole_table = true;
        trial.optimizer.l2 = 0;
        const bool has_moments = kind == PH_MOMENTUM || kind == PH_ADAM || kind == PH_ADAMW;
        assert_fused(&trial, !has_moments);
    }
}

static void an_empty_batch_changes_nothing_that_is_touched(void **state)
{
    (void)state;
    for (size_t samples = 0; samples < 4; samples += 3) {
        struct table_case trial = usual_case(PH_ADAM);
        trial.num_samples = samples;
        trial.max_ids = 0;
        struct table_model model;
        table_model_init(&model, &trial);
        ph_real *before = calloc(model.table->elements, sizeof *before);
        memcpy(before, model.table->data, model.table->elements * sizeof *before);
        table_model_next_batch(&model);
        assert_ok(table_model_run(&model, 1));
        assert_memory_equal(before, model.table->data, model.table->elements * sizeof *before);
        free(before);
        table_model_fini(&model);
    }
}

/* Of one step on the same batch for every optimizer and format. */
static double updated_bytes(enum ph_optimizer_kind kind, enum ph_row_format row_format)
{
    struct table_case trial = usual_case(kind);
    trial.row_format = row_format;
    struct table_model model;
    double bytes = 0;
    table_model_init(&model, &trial);
    assert_ok(ph_executor_profile(model.executor, true, 0));
    table_model_next_batch(&model);
    assert_ok(table_model_run(&model, 1));
    for (size_t i = 0; i < model.program->graph.num_nodes; i++)
        bytes += model.executor->profile[i].cost.updated_bytes;
    table_model_fini(&model);
    return bytes;
}

static void the_cost_counts_one_sum_a_row_for_rowwise_adagrad(void **state)
{
    (void)state;
    const double weights = updated_bytes(PH_SGD, PH_ROWS_FP32);
    assert_true(weights > 0);
    assert_true(updated_bytes(PH_ADAGRAD, PH_ROWS_FP32) == 2 * weights);
    assert_true(updated_bytes(PH_ROWWISE_ADAGRAD, PH_ROWS_FP32) ==
                weights + weights / (double)usual_case(PH_SGD).dim);
}

static void the_cost_counts_the_bytes_of_the_format(void **state)
{
    (void)state;
    const double weights = updated_bytes(PH_SGD, PH_ROWS_FP32);
    assert_true(updated_bytes(PH_SGD, PH_ROWS_BF16) == weights / 2);
    assert_true(updated_bytes(PH_SGD, PH_ROWS_BF16_SPLIT) == weights);
    assert_true(updated_bytes(PH_ADAGRAD, PH_ROWS_FP16) == 1.5 * weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_and_unfused_updates_have_the_same_bits),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(only_an_update_of_touched_rows_that_nobody_watches_is_fused),
        cmocka_unit_test(a_whole_table_that_stays_put_is_fused),
        cmocka_unit_test(an_empty_batch_changes_nothing_that_is_touched),
        cmocka_unit_test(the_cost_counts_one_sum_a_row_for_rowwise_adagrad),
        cmocka_unit_test(the_cost_counts_the_bytes_of_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
