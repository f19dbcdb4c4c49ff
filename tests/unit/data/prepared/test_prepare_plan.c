/* The plan of a preparation: what is kept of it is that of the one that is resumed. */
#include "data/prepared/prepare_plan.h"

#include "base/format/json.h"
#include "base/format/seal.h"
#include "unit/data/prepare_fixture.h"

static const struct ph__prepare_cut cut = {.part_bytes = PREPARE_PART_BYTES, .block_rows = 1024};

static void a_plan_that_was_kept_is_the_same(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph__prepare_plan plan;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 1000, 1));
    assert_ok(ph__prepare_plan_init(&plan, &fixture.settings, cut));
    assert_ok(ph__prepare_plan_save(&plan, test_path("plan.json")));
    assert_ok(ph__prepare_plan_compare(&plan, test_path("plan.json")));
    ph__prepare_plan_fini(&plan);
}

/* As they were written before the files' checksums. */
static void a_plan_of_another_version_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph__prepare_plan plan;
    struct ph_json *old = ph__sealed_json_object();
    ph__json_set_text(old, "format", "phloem-prepare-plan");
    ph__json_set_integer(old, "part_bytes", PREPARE_PART_BYTES);
    ph__json_set_integer(old, "block_rows", 1024);
    ph__json_set(old, "files", ph__json_array());
    assert_ok(ph__sealed_json_write(old, test_path("old.json")));
    ph__json_destroy(old);
    prepare_fixture_init(&fixture, prepare_file("train.csv", 1000, 1));
    assert_ok(ph__prepare_plan_init(&plan, &fixture.settings, cut));
    assert_fails(ph__prepare_plan_compare(&plan, test_path("old.json")), PH_ERROR_DATA,
        "old.json: version 1 of the plan is not 2, the one known here; prepare anew");
    ph__prepare_plan_fini(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_was_kept_is_the_same),
        cmocka_unit_test(a_plan_of_another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
