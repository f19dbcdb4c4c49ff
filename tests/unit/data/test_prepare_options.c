/* What a program may ask of a preparation: the ranges are those of the config. */
#include "data/prepare_options.h"

#include "prepare_fixture.h"

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct ph_prepare_options options;
        const char *error;
    } cases[] = {
        {{.part_bytes = 1}, "prepare.part_bytes: 1 is not in the range 4096 to 1000000000000"},
        {{.part_bytes = 4095}, "prepare.part_bytes: 4095 is not"},
        {{.part_bytes = UINT64_MAX}, "prepare.part_bytes: 18446744073709551615 is not"},
        {{.block_rows = 8193}, "prepare.block_rows: 8193 is not in the range 1 to 8192"},
        {{.vocabulary_bytes = 100},
            "prepare.vocabulary_bytes: 100 is not in the range 65536 to 1000000000000"},
        {{.num_threads = 1025}, "1025 threads: at most 1024"},
    };
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", 10, 1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(ph_prepare(&fixture.settings, prepare_path("none"), &cases[i].options, &summary),
            PH_ERROR_USAGE, cases[i].error);
    assert_false(ph__file_exists(prepare_path("none")));
}

static void options_at_the_ends_of_their_ranges_are_taken(void **state)
{
    (void)state;
    const struct ph_prepare_options defaults = {0};
    const struct ph_prepare_options least = {
        .part_bytes = 4096, .block_rows = 1, .vocabulary_bytes = 65536, .num_threads = 1};
    const struct ph_prepare_options most = {.part_bytes = 1000000000000,
        .block_rows = 8192,
        .vocabulary_bytes = 1000000000000,
        .num_threads = 1024};
    assert_ok(ph__prepare_options_check(&defaults));
    assert_ok(ph__prepare_options_check(&least));
    assert_ok(ph__prepare_options_check(&most));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(options_at_the_ends_of_their_ranges_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
