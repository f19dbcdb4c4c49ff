/* From an encoder to what a model is built on. */
#include "serve/features.h"

#include "graph/graph.h"
#include "unit/data/data_fixture.h"

/* A history and the item in question: the table of a model has one slice for both. */
static void features_that_share_rows_have_one_slice_in_every_table(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_model_features features;
    struct ph_builder *builder = NULL;
    fixture_init(&fixture, fixture_file("features.csv", "label,user,history,item\n1,u,a|b,c\n0,v,c,b\n"));
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "user", PH_FIELD_ID);
    struct ph_field_settings *history = fixture_field(&fixture, "history", PH_FIELD_ID);
    history->is_list = true;
    history->shares = "item";
    fixture_field(&fixture, "item", PH_FIELD_ID);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_ok(ph__features_init(encoder, &features));
    static const char *const names[] = {"user", "history", "item"};
    for (size_t f = 0; f < 3; f++)
        assert_string_equal(features.sparse[f].name, names[f]);
    const struct ph_model_settings settings = {.kind = ph_model_find("fm"), .embedding_dim = 4};
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    assert_int_not_equal(ph_model_build(builder, &settings, &features), 0);
    size_t num_tables = 0;
    for (size_t i = 0; i < ph_builder_num_parameters(builder); i++) {
        const struct ph_declaration *table =
            ph__builder_declaration(builder, ph_builder_parameter(builder, i));
        if (!table->is_table)
            continue;
        num_tables++;
        assert_int_equal(table->num_features, 3);
        assert_int_equal(table->num_slices, 2);
        assert_int_equal(table->shape.dims[0], 3 + 4);
        assert_non_null(strstr(table->slices[1].name, ".item"));
    }
    assert_int_equal(num_tables, 2);
    ph_builder_destroy(builder);
    ph__features_fini(&features);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_that_share_rows_have_one_slice_in_every_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
