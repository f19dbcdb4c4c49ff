#include "unit/kernel/kernel_test.h"

static struct ph__optimizer_step some_step(enum ph_optimizer_kind kind, int is_nesterov)
{
    return (struct ph__optimizer_step){
        .kind = kind,
        .is_nesterov = is_nesterov,
        .learning_rate = 0.05f,
        .gradient_scale = 0.7f,
        .l2 = 0.03f,
        .weight_decay = 0.1f,
        .momentum = 0.9f,
        .beta1 = 0.9f,
        .beta2 = 0.99f,
        .epsilon = 1e-4f,
        .bias_correction1 = 0.271f,
        .bias_correction2 = 0.0297f,
    };
}

struct element {
    double w, m, s;
};

/* The formulas of kernel.h in double. */
static struct element stepped(const struct ph__optimizer_step *step, double gradient, struct element x)
{
    const double lr = (double)step->learning_rate;
    const double b1 = (double)step->beta1;
    const double b2 = (double)step->beta2;
    const double eps = (double)step->epsilon;
    const double g = gradient * (double)step->gradient_scale + (double)step->l2 * x.w;
    switch (step->kind) {
    case PH_MOMENTUM:
        x.m = (double)step->momentum * x.m + g;
        x.w -= lr * (step->is_nesterov ? g + (double)step->momentum * x.m : x.m);
        return x;
    case PH_ADAGRAD:
        x.s += g * g;
        x.w -= lr * g / (sqrt(x.s) + eps);
        return x;
    case PH_ADAM:
    case PH_ADAMW:
        if (step->kind == PH_ADAMW)
            x.w -= lr * (double)step->weight_decay * x.w;
        x.m = b1 * x.m + (1 - b1) * g;
        x.s = b2 * x.s + (1 - b2) * g * g;
        x.w -=
            lr * (x.m / (double)step->bias_correction1) / (sqrt(x.s / (double)step->bias_correction2) + eps);
        return x;
    default:
        x.w -= lr * g;
        return x;
    }
}

static void check_step(
    const struct ph__kernels *kernels, const struct ph__optimizer_step *step, size_t n, int has_gradient)
{
    const float *grad = random_floats(n, -1, 1);
    float *w = random_floats(n, -1, 1);
    float *m = random_floats(n, -1, 1);
    float *s = random_floats(n, 0, 2);
    const float *w0 = copied_floats(n, w);
    const float *m0 = copied_floats(n, m);
    const float *s0 = copied_floats(n, s);
    const int has_m = step->kind == PH_MOMENTUM || step->kind >= PH_ADAM;
    const int has_s = step->kind == PH_ADAGRAD || step->kind >= PH_ADAM;
    kernels->optimizer_update(step, n, has_gradient ? grad : NULL, w, has_m ? m : NULL, has_s ? s : NULL);
    for (size_t i = 0; i < n; i++) {
        const struct element before = {(double)w0[i], (double)m0[i], (double)s0[i]};
        const struct element after = stepped(step, has_gradient ? (double)grad[i] : 0, before);
        assert_near((double)w[i], after.w, 1e-6, 2e-6);
        assert_near((double)m[i], after.m, 1e-6, 1e-6);
        assert_near((double)s[i], after.s, 1e-6, 1e-6);
    }
}

static void check_formulas(const struct ph__kernels *kernels)
{
    const enum ph_optimizer_kind kinds[] = {PH_SGD, PH_MOMENTUM, PH_ADAGRAD, PH_ADAM, PH_ADAMW};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t n = 0; n <= 70; n++) {
            reset_arrays(NULL);
            const struct ph__optimizer_step step = some_step(kinds[k], n % 2);
            check_step(kernels, &step, n, 1);
            check_step(kernels, &step, n, 0);
        }
    }
}

static void every_optimizer_follows_its_formula(void **state)
{
    (void)state;
    on_every_isa(check_formulas);
}

static void check_rest(const struct ph__kernels *kernels)
{
    struct ph__optimizer_step step = some_step(PH_ADAGRAD, 0);
    step.l2 = 0;
    step.epsilon = 1e-10f;
    float w[19], s[19] = {0};
    for (size_t i = 0; i < 19; i++)
        w[i] = (float)i;
    kernels->optimizer_update(&step, 19, NULL, w, NULL, s);
    for (size_t i = 0; i < 19; i++)
        assert_true(w[i] == (float)i && s[i] == 0);
}

static void adagrad_without_gradient_stands_still(void **state)
{
    (void)state;
    on_every_isa(check_rest);
}

static void check_nan(const struct ph__kernels *kernels)
{
    for (size_t at = 0; at < 21; at++) {
        const struct ph__optimizer_step step = some_step(PH_ADAM, 0);
        float grad[21] = {0}, w[21] = {0}, m[21] = {0}, s[21] = {0};
        grad[at] = NAN;
        kernels->optimizer_update(&step, 21, grad, w, m, s);
        for (size_t i = 0; i < 21; i++)
            assert_int_equal(isnan(w[i]), i == at);
    }
}

static void nan_gradient_reaches_its_own_weight_only(void **state)
{
    (void)state;
    on_every_isa(check_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_optimizer_follows_its_formula, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(adagrad_without_gradient_stands_still, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(nan_gradient_reaches_its_own_weight_only, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
