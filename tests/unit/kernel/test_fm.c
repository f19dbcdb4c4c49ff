#include "unit/kernel/kernel_test.h"

enum { COUNT = 3 };

static void check_shape(const struct ph__kernels *kernels, size_t num_fields, size_t dim)
{
    const float *x = random_floats(COUNT * num_fields * dim, -1, 1);
    const float *grad = random_floats(COUNT, -1, 1);
    float *out = filled_floats(COUNT, NAN);
    float *dx = filled_floats(COUNT * num_fields * dim, NAN);
    kernels->fm_forward(COUNT, num_fields, dim, x, out);
    kernels->fm_backward(COUNT, num_fields, dim, x, grad, dx);

    for (size_t b = 0; b < COUNT; b++) {
        const float *sample = x + b * num_fields * dim;
        double pairs = 0; /* sum over i < j of <x_i, x_j>, the definition */
        for (size_t i = 0; i < num_fields; i++) {
            for (size_t d = 0; d < dim; d++) {
                double others = 0;
                for (size_t j = 0; j < num_fields; j++)
                    others += j != i ? (double)sample[j * dim + d] : 0;
                pairs += 0.5 * (double)sample[i * dim + d] * others;
                assert_near((double)dx[(b * num_fields + i) * dim + d], (double)grad[b] * others, 1e-5, 1e-5);
            }
        }
        assert_near((double)out[b], pairs, 1e-5 * (double)(num_fields * dim), 1e-5);
    }
}

static void check_shapes(const struct ph__kernels *kernels)
{
    const size_t fields[] = {1, 2, 10, 27};
    for (size_t f = 0; f < 4; f++) {
        for (size_t dim = 1; dim <= 67; dim++) {
            reset_arrays(NULL);
            check_shape(kernels, fields[f], dim);
        }
    }
}

static void fm_is_the_sum_over_pairs(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

static void check_none(const struct ph__kernels *kernels)
{
    float out = 5;
    kernels->fm_forward(0, 3, 4, NULL, &out);
    kernels->fm_backward(0, 3, 4, NULL, NULL, &out);
    assert_true(out == 5);
    kernels->fm_forward(1, 0, 4, &out, &out);
    assert_true(out == 0);
}

static void fm_takes_no_samples_and_no_fields(void **state)
{
    (void)state;
    on_every_isa(check_none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fm_is_the_sum_over_pairs, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(fm_takes_no_samples_and_no_fields, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
