#include "base/file/file.h"
#include "support/test_support.h"
#include "unit/graph/toy_ops.h"

#include <stdlib.h>
#include <string.h>

static struct ph_builder *new_builder(void)
{
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    return builder;
}

static const struct ph_init zeros = {PH_INIT_CONSTANT, 0};

static void first_error_is_kept_and_reported_by_finish(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value a = ph_input_dense(builder, 3);
    ph_value b = ph_parameter(builder, "b", 1, (size_t[]){3}, zeros);
    assert_int_equal(toy2(builder, &toy_product, a, b), 0);
    assert_int_equal(ph_builder_status(builder), PH_ERROR_CONFIG);
    assert_int_equal(ph_input_labels(builder, 1), 0);
    ph_fail(PH_ERROR_BUG, "another error of this thread");
    struct ph_program *program = NULL;
    assert_fails(
        ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "product: shapes (B,3) and (3) differ");
    assert_null(program);
    ph_builder_destroy(builder);
}

static void names_are_scoped_and_unique(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value x = ph_input_dense(builder, 2);
    ph_builder_push_scope(builder, "deep");
    ph_builder_push_scope(builder, "0");
    assert_string_equal(ph_value_name(builder, toy1(builder, &toy_twice, x)), "deep.0.twice");
    assert_string_equal(ph_value_name(builder, toy1(builder, &toy_twice, x)), "deep.0.twice.2");
    assert_string_equal(
        ph_value_name(builder, ph_parameter(builder, "weight", 1, (size_t[]){2}, zeros)), "deep.0.weight");
    ph_builder_pop_scope(builder);
    ph_builder_pop_scope(builder);
    assert_string_equal(ph_value_name(builder, toy1(builder, &toy_twice, x)), "twice");
    assert_ok(ph_builder_status(builder));
    ph_builder_destroy(builder);
}

static void input_asked_for_twice_is_one_value(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    assert_int_equal(ph_input_dense(builder, 4), ph_input_dense(builder, 4));
    assert_int_equal(ph_input_scalar(builder, "rate"), ph_input_scalar(builder, "rate"));
    assert_int_equal(ph_input_dense(builder, 5), 0);
    struct ph_program *program = NULL;
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_USAGE, "'dense'");
    ph_builder_destroy(builder);
}

static void second_parameter_of_a_name_is_refused(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_parameter(builder, "w", 1, (size_t[]){2}, zeros);
    assert_int_equal(ph_parameter(builder, "w", 1, (size_t[]){2}, zeros), 0);
    struct ph_program *program = NULL;
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "'w' is declared twice");
    ph_builder_destroy(builder);
}

static void table_has_the_rows_of_its_slices(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value table = ph_table(
        builder, "embedding", 2, (struct ph_table_slice[]){{"embedding.a", 3}, {"embedding.b", 4}}, 5, zeros);
    struct ph_type type = ph_value_type(builder, table);
    assert_int_equal(type.dims[0].extent, 7);
    assert_int_equal(type.dims[1].extent, 5);
    assert_string_equal(ph__builder_declaration(builder, table)->slices[1].name, "embedding.b");
    ph_table(builder, "huge", 2, (struct ph_table_slice[]){{"x", UINT32_MAX}, {"y", 1}}, 1, zeros);
    struct ph_program *program = NULL;
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "'huge' has more than 2^32 - 1 rows");
    ph_builder_destroy(builder);
}

static void features_of_one_slice_name_share_it(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    const struct ph_table_slice slices[] = {{"e.item", 3}, {"e.user", 4}, {"e.item", 3}, {"e.item", 4}};
    const struct ph__declaration *table =
        ph__builder_declaration(builder, ph_table(builder, "e", 3, slices, 5, zeros));
    const size_t expected[] = {0, 1, 0};
    assert_int_equal(table->shape.dims[0], 7);
    assert_int_equal(table->num_slices, 2);
    assert_int_equal(table->num_features, 3);
    assert_memory_equal(table->feature_slices, expected, sizeof expected);
    assert_string_equal(table->slices[1].name, "e.user");
    ph_table(builder, "odd", 4, slices, 5, zeros);
    struct ph_program *program = NULL;
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG,
        "table 'odd': slice 'e.item' is declared with both 3 and 4 rows");
    ph_builder_destroy(builder);
}

