/* Every model's gradients against central differences. Sigmoids in place of ReLU, so that no difference straddles a
 * kink; batch norm and dropout as in training. */
#include "gradient/gradient_check.h"

#include "phloem/model.h"

enum { NUM_DENSE = 4, NUM_SPARSE = 3, NUM_ROWS = 5 };

static const struct ph_table_slice sparse[NUM_SPARSE] = {{"a", NUM_ROWS}, {"b", NUM_ROWS}, {"c", NUM_ROWS}};
static const int64_t hidden_units[] = {5, 3};

/* What the case at hand builds; cases carry no context of their own. */
static struct ph_model_settings settings;
static struct ph_model_features features;

static ph_value build(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return ph_model_build(builder, &settings, &features);
}

static void check(const char *model, size_t num_dense, size_t num_tasks, enum ph_interaction interaction)
{
    settings = (struct ph_model_settings){
        .kind = ph_model_find(model),
        .embedding_dim = 4,
        .embedding_init_std = 0.1,
        .hidden_units = hidden_units,
        .num_hidden_units = 2,
        .bottom_units = hidden_units,
        .num_bottom_units = 1,
        .batch_norm = true,
        .dropout = 0.25,
        .activation = PH_SIGMOID,
        .interaction = (int)interaction,
    };
    features = (struct ph_model_features){
        .num_dense = num_dense, .num_sparse = NUM_SPARSE, .num_tasks = num_tasks, .sparse = sparse};
    check_gradients(&(struct gradient_case){
        .op = "embedding_bag",
        .num_samples = 6,
        .num_dense = num_dense,
        .num_tasks = num_tasks,
        .num_sparse = NUM_SPARSE,
        .num_rows = NUM_ROWS,
        .max_ids = 2,
        .max_elements = 20,
        .parameter_scale =
            0.3, /* products of many vectors stay small, and so does what differences neglect */
        .build = build,
    });
}

static void every_model_has_the_gradients_of_differences(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ph_model_count(); kind++) {
        check(ph_model_name((int)kind), NUM_DENSE, 1, PH_INTERACTION_DOT);
        check(ph_model_name((int)kind), 0, 1, PH_INTERACTION_DOT);
        check(ph_model_name((int)kind), NUM_DENSE, 2, PH_INTERACTION_CAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_the_gradients_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
