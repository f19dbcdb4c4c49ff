#include "unit/kernel/kernel_test.h"

static const struct ph__rng_key key = {.seed = 3, .step = 14, .stream = 159};

static void check_bits(const struct ph__kernels *kernels)
{
    const double rates[] = {0, 0.1, 0.5, 0.9, 0.9999999999};
    const uint64_t first = 0xFFFFFFFDu; /* sample indices pass 2^32 */
    for (size_t n = 1; n <= 300; n += n < 80 ? 1 : 17) {
        reset_arrays(NULL);
        const size_t rows = 5;
        const double rate = rates[n % 5];
        const float *x = random_floats(rows * n, -1, 1);
        float *y = filled_floats(rows * n, NAN);
        float *dx = filled_floats(rows * n, NAN);
        uint8_t *mask = new_array(rows * n, 1);
        kernels->dropout(&key, first, rows, n, rate, x, y, mask);
        kernels->dropout_backward(rows * n, rate, mask, x, dx);
        const uint64_t threshold = (uint64_t)llrint(rate * 4294967296.0);
        const float factor = (float)(1 / (1 - rate));
        for (size_t i = 0; i < rows * n; i++) {
            const int is_kept = ph__rng_word(&key, first + i / n, (uint32_t)(i % n)) >= threshold;
            assert_int_equal(mask[i], is_kept);
            assert_true(y[i] == (is_kept ? factor * x[i] : 0));
            assert_true(dx[i] == y[i]);
        }
    }
}

static void dropout_keeps_the_same_elements_on_every_isa(void **state)
{
    (void)state;
    on_every_isa(check_bits);
}

static void check_share(const struct ph__kernels *kernels)
{
    enum { ROWS = 100, N = 1000 };
    const float *x = filled_floats(ROWS * N, 1);
    float *y = filled_floats(ROWS * N, NAN);
    uint8_t *mask = new_array(ROWS * N, 1);
    kernels->dropout(&key, 7, ROWS, N, 0.3, x, y, mask);
    double sum = 0;
    for (size_t i = 0; i < ROWS * N; i++)
        sum += (double)y[i];
    assert_near(sum / (ROWS * N), 1, 0.01, 0);
}

static void dropout_keeps_the_expected_sum(void **state)
{
    (void)state;
    on_every_isa(check_share);
}

static void check_in_place(const struct ph__kernels *kernels)
{
    float *x = filled_floats(3 * 77, 2);
    uint8_t *mask = new_array(3 * 77, 1);
    kernels->dropout(&key, 0, 3, 77, 0.5, x, x, mask);
    for (size_t i = 0; i < 3 * 77; i++)
        assert_true(x[i] == (mask[i] ? 4 : 0));
    kernels->dropout(&key, 0, 0, 77, 0.5, NULL, NULL, NULL);
}

static void dropout_works_in_place_and_on_no_rows(void **state)
{
    (void)state;
    on_every_isa(check_in_place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            dropout_keeps_the_same_elements_on_every_isa, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(dropout_keeps_the_expected_sum, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(dropout_works_in_place_and_on_no_rows, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
