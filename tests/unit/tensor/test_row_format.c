/* Each format against what its definition says of a number: how far the one that is read may be from the one
 * written. */
#include "tensor/row_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

enum { MOST_DIM = 70, MOST_BYTES = MOST_DIM * (int)sizeof(ph_real) };

static const enum ph_row_format formats[] = {
    PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT, PH_ROWS_INT8, PH_ROWS_INT4};
enum { NUM_FORMATS = sizeof formats / sizeof *formats };

/* The row of these numbers as it is read, its bytes unaligned and none written beyond them. */
static void read_back(enum ph_row_format format, size_t dim, const ph_real *numbers, double *read_out)
{
    unsigned char bytes[MOST_BYTES + 3];
    const size_t row_bytes = ph__row_bytes(format, dim);
    memset(bytes, 0xa5, sizeof bytes);
    ph__rows_encode(format, 1, dim, numbers, bytes + 1, NULL);
    assert_int_equal(bytes[0], 0xa5);
    assert_int_equal(bytes[1 + row_bytes], 0xa5);
    for (size_t d = 0; d < dim; d++)
        read_out[d] = (double)ph__row_number(format, dim, bytes + 1, d);
}

static double read_one(enum ph_row_format format, double number)
{
    double read;
    read_back(format, 1, &(ph_real){(ph_real)number}, &read);
    return read;
}

static void rows_have_the_bytes_of_their_layout(void **state)
{
    (void)state;
    static const size_t dims[] = {1, 5, 64};
    static const size_t wanted[NUM_FORMATS][3] = {
        {4, 20, 256}, {2, 10, 128}, {2, 10, 128}, {2, 10, 128}, {9, 13, 72}, {5, 7, 36}};
    for (size_t i = 0; i < NUM_FORMATS; i++)
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(ph__row_bytes(formats[i], dims[k]), wanted[i][k]);
    assert_int_equal(ph__row_format_fitting(PH_ROWS_INT8, 2), PH_ROWS_FP32);
    assert_int_equal(ph__row_format_fitting(PH_ROWS_INT8, 3), PH_ROWS_INT8);
    assert_int_equal(ph__row_format_fitting(PH_ROWS_INT4, 1), PH_ROWS_FP32);
    assert_int_equal(ph__row_format_fitting(PH_ROWS_FP16, 1), PH_ROWS_FP16);
}

/* Of `bits` significant bits: multiples of a unit that follows the number's magnitude, but is no less than
 * `least_unit`. */
static double nearest(double number, int bits, double least_unit)
{
    int exponent;
    frexp(number, &exponent);
    const double unit = fmax(ldexp(1, exponent - bits), least_unit), multiple = number / unit;
    double below = floor(multiple);
    const double above_share = multiple - below;
    if (above_share > 0.5 || (above_share == 0.5 && fmod(below, 2) != 0))
        below += 1;
    return below * unit;
}

static void floats_of_16_bits_are_the_nearest_and_the_even_one_of_two(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (int i = 0; i < 200000; i++) {
        /* few bits below those that are kept: one number in some is a tie */
        const double fraction = 1 + floor(ph__rng_next_uniform(&random) * 16384) / 16384;
        const double number = (double)(float)ldexp(i % 2 == 0 ? fraction : -fraction, i % 41 - 27);
        const double half = nearest(number, 11, 0x1p-24), bfloat = nearest(number, 8, 0x1p-133);
        assert_true(read_one(PH_ROWS_FP16, number) == half);
        assert_true(read_one(PH_ROWS_BF16, number) == bfloat);
    }
}

