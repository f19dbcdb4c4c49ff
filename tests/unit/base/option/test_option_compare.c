#include <stdio.h>

#include "support/test_support.h"
#include "unit/base/option_fixture.h"

static const char *const common[] = {
    "train.epochs=3", "data.train=here", "train.steps=1,2", "train.learning_rate=0.1"};

/* Two readings of the common sets, the second one with one more (NULL: none). */
static ph_status compare(const char *before_path, const char *after_path, const char *set)
{
    struct settings before = {0}, after = {0};
    struct ph_section before_sections[NUM_SECTIONS], after_sections[NUM_SECTIONS];
    const char *sets[] = {common[0], common[1], common[2], common[3], set};
    bind_sections(&before, before_sections);
    bind_sections(&after, after_sections);
    assert_ok(read_settings(&before, before_path, sets, 4));
    assert_ok(read_settings(&after, after_path, sets, set != NULL ? 5 : 4));
    ph_status status =
        ph__config_compare(before_sections, after_sections, NUM_SECTIONS, "may not change on resume");
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
    assert_fails(compare(two, one, NULL), PH_ERROR_CONFIG, "data.fields had 2 items and has now 1");
    assert_fails(compare(two, two, "data.fields[b].rows=7"), PH_ERROR_CONFIG,
        "data.fields[1].rows was '10' and is now '7'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_settings_are_equal_however_they_were_written),
        cmocka_unit_test(key_that_may_change_may_differ),
        cmocka_unit_test(any_other_key_is_named_with_both_values),
        cmocka_unit_test(records_are_compared_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
