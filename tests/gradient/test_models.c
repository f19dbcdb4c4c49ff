/* Every model's gradients, and its variants', against central differences. Sigmoids in place of ReLU, so that
 * no difference straddles a kink; batch norm and dropout as in training. Then block norm and hard swish,
 * whose slope alone has kinks, without biases. */
#include "gradient/gradient_check.h"

#include <stdio.h>
#include <string.h>

#include "model/model_options.h"
#include "support/is_sanitized.h"

/* Elements that are moved of a large variable: sanitizers see all there is to see after a few. */
enum { NUM_DENSE = 4, NUM_SPARSE = 3, NUM_ROWS = 5, MAX_SETS = 8, MOVED = PH_IS_SANITIZED ? 3 : 20 };

static const struct ph_table_slice sparse[NUM_SPARSE] = {
    {"C1", NUM_ROWS}, {"C2", NUM_ROWS}, {"C3", NUM_ROWS}};
static const int64_t hidden_units[] = {5, 3};

/* What the case at hand builds; cases carry no context of their own. */
static struct ph_model_settings settings;
static struct ph_model_features features;

static ph_value build(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return ph_model_build(builder, &settings, &features);
}

/* of: the kind, its towers, and the keys of its own; NULL: their defaults. */
static void check(
    const struct ph_model_settings *of, size_t num_dense, size_t num_tasks, enum ph_interaction interaction)
{
    settings = (struct ph_model_settings){
        .kind = of->kind,
        .own = of->own,
        .towers = of->towers,
        .tower_module = of->tower_module,
        .tower_dim = of->tower_dim,
        .tower_outputs = of->tower_outputs,
        .tower_feature_outputs = of->tower_feature_outputs,
        .embedding_dim = 4,
        .embedding_init_std = 0.1,
        .hidden_units = hidden_units,
        .num_hidden_units = 2,
        .bottom_units = hidden_units,
        .num_bottom_units = 1,
        .batch_norm = !of->block_norm,
        .block_norm = of->block_norm,
        .bias = of->bias,
        .dropout = 0.25,
        .activation = of->block_norm ? PH_HARD_SWISH : PH_SIGMOID,
        .interaction = interaction,
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
        .max_elements = MOVED,
        .parameter_scale =
            0.3, /* products of many vectors stay small, and so does what differences neglect */
        .build = build,
    });
}

static void every_model_has_the_gradients_of_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < (int)ph_model_count(); kind++) {
        const struct ph_model_settings of = {.kind = kind};
        check(&of, NUM_DENSE, 1, PH_INTERACTION_DOT);
        check(&of, 0, 1, PH_INTERACTION_DOT);
        check(&of, NUM_DENSE, 2, PH_INTERACTION_CAT);
        const struct ph_model_settings lean = {.kind = kind, .block_norm = true, .bias = PH_BIAS_LAST};
        check(&lean, NUM_DENSE, 1, PH_INTERACTION_DOT);
    }
}

/* line: of model_variants.txt; is overwritten */
static void check_variant(char *line)
{
    static struct ph__model_section section;
    struct ph__section sections[PH_NUM_MODEL_SECTIONS];
    struct ph__arena arena = {0};
    const char *sets[MAX_SETS];
    size_t num_sets = 0;
    for (char *set = strtok(line, " \n"); set != NULL; set = strtok(NULL, " \n")) {
        assert_true(num_sets < MAX_SETS);
        sets[num_sets++] = set;
    }
    const size_t num_sections = ph__model_sections(&section, sections);
    assert_ok(ph__config_read(NULL, sets, num_sets, sections, num_sections, &arena));
    assert_ok(ph__model_section_finish(&section, NULL, &arena));
    check(&section.settings, NUM_DENSE, 1, PH_INTERACTION_DOT);
    check(&section.settings, 0, 2, PH_INTERACTION_DOT);
    ph__arena_fini(&arena);
}

static void every_variant_has_the_gradients_of_differences(void **state)
{
    (void)state;
    char line[512];
    size_t num_variants = 0;
    FILE *file = fopen(PH_SOURCE_DIR "/tests/support/model_variants.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#')
            continue;
        check_variant(line);
        num_variants++;
    }
    assert_true(num_variants > 0);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_the_gradients_of_differences),
        cmocka_unit_test(every_variant_has_the_gradients_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
