#include "gradient/gradient_check.h"

static struct ph_aggregate_options given;
static bool has_edge_weights;

/* Two layers over one graph, so that they share its transposition. The weight of an edge is the last column
 * of its node. */
static ph_value two_layers(struct ph_builder *builder, ph_value x)
{
    enum { WIDTH = 3 };
    const struct ph_init normal = {PH_INIT_NORMAL, 1};
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    const ph_value column = ph_stop_gradient(builder, ph_slice(builder, x, 1, WIDTH, 1));
    const ph_value weights = has_edge_weights ? ph_repeat_rows(builder, column, bags) : 0;
    ph_value y = ph_slice(builder, x, 1, 0, WIDTH);
    for (size_t layer = 0; layer < 2; layer++) {
        ph_builder_push_scope(builder, layer == 0 ? "first" : "second");
        y = ph_aggregate(builder, y, bags, weights, &given);
        y = ph_linear(
            builder, y, ph_parameter(builder, "weight", 2, (size_t[]){WIDTH, WIDTH}, normal), 0, PH_SIGMOID);
        ph_builder_pop_scope(builder);
    }
    return y;
}

static void check_everywhere(struct ph_sampling sampling, enum ph_normalisation normalisation, unsigned bias)
{
    const size_t batches[] = {0, 1, 9};
    given = (struct ph_aggregate_options){
        .size = sizeof given, .sampling = sampling, .normalisation = normalisation, .bias = bias};
    for (size_t i = 0; i < 6; i++) {
        has_edge_weights = i >= 3;
        check_gradients(&(struct gradient_case){.op = "aggregate",
            .num_samples = batches[i % 3],
            .num_dense = 4,
            .num_frozen = 1,
            .num_sparse = 1,
            .num_rows = batches[i % 3] + (batches[i % 3] == 0),
            .max_ids = 7,
            .build = two_layers});
    }
}

static void aggregate_has_the_gradient_of_differences(void **state)
{
    (void)state;
    for (int strategy = PH_SAMPLING_BUCKET; strategy <= PH_SAMPLING_EVEN; strategy++) {
        struct ph_sampling sampling = {
            .width = 3, .strategy = (enum ph_sampling_strategy)strategy, .seed = 5};
        if (strategy == PH_SAMPLING_RATE)
            sampling = (struct ph_sampling){.rate = .4, .strategy = PH_SAMPLING_RATE};
        check_everywhere(sampling, PH_NORMALISE_SUM, 0);
        check_everywhere(sampling, PH_NORMALISE_MEAN, 1);
        check_everywhere(sampling, PH_NORMALISE_SYMMETRIC, 0);
    }
    check_everywhere((struct ph_sampling){0}, PH_NORMALISE_SUM, 0);
    check_everywhere((struct ph_sampling){0}, PH_NORMALISE_MEAN, 0);
    check_everywhere((struct ph_sampling){0}, PH_NORMALISE_SYMMETRIC, 0);
}

/* A product with fewer outputs than inputs, which is made before the aggregation. */
static ph_value narrow_layer(struct ph_builder *builder, ph_value x)
{
    const struct ph_init normal = {PH_INIT_NORMAL, 1};
    const struct ph_aggregate_options mean = {.size = sizeof mean, .normalisation = PH_NORMALISE_MEAN};
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    const ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){2, 4}, normal);
    const ph_value bias = ph_parameter(builder, "bias", 1, (size_t[]){2}, normal);
    return ph_linear(builder, ph_aggregate(builder, x, bags, 0, &mean), weight, bias, PH_SIGMOID);
}

static void a_product_before_its_aggregation_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_gradients(&(struct gradient_case){.op = "aggregate",
        .num_samples = 9,
        .num_dense = 4,
        .num_sparse = 1,
        .num_rows = 9,
        .max_ids = 7,
        .build = narrow_layer});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aggregate_has_the_gradient_of_differences),
        cmocka_unit_test(a_product_before_its_aggregation_has_the_gradient_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
