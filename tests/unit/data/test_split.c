#include "data/split.h"

#include "phloem/data.h"
#include "support/test_support.h"

static void a_split_has_the_path_of_its_name(void **state)
{
    (void)state;
    const struct ph_data_settings settings = {.train = "train", .valid = "valid", .test = "test"};
    for (size_t split = 0; split < PH_SPLIT_COUNT; split++)
        assert_string_equal(ph__split_path(&settings, split), ph__split_names[split]);
    assert_null(ph__split_path(&(struct ph_data_settings){.train = "a"}, PH_SPLIT_TEST));
}

/* Their names are the same. */
static void synthetic_files_are_numbered_as_splits_are(void **state)
{
    (void)state;
    assert_int_equal(PH_SYNTH_TRAIN, PH_SPLIT_TRAIN);
    assert_int_equal(PH_SYNTH_VALID, PH_SPLIT_VALID);
    assert_int_equal(PH_SYNTH_TEST, PH_SPLIT_TEST);
    assert_int_equal(PH_SYNTH_FILE_COUNT, PH_SPLIT_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_has_the_path_of_its_name),
        cmocka_unit_test(synthetic_files_are_numbered_as_splits_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