static void equal_node_is_found(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value x = ph_input_dense(builder, 2);
    int attribute = 7;
    assert_int_equal(ph__builder_find(builder, &toy_twice, &attribute, sizeof attribute, 1, &x, 0), 0);
    ph_value y = ph__emit1(builder, &toy_twice, NULL, &attribute, sizeof attribute, 1, &x);
    assert_int_equal(ph__builder_find(builder, &toy_twice, &attribute, sizeof attribute, 1, &x, 0), y);
    attribute = 8;
    assert_int_equal(ph__builder_find(builder, &toy_twice, &attribute, sizeof attribute, 1, &x, 0), 0);
    ph_builder_destroy(builder);
}

static void unread_nodes_are_pruned_and_effects_stay(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value x = ph_input_dense(builder, 2);
    ph_value used = toy1(builder, &toy_twice, x);
    toy1(builder, &toy_twice, toy1(builder, &toy_twice, used));
    toy1(builder, &toy_bump, ph_parameter(builder, "p", 1, (size_t[]){2}, zeros));
    ph_output(builder, "loss", toy1(builder, &toy_sum, used));
    struct ph_program *program = NULL;
    assert_ok(ph_builder_finish(builder, &program));
    assert_int_equal(ph_program_num_nodes(program, "twice"), 1);
    assert_int_equal(ph_program_num_nodes(program, "bump"), 1);
    assert_int_equal(ph_program_num_nodes(program, NULL), 3);
    ph_program_destroy(program);
    ph_builder_destroy(builder);
}

static void scope_left_open_is_refused(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_builder_push_scope(builder, "deep");
    struct ph_program *program = NULL;
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_USAGE, "'deep.' was pushed and never popped");
    ph_builder_destroy(builder);
}

static void entry_begun_twice_is_refused(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    toy1(builder, &toy_twice, ph_input_dense(builder, 1));
    ph_builder_begin_entry(builder, "update");
    ph_builder_begin_entry(builder, "forward");
    struct ph_program *program = NULL;
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_USAGE, "entry 'forward' is begun twice");
    ph_builder_destroy(builder);
}

static void program_is_drawn_with_its_entries(void **state)
{
    (void)state;
    struct ph_builder *builder = new_builder();
    ph_value p = ph_parameter(builder, "p", 1, (size_t[]){2}, zeros);
    ph_output(builder, "loss", toy1(builder, &toy_sum, toy1(builder, &toy_twice, p)));
    ph_builder_begin_entry(builder, "update");
    toy1(builder, &toy_bump, p);
    struct ph_program *program = NULL;
    assert_ok(ph_builder_finish(builder, &program));
    const char *path = test_path("written.txt");
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    assert_ok(ph_program_write_dot(program, path));
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    assert_non_null(strstr(text, "label=\"update\""));
    assert_non_null(strstr(text, "n0 -> n1 [label=\"(2)\""));
    ph__arena_fini(&arena);
    ph_program_destroy(program);
    ph_builder_destroy(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_is_kept_and_reported_by_finish),
        cmocka_unit_test(names_are_scoped_and_unique),
        cmocka_unit_test(input_asked_for_twice_is_one_value),
        cmocka_unit_test(second_parameter_of_a_name_is_refused),
        cmocka_unit_test(table_has_the_rows_of_its_slices),
        cmocka_unit_test(features_of_one_slice_name_share_it),
        cmocka_unit_test(equal_node_is_found),
        cmocka_unit_test(unread_nodes_are_pruned_and_effects_stay),
        cmocka_unit_test(scope_left_open_is_refused),
        cmocka_unit_test(entry_begun_twice_is_refused),
        cmocka_unit_test(program_is_drawn_with_its_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
