#include "phloem/tensor.h"
#include "support/test_support.h"

static void dtypes_have_the_sizes_and_names_of_safetensors(void **state)
{
    (void)state;
    assert_int_equal(ph_dtype_size(PH_F32), 4);
    assert_int_equal(ph_dtype_size(PH_F64), 8);
    assert_int_equal(ph_dtype_size(PH_I32), 4);
    assert_int_equal(ph_dtype_size(PH_I64), 8);
    assert_int_equal(ph_dtype_size(PH_U32), 4);
    assert_int_equal(ph_dtype_size(PH_U8), 1);
    assert_string_equal(ph_dtype_name(PH_F32), "F32");
    assert_string_equal(ph_dtype_name(PH_U8), "U8");
    assert_int_equal(ph_dtype_size(PH_REAL), sizeof(ph_real));
}

static void an_unknown_dtype_has_no_size(void **state)
{
    (void)state;
    assert_int_equal(ph_dtype_size(PH_DTYPE_COUNT), 0);
    assert_string_equal(ph_dtype_name(PH_DTYPE_COUNT), "unknown");
}

static void elements_are_the_product_of_the_dimensions(void **state)
{
    (void)state;
    assert_int_equal(ph_shape_elements(&(struct ph_shape){0}), 1);
    assert_int_equal(ph_shape_elements(&(struct ph_shape){.num_dims = 1, .dims = {7}}), 7);
    assert_int_equal(ph_shape_elements(&(struct ph_shape){.num_dims = 3, .dims = {2, 3, 5}}), 30);
    assert_int_equal(ph_shape_elements(&(struct ph_shape){.num_dims = 2, .dims = {0, 5}}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_the_sizes_and_names_of_safetensors),
        cmocka_unit_test(an_unknown_dtype_has_no_size),
        cmocka_unit_test(elements_are_the_product_of_the_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
