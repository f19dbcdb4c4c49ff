#include "base/text/text_line.h"

#include <string.h>

#include "support/test_support.h"

static void expect(const struct ph__text_line *line, const char *name, const char *value)
{
    assert_int_equal(line->name_length, strlen(name));
    assert_memory_equal(line->name, name, strlen(name));
    assert_int_equal(line->value_length, strlen(value));
    assert_memory_equal(line->value, value, strlen(value));
}

static void lines_are_names_and_values(void **state)
{
    (void)state;
    const char *text = "seed=1\nempty=\nbare\n\nlast=a=b";
    static const char *const wanted[][2] = {
        {"seed", "1"}, {"empty", ""}, {"bare", ""}, {"", ""}, {"last", "a=b"}};
    struct ph__text_line line;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(ph__text_line_next(&text, &line));
        expect(&line, wanted[i][0], wanted[i][1]);
    }
    assert_false(ph__text_line_next(&text, &line)); /* without an end of its last line, too */
}

static void a_line_is_found_by_its_whole_name(void **state)
{
    (void)state;
    const char *text = "train.epochs=3\n";
    struct ph__text_line named, found = {.value = "kept"};
    assert_true(ph__text_line_next(&text, &named));
    assert_false(ph__text_line_find("train.epoch=3\ntrain.epochs_more=3\n", &named, &found));
    assert_string_equal(found.value, "kept");
    assert_true(ph__text_line_find("seed=1\ntrain.epochs=30\n", &named, &found));
    expect(&found, "train.epochs", "30");
    assert_false(ph__text_line_has_value_of(&found, &named));
    assert_true(ph__text_line_has_value_of(&named, &named));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_names_and_values),
        cmocka_unit_test(a_line_is_found_by_its_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
