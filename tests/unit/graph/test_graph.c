#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

struct taking {
    struct ph__node_names names;
    struct ph__arena arena;
};

static const char *take(struct taking *taking, const char *name)
{
    const char *taken = NULL;
    assert_ok(ph__node_names_take(&taking->names, &taking->arena, name, &taken));
    return taken;
}

static void fini(struct taking *taking)
{
    ph__node_names_fini(&taking->names);
    ph__arena_fini(&taking->arena);
}

static void a_name_is_numbered_from_its_second_node_on(void **state)
{
    (void)state;
    struct taking taking = {0};
    assert_string_equal(take(&taking, "relu"), "relu");
    assert_string_equal(take(&taking, "linear"), "linear");
    assert_string_equal(take(&taking, "relu"), "relu.2");
    assert_string_equal(take(&taking, "relu"), "relu.3");
    assert_string_equal(take(&taking, "linear"), "linear.2");
    assert_string_equal(take(&taking, ""), "");
    assert_string_equal(take(&taking, ""), ".2");
    fini(&taking);
}

static void numbers_that_others_have_by_name_are_left_out(void **state)
{
    (void)state;
    struct taking taking = {0};
    assert_string_equal(take(&taking, "relu.3"), "relu.3");
    assert_string_equal(take(&taking, "relu"), "relu");
    assert_string_equal(take(&taking, "relu"), "relu.2");
    assert_string_equal(take(&taking, "relu.2"), "relu.2.2");
    assert_string_equal(take(&taking, "relu"), "relu.4");
    assert_string_equal(take(&taking, "relu.3"), "relu.3.2");
    fini(&taking);
}

/* Nodes of one name cost what nodes of many names do: if each were compared with each, this would take hours.
 */
static void a_million_nodes_have_a_million_names(void **state)
{
    (void)state;
    struct taking taking = {0};
    char expected[32];
    assert_string_equal(take(&taking, "relu"), "relu");
    for (size_t i = 2; i <= 1000000; i++) {
        snprintf(expected, sizeof expected, "relu.%zu", i);
        if (strcmp(take(&taking, "relu"), expected) != 0)
            fail_msg("node %zu was not named by its number", i);
    }
    assert_int_equal(taking.names.index.count, 1000000);
    fini(&taking);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_numbered_from_its_second_node_on),
        cmocka_unit_test(numbers_that_others_have_by_name_are_left_out),
        cmocka_unit_test(a_million_nodes_have_a_million_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
