/* What data.prepared stands for, and what may be given beside it. */
#include "base/memory/arena.h"
#include "base/option/option.h"
#include "unit/data/prepare_fixture.h"

static struct ph__arena arena;

/* A folder with all splits, made of train.csv, valid.csv and test.csv. */
static void prepare_all(void)
{
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 500, 1));
    fixture.settings.paths.valid = prepare_file("valid.csv", 100, 2);
    fixture.settings.paths.test = prepare_file("test.csv", 100, 3);
    assert_ok(prepare_into(&fixture, "made", 1, &summary));
}

/* NULL: not given. */
static ph_status finish(
    const char *train, const char *valid, const char *test, struct ph_data_settings *settings)
{
    const struct ph__section section = {&ph__data_options, settings};
    assert_ok(ph__config_read(NULL, NULL, 0, &section, 1, &arena));
    settings->prepared = test_path("made");
    settings->paths.train = train;
    settings->paths.valid = valid;
    settings->paths.test = test;
    return ph__data_settings_finish(settings, &arena);
}

static void assert_made(const struct ph_data_settings *settings)
{
    assert_string_equal(settings->paths.train, test_path("made/train"));
    assert_string_equal(settings->paths.valid, test_path("made/valid"));
    assert_string_equal(settings->paths.test, test_path("made/test"));
}

static void splits_that_are_not_given_are_those_of_the_folder(void **state)
{
    (void)state;
    struct ph_data_settings settings;
    prepare_all();
    assert_ok(finish(NULL, NULL, NULL, &settings));
    assert_made(&settings);
    assert_ok(finish(settings.paths.train, settings.paths.valid, settings.paths.test,
        &settings)); /* as a run's config has it */
    assert_made(&settings);
}

/* So the config that the data was prepared by can be trained with data.prepared added. */
static void the_files_that_it_was_made_of_are_its_splits(void **state)
{
    (void)state;
    struct ph_data_settings settings;
    prepare_all();
    assert_ok(finish(test_path("train.csv"), test_path("valid.csv"), test_path("test.csv"), &settings));
    assert_made(&settings);
}

static void another_file_to_measure_with_is_read_by_the_encoder(void **state)
{
    (void)state;
    struct ph_data_settings settings;
    struct ph_encoder *encoder;
    struct fixture fixture;
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 64};
    prepare_all();
    const char *other = prepare_file("other.csv", 200, 4), *later = prepare_file("later.csv.gz", 200, 5);
    assert_ok(finish(NULL, other, later, &settings));
    assert_string_equal(settings.paths.train, test_path("made/train"));
    assert_string_equal(settings.paths.valid, other);
    assert_string_equal(settings.paths.test, later);
    assert_ok(ph_encoder_create(&settings, &encoder));
    prepare_fixture_init(&fixture, test_path("train.csv"));
    struct ph_encoder *of_text = fixture_encoder(&fixture);
    assert_passes_equal(fixture_open(encoder, other, &options), fixture_open(of_text, other, &options));
    ph_encoder_destroy(of_text);
    ph_encoder_destroy(encoder);
}

static void other_files_to_learn_from_are_refused(void **state)
{
    (void)state;
    struct ph_data_settings settings;
    prepare_all();
    assert_fails(finish(prepare_file("other.csv", 200, 4), NULL, NULL, &settings), PH_ERROR_CONFIG,
        "other.csv' is not what data.prepared was made from");
    assert_fails(finish("-", NULL, NULL, &settings), PH_ERROR_CONFIG, "data.train: '-' is not what");
    assert_fails(finish(NULL, "-", NULL, &settings), PH_ERROR_CONFIG,
        "data.valid: only data.train may be standard input");
    assert_fails(finish(NULL, NULL, "-", &settings), PH_ERROR_CONFIG, "data.test: only data.train may be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_that_are_not_given_are_those_of_the_folder),
        cmocka_unit_test(the_files_that_it_was_made_of_are_its_splits),
        cmocka_unit_test(another_file_to_measure_with_is_read_by_the_encoder),
        cmocka_unit_test(other_files_to_learn_from_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
