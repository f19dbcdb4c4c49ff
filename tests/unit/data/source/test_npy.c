#include <math.h>

#include "data/source/npy.h"
#include "tensor/float16.h"
#include "unit/data/array_fixture.h"

/* Parses an array's header of version 1.0 with this dictionary. */
static ph_status parse(const char *dictionary, struct ph__npy *npy)
{
    struct bytes bytes = {.size = 0};
    size_t header_bytes;
    bytes_add_npy_header(&bytes, dictionary);
    PH_TRY(ph__npy_header_bytes("x.npy", bytes.data, bytes.size, &header_bytes));
    assert_int_equal(header_bytes, bytes.size);
    return ph__npy_parse("x.npy", bytes.data, header_bytes, npy);
}

static void a_matrix_of_floats_is_read(void **state)
{
    (void)state;
    struct ph__npy npy;
    assert_ok(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (7, 13), }          \n", &npy));
    assert_int_equal(npy.type, PH_NPY_FLOAT32);
    assert_int_equal(npy.num_rows, 7);
    assert_int_equal(npy.num_columns, 13);
    assert_int_equal(npy.row_bytes, 52);
    assert_int_equal(npy.num_bytes, 364);
}

static void one_dimension_is_one_column(void **state)
{
    (void)state;
    struct ph__npy npy;
    assert_ok(parse("{\"shape\":(5,),\"fortran_order\":False,\"descr\":\"|u1\"}", &npy));
    assert_int_equal(npy.num_rows, 5);
    assert_int_equal(npy.num_columns, 1);
}

static void every_type_of_number_is_known(void **state)
{
    (void)state;
    static const char *const types[] = {
        "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"};
    static const size_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
    for (size_t i = 0; i < 12; i++) {
        struct ph__npy npy;
        char dictionary[128];
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}",
            types[i]);
        assert_ok(parse(dictionary, &npy));
        assert_int_equal(npy.type, i);
        assert_int_equal(npy.item_bytes, sizes[i]);
    }
}

static void versions_two_and_three_have_longer_lengths(void **state)
{
    (void)state;
    static const char dictionary[] = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}";
    for (unsigned char version = 2; version <= 3; version++) {
        struct bytes bytes = {.size = 0};
        struct ph__npy npy;
        size_t header_bytes;
        bytes_add(&bytes, "\x93NUMPY", 6);
        bytes_add(&bytes, (unsigned char[]){version, 0}, 2);
        bytes_add_number(&bytes, sizeof dictionary - 1, 4);
        bytes_add(&bytes, dictionary, sizeof dictionary - 1);
        assert_ok(ph__npy_header_bytes("x.npy", bytes.data, bytes.size, &header_bytes));
        assert_int_equal(header_bytes, bytes.size);
        assert_ok(ph__npy_parse("x.npy", bytes.data, header_bytes, &npy));
        assert_int_equal(npy.num_bytes, 16);
    }
}

static void what_cannot_be_read_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "big-endian"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", "Fortran order"},
        {"{'descr': '<U8', 'fortran_order': False, 'shape': (2,)}", "dtype '<U8'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "dtype '|O'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "not a single number type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "a single number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4)}", "more than two dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}", "no columns"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "whole numbers"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 4)}", "any file holds"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4611686018427387904)}", "MiB"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2097153)}", "MiB"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", "shape is not valid"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False}", "lacks"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}", "unknown or repeated"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", "must be True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} more", "more text after"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "header is not valid"},
        {"['descr']", "not a dictionary"},
        {"{'descr'", "not a dictionary of"},
        {"{'descr': '<f4", "not a single number type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ph__npy npy;
        assert_fails(parse(cases[i][0], &npy), PH_ERROR_DATA, cases[i][1]);
        assert_fails(parse(cases[i][0], &npy), PH_ERROR_DATA, "x.npy: ");
    }
}

