/* What a program may ask of a preparation: the ranges are those of the config. */
#include "data/prepared/prepare_options.h"

#include "unit/data/prepare_fixture.h"

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    static struct {
        struct ph_prepare_options options;
        const char *error;
    } cases[] = {
        {{.settings.part_bytes = 1}, "prepare.part_bytes: 1 is not in the range 4096 to 1000000000000"},
        {{.settings.part_bytes = 4095}, "prepare.part_bytes: 4095 is not"},
        {{.settings.part_bytes = UINT64_MAX}, "prepare.part_bytes: 18446744073709551615 is not"},
        {{.settings.block_rows = 8193}, "prepare.block_rows: 8193 is not in the range 1 to 8192"},
        {{.settings.vocabulary_bytes = 100},
            "prepare.vocabulary_bytes: 100 is not in the range 65536 to 1000000000000"},
        {{.num_threads = 1025}, "1025 threads are too many, at most 1024"},
    };
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 10, 1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cases[i].options.size = sizeof cases[i].options;
        assert_fails(ph_prepare(&fixture.settings, test_path("none"), &cases[i].options, &summary),
            PH_ERROR_USAGE, cases[i].error);
    }
    assert_false(ph__file_exists(test_path("none")));
}

static void options_at_the_ends_of_their_ranges_are_taken(void **state)
{
    (void)state;
    const struct ph_prepare_options least = {.size = sizeof least,
        .settings.part_bytes = 4096,
        .settings.block_rows = 1,
        .settings.vocabulary_bytes = 65536,
        .num_threads = 1};
    const struct ph_prepare_options most = {.size = sizeof most,
        .settings.part_bytes = 1000000000000,
        .settings.block_rows = 8192,
        .settings.vocabulary_bytes = 1000000000000,
        .num_threads = 1024};
    struct ph_prepare_options filled;
    assert_ok(ph__prepare_options_fill(&least, &filled));
    assert_memory_equal(&filled, &least, sizeof filled);
    assert_ok(ph__prepare_options_fill(&most, &filled));
    assert_memory_equal(&filled, &most, sizeof filled);
}

static void zeros_are_the_defaults_of_the_config(void **state)
{
    (void)state;
    const struct ph_prepare_options zeros = {.size = sizeof zeros};
    struct ph_prepare_options filled;
    struct ph_prepare_settings settings;
    const struct ph__section section = {&ph__prepare_options, &settings};
    struct ph__arena arena = {0};
    assert_ok(ph__prepare_options_fill(&zeros, &filled));
    assert_ok(ph__config_read(NULL, NULL, 0, &section, 1, &arena));
    assert_int_equal(filled.settings.part_bytes, settings.part_bytes);
    assert_int_equal(filled.settings.block_rows, settings.block_rows);
    assert_int_equal(filled.settings.vocabulary_bytes, settings.vocabulary_bytes);
    assert_int_equal(filled.num_threads, 0);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(options_at_the_ends_of_their_ranges_are_taken),
        cmocka_unit_test(zeros_are_the_defaults_of_the_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
