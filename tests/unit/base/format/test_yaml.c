#include <stdio.h>
#include <string.h>

#include "base/format/yaml.h"
#include "support/test_support.h"

static void nodes_come_with_their_paths_and_lines(void **state)
{
    (void)state;
    static const struct ph__yaml_node wanted[] = {
        {PH_YAML_SCALAR, "seed", "1", 0, 2},
        {PH_YAML_MAPPING, "data", NULL, 0, 3},
        {PH_YAML_SEQUENCE, "data.fields", NULL, 2, 4},
        {PH_YAML_MAPPING, "data.fields[0]", NULL, 0, 5},
        {PH_YAML_SCALAR, "data.fields[0].name", "label", 0, 5},
        {PH_YAML_SCALAR, "data.fields[0].kind", "x", 0, 6},
        {PH_YAML_MAPPING, "data.fields[1]", NULL, 0, 7},
        {PH_YAML_SCALAR, "data.fields[1].name", "*", 0, 7},
        {PH_YAML_SCALAR, "data.none", "", 0, 8},
        {PH_YAML_SCALAR, "data.null", "", 0, 9},
        {PH_YAML_SCALAR, "data.quoted", "null", 0, 10},
        {PH_YAML_SEQUENCE, "list", NULL, 2, 11},
        {PH_YAML_SCALAR, "list[0]", "400", 0, 11},
        {PH_YAML_SCALAR, "list[1]", "5", 0, 11},
    };
    const char *path = test_write_file("nodes.yaml", "# a config\n"
                                                     "seed: 1\r\n"
                                                     "data:\n"
                                                     "  fields:\n"
                                                     "    - name: label\n"
                                                     "      kind: x\n"
                                                     "    - {name: \"*\"}\n"
                                                     "  none:\n"
                                                     "  \"null\": ~\n"
                                                     "  quoted: 'null' # text\n"
                                                     "list: [400, 5]\n");
    struct ph__arena arena = {0};
    struct ph__yaml_node *nodes = NULL;
    size_t count = 0;
    assert_ok(ph__yaml_read(&arena, path, &nodes, &count));
    assert_int_equal(count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(nodes[i].key, wanted[i].key);
        assert_int_equal(nodes[i].kind, wanted[i].kind);
        assert_int_equal(nodes[i].num_items, wanted[i].num_items);
        assert_int_equal(nodes[i].text == NULL, wanted[i].text == NULL);
        if (nodes[i].text != NULL)
            assert_string_equal(nodes[i].text, wanted[i].text);
        assert_int_equal(nodes[i].line, wanted[i].line);
    }
    ph__arena_fini(&arena);
}

static void a_file_of_comments_has_no_nodes(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# nothing\n", "---\n", "{}\n", "--- \n...\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ph__arena arena = {0};
        struct ph__yaml_node *nodes = NULL;
        size_t count = 1;
        assert_ok(ph__yaml_read(&arena, test_write_file("none.yaml", texts[i]), &nodes, &count));
        assert_int_equal(count, 0);
        ph__arena_fini(&arena);
    }
}

static void expect_refusal(const char *text, const char *part)
{
    struct ph__arena arena = {0};
    struct ph__yaml_node *nodes = NULL;
    size_t count = 0;
    assert_fails(
        ph__yaml_read(&arena, test_write_file("bad.yaml", text), &nodes, &count), PH_ERROR_CONFIG, part);
    assert_null(nodes);
    ph__arena_fini(&arena);
}

