#include "gradient/gradient_check.h"

static ph_value parameter(struct ph_builder *builder, const char *name, size_t rank, const size_t *dims)
{
    return ph_parameter(builder, name, rank, dims, (struct ph_init){PH_INIT_NORMAL, 1});
}

/* ---- layer norm ---- */

static ph_value norm_of_rows(struct ph_builder *builder, ph_value x)
{
    const size_t columns = ph_value_type(builder, x).dims[1].extent;
    return ph_layer_norm(
        builder, x, parameter(builder, "gamma", 1, &columns), parameter(builder, "beta", 1, &columns), 1e-3);
}

static ph_value norm_of_vectors(struct ph_builder *builder, ph_value x)
{
    const size_t columns = 4;
    return ph_layer_norm(builder, ph_reshape(builder, x, 2, (size_t[]){3, 4}),
        parameter(builder, "gamma", 1, &columns), parameter(builder, "beta", 1, &columns), 1e-3);
}

/* Up to one row more than a block has, so that partial sums meet. */
static void layer_norm_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 5, 129};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        check_gradients(&(struct gradient_case){
            .op = "layer_norm", .num_samples = batches[i], .num_dense = 3, .build = norm_of_rows});
    check_gradients(&(struct gradient_case){
        .op = "layer_norm", .num_samples = 44, .num_dense = 12, .build = norm_of_vectors});
}

/* ---- attention over fixed numbers of keys ---- */

/* q (B,2,4), k (B,3,4), v (B,3,2) of two heads */
static ph_value over_keys(struct ph_builder *builder, ph_value x)
{
    ph_value q = take_columns(builder, x, 0, 2, (size_t[]){2, 4});
    ph_value k = take_columns(builder, x, 8, 2, (size_t[]){3, 4});
    ph_value v = take_columns(builder, x, 20, 2, (size_t[]){3, 2});
    return ph_attention(builder, q, k, v, 0,
        &(struct ph_attention_options){.size = sizeof(struct ph_attention_options), .num_heads = 2});
}

static ph_value over_itself(struct ph_builder *builder, ph_value x)
{
    ph_value rows = ph_reshape(builder, x, 2, (size_t[]){5, 6});
    return ph_attention(builder, rows, rows, rows, 0,
        &(struct ph_attention_options){
            .size = sizeof(struct ph_attention_options), .num_heads = 3, .scale = 0.4});
}

static void attention_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 9};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        check_gradients(&(struct gradient_case){
            .op = "attention", .num_samples = batches[i], .num_dense = 26, .build = over_keys});
        check_gradients(&(struct gradient_case){
            .op = "attention", .num_samples = batches[i], .num_dense = 30, .build = over_itself});
    }
}

/* ---- attention over histories ---- */

/* (N,columns): for each id, a layer of its weight. */
static ph_value rows_of_ids(struct ph_builder *builder, const char *name, size_t columns)
{
    ph_value weights = ph_reshape(builder, ph_input_id_weights(builder), 1, (size_t[]){1});
    ph_builder_push_scope(builder, name);
    ph_value weight = parameter(builder, "weight", 2, (size_t[]){columns, 1});
    ph_value bias = parameter(builder, "bias", 1, &columns);
    ph_builder_pop_scope(builder);
    return ph_linear(builder, weights, weight, bias, PH_SIGMOID);
}

static ph_value over_histories(struct ph_builder *builder, ph_value x)
{
    ph_value q = take_columns(builder, x, 0, 2, (size_t[]){2, 4});
    return ph_attention(builder, q, rows_of_ids(builder, "k", 4), rows_of_ids(builder, "v", 6),
        ph_input_ids(builder, 1),
        &(struct ph_attention_options){.size = sizeof(struct ph_attention_options), .num_heads = 2});
}

/* Each history attends to itself; what comes out is read by one query a sample. */
static ph_value within_histories(struct ph_builder *builder, ph_value x)
{
    const struct ph_attention_options options = {.size = sizeof options, .num_heads = 2};
    ph_value ids = ph_input_ids(builder, 1);
    ph_value rows = ph_attention(builder, rows_of_ids(builder, "q", 6), rows_of_ids(builder, "k", 6),
        rows_of_ids(builder, "v", 4), ids, &options);
    ph_value q = take_columns(builder, x, 0, 2, (size_t[]){1, 4});
    return ph_attention(builder, q, rows, rows, ids, &options);
}

static void attention_over_histories_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 9};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        for (size_t is_self = 0; is_self < 2; is_self++)
            check_gradients(&(struct gradient_case){.op = "attention",
                .num_samples = batches[i],
                .num_dense = is_self ? 4 : 8,
                .num_sparse = 1,
                .num_rows = 10,
                .max_ids = 5,
                .has_id_weights = true,
                .build = is_self ? within_histories : over_histories});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_has_the_gradient_of_differences),
        cmocka_unit_test(attention_has_the_gradient_of_differences),
        cmocka_unit_test(attention_over_histories_has_the_gradient_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
