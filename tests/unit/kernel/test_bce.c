#include "unit/kernel/kernel_test.h"

static double one_loss(double z, double y)
{
    return fmax(z, 0) - z * y + log1p(exp(-fabs(z)));
}

static void check_lengths(const struct ph__kernels *kernels)
{
    for (size_t n = 0; n <= 130; n += n < 40 ? 1 : 13) {
        for (int is_weighted = 0; is_weighted < 2; is_weighted++) {
            reset_arrays(NULL);
            const float *z = random_floats(n, -12, 12);
            const float *y = random_floats(n, 0, 1);
            const float *w = random_floats(n, 0, 3);
            float *dz = filled_floats(n, NAN);
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += (is_weighted ? (double)w[i] : 1) * one_loss((double)z[i], (double)y[i]);
            assert_near(kernels->bce(n, z, y, is_weighted ? w : NULL), sum, 0, 1e-6);
            kernels->bce_backward(n, z, y, is_weighted ? w : NULL, 0.25f, dz);
            for (size_t i = 0; i < n; i++) {
                const double p = 1 / (1 + exp(-(double)z[i]));
                assert_near(
                    (double)dz[i], 0.25 * (is_weighted ? (double)w[i] : 1) * (p - (double)y[i]), 2e-7, 0);
            }
        }
    }
}

static void bce_and_its_gradient_follow_the_formula(void **state)
{
    (void)state;
    on_every_isa(check_lengths);
}

static void check_relative(const struct ph__kernels *kernels)
{
    for (double z = -80; z < 80; z += 0.37) {
        const float logit = (float)z;
        const float label = z > 0 ? 1 : 0;
        assert_near(kernels->bce(1, &logit, &label, NULL), one_loss((double)logit, (double)label), 0, 4e-7);
    }
}

static void loss_of_a_confident_right_answer_keeps_its_digits(void **state)
{
    (void)state;
    on_every_isa(check_relative);
}

static void check_huge(const struct ph__kernels *kernels)
{
    const float z[] = {1e4f, -1e4f, 1e30f, -1e30f, 3e38f, -3e38f, 100, -100, 89, -89};
    for (size_t i = 0; i < 10; i++) {
        for (int label = 0; label < 2; label++) {
            const float y = (float)label;
            float dz;
            assert_near(kernels->bce(1, z + i, &y, NULL), one_loss((double)z[i], (double)y), 1e-37, 1e-6);
            kernels->bce_backward(1, z + i, &y, NULL, 1, &dz);
            assert_near((double)dz, (z[i] > 0 ? 1 : 0) - (double)y, 1e-37, 0);
        }
    }
}

static void huge_logits_give_finite_losses(void **state)
{
    (void)state;
    on_every_isa(check_huge);
}

static void check_nan(const struct ph__kernels *kernels)
{
    for (size_t at = 0; at < 35; at++) {
        float z[35] = {0}, dz[35];
        const float y[35] = {0};
        z[at] = NAN;
        assert_true(isnan(kernels->bce(35, z, y, NULL)));
        kernels->bce_backward(35, z, y, NULL, 1, dz);
        for (size_t i = 0; i < 35; i++)
            assert_int_equal(isnan(dz[i]), i == at);
    }
}

static void a_nan_logit_is_seen(void **state)
{
    (void)state;
    on_every_isa(check_nan);
}

static void check_masked(const struct ph__kernels *kernels)
{
    const float *z = random_floats(21, -3, 3);
    const float *y = random_floats(21, 0, 1);
    float *mask = filled_floats(21, 0);
    assert_true(kernels->bce(21, z, y, mask) == 0);
    mask[20] = 1;
    assert_near(kernels->bce(21, z, y, mask), one_loss((double)z[20], (double)y[20]), 0, 1e-6);
}

static void weight_zero_masks_a_label(void **state)
{
    (void)state;
    on_every_isa(check_masked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bce_and_its_gradient_follow_the_formula, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            loss_of_a_confident_right_answer_keeps_its_digits, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(huge_logits_give_finite_losses, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(a_nan_logit_is_seen, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(weight_zero_masks_a_label, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
