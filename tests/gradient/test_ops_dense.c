#include "gradient/gradient_check.h"

static ph_value linear(struct ph_builder *builder, ph_value x, size_t in, size_t out, const char *name,
    enum ph_activation activation, bool has_bias)
{
    const struct ph_init init = {PH_INIT_NORMAL, 1};
    ph_builder_push_scope(builder, name);
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){out, in}, init);
    ph_value bias = has_bias ? ph_parameter(builder, "bias", 1, &out, init) : 0;
    ph_value y = ph_linear(builder, x, weight, bias, activation);
    ph_builder_pop_scope(builder);
    return y;
}

static ph_value identity_layer(struct ph_builder *builder, ph_value x)
{
    return linear(builder, x, 5, 3, "a", PH_IDENTITY, true);
}

static ph_value layer_without_bias(struct ph_builder *builder, ph_value x)
{
    return linear(builder, x, 5, 3, "a", PH_IDENTITY, false);
}

static ph_value three_layers(struct ph_builder *builder, ph_value x)
{
    x = linear(builder, x, 5, 7, "a", PH_RELU, true);
    x = linear(builder, x, 7, 4, "b", PH_SIGMOID, true);
    return linear(builder, x, 4, 1, "c", PH_IDENTITY, true);
}

static ph_value one_weight_twice(struct ph_builder *builder, ph_value x)
{
    ph_value weight =
        ph_parameter(builder, "weight", 2, (size_t[]){5, 5}, (struct ph_init){PH_INIT_NORMAL, 1});
    x = ph_linear(builder, x, weight, 0, PH_SIGMOID);
    return ph_linear(builder, x, weight, 0, PH_IDENTITY);
}

static ph_value deep_layers(struct ph_builder *builder, ph_value x)
{
    x = linear(builder, ph_reshape(builder, x, 2, (size_t[]){3, 5}), 5, 7, "a", PH_RELU, true);
    x = linear(builder, ph_reshape(builder, x, 3, (size_t[]){1, 3, 7}), 7, 4, "b", PH_SIGMOID, true);
    return linear(builder, x, 4, 2, "c", PH_IDENTITY, false);
}

/* A sum of three numbers is seldom on a kink of hard swish. */
static ph_value swished_layers(struct ph_builder *builder, ph_value x)
{
    x = linear(builder, x, 5, 7, "a", PH_HARD_SWISH, true);
    x = linear(builder, x, 7, 4, "b", PH_HARD_SWISH, false);
    return linear(builder, x, 4, 1, "c", PH_IDENTITY, true);
}

static ph_value normed_layers(struct ph_builder *builder, ph_value x)
{
    const struct ph_init init = {PH_INIT_NORMAL, 1};
    ph_value a = ph_parameter(builder, "a", 2, (size_t[]){7, 5}, init),
             b = ph_parameter(builder, "b", 2, (size_t[]){4, 7}, init),
             c = ph_parameter(builder, "c", 2, (size_t[]){6, 4}, init);
    x = ph_linear_block_norm(builder, x, a, 0, PH_HARD_SWISH);
    x = ph_linear_block_norm(builder, x, b, 0, PH_SIGMOID);
    return ph_linear_block_norm(builder, x, c, 0, PH_IDENTITY);
}

static void linear_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 2, 17, 33};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct gradient_case base = {.op = "linear", .num_samples = batches[i], .num_dense = 5};
        base.build = identity_layer;
        check_gradients(&base);
        base.build = layer_without_bias;
        check_gradients(&base);
        base.build = three_layers;
        check_gradients(&base);
        base.build = swished_layers;
        check_gradients(&base);
        base.build = normed_layers;
        check_gradients(&base);
        base.num_dense = 15;
        base.build = deep_layers;
        check_gradients(&base);
    }
}

static void a_packed_weight_that_two_layers_share_has_the_sum_of_their_gradients(void **state)
{
    (void)state;
    check_gradients(
        &(struct gradient_case){.op = "pack", .num_samples = 9, .num_dense = 5, .build = one_weight_twice});
}

static ph_value relu(struct ph_builder *builder, ph_value x)
{
    return ph_relu(builder, x);
}

static ph_value sigmoid(struct ph_builder *builder, ph_value x)
{
    return ph_sigmoid(builder, x);
}

static void activations_have_the_gradients_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 13};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        check_gradients(
            &(struct gradient_case){.op = "relu", .num_samples = batches[i], .num_dense = 7, .build = relu});
        check_gradients(&(struct gradient_case){
            .op = "sigmoid", .num_samples = batches[i], .num_dense = 7, .build = sigmoid});
    }
}

static ph_value add_to_itself(struct ph_builder *builder, ph_value x)
{
    return ph_add(builder, x, ph_sigmoid(builder, ph_add(builder, x, x)));
}

static ph_value add_a_row(struct ph_builder *builder, ph_value x)
{
    const size_t dims[] = {2, 3};
    ph_value row = ph_parameter(builder, "row", 1, &dims[1], (struct ph_init){PH_INIT_NORMAL, 1});
    return ph_add(builder, ph_reshape(builder, x, 2, dims), row);
}

static void add_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 300};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        check_gradients(&(struct gradient_case){
            .op = "add", .num_samples = batches[i], .num_dense = 6, .build = add_to_itself});
        check_gradients(&(struct gradient_case){
            .op = "add", .num_samples = batches[i], .num_dense = 6, .build = add_a_row});
    }
}

static ph_value multiply_halves(struct ph_builder *builder, ph_value x)
{
    return ph_multiply(builder, ph_slice(builder, x, 1, 0, 3), ph_slice(builder, x, 1, 3, 3));
}

static ph_value square(struct ph_builder *builder, ph_value x)
{
    return ph_multiply(builder, x, x);
}

static void multiply_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_gradients(&(struct gradient_case){
        .op = "multiply", .num_samples = 5, .num_dense = 6, .build = multiply_halves});
    check_gradients(
        &(struct gradient_case){.op = "multiply", .num_samples = 5, .num_dense = 6, .build = square});
    check_gradients(
        &(struct gradient_case){.op = "multiply", .num_samples = 0, .num_dense = 6, .build = square});
}

static ph_value stop_second_half(struct ph_builder *builder, ph_value x)
{
    ph_value second = ph_sigmoid(builder, ph_slice(builder, x, 1, 3, 3));
    return ph_multiply(builder, ph_slice(builder, x, 1, 0, 3), ph_stop_gradient(builder, second));
}

static void nothing_flows_through_stop_gradient(void **state)
{
    (void)state;
    check_gradients(&(struct gradient_case){
        .op = "stop_gradient", .num_samples = 5, .num_dense = 6, .num_frozen = 3, .build = stop_second_half});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_has_the_gradient_of_differences),
        cmocka_unit_test(a_packed_weight_that_two_layers_share_has_the_sum_of_their_gradients),
        cmocka_unit_test(activations_have_the_gradients_of_differences),
        cmocka_unit_test(add_has_the_gradient_of_differences),
        cmocka_unit_test(multiply_has_the_gradient_of_differences),
        cmocka_unit_test(nothing_flows_through_stop_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