static void the_ends_of_the_range_of_16_bits(void **state)
{
    (void)state;
    assert_true(read_one(PH_ROWS_FP16, 65504) == 65504);
    assert_true(read_one(PH_ROWS_FP16, 65519) == 65504);
    assert_true(isinf(read_one(PH_ROWS_FP16, 65520)) && read_one(PH_ROWS_FP16, -1e30) == -INFINITY);
    assert_true(read_one(PH_ROWS_FP16, 0x1p-25) == 0 && read_one(PH_ROWS_FP16, 0x1.004p-25) == 0x1p-24);
    assert_true(read_one(PH_ROWS_FP16, 0x1p-40) == 0 && signbit(read_one(PH_ROWS_FP16, -0.0)));
    assert_true(read_one(PH_ROWS_BF16, 3.38e38) == 0x1.fcp127 && isinf(read_one(PH_ROWS_BF16, 3.4e38)));
    for (size_t i = 1; i <= 3; i++) {
        assert_true(isnan(read_one(formats[i], NAN)));
        assert_true(read_one(formats[i], INFINITY) == INFINITY);
        assert_true(read_one(formats[i], -INFINITY) == -INFINITY);
    }
    const uint32_t bits = 0x7f800001; /* a NaN whose upper half alone would be infinity */
    float number;
    memcpy(&number, &bits, sizeof number);
    assert_true(isnan(read_one(PH_ROWS_BF16, (double)number)));
    assert_true(isnan(read_one(PH_ROWS_BF16_SPLIT, (double)number)));
}

/* Numbers in [low, low + span). */
static void draw_row(struct ph__rng_sequence *random, size_t dim, double low, double span, ph_real *numbers)
{
    for (size_t d = 0; d < dim; d++)
        numbers[d] = (ph_real)(float)(low + span * ph__rng_next_uniform(random));
}

/* The numbers of a row are at most half a step away, and a rounding of the step and of the offset. */
static void check_levels(enum ph_row_format format, size_t dim, const ph_real *numbers, double num_steps)
{
    double read[MOST_DIM], least = INFINITY, largest = -INFINITY;
    for (size_t d = 0; d < dim; d++) {
        least = fmin(least, (double)numbers[d]);
        largest = fmax(largest, (double)numbers[d]);
    }
    const double rounding = format == PH_ROWS_INT4 ? 0x1p-11 : 0x1p-23;
    const double bound = (largest - least) / num_steps / 2 +
                         rounding * (fabs(least) + fabs(largest) + largest - least) +
                         (format == PH_ROWS_INT4 ? num_steps * 0x1p-25 : 0);
    read_back(format, dim, numbers, read);
    for (size_t d = 0; d < dim; d++)
        assert_true(fabs(read[d] - (double)numbers[d]) <= bound);
}

static void levels_are_the_nearest_of_a_rows_own(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    ph_real numbers[MOST_DIM];
    for (size_t dim = 1; dim <= MOST_DIM; dim++) {
        for (int i = 0; i < 50; i++) {
            const double span = ldexp(1, i % 12 - 9), low = span * (i % 7 - 4);
            draw_row(&random, dim, low, span, numbers);
            check_levels(PH_ROWS_INT8, dim, numbers, 255);
            check_levels(PH_ROWS_INT4, dim, numbers, 15);
        }
    }
}

static void the_ends_of_a_row_of_levels_are_kept(void **state)
{
    (void)state;
    const ph_real numbers[] = {-1, (ph_real)0.3, 2, 0, 1};
    double read[5];
    read_back(PH_ROWS_INT8, 5, numbers, read);
    assert_near(read[0], -1, 0, 0);
    assert_near(read[2], 2, 1e-6, 0);
    read_back(PH_ROWS_INT4, 5, numbers, read);
    assert_near(read[0], -1, 0, 0);
    assert_near(read[2], 2, 1e-3, 0);
    assert_near(read[3], 0, 1e-3, 0); /* step .2: a level of its own */
}

static void a_constant_row_is_exact(void **state)
{
    (void)state;
    ph_real numbers[7];
    double read[7];
    for (size_t d = 0; d < 7; d++)
        numbers[d] = (ph_real)0.0123f;
    read_back(PH_ROWS_INT8, 7, numbers, read);
    for (size_t d = 0; d < 7; d++)
        assert_true(read[d] == (double)0.0123f);
    for (size_t d = 0; d < 7; d++)
        numbers[d] = (ph_real)-0.375; /* a half */
    read_back(PH_ROWS_INT4, 7, numbers, read);
    for (size_t d = 0; d < 7; d++)
        assert_true(read[d] == -0.375);
}