static void what_a_config_does_not_need_is_refused_with_its_line(void **state)
{
    (void)state;
    expect_refusal("a: 1\nb: &x 2\n", "bad.yaml:2: anchors and aliases are not supported");
    expect_refusal("a: &x {b: 1}\n", "bad.yaml:1: anchors");
    expect_refusal("a: 1\nc: *x\n", "bad.yaml:2: anchors");
    expect_refusal("a: !!int 1\n", "bad.yaml:1: tags are not supported");
    expect_refusal("a: 1\n---\nb: 2\n", "bad.yaml:2: a config must be one document");
    expect_refusal("- 1\n- 2\n", "bad.yaml:1: a config must be a mapping");
    expect_refusal("word\n", "bad.yaml:1: a config must be a mapping");
    expect_refusal("? [a, b]\n: 1\n", "bad.yaml:1: a key must be a word");
    expect_refusal("\"\": 1\n", "bad.yaml:1: the key is empty");
    expect_refusal("a: \"x\\0y\"\n", "bad.yaml:1: the text holds a NUL");
}

static void a_key_given_twice_is_refused_with_both_lines(void **state)
{
    (void)state;
    expect_refusal("a: 1\nb: 2\na: 3\n", "bad.yaml:3: the key 'a' is given twice, first in line 1");
    expect_refusal("a:\n  b: 1\na:\n  c: 2\n", "the key 'a' is given twice");
    expect_refusal("a:\n  b: 1\na.b: 2\n", "bad.yaml:3: the key 'a.b' is given twice, first in line 2");
    expect_refusal("l: [{x: 1, x: 2}]\n", "the key 'l[0].x' is given twice");
}

static void broken_yaml_is_refused_with_its_line(void **state)
{
    (void)state;
    expect_refusal("a: 1\n b: 2\n", "bad.yaml:2: not valid YAML");
    expect_refusal("a: [1, 2\n", "not valid YAML");
    expect_refusal("a: \"x\n", "not valid YAML");
    expect_refusal("a: \xff\n", "not valid YAML");
}

static void a_tab_for_indentation_is_named_with_its_column(void **state)
{
    (void)state;
    const char *const said = ": tabs are not allowed for indentation: use spaces";
    char place[80];
    snprintf(place, sizeof place, "bad.yaml:2:1%s", said);
    expect_refusal("a: 1\n\tb: 2\n", place);
    snprintf(place, sizeof place, "bad.yaml:3:3%s", said);
    expect_refusal("a:\n  b: 1\n  \tc: 2\n", place);
    snprintf(place, sizeof place, "bad.yaml:1:1%s", said);
    expect_refusal("\ta: 1", place);
    expect_refusal("a: \"x\n\t", "not valid YAML: found unexpected end");
}

static void depth_and_length_of_paths_are_limited(void **state)
{
    (void)state;
    char text[4096], *end = text;
    for (int i = 0; i < 40; i++)
        end += sprintf(end, "{a: ");
    expect_refusal(text, "nested too deeply");
    end = text + sprintf(text, "a: ");
    for (int i = 0; i < 1000; i++)
        *end++ = '[';
    *end = '\0';
    expect_refusal(text, "nested too deeply");
    memset(text, 'k', PH_YAML_PATH_MAX + 3);
    memcpy(text, "? ", 2); /* a key that may be longer than YAML allows in front of a colon */
    strcpy(text + PH_YAML_PATH_MAX + 3, "\n: 1\n");
    expect_refusal(text, "bad.yaml:1: the path of this key is too long");
}

static void a_missing_file_is_a_bad_config(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__yaml_node *nodes = NULL;
    size_t count = 0;
    assert_fails(
        ph__yaml_read(&arena, "/nowhere/a.yaml", &nodes, &count), PH_ERROR_CONFIG, "/nowhere/a.yaml: cannot");
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_come_with_their_paths_and_lines),
        cmocka_unit_test(a_file_of_comments_has_no_nodes),
        cmocka_unit_test(what_a_config_does_not_need_is_refused_with_its_line),
        cmocka_unit_test(a_key_given_twice_is_refused_with_both_lines),
        cmocka_unit_test(broken_yaml_is_refused_with_its_line),
        cmocka_unit_test(a_tab_for_indentation_is_named_with_its_column),
        cmocka_unit_test(depth_and_length_of_paths_are_limited),
        cmocka_unit_test(a_missing_file_is_a_bad_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
