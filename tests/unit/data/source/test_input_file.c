/* What the files of a set are called; sets are opened and read by test_source_npy.c. */
#include "data/source/input_file.h"

#include "support/test_support.h"

static void a_set_is_named_by_its_labels_or_by_what_stands_before(void **state)
{
    (void)state;
    static const char *const paths[] = {"day/P", "day/P_labels.npy"};
    struct ph__arena arena = {0};
    for (size_t i = 0; i < 2; i++) {
        const char *names[PH_NUM_SET_FILES];
        assert_ok(ph__array_set_name(&arena, paths[i], names));
        assert_string_equal(names[PH_SET_LABELS], "day/P_labels.npy");
        assert_string_equal(names[PH_SET_DENSE], "day/P_dense.npy");
        assert_string_equal(names[PH_SET_MULTI_HOT], "day/P_sparse_multi_hot.npz");
        assert_string_equal(names[PH_SET_ONE_HOT], "day/P_sparse.npy");
    }
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_named_by_its_labels_or_by_what_stands_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
