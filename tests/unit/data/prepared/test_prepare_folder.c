/* Which folders a preparation may be made in. */
#include "base/file/directory.h"
#include "unit/data/prepare_fixture.h"

/* Prepares into the folder. NULL: whatever else is wrong, the folder may take it. */
static void check(const char *name, bool may_resume, const char *error)
{
    struct fixture fixture;
    struct ph_prepare_summary summary;
    const struct ph_prepare_options options = {
        .size = sizeof options, .num_threads = 1, .may_resume = may_resume};
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    const ph_status status = ph_prepare(&fixture.settings, test_path(name), &options, &summary);
    if (error != NULL)
        assert_fails(status, PH_ERROR_USAGE, error);
    else if (status != PH_OK)
        assert_null(strstr(ph_error_text(), "is not empty"));
}

static void an_empty_folder_may_be_prepared_into(void **state)
{
    (void)state;
    assert_ok(ph__directory_create(test_path("empty")));
    assert_ok(ph__directory_create(test_path("empty_too")));
    check("empty", false, NULL);
    check("empty_too", true, NULL);
}

static void a_folder_with_settings_may_be_resumed(void **state)
{
    (void)state;
    assert_ok(ph__directory_create(test_path("begun")));
    fixture_file("begun/source.yaml", "data: {}\n");
    fixture_file("begun/plan.json", "{}\n");
    check("begun", false, "begun: the folder is not empty; continue its preparation with --resume");
    check("begun", true, NULL);
}

static void what_a_kill_has_left_of_the_settings_may_be_resumed(void **state)
{
    (void)state;
    assert_ok(ph__directory_create(test_path("killed")));
    fixture_file("killed/source.yaml.tmp", "data: {tra");
    check("killed", false, "killed: the folder is not empty; continue its preparation with --resume");
    check("killed", true, NULL);
}

static void another_folder_is_refused(void **state)
{
    (void)state;
    assert_ok(ph__directory_create(test_path("run")));
    fixture_file("run/encoder.json", "{}\n");
    check("run", false, "run: the folder is not empty and has no preparation (no source.yaml)");
    check("run", true, "run: the folder is not empty and has no preparation (no source.yaml)");
}

/* Its encoder would have been taken for the preparation's own. */
static void a_folder_with_an_encoder_is_left_as_it_is(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 100, 1));
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_ok(ph__directory_create(test_path("trained")));
    assert_ok(ph_encoder_save(encoder, test_path("trained/encoder.json")));
    ph_encoder_destroy(encoder);
    assert_fails(
        prepare_into(&fixture, "trained", 1, &summary), PH_ERROR_USAGE, "trained: the folder is not empty");
    assert_false(ph__file_exists(test_path("trained/source.yaml")));
    assert_false(ph__file_exists(test_path("trained/train")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_may_be_prepared_into),
        cmocka_unit_test(a_folder_with_settings_may_be_resumed),
        cmocka_unit_test(what_a_kill_has_left_of_the_settings_may_be_resumed),
        cmocka_unit_test(another_folder_is_refused),
        cmocka_unit_test(a_folder_with_an_encoder_is_left_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
