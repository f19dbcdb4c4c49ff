#include "support/test_support.h"

#include "store/store.h"
#include "train/folder/state_snapshot.h"

static void restored_state_is_what_it_was(void **state)
{
    (void)state;
    struct ph_state *carried = NULL;
    struct ph__state_snapshot snapshot = {0};
    struct ph_state_array *means = NULL, *variances = NULL;
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_add(carried, "mean", 3, 0, &means));
    assert_ok(ph__state_add(carried, "variance", 2, 1, &variances));
    ph_real *mean = means->data, *variance = variances->data;
    mean[1] = 5;
    assert_ok(ph__state_snapshot_take(&snapshot, carried));
    mean[1] = 6;
    variance[0] = 7;
    const uint64_t version = means->version;
    ph__state_snapshot_restore(&snapshot, carried);
    assert_true(means->version > version); /* what was made of the statistics is made anew */
    assert_true(mean[0] == 0 && mean[1] == 5 && variance[0] == 1);
    mean[2] = 8;
    assert_ok(ph__state_snapshot_take(&snapshot, carried));
    mean[2] = 9;
    ph__state_snapshot_restore(&snapshot, carried);
    assert_true(mean[2] == 8);
    ph__state_snapshot_fini(&snapshot);
    ph_state_destroy(carried);
}

static void state_that_carries_nothing_is_fine(void **state)
{
    (void)state;
    struct ph_state *carried = NULL;
    struct ph__state_snapshot snapshot = {0};
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_snapshot_take(&snapshot, carried));
    ph__state_snapshot_restore(&snapshot, carried);
    ph__state_snapshot_fini(&snapshot);
    ph_state_destroy(carried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restored_state_is_what_it_was),
        cmocka_unit_test(state_that_carries_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