static void a_foreign_beginning_is_refused(void **state)
{
    (void)state;
    size_t size;
    const unsigned char *text = (const unsigned char *)"label,I1,I2\n0,1,2\n";
    assert_fails(ph__npy_header_bytes("x.npy", text, 12, &size), PH_ERROR_DATA, "not a .npy array");
    text = (const unsigned char *)"\x93NUMPY\x04\x00\x76\x00{ ";
    assert_fails(ph__npy_header_bytes("x.npy", text, 12, &size), PH_ERROR_DATA, "version 4.0");
    text = (const unsigned char *)"\x93NUMPY\x02\x00\xff\xff\xff\x7f";
    assert_fails(ph__npy_header_bytes("x.npy", text, 12, &size), PH_ERROR_DATA, "is not valid");
    assert_fails(ph__npy_header_bytes("x.npy", text, 3, &size), PH_ERROR_DATA, "not a .npy array");
}

/* Every cut and every changed byte of a header is either read as some array or refused, within its bytes. */
static void damaged_headers_are_read_or_refused(void **state)
{
    (void)state;
    static const char dictionary[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (7, 13), }\n";
    struct bytes whole = {.size = 0};
    size_t num_refused = 0;
    bytes_add_npy_header(&whole, dictionary);
    for (size_t at = 10; at < whole.size; at++) {
        for (int value = 0; value < 256; value++) {
            struct ph__npy npy;
            unsigned char *copy = malloc(at + 1); /* exactly: a sanitizer sees what is read behind it */
            memcpy(copy, whole.data, at + 1);
            copy[at] = (unsigned char)value;
            num_refused += ph__npy_parse("x.npy", copy, at + 1, &npy) != PH_OK;
            free(copy);
        }
    }
    assert_true(num_refused > 0);
}

static void items_have_their_values(void **state)
{
    (void)state;
    static const unsigned char ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    static const enum ph__npy_type types[] = {PH_NPY_INT8, PH_NPY_INT16, PH_NPY_INT32, PH_NPY_INT64};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(ph__npy_integer(types[i], ones), -1);
    assert_int_equal(ph__npy_integer(PH_NPY_UINT8, ones), 255);
    assert_int_equal(ph__npy_integer(PH_NPY_UINT16, ones), 65535);
    assert_int_equal(ph__npy_integer(PH_NPY_UINT32, ones), 4294967295);
    assert_int_equal(ph__npy_integer(PH_NPY_BOOL, ones), 1);
    float single = 0.1f;
    double whole = 0.1;
    assert_true(ph__npy_real(PH_NPY_FLOAT32, (const unsigned char *)&single) == (double)0.1f);
    assert_true(ph__npy_real(PH_NPY_FLOAT64, (const unsigned char *)&whole) == 0.1);
    assert_true(ph__npy_real(PH_NPY_FLOAT16, (const unsigned char *)"\x00\x3c") == 1);
}

/* IEEE 754: 1/3 rounded, the largest, the least normal and subnormal one, zeros, infinities, not a number. */
static void half_precision_is_exact(void **state)
{
    (void)state;
    assert_true(ph__float_from_half(0x3555) == 0.333251953125f);
    assert_true(ph__float_from_half(0x7bff) == 65504.0f);
    assert_true(ph__float_from_half(0x0400) == 6.103515625e-05f);
    assert_true(ph__float_from_half(0x0001) == 5.9604644775390625e-08f);
    assert_true(ph__float_from_half(0xc000) == -2.0f);
    assert_true(ph__float_from_half(0x8000) == 0 && signbit(ph__float_from_half(0x8000)));
    assert_true(ph__float_from_half(0xfc00) == -INFINITY);
    assert_true(isnan(ph__float_from_half(0x7e00)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_of_floats_is_read),
        cmocka_unit_test(one_dimension_is_one_column),
        cmocka_unit_test(every_type_of_number_is_known),
        cmocka_unit_test(versions_two_and_three_have_longer_lengths),
        cmocka_unit_test(what_cannot_be_read_is_refused_by_name),
        cmocka_unit_test(a_foreign_beginning_is_refused),
        cmocka_unit_test(damaged_headers_are_read_or_refused),
        cmocka_unit_test(items_have_their_values),
        cmocka_unit_test(half_precision_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
