/* Histories and their targets in one table. */
#include <string.h>

#include "model/model_options.h"
#include "support/test_support.h"

enum { F = 3, ROWS_A = 5, ROWS_B = 7, D = 3 };

static const struct ph_table_slice sparse[F] = {{"item", ROWS_A}, {"history", ROWS_A}, {"user", ROWS_B}};
static const struct ph_table_slice shared[F] = {{"item", ROWS_A}, {"item", ROWS_A}, {"user", ROWS_B}};

/* A DIN of these sets: its builder, failed or not. */
static struct ph_builder *build_din(
    const struct ph_table_slice *slices, const char *targets, const char *histories)
{
    static struct ph__model_section section;
    const char *const sets[] = {
        "model.kind=din", "model.embedding_dim=3", "model.hidden_units=4", targets, histories};
    const struct ph_model_features features = {
        .num_sparse = F, .num_tasks = 1, .sparse = sparse, .slices = slices};
    struct ph__section sections[PH_NUM_MODEL_SECTIONS];
    struct ph__arena arena = {0};
    struct ph_builder *builder = NULL;
    const size_t count = ph__model_sections(&section, sections);
    assert_ok(ph__config_read(NULL, sets, 5, sections, count, &arena));
    assert_ok(ph__model_section_finish(&section, NULL, &arena));
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_model_build(builder, &section.settings, &features);
    ph__arena_fini(&arena);
    return builder;
}

static size_t table_rows(struct ph_builder *builder)
{
    for (size_t i = 0; i < ph_builder_num_parameters(builder); i++)
        if (strcmp(ph_value_name(builder, ph_builder_parameter(builder, i)), "embedding.table") == 0)
            return ph_value_type(builder, ph_builder_parameter(builder, i)).dims[0].extent;
    return 0;
}

static void a_history_looks_up_the_rows_of_its_target(void **state)
{
    (void)state;
    struct ph_builder *apart = build_din(NULL, "model.din.targets=item", "model.din.histories=history");
    struct ph_builder *together = build_din(shared, "model.din.targets=item", "model.din.histories=history");
    assert_ok(ph_builder_status(apart));
    assert_ok(ph_builder_status(together));
    assert_int_equal(table_rows(apart), 2 * ROWS_A + ROWS_B);
    assert_int_equal(table_rows(together), ROWS_A + ROWS_B);
    ph_builder_destroy(apart);
    ph_builder_destroy(together);
}

static void refused(const char *targets, const char *histories, const char *part)
{
    struct ph_builder *builder = build_din(NULL, targets, histories);
    assert_fails(ph_builder_status(builder), PH_ERROR_CONFIG, part);
    ph_builder_destroy(builder);
}

static void names_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    refused("model.din.targets=thing", "model.din.histories=history",
        "an id feature 'thing', which the data does not have");
    refused("model.din.targets=item,user", "model.din.histories=history", "2 targets for 1 histories");
    refused("model.din.targets=item", "model.din.histories=item", "'item' is both a target and a history");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_looks_up_the_rows_of_its_target),
        cmocka_unit_test(names_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