static void check_row_with(enum ph_row_format format, double bad)
{
    const size_t row_bytes = ph__row_bytes(format, 5);
    ph_real numbers[10];
    unsigned char bytes[2 * 13];
    for (size_t i = 0; i < 10; i++)
        numbers[i] = (ph_real)i;
    numbers[3] = (ph_real)bad;
    ph__rows_encode(format, 2, 5, numbers, bytes, NULL);
    for (size_t d = 0; d < 5; d++) {
        const double of_first = (double)ph__row_number(format, 5, bytes, d);
        const double of_second = (double)ph__row_number(format, 5, bytes + row_bytes, d);
        assert_true(isnan(of_first));
        assert_true(!isnan(of_second));
    }
}

static void a_number_that_is_not_finite_takes_its_row_of_levels_along(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        check_row_with(PH_ROWS_INT8, bad[i]);
        check_row_with(PH_ROWS_INT4, bad[i]);
    }
}

static void rows_beyond_their_levels_are_no_numbers(void **state)
{
    (void)state;
    const ph_real low[] = {-70000, 1}, wide[] = {0, 2000000}, large[] = {0, 900000};
    const ph_real widest[] = {(ph_real)-3e38f, (ph_real)3e38f};
    double read[2];
    read_back(PH_ROWS_INT4, 2, low, read);
    assert_true(isnan(read[0]) && isnan(read[1]));
    read_back(PH_ROWS_INT4, 2, wide, read);
    assert_true(isnan(read[0]) && isnan(read[1]));
    read_back(PH_ROWS_INT4, 2, large, read);
    assert_near(read[1], 900000, 1000, 0);
    read_back(PH_ROWS_INT8, 2, widest, read);
    assert_true(isnan(read[0]) && isnan(read[1]));
}

static void bytes_of_zeros_are_zeros(void **state)
{
    (void)state;
    const unsigned char bytes[MOST_BYTES] = {0};
    for (size_t i = 0; i < NUM_FORMATS; i++)
        for (size_t d = 0; d < MOST_DIM; d++)
            assert_true(ph__row_number(formats[i], MOST_DIM, bytes, d) == 0);
}

static void names_are_read_back(void **state)
{
    (void)state;
    enum ph_row_format format;
    for (size_t i = 0; i < NUM_FORMATS; i++) {
        assert_ok(ph__row_format_parse("--row-format", ph_row_format_name(formats[i]), &format));
        assert_int_equal(format, formats[i]);
    }
    assert_int_equal(NUM_FORMATS, PH_ROW_FORMAT_COUNT);
    assert_string_equal(ph_row_format_name(PH_ROW_FORMAT_COUNT), "unknown");
    assert_fails(ph__row_format_parse("--row-format", "int2", &format), PH_ERROR_USAGE,
        "--row-format 'int2' must be one of fp32 fp16 bf16 bf16_split int8 int4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_bytes_of_their_layout),
        cmocka_unit_test(floats_of_16_bits_are_the_nearest_and_the_even_one_of_two),
        cmocka_unit_test(the_ends_of_the_range_of_16_bits),
        cmocka_unit_test(levels_are_the_nearest_of_a_rows_own),
        cmocka_unit_test(the_ends_of_a_row_of_levels_are_kept),
        cmocka_unit_test(a_constant_row_is_exact),
        cmocka_unit_test(a_number_that_is_not_finite_takes_its_row_of_levels_along),
        cmocka_unit_test(rows_beyond_their_levels_are_no_numbers),
        cmocka_unit_test(bytes_of_zeros_are_zeros),
        cmocka_unit_test(names_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
