/* Losses that a model adds: kept for training, nothing in inference. */
#include "phloem/op.h"
#include "support/test_support.h"

static ph_value loss_of(struct ph_builder *builder)
{
    return ph_bce_with_logits(builder, ph_input_dense(builder, 2), ph_input_labels(builder, 2), 0, 0);
}

static void training_keeps_what_is_added_and_its_weight(void **state)
{
    (void)state;
    struct ph_builder *builder = NULL;
    double weight = 0;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value loss = loss_of(builder);
    assert_int_equal(ph_builder_num_losses(builder), 0);
    ph_add_loss(builder, "loss.a", loss, 0.25);
    ph_add_loss(builder, "loss.b", loss, 3);
    assert_int_equal(ph_builder_num_losses(builder), 2);
    assert_int_equal(ph_builder_loss(builder, 1, &weight), loss);
    assert_true(weight == 3);
    assert_ok(ph_builder_status(builder));
    ph_builder_destroy(builder);
}

static void inference_keeps_none(void **state)
{
    (void)state;
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_add_loss(builder, "loss.a", loss_of(builder), 1);
    assert_int_equal(ph_builder_num_losses(builder), 0);
    assert_ok(ph_builder_status(builder));
    ph_builder_destroy(builder);
}

static void what_is_no_scalar_is_refused(void **state)
{
    (void)state;
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_add_loss(builder, "loss.a", ph_input_dense(builder, 2), 1);
    assert_fails(ph_builder_status(builder), PH_ERROR_USAGE, "loss 'loss.a' is not a scalar");
    ph_builder_destroy(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_keeps_what_is_added_and_its_weight),
        cmocka_unit_test(inference_keeps_none),
        cmocka_unit_test(what_is_no_scalar_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
