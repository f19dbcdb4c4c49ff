#include "gradient/gradient_check.h"

/* A parameter of the program, filled with random numbers by the check. */
static ph_value learnt(struct ph_builder *builder, const char *name, size_t rank, const size_t *dims)
{
    return ph_parameter(builder, name, rank, dims, (struct ph_init){PH_INIT_NORMAL, 1.0});
}

/* a (2,3) or (3,2) times b (3,4) or (4,3) */
static ph_value product(struct ph_builder *builder, ph_value x, bool is_a_transposed, bool is_b_transposed)
{
    const size_t a_dims[] = {is_a_transposed ? 3 : 2, is_a_transposed ? 2 : 3};
    const size_t b_dims[] = {is_b_transposed ? 4 : 3, is_b_transposed ? 3 : 4};
    return ph_batch_product(builder, take_columns(builder, x, 0, 2, a_dims),
        take_columns(builder, x, 6, 2, b_dims), is_a_transposed, is_b_transposed);
}

static ph_value product_as_they_stand(struct ph_builder *builder, ph_value x)
{
    return product(builder, x, false, false);
}

static ph_value product_of_transposed_a(struct ph_builder *builder, ph_value x)
{
    return product(builder, x, true, false);
}

static ph_value product_of_transposed_b(struct ph_builder *builder, ph_value x)
{
    return product(builder, x, false, true);
}

static ph_value product_of_both_transposed(struct ph_builder *builder, ph_value x)
{
    return product(builder, x, true, true);
}

static ph_value product_with_itself(struct ph_builder *builder, ph_value x)
{
    ph_value vectors = ph_reshape(builder, x, 2, (size_t[]){3, 6});
    return ph_batch_product(builder, vectors, vectors, false, true);
}

static ph_value mix_with_bias(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){4, 6});
    ph_value bias = learnt(builder, "bias", 1, (size_t[]){4});
    return ph_mix_fields(builder, ph_reshape(builder, x, 2, (size_t[]){6, 3}), weight, bias);
}

static ph_value mix_without_bias(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){5, 1});
    return ph_mix_fields(builder, take_columns(builder, x, 0, 2, (size_t[]){1, 16}), weight, 0);
}

/* x (B,2,3), first (B,4,3) */
static ph_value cin_with_bias(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){5, 8});
    ph_value bias = learnt(builder, "bias", 1, (size_t[]){5});
    return ph_cin(builder, take_columns(builder, x, 0, 2, (size_t[]){2, 3}),
        take_columns(builder, x, 6, 2, (size_t[]){4, 3}), weight, bias);
}

static ph_value cin_with_itself(struct ph_builder *builder, ph_value x)
{
    ph_value vectors = take_columns(builder, x, 0, 2, (size_t[]){3, 4});
    return ph_cin(builder, vectors, vectors, learnt(builder, "weight", 2, (size_t[]){2, 9}), 0);
}

/* Images (B,2,3,3), windows of 3 x 5: wider than the image. */
static ph_value convolution_with_bias(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 4, (size_t[]){3, 2, 3, 5});
    ph_value bias = learnt(builder, "bias", 1, (size_t[]){3});
    return ph_convolution(builder, ph_reshape(builder, x, 3, (size_t[]){2, 3, 3}), weight, bias);
}

static ph_value convolution_of_a_line(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 4, (size_t[]){2, 1, 3, 3});
    return ph_convolution(builder, ph_reshape(builder, x, 3, (size_t[]){1, 1, 18}), weight, 0);
}

static ph_value pairs_of_three_fields(struct ph_builder *builder, ph_value x)
{
    return ph_field_aware(builder, ph_reshape(builder, x, 2, (size_t[]){3, 6}));
}

/* Two heads of 3 and 5 numbers, for two tasks. */
static ph_value head_of_two_tasks(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 4, (size_t[]){2, 2, 3, 5});
    return ph_bilinear_head(builder, ph_slice(builder, x, 1, 0, 6), ph_slice(builder, x, 1, 6, 10), weight);
}

static ph_value head_with_itself(struct ph_builder *builder, ph_value x)
{
    return ph_bilinear_head(builder, x, x, learnt(builder, "weight", 4, (size_t[]){1, 3, 6, 6}));
}

static void check_cases(size_t num_cases, const struct gradient_case *cases)
{
    const size_t batches[] = {0, 1, 5};
    for (size_t i = 0; i < num_cases; i++) {
        for (size_t j = 0; j < sizeof batches / sizeof batches[0]; j++) {
            struct gradient_case gradient_case = cases[i];
            gradient_case.num_dense = 18;
            gradient_case.num_samples = batches[j];
            check_gradients(&gradient_case);
        }
    }
}

static void products_of_vectors_have_the_gradients_of_differences(void **state)
{
    (void)state;
    const struct gradient_case cases[] = {
        {.op = "batch_product", .build = product_as_they_stand},
        {.op = "batch_product", .build = product_of_transposed_a},
        {.op = "batch_product", .build = product_of_transposed_b},
        {.op = "batch_product", .build = product_of_both_transposed},
        {.op = "batch_product", .build = product_with_itself},
        {.op = "mix_fields", .build = mix_with_bias},
        {.op = "mix_fields", .build = mix_without_bias},
        {.op = "cin", .build = cin_with_bias},
        {.op = "cin", .build = cin_with_itself},
        {.op = "convolution", .build = convolution_with_bias},
        {.op = "convolution", .build = convolution_of_a_line},
        {.op = "field_aware", .build = pairs_of_three_fields},
        {.op = "bilinear_head", .build = head_of_two_tasks},
        {.op = "bilinear_head", .build = head_with_itself},
    };
    check_cases(sizeof cases / sizeof cases[0], cases);
}

/* Enough samples for several parts of the weight's gradient, and a rest. */
static void a_weight_gradient_of_many_samples_is_that_of_differences(void **state)
{
    (void)state;
    check_gradients(&(struct gradient_case){
        .op = "mix_fields", .num_dense = 18, .num_samples = 150, .build = mix_with_bias});
    check_gradients(
        &(struct gradient_case){.op = "cin", .num_dense = 18, .num_samples = 70, .build = cin_with_bias});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_vectors_have_the_gradients_of_differences),
        cmocka_unit_test(a_weight_gradient_of_many_samples_is_that_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
