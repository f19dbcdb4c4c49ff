#include "gradient/gradient_check.h"

#include "op/update/accumulation.h"

static ph_value plain_loss(struct ph_builder *builder, ph_value x)
{
    return ph_bce_with_logits(builder, x, ph_input_labels(builder, 3), 0, 0);
}

static ph_value masked_and_weighted_loss(struct ph_builder *builder, ph_value x)
{
    return ph_bce_with_logits(
        builder, x, ph_input_labels(builder, 3), ph_input_label_mask(builder, 3), ph_input_weights(builder));
}

static void cross_entropy_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 6, 1400};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct gradient_case gradient_case = {
            .op = "bce_with_logits", .num_samples = batches[i], .num_dense = 3, .build = plain_loss};
        check_gradients(&gradient_case);
    }
}

static void masks_and_weights_scale_the_gradient_of_cross_entropy(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++)
        check_gradients(&(struct gradient_case){.op = "bce_with_logits",
            .num_samples = 8,
            .num_dense = 3,
            .has_mask = i % 2 == 1,
            .has_weights = i / 2 == 1,
            .build = masked_and_weighted_loss});
}

static ph_value softmax_loss(struct ph_builder *builder, ph_value x)
{
    return ph_softmax_cross_entropy(
        builder, x, ph_input_labels(builder, 3), ph_input_label_mask(builder, 3), ph_input_weights(builder));
}

static void softmax_cross_entropy_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 6, 1400};
    for (size_t i = 0; i < 16; i++)
        check_gradients(&(struct gradient_case){.op = "softmax_cross_entropy",
            .num_samples = batches[i / 4],
            .num_dense = 3,
            .has_mask = i % 2 == 1,
            .has_weights = i / 2 % 2 == 1,
            .build = softmax_loss});
}

static ph_value squared_loss(struct ph_builder *builder, ph_value x)
{
    return ph_squared_error(builder, x, ph_input_labels(builder, 3), ph_input_weights(builder));
}

static void squared_error_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 6, 1400};
    for (size_t i = 0; i < 2 * sizeof batches / sizeof batches[0]; i++)
        check_gradients(&(struct gradient_case){.op = "squared_error",
            .num_samples = batches[i / 2],
            .num_dense = 3,
            .has_weights = i % 2 == 1,
            .build = squared_loss});
}

static ph_value two_losses(struct ph_builder *builder, ph_value x)
{
    const ph_value losses[] = {plain_loss(builder, x), plain_loss(builder, ph_multiply(builder, x, x))};
    const ph_value total = ph_weighted_sum(builder, 2, losses, (double[]){0.25, -3});
    return ph_weighted_sum(builder, 2, (ph_value[]){total, losses[0]}, (double[]){2, 1});
}

static void a_weighted_sum_of_losses_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_gradients(
        &(struct gradient_case){.op = "weighted_sum", .num_samples = 4, .num_dense = 3, .build = two_losses});
}

/* The second half of x says what the first half is to learn, and learns nothing itself. */
static ph_value loss_of_a_teacher(struct ph_builder *builder, ph_value x)
{
    ph_value teacher = ph_sigmoid(builder, ph_slice(builder, x, 1, 3, 3));
    return ph_bce_with_logits(
        builder, ph_slice(builder, x, 1, 0, 3), ph_stop_gradient(builder, teacher), 0, 0);
}

static void labels_that_depend_on_x_may_stop_the_gradient(void **state)
{
    (void)state;
    check_gradients(&(struct gradient_case){.op = "bce_with_logits",
        .num_samples = 5,
        .num_dense = 6,
        .num_frozen = 3,
        .build = loss_of_a_teacher});
}

/* Of a loss of some labels, in proportion to all: the weights are the same whatever x is. */
static ph_value share_of_batch(struct ph_builder *builder, ph_value x)
{
    const ph_value losses[] = {masked_and_weighted_loss(builder, x), plain_loss(builder, x)};
    ph_value inputs[] = {losses[0], 0, 0};
    for (size_t i = 0; i < 2 && ph_builder_status(builder) == PH_OK; i++)
        inputs[1 + i] = ph__builder_producer(builder, losses[i])->outputs[1];
    return ph__emit1(builder, &ph__op_share_of_batch, NULL, NULL, 0, 3, inputs);
}

static void a_share_of_a_batch_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_gradients(&(struct gradient_case){.op = "share_of_batch",
        .num_samples = 7,
        .num_dense = 3,
        .has_mask = true,
        .has_weights = true,
        .build = share_of_batch});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy_has_the_gradient_of_differences),
        cmocka_unit_test(masks_and_weights_scale_the_gradient_of_cross_entropy),
        cmocka_unit_test(softmax_cross_entropy_has_the_gradient_of_differences),
        cmocka_unit_test(squared_error_has_the_gradient_of_differences),
        cmocka_unit_test(a_weighted_sum_of_losses_has_the_gradient_of_differences),
        cmocka_unit_test(labels_that_depend_on_x_may_stop_the_gradient),
        cmocka_unit_test(a_share_of_a_batch_has_the_gradient_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
