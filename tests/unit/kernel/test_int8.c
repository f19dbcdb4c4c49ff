#include <float.h>

#include "unit/kernel/kernel_test.h"

enum { MOST = 70, LEVELS = 127 };

static void check_against_the_formula(const struct ph__kernels *kernels, size_t n, const float *x)
{
    int8_t *levels = new_array(n + 1, 1);
    float *back = filled_floats(n + 1, 9);
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)x[i]));
    levels[n] = 77;
    const float scale = kernels->int8_narrow(n, x, levels);
    kernels->int8_widen(n, levels, scale, back);
    assert_true(levels[n] == 77 && back[n] == 9);
    assert_near((double)scale, largest / LEVELS, 0, 0x1p-23);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(levels[i], (int)rint((double)(x[i] / scale)));
        assert_true(back[i] == (float)levels[i] * scale);
        assert_true(fabs((double)back[i] - (double)x[i]) <= (double)scale * .5001);
    }
}

static void check_every_length(const struct ph__kernels *kernels)
{
    for (size_t n = 1; n <= MOST; n++) {
        check_against_the_formula(kernels, n, random_floats(n, -3, 3));
        check_against_the_formula(kernels, n, random_floats(n, -1e-30, 1e-30));
        check_against_the_formula(kernels, n, random_floats(n, -3e38, 3e38));
    }
}

/* `x` at each place of a row of ones: how the row reads then. */
static void check_one(const struct ph__kernels *kernels, float x, float rest, float wanted_scale)
{
    for (size_t n = 1; n <= MOST; n += 23) {
        for (size_t place = 0; place < n; place++) {
            float *row = filled_floats(n, rest);
            int8_t *levels = new_array(n, 1);
            row[place] = x;
            const float scale = kernels->int8_narrow(n, row, levels);
            assert_memory_equal(&scale, &wanted_scale, sizeof scale);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(levels[i], 0);
        }
        reset_arrays(NULL);
    }
}

static void check_what_has_no_scale(const struct ph__kernels *kernels)
{
    check_one(kernels, NAN, 1, NAN);
    check_one(kernels, -NAN, 1, NAN);
    check_one(kernels, INFINITY, 1, NAN);
    check_one(kernels, -INFINITY, 1, NAN);
    check_one(kernels, 0, 0, 0);
    check_one(kernels, -0.0F, 0, 0);
    check_one(kernels, 190 * FLT_TRUE_MIN, 0, 0);
    check_one(kernels, FLT_MIN, 0, 0);
    int8_t none = 5;
    assert_true(kernels->int8_narrow(0, NULL, &none) == 0 && none == 5);
    kernels->int8_widen(0, &none, 1, NULL);
}

/* 63.5 and 64.5 levels lie between two: the even one is taken. */
static void check_ties(const struct ph__kernels *kernels)
{
    const float row[] = {254, 1, 3, -1, -3, 127, 129, -127, -129};
    const int8_t wanted[] = {127, 0, 2, 0, -2, 64, 64, -64, -64};
    int8_t levels[sizeof wanted];
    assert_true(kernels->int8_narrow(sizeof wanted, row, levels) == 2);
    assert_memory_equal(levels, wanted, sizeof wanted);
}

static void check_the_ends(const struct ph__kernels *kernels)
{
    const float row[] = {FLT_MAX, -FLT_MAX, FLT_MAX / 4};
    int8_t levels[3];
    assert_true(isfinite(kernels->int8_narrow(3, row, levels)));
    assert_true(levels[0] == LEVELS && levels[1] == -LEVELS && levels[2] == 32);
}

static void levels_are_the_nearest_and_the_scale_is_of_the_largest(void **state)
{
    (void)state;
    on_every_isa(check_every_length);
    on_every_isa(check_ties);
    on_every_isa(check_the_ends);
}

static void rows_that_are_not_finite_or_too_small_say_so_by_their_scale(void **state)
{
    (void)state;
    on_every_isa(check_what_has_no_scale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_the_nearest_and_the_scale_is_of_the_largest),
        cmocka_unit_test(rows_that_are_not_finite_or_too_small_say_so_by_their_scale),
    };
    return cmocka_run_group_tests(tests, reset_arrays, reset_arrays);
}
