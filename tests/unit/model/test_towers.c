/* Towers: what model.towers may say, the file that "auto" stands for, and models built with towers. */
#include "model/towers.h"

#include <string.h>

#include "graph/op.h"
#include "model/model_options.h"
#include "store/declaration.h"
#include "support/test_support.h"

static const struct ph_table_slice features_of_three[] = {{"a", 5}, {"b", 7}, {"c", 3}};

static const char *resolved(const char *path, const char *text, struct ph__arena *arena)
{
    assert_ok(ph__towers_resolve(path, arena, &text));
    return text;
}

static void a_text_has_one_shortest_form(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    assert_string_equal(resolved(NULL, " user : a,  b | item: c ", &arena), "user:a,b|item:c");
    assert_string_equal(resolved(NULL, "a, b|c", &arena), "0:a,b|1:c");
    assert_string_equal(resolved(NULL, "0:a,b|1:c", &arena), "0:a,b|1:c");
    ph__arena_fini(&arena);
}

static void a_text_that_names_no_towers_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"a b: c", "'a b' is not a name of a tower"},
        {"x: a | x: b", "two towers have the name 'x'"},
        {"x: a | y: b, a", "feature 'a' is in towers 'x' and 'y'"},
        {"x: a, a", "feature 'a' is in towers 'x' and 'x'"},
        {"x: a | y:", "tower 'y' has a feature without a name"},
        {"auto", "'auto' needs model.tower_file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ph__arena arena = {0};
        const char *text = cases[i].text;
        assert_fails(ph__towers_resolve(NULL, &arena, &text), PH_ERROR_CONFIG, cases[i].part);
        ph__arena_fini(&arena);
    }
}

static void auto_takes_the_towers_of_a_file(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char *path = test_write_file("towers.yaml", "version: 1\n"
                                                      "towers:\n"
                                                      "  user: [a, b]\n"
                                                      "  item: [c]\n");
    assert_string_equal(resolved(path, "auto", &arena), "user:a,b|item:c");
    ph__arena_fini(&arena);
}

static void a_bad_file_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"version: 2\ntowers: {x: [a]}\n", "1: version: must be 1"},
        {"version: 1\ntowers:\n  x: a\n", "3: towers.x: must be 'version' or a list of features"},
        {"version: 1\ntower: {x: [a]}\n", "2: tower: must be 'version' or a list of features"},
        {"version: 1\ntowers: {x: [\"a,b\"]}\n", "the name of a feature must not have"},
        {"version: 1\n", "missing key 'towers'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ph__arena arena = {0};
        const char *text = "auto";
        const char *path = test_write_file("bad.yaml", cases[i].text);
        assert_fails(ph__towers_resolve(path, &arena, &text), PH_ERROR_CONFIG, cases[i].part);
        ph__arena_fini(&arena);
    }
}

/* A read config, and its model's graph on three features. */
struct built {
    struct ph__arena arena;
    struct ph__model_section section;
    struct ph_builder *builder;
};

static void build(
    struct built *built, const char *const *sets, size_t num_sets, const struct ph_table_slice *slices)
{
    struct ph__section sections[PH_NUM_MODEL_SECTIONS];
    const struct ph_model_features features = {
        .num_dense = 2, .num_sparse = 3, .num_tasks = 1, .sparse = features_of_three, .slices = slices};
    memset(built, 0, sizeof *built);
    const size_t count = ph__model_sections(&built->section, sections);
    assert_ok(ph__config_read(NULL, sets, num_sets, sections, count, &built->arena));
    assert_ok(ph__model_section_finish(&built->section, NULL, &built->arena));
    assert_ok(ph_builder_create(PH_TRAINING, &built->builder));
    ph_model_build(built->builder, &built->section.settings, &features);
}

static void built_fini(struct built *built)
{
    ph_builder_destroy(built->builder);
    ph__arena_fini(&built->arena);
}

static void assert_parameter(const struct built *built, const char *name, size_t rows, size_t columns)
{
    for (size_t i = 0; i < ph_builder_num_parameters(built->builder); i++) {
        const struct ph__declaration *parameter =
            ph__builder_declaration(built->builder, ph_builder_parameter(built->builder, i));
        if (strcmp(parameter->name, name) != 0)
            continue;
        assert_int_equal(parameter->shape.dims[0], rows);
        assert_int_equal(parameter->shape.dims[1], columns);
        return;
    }
    fail_msg("no parameter '%s'", name);
}

static void towers_have_parameters_and_tables_of_their_own(void **state)
{
    (void)state;
    static struct built built;
    const char *const sets[] = {"model.kind=dlrm", "model.towers=x:a,c|y:b", "model.embedding_dim=8",
        "model.tower_dim=2", "model.tower_feature_outputs=1"};
    build(&built, sets, 5, NULL);
    assert_ok(ph_builder_status(built.builder));
    assert_parameter(&built, "embedding.tower.x", 8, 8); /* rows of a and c */
    assert_parameter(&built, "embedding.tower.y", 7, 8);
    assert_parameter(&built, "tower.x.all.weight", 4, 16); /* 2 vectors of 2, of 2 features of 8 */
    assert_parameter(&built, "tower.x.each.weight", 2, 8);
    assert_parameter(&built, "tower.y.all.weight", 2, 8);
    assert_parameter(&built, "bottom.output.weight", 2, 2);
    built_fini(&built);
}

static void assert_not_built(
    const char *const *sets, size_t num_sets, const struct ph_table_slice *slices, const char *part)
{
    static struct built built;
    build(&built, sets, num_sets, slices);
    assert_fails(ph_builder_status(built.builder), PH_ERROR_CONFIG, part);
    built_fini(&built);
}

static void towers_that_a_model_cannot_have_are_refused(void **state)
{
    (void)state;
    static const struct ph_table_slice shared[] = {{"a", 5}, {"b", 7}, {"a", 5}};
    const char *const fm[] = {"model.kind=fm", "model.towers=a,b|c"};
    const char *const left_out[] = {"model.kind=dlrm", "model.towers=a|c"};
    const char *const unknown[] = {"model.kind=dlrm", "model.towers=a,b|c,d"};
    const char *const apart[] = {"model.kind=dlrm", "model.towers=a,b|c"};
    const char *const identity[] = {
        "model.kind=dlrm", "model.towers=a,b|c", "model.tower_module=identity", "model.tower_dim=2"};
    const char *const nothing[] = {"model.kind=dlrm", "model.towers=a,b|c", "model.tower_outputs=0"};
    assert_not_built(fm, 2, NULL, "model 'fm' has no towers");
    assert_not_built(left_out, 2, NULL, "feature 'b' is in no tower");
    assert_not_built(unknown, 2, NULL, "the model needs an id feature 'd'");
    assert_not_built(apart, 2, shared, "features 'a' and 'c' share rows, so they must be in one tower");
    assert_not_built(identity, 4, NULL, "tower_module 'identity' keeps the embeddings");
    assert_not_built(nothing, 3, NULL, "are both 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_one_shortest_form),
        cmocka_unit_test(a_text_that_names_no_towers_is_refused),
        cmocka_unit_test(auto_takes_the_towers_of_a_file),
        cmocka_unit_test(a_bad_file_is_refused_with_its_line),
        cmocka_unit_test(towers_have_parameters_and_tables_of_their_own),
        cmocka_unit_test(towers_that_a_model_cannot_have_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
