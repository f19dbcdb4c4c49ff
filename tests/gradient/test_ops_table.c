#include "gradient/gradient_check.h"

#include <stdio.h>

enum { FEATURES = 3, ROWS = 6, DIM = 4 };

static ph_value table_of(struct ph_builder *builder, const char *name)
{
    struct ph_table_slice slices[FEATURES];
    char names[FEATURES][32];
    for (size_t f = 0; f < FEATURES; f++) {
        snprintf(names[f], sizeof names[f], "%s.f%zu", name, f);
        slices[f] = (struct ph_table_slice){names[f], ROWS};
    }
    return ph_table(builder, name, FEATURES, slices, DIM, (struct ph_init){PH_INIT_NORMAL, 1});
}

static ph_value lookup(struct ph_builder *builder, enum ph_pooling pooling, ph_value id_weights)
{
    return ph_embedding_bag(
        builder, ph_input_ids(builder, FEATURES), table_of(builder, "table"), pooling, id_weights);
}

static ph_value sum_pooling(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return lookup(builder, PH_POOL_SUM, 0);
}

static ph_value mean_pooling(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return lookup(builder, PH_POOL_MEAN, 0);
}

static ph_value weighted_pooling(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return lookup(builder, PH_POOL_SUM, ph_input_id_weights(builder));
}

static ph_value weighted_mean_pooling(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return lookup(builder, PH_POOL_MEAN, ph_input_id_weights(builder));
}

/* The table's two gradients are accumulated as sparse rows. */
static ph_value two_lookups_of_one_table(struct ph_builder *builder, ph_value x)
{
    (void)x;
    ph_value table = table_of(builder, "table"), ids = ph_input_ids(builder, FEATURES);
    ph_value sum = ph_embedding_bag(builder, ids, table, PH_POOL_SUM, 0);
    return ph_multiply(builder, sum, ph_embedding_bag(builder, ids, table, PH_POOL_MEAN, 0));
}

static ph_value two_tables(struct ph_builder *builder, ph_value x)
{
    (void)x;
    ph_value ids = ph_input_ids(builder, FEATURES);
    ph_value a = ph_embedding_bag(builder, ids, table_of(builder, "a"), PH_POOL_SUM, 0);
    ph_value b = ph_embedding_bag(builder, ids, table_of(builder, "b"), PH_POOL_MEAN, 0);
    return ph_multiply(builder, a, b);
}

/* Small tables and long bags: empty bags, duplicates in one bag and across bags. */
static void embedding_bag_has_the_gradient_of_differences(void **state)
{
    (void)state;
    ph_value (*const builds[])(struct ph_builder *, ph_value) = {sum_pooling, mean_pooling, weighted_pooling,
        weighted_mean_pooling, two_lookups_of_one_table, two_tables};
    const size_t batches[] = {0, 1, 7}, most_ids[] = {0, 1, 5};
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
        for (size_t j = 0; j < 9; j++)
            for (int has_weights = 0; has_weights < 2; has_weights++)
                check_gradients(&(struct gradient_case){.op = "embedding_bag",
                    .num_samples = batches[j % 3],
                    .num_sparse = FEATURES,
                    .num_rows = ROWS,
                    .max_ids = most_ids[j / 3],
                    .has_id_weights = has_weights,
                    .build = builds[i]});
}

static ph_value dense_embedding(struct ph_builder *builder, ph_value x)
{
    return ph_dense_embedding(builder, x,
        ph_parameter(builder, "vectors", 2, (size_t[]){FEATURES, DIM}, (struct ph_init){PH_INIT_NORMAL, 1}));
}

/* Batches over one block, so that partial sums meet. */
static void dense_embedding_has_the_gradient_of_differences(void **state)
{
    (void)state;
    const size_t batches[] = {0, 1, 5, 257, 600};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        check_gradients(&(struct gradient_case){.op = "dense_embedding",
            .num_samples = batches[i],
            .num_dense = FEATURES,
            .build = dense_embedding});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedding_bag_has_the_gradient_of_differences),
        cmocka_unit_test(dense_embedding_has_the_gradient_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
