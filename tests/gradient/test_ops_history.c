#include "gradient/gradient_check.h"

#include <stdio.h>

enum { FEATURES = 3, HISTORY = 1, ROWS = 6, DIM = 4 };

static const struct ph_init normal = {PH_INIT_NORMAL, 1};

static ph_value table_of(struct ph_builder *builder, const char *name, size_t dim)
{
    struct ph_table_slice slices[FEATURES];
    char names[FEATURES][32];
    for (size_t f = 0; f < FEATURES; f++) {
        snprintf(names[f], sizeof names[f], "%s.f%zu", name, f);
        slices[f] = (struct ph_table_slice){names[f], ROWS};
    }
    return ph_table(builder, name, FEATURES, slices, dim, normal);
}

static ph_value bags_of(struct ph_builder *builder)
{
    return ph_feature_bags(builder, ph_input_ids(builder, FEATURES), HISTORY);
}

static ph_value linear(struct ph_builder *builder, ph_value x, size_t in, size_t out, const char *name,
    enum ph_activation activation)
{
    ph_builder_push_scope(builder, name);
    ph_value y = ph_linear(builder, x, ph_parameter(builder, "weight", 2, (size_t[]){out, in}, normal),
        ph_parameter(builder, "bias", 1, &out, normal), activation);
    ph_builder_pop_scope(builder);
    return y;
}

static ph_value pooled_by_hand(struct ph_builder *builder, ph_value table, ph_value weights)
{
    const ph_value bags = bags_of(builder);
    return ph_pool_rows(builder, ph_embedding_rows(builder, bags, table, HISTORY, weights), bags, 0);
}

static ph_value rows_alone(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return pooled_by_hand(builder, table_of(builder, "table", DIM), 0);
}

static ph_value weighted_rows(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return pooled_by_hand(builder, table_of(builder, "table", DIM), ph_input_id_weights(builder));
}

/* The table's gradients meet: of the history by itself, of all features pooled, and of another feature's
 * rows. */
static ph_value rows_beside_bags(struct ph_builder *builder, ph_value x)
{
    (void)x;
    const ph_value table = table_of(builder, "table", DIM), ids = ph_input_ids(builder, FEATURES);
    const ph_value pooled = ph_embedding_bag(builder, ids, table, PH_POOL_MEAN, 0);
    const ph_value other = ph_feature_bags(builder, ids, 2);
    const ph_value parts[] = {ph_reshape(builder, pooled, 1, (size_t[]){FEATURES * DIM}),
        pooled_by_hand(builder, table, 0),
        ph_pool_rows(builder, ph_embedding_rows(builder, other, table, 2, 0), other, 0)};
    return ph_concat(builder, 3, parts, 1);
}

/* As a model would: what is looked up item by item is not pooled beside it. */
static ph_value rows_beside_other_bags(struct ph_builder *builder, ph_value x)
{
    (void)x;
    const ph_value table = table_of(builder, "table", DIM), weights = ph_input_id_weights(builder);
    const ph_value others = ph_select_features(builder, ph_input_ids(builder, FEATURES), 2, (size_t[]){0, 2});
    const ph_value pooled = ph_embedding_bag(builder, others, table, PH_POOL_SUM, weights);
    const ph_value parts[] = {
        ph_reshape(builder, pooled, 1, (size_t[]){2 * DIM}), pooled_by_hand(builder, table, weights)};
    return ph_concat(builder, 2, parts, 1);
}

/* Rows of another feature's slice: ids of the history name rows of feature 0, which is pooled, too. */
static ph_value rows_of_another_slice(struct ph_builder *builder, ph_value x)
{
    (void)x;
    const ph_value table = table_of(builder, "table", DIM), bags = bags_of(builder);
    const ph_value pooled = ph_embedding_bag(builder, ph_input_ids(builder, FEATURES), table, PH_POOL_SUM, 0);
    const ph_value parts[] = {ph_reshape(builder, pooled, 1, (size_t[]){FEATURES * DIM}),
        ph_pool_rows(builder, ph_embedding_rows(builder, bags, table, 0, 0), bags, 0)};
    return ph_concat(builder, 2, parts, 1);
}

