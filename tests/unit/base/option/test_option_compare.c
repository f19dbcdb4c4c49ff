#include <stdio.h>

#include "support/test_support.h"
#include "unit/base/option_fixture.h"

static const char *const common[] = {
    "train.epochs=3", "data.train=here", "train.steps=1,2", "train.learning_rate=0.1"};

/* Two readings of the common sets, the second one with one more (NULL: none). */
static ph_status compare(const char *before_path, const char *after_path, const char *set)
{
    struct settings before = {0}, after = {0};
    struct ph__section before_sections[NUM_SECTIONS], after_sections[NUM_SECTIONS];
    const char *sets[] = {common[0], common[1], common[2], common[3], set};
    bind_sections(&before, before_sections);
    bind_sections(&after, after_sections);
    assert_ok(read_settings(&before, before_path, sets, 4));
    assert_ok(read_settings(&after, after_path, sets, set != NULL ? 5 : 4));
    ph_status status = ph__config_compare(before_sections, after_sections, NUM_SECTIONS,
        (struct ph__key_filter){.without = PH_KEY_MAY_CHANGE}, "may not change on resume");
    ph__arena_fini(&before.arena);
    ph__arena_fini(&after.arena);
    return status;
}

static void equal_settings_are_equal_however_they_were_written(void **state)
{
    (void)state;
    assert_ok(compare(NULL, NULL, NULL));
    assert_ok(compare(NULL, NULL, "train.learning_rate=1e-1"));
    assert_ok(compare(NULL, NULL, "train.steps=1, 2"));
}

static void key_that_may_change_may_differ(void **state)
{
    (void)state;
    assert_ok(compare(NULL, NULL, "data.train=there"));
    assert_ok(compare(NULL, NULL, "data.train="));
}

static void any_other_key_is_named_with_both_values(void **state)
{
    (void)state;
    assert_fails(compare(NULL, NULL, "seed=2"), PH_ERROR_CONFIG, "seed was '1' and is now '2'");
    assert_fails(
        compare(NULL, NULL, "train.epochs=4"), PH_ERROR_CONFIG, "train.epochs was '3' and is now '4'");
    assert_fails(compare(NULL, NULL, "train.schedule=step"), PH_ERROR_CONFIG,
        "train.schedule was 'constant' and is now 'step'");
    assert_fails(
        compare(NULL, NULL, "train.steps=1,3"), PH_ERROR_CONFIG, "train.steps was '1, 2' and is now '1, 3'");
    assert_fails(
        compare(NULL, NULL, "train.fast=true"), PH_ERROR_CONFIG, "train.fast was 'false' and is now 'true'");
}

static void records_are_compared_one_by_one(void **state)
{
    (void)state;
    char two[512], one[512];
    snprintf(
        two, sizeof two, "%s", test_write_file("two", "data:\n  fields:\n    - name: a\n    - name: b\n"));
    snprintf(one, sizeof one, "%s", test_write_file("one", "data:\n  fields:\n    - name: a\n"));
    assert_ok(compare(two, two, NULL));
    assert_fails(compare(two, one, NULL), PH_ERROR_CONFIG, "data.fields had 2 items and now has 1");
    assert_fails(compare(two, two, "data.fields[b].rows=7"), PH_ERROR_CONFIG,
        "data.fields[1].rows was '10' and is now '7'");
}

/* Keys of a table, of which one has traits of its own, and a table whose traits all its keys have. */
struct traits_settings {
    int64_t strict, loose;
};
#define TRAIT_KEY(name, its_traits)                                                                \
    {                                                                                              \
        .key = #name, .type = PH_OPTION_INTEGER, .offset = offsetof(struct traits_settings, name), \
        .default_text = "1", .help = "A key.", .traits = (its_traits)                              \
    }
static const struct ph__option traits_options[] = {
    TRAIT_KEY(strict, 0), TRAIT_KEY(loose, PH_KEY_MAY_CHANGE | PH_KEY_PER_RANK)};
static const struct ph__option_table some_table = {
    "some", "Keys.", traits_options, 2, sizeof(struct traits_settings), 0};
static const struct ph__option_table model_table = {
    "model", "Keys.", traits_options, 2, sizeof(struct traits_settings), PH_KEY_OF_MODEL};

static void a_filter_selects_keys_by_their_traits_and_the_tables(void **state)
{
    (void)state;
    static const struct {
        struct ph__key_filter filter;
        const char *values;
    } cases[] = {
        {{0}, "some.strict=2\nsome.loose=1\nmodel.strict=1\nmodel.loose=3\n"},
        {{.without = PH_KEY_MAY_CHANGE}, "some.strict=2\nmodel.strict=1\n"},
        {{.with = PH_KEY_OF_MODEL}, "model.strict=1\nmodel.loose=3\n"},
        {{.with = PH_KEY_OF_MODEL | PH_KEY_PER_RANK}, "model.loose=3\n"},
        {{.with = PH_KEY_PER_RANK, .without = PH_KEY_OF_MODEL}, "some.loose=1\n"},
        {{.with = PH_KEY_NO_OUTCOME}, ""},
    };
    struct traits_settings some = {2, 1}, model = {1, 3};
    const struct ph__section sections[] = {{&some_table, &some}, {&model_table, &model}};
    struct ph__arena arena = {0};
    const char *text;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(ph__config_values(sections, 2, cases[i].filter, &arena, &text));
        assert_string_equal(text, cases[i].values);
    }
    assert_ok(ph__config_changes(sections, 2, (struct ph__key_filter){0}, &arena, &text));
    assert_string_equal(text, "some.strict=2\nmodel.loose=3\n");
    ph__arena_fini(&arena);
}

static void keys_that_a_filter_leaves_out_are_not_compared(void **state)
{
    (void)state;
    struct traits_settings before = {1, 1}, after = {1, 2};
    const struct ph__section was = {&some_table, &before}, is = {&some_table, &after};
    assert_ok(
        ph__config_compare(&was, &is, 1, (struct ph__key_filter){.without = PH_KEY_PER_RANK}, "must agree"));
    assert_fails(ph__config_compare(&was, &is, 1, (struct ph__key_filter){0}, "must agree"), PH_ERROR_CONFIG,
        "some.loose was '1' and is now '2', but must agree");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_settings_are_equal_however_they_were_written),
        cmocka_unit_test(key_that_may_change_may_differ),
        cmocka_unit_test(any_other_key_is_named_with_both_values),
        cmocka_unit_test(records_are_compared_one_by_one),
        cmocka_unit_test(a_filter_selects_keys_by_their_traits_and_the_tables),
        cmocka_unit_test(keys_that_a_filter_leaves_out_are_not_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
