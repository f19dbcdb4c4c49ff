/* The factor alone, on gradients that are parameters' values: d loss / d w of a plain product. Its use in
 * updates is checked in test_op_update.c. */
#include <math.h>

#include "unit/op/table_fixture.h"

enum { MANY = 80 };

/* clip factor of `count` parameters (3), each its own gradient: norm^2 = count * 3 * value^2 (1 + l2)^2 */
static double factor_of(size_t count, double value, double l2, double max_norm)
{
    struct ph_builder *builder;
    struct table_model model = {0};
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value parameters[MANY];
    struct ph_optimizer optimizers[MANY];
    for (size_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%zu", i % MANY);
        parameters[i] =
            ph_parameter(builder, name, 1, (size_t[]){3}, (struct ph_init){PH_INIT_CONSTANT, value});
        optimizers[i] = table_optimizer(PH_SGD, false, l2);
    }
    ph_output(builder, "clip", ph_clip_factor(builder, count, parameters, parameters, optimizers, max_norm));
    assert_ok(ph_builder_finish(builder, &model.program));
    ph_builder_destroy(builder);
    assert_ok(ph_store_create(1, &model.store));
    assert_ok(ph_state_create(&model.state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &model.backend));
    assert_ok(ph_executor_create(model.program, model.store, model.state, model.backend, &model.executor));
    assert_ok(ph_workspace_create(model.executor, 1, 1, &model.workspace));
    const struct ph_batch batch = {.num_samples = 1};
    double factor;
    assert_ok(ph_workspace_bind(model.workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(model.workspace, "forward"));
    assert_ok(ph_workspace_scalar(model.workspace, "clip", &factor));
    table_model_fini(&model);
    return factor;
}

static void the_norm_is_over_all_parameters(void **state)
{
    (void)state;
    assert_near(factor_of(2, 2, 0, 1), 1 / sqrt(24), 0, 1e-6);
    assert_near(factor_of(MANY, 2, 0, 1), 1 / sqrt(MANY * 12.0), 0, 1e-6);
}

static void decay_is_part_of_the_gradient(void **state)
{
    (void)state;
    assert_near(factor_of(1, 2, 0.5, 1), 1 / (sqrt(12) * 1.5), 0, 1e-6);
}

static void a_small_norm_gives_one(void **state)
{
    (void)state;
    assert_true(factor_of(1, 2, 0, 4) == 1);
    assert_true(factor_of(1, 0, 0, 4) == 1);
    assert_true(factor_of(0, 0, 0, 4) == 1);
}

static void a_norm_that_is_no_number_is_not_hidden(void **state)
{
    (void)state;
    assert_true(isnan(factor_of(2, NAN, 0, 1)));
    assert_true(factor_of(2, INFINITY, 0, 1) == 0);
}

static void a_norm_of_nothing_is_refused(void **state)
{
    (void)state;
    const double norms[] = {0, -1, NAN};
    for (size_t i = 0; i < 3; i++) {
        struct ph_builder *builder;
        struct ph_program *program;
        assert_ok(ph_builder_create(PH_TRAINING, &builder));
        assert_int_equal(ph_clip_factor(builder, 0, NULL, NULL, NULL, norms[i]), 0);
        assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "must be positive");
        ph_builder_destroy(builder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_norm_is_over_all_parameters),
        cmocka_unit_test(decay_is_part_of_the_gradient),
        cmocka_unit_test(a_small_norm_gives_one),
        cmocka_unit_test(a_norm_that_is_no_number_is_not_hidden),
        cmocka_unit_test(a_norm_of_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