/* The history and feature 2 have one slice: the table has two. */
static ph_value shared_table(struct ph_builder *builder)
{
    const struct ph_table_slice slices[FEATURES] = {{"t.user", ROWS}, {"t.item", ROWS}, {"t.item", ROWS}};
    return ph_table(builder, "t", FEATURES, slices, DIM, normal);
}

/* Weights and means, so that an entry of the wrong feature has another coefficient. */
static ph_value shared_bags(struct ph_builder *builder, ph_value x)
{
    (void)x;
    const ph_value ids = ph_input_ids(builder, FEATURES), table = shared_table(builder);
    const ph_value rows = ph_embedding_rows(builder, bags_of(builder), table, HISTORY, 0);
    const ph_value parts[] = {
        ph_embedding_bag(builder, ids, table, PH_POOL_MEAN, ph_input_id_weights(builder)),
        ph_embedding_bag(builder, ids, table, PH_POOL_SUM, 0),
        ph_reshape(builder, ph_pool_rows(builder, rows, bags_of(builder), 0), 2, (size_t[]){1, DIM})};
    return ph_concat(builder, 3, parts, 1);
}

/* As DIN looks up: the items of the history, and the target out of the same rows. */
static ph_value shared_rows(struct ph_builder *builder, ph_value x)
{
    (void)x;
    const ph_value table = shared_table(builder), bags = bags_of(builder);
    const ph_value others = ph_embedding_bag(builder,
        ph_select_features(builder, ph_input_ids(builder, FEATURES), 2, (size_t[]){0, 2}), table, PH_POOL_SUM,
        0);
    const ph_value target = ph_reshape(builder, ph_slice(builder, others, 1, 1, 1), 1, (size_t[]){DIM});
    const ph_value rows = ph_embedding_rows(builder, bags, table, HISTORY, 0);
    const ph_value product = ph_multiply(builder, rows, ph_repeat_rows(builder, target, bags));
    const ph_value user = ph_reshape(builder, ph_slice(builder, others, 1, 0, 1), 1, (size_t[]){DIM});
    return ph_add(builder, ph_pool_rows(builder, product, bags, 0), user);
}

/* Empty bags, duplicates in one bag and across bags; with and without weights of ids. */
static void check_everywhere(struct gradient_case given)
{
    const size_t batches[] = {0, 1, 7}, most_ids[] = {0, 1, 5};
    given.num_sparse = FEATURES;
    given.num_rows = ROWS;
    for (size_t i = 0; i < 18; i++) {
        given.num_samples = batches[i % 3];
        given.max_ids = most_ids[i / 3 % 3];
        given.has_id_weights = i >= 9;
        check_gradients(&given);
    }
}

static void embedding_rows_has_the_gradient_of_differences(void **state)
{
    (void)state;
    ph_value (*const builds[])(struct ph_builder *, ph_value) = {rows_alone, weighted_rows, rows_beside_bags,
        rows_beside_other_bags, rows_of_another_slice, shared_bags, shared_rows};
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
        check_everywhere((struct gradient_case){.op = "embedding_rows", .build = builds[i]});
}

/* Squares, so that each item's row counts by itself. */
static ph_value repeated(struct ph_builder *builder, ph_value x)
{
    const ph_value bags = bags_of(builder);
    const ph_value rows = ph_embedding_rows(builder, bags, table_of(builder, "table", DIM), HISTORY, 0);
    const ph_value product = ph_multiply(builder, ph_repeat_rows(builder, x, bags), rows);
    return ph_pool_rows(builder, ph_multiply(builder, product, product), bags, 0);
}

static void repeat_rows_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_everywhere((struct gradient_case){.op = "repeat_rows", .num_dense = DIM, .build = repeated});
}

/* Weights of the items' own, as attention has them. */
static ph_value pooled_by_weight(struct ph_builder *builder, ph_value x)
{
    const ph_value bags = bags_of(builder);
    const ph_value rows = ph_embedding_rows(builder, bags, table_of(builder, "table", DIM), HISTORY, 0);
    const ph_value pair = ph_concat(builder, 2, (ph_value[]){rows, ph_repeat_rows(builder, x, bags)}, 1);
    const ph_value weights = linear(builder, pair, DIM + 3, 1, "weights", PH_SIGMOID);
    return ph_pool_rows(builder, rows, bags, weights);
}

