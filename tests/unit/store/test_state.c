#include "store/store.h"

#include <stdio.h>

#include "support/test_support.h"

static void a_new_state_holds_its_initial_value(void **state)
{
    (void)state;
    struct ph_state *carried;
    struct ph__state_array *array, *again;
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_add(carried, "norm.variance", 3, 1, &array));
    for (size_t i = 0; i < 3; i++)
        assert_true(array->data[i] == 1);

    array->data[1] = 5;
    assert_ok(ph__state_add(carried, "norm.variance", 3, 1, &again));
    assert_ptr_equal(array, again);
    assert_true(again->data[1] == 5);
    ph_state_destroy(carried);
}

static void another_size_under_a_known_name_is_refused(void **state)
{
    (void)state;
    struct ph_state *carried;
    struct ph__state_array *array;
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_add(carried, "mean", 3, 0, &array));
    assert_fails(ph__state_add(carried, "mean", 4, 0, &array), PH_ERROR_CONFIG, "'mean' has 3 numbers");
    ph_state_destroy(carried);
}

/* The arrays do not move when many more are added. */
static void states_are_listed_in_order_and_stay_in_place(void **state)
{
    (void)state;
    struct ph_state *carried;
    struct ph__state_array *first, *other;
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_add(carried, "first", 2, 7, &first));
    for (size_t i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "state.%zu", i);
        assert_ok(ph__state_add(carried, name, i, 0, &other));
    }
    assert_int_equal(ph_state_num_tensors(carried), 101);
    const struct ph_tensor tensor = ph_state_tensor(carried, 0), last = ph_state_tensor(carried, 100);
    assert_string_equal(tensor.name, "first");
    assert_ptr_equal(tensor.data, first->data);
    assert_true(first->data[0] == 7 && first->data[1] == 7);
    assert_string_equal(last.name, "state.99");
    assert_int_equal(last.shape.dims[0], 99);
    assert_int_equal(last.dtype, PH_REAL);
    ph_state_destroy(carried);
}

static void touching_a_state_makes_every_version_grow(void **state)
{
    (void)state;
    struct ph_state *carried;
    struct ph__state_array *first, *second;
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_add(carried, "first", 2, 7, &first));
    assert_ok(ph__state_add(carried, "second", 2, 7, &second));
    const uint64_t versions[] = {first->version, second->version};
    ph_state_touch(carried);
    assert_true(first->version > versions[0]);
    assert_true(second->version > versions[1]);
    ph_state_destroy(carried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_state_holds_its_initial_value),
        cmocka_unit_test(another_size_under_a_known_name_is_refused),
        cmocka_unit_test(states_are_listed_in_order_and_stay_in_place),
        cmocka_unit_test(touching_a_state_makes_every_version_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
