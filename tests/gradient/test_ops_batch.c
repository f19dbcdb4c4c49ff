#include "gradient/gradient_check.h"

static ph_value batch_norm(struct ph_builder *builder, ph_value x)
{
    const size_t columns = 3;
    const struct ph_init init = {PH_INIT_NORMAL, 1};
    ph_value gamma = ph_parameter(builder, "gamma", 1, &columns, init);
    ph_value beta = ph_parameter(builder, "beta", 1, &columns, init);
    return ph_batch_norm(builder, x, gamma, beta, "norm",
        &(struct ph_batch_norm_options){
            .size = sizeof(struct ph_batch_norm_options), .epsilon = 1e-3, .momentum = 0.1});
}

/* One row more than a block has, so that partial sums meet. */
static void batch_norm_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 2, 5, 129};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        check_gradients(&(struct gradient_case){
            .op = "batch_norm", .num_samples = batches[i], .num_dense = 3, .build = batch_norm});
}

static ph_value hard_swish(struct ph_builder *builder, ph_value x)
{
    return ph_hard_swish(builder, ph_scale(builder, x, 4));
}

static void hard_swish_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 11};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        check_gradients(&(struct gradient_case){
            .op = "hard_swish", .num_samples = batches[i], .num_dense = 9, .build = hard_swish});
}

static ph_value block_norm(struct ph_builder *builder, ph_value x)
{
    return ph_block_norm(builder, x, PH_IDENTITY);
}

static ph_value swished_norm(struct ph_builder *builder, ph_value x)
{
    return ph_block_norm(builder, x, PH_HARD_SWISH);
}

static ph_value activated_norms(struct ph_builder *builder, ph_value x)
{
    return ph_add(builder, ph_block_norm(builder, x, PH_SIGMOID), ph_block_norm(builder, x, PH_RELU));
}

static void block_norm_has_the_gradient_of_differences(void **state)
{
    (void)state;
    static const struct {
        size_t num_samples, num_dense;
    } sizes[] = {{0, 5}, {1, 1}, {3, 9}, {2, 300}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct gradient_case base = {
            .op = "block_norm", .num_samples = sizes[i].num_samples, .num_dense = sizes[i].num_dense};
        base.build = block_norm;
        check_gradients(&base);
        base.build = swished_norm;
        check_gradients(&base);
        base.build = activated_norms;
        check_gradients(&base);
    }
}

static ph_value dropout(struct ph_builder *builder, ph_value x)
{
    return ph_multiply(builder, ph_dropout(builder, ph_sigmoid(builder, x), 0.4), x);
}

static void dropout_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 11};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        check_gradients(&(struct gradient_case){
            .op = "dropout", .num_samples = batches[i], .num_dense = 9, .build = dropout});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_norm_has_the_gradient_of_differences),
        cmocka_unit_test(hard_swish_has_the_gradient_of_differences),
        cmocka_unit_test(block_norm_has_the_gradient_of_differences),
        cmocka_unit_test(dropout_has_the_gradient_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