static ph_value pooled_by_looked_up_weights(struct ph_builder *builder, ph_value x)
{
    (void)x;
    const ph_value bags = bags_of(builder);
    const ph_value rows = ph_embedding_rows(builder, bags, table_of(builder, "table", DIM), HISTORY, 0);
    const ph_value weights = ph_embedding_rows(builder, bags, table_of(builder, "weight", 1), HISTORY, 0);
    return ph_pool_rows(builder, rows, bags, weights);
}

/* The gradient of a repetition with factors is again pooled with weights. */
static void pool_rows_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_everywhere((struct gradient_case){.op = "pool_rows", .num_dense = 3, .build = pooled_by_weight});
    check_everywhere((struct gradient_case){.op = "pool_rows", .build = pooled_by_looked_up_weights});
}

/* Every operator that models use over items, in a row. */
static ph_value perceptron_over_items(struct ph_builder *builder, ph_value x)
{
    const ph_value bags = bags_of(builder);
    const ph_value rows = ph_embedding_rows(builder, bags, table_of(builder, "table", DIM), HISTORY, 0);
    const ph_value repeats = ph_repeat_rows(builder, x, bags);
    const ph_value parts[] = {
        rows, repeats, ph_multiply(builder, rows, repeats), ph_add(builder, rows, repeats)};
    ph_value y = linear(builder, ph_concat(builder, 4, parts, 1), 4 * DIM, 5, "a", PH_IDENTITY);
    const size_t width = 5;
    y = ph_batch_norm(builder, y, ph_parameter(builder, "gamma", 1, &width, normal),
        ph_parameter(builder, "beta", 1, &width, normal), "norm",
        &(struct ph_batch_norm_options){
            .size = sizeof(struct ph_batch_norm_options), .epsilon = 1e-2, .momentum = 0.1});
    y = ph_dropout(builder, ph_sigmoid(builder, y), 0.3);
    const ph_value half = ph_slice(builder, y, 1, 1, 3);
    y = linear(builder, ph_add(builder, half, ph_parameter(builder, "row", 1, (size_t[]){3}, normal)), 3, 3,
        "b", PH_SIGMOID);
    return ph_pool_rows(builder, ph_relu(builder, y), bags, ph_slice(builder, half, 1, 0, 1));
}

static void a_perceptron_over_items_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_everywhere(
        (struct gradient_case){.op = "pool_rows", .num_dense = DIM, .build = perceptron_over_items});
}

/* Items look at each other, then a sample's query at them. */
static ph_value attention_over_items(struct ph_builder *builder, ph_value x)
{
    const struct ph_attention_options options = {.size = sizeof options, .num_heads = 2};
    const ph_value bags = bags_of(builder);
    ph_value rows = ph_embedding_rows(builder, bags, table_of(builder, "table", DIM), HISTORY, 0);
    rows = ph_add(builder, rows, ph_attention(builder, rows, rows, rows, bags, &options));
    rows = ph_layer_norm(builder, rows, ph_parameter(builder, "gamma", 1, (size_t[]){DIM}, normal),
        ph_parameter(builder, "beta", 1, (size_t[]){DIM}, normal), 1e-2);
    const ph_value query = ph_reshape(builder, x, 2, (size_t[]){1, DIM});
    return ph_attention(builder, query, rows, rows, bags, &options);
}

static void attention_over_items_has_the_gradient_of_differences(void **state)
{
    (void)state;
    check_everywhere(
        (struct gradient_case){.op = "embedding_rows", .num_dense = DIM, .build = attention_over_items});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedding_rows_has_the_gradient_of_differences),
        cmocka_unit_test(repeat_rows_has_the_gradient_of_differences),
        cmocka_unit_test(pool_rows_has_the_gradient_of_differences),
        cmocka_unit_test(a_perceptron_over_items_has_the_gradient_of_differences),
        cmocka_unit_test(attention_over_items_has_the_gradient_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
