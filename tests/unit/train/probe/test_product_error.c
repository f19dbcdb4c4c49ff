/* Errors of products of normal numbers against figures that were reckoned apart, in NumPy (specs of LoKA). */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"
#include "train/probe/product_error.h"

enum { ROWS = 64, TERMS = 512, OUTPUTS = 256 };

static ph_real x[ROWS * TERMS], w[OUTPUTS * TERMS];

/* Fills the operands with normal numbers; those of x are scaled by feature. */
static void fill(double ratio)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < ROWS * TERMS; i++)
        x[i] = (ph_real)(ph__rng_next_normal(&random) * pow(ratio, (double)(i % TERMS) / TERMS));
    for (size_t i = 0; i < OUTPUTS * TERMS; i++)
        w[i] = (ph_real)ph__rng_next_normal(&random);
}

static struct ph__product_error measure(enum ph__arithmetic arithmetic, bool is_backward)
{
    struct ph_backend *backend = NULL;
    struct ph__product_error errors[PH_ARITHMETIC_COUNT];
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    assert_ok(ph__product_errors(
        &(struct ph__probed_product){ROWS, TERMS, OUTPUTS, x, w, is_backward, 0}, backend, errors));
    ph_backend_destroy(backend);
    const struct ph__product_error error = errors[arithmetic];
    print_message("%s: mere %.4f, error %.4f, frobenius %.4f\n", ph__arithmetic_name(arithmetic), error.mere,
        error.error, error.frobenius);
    return error;
}

static void errors_of_normal_numbers_are_known(void **state)
{
    (void)state;
    static const struct {
        enum ph__arithmetic arithmetic;
        bool is_backward;
        double error, frobenius;
    } known[] = {{PH_ARITHMETIC_BF16, false, .008, .0024}, {PH_ARITHMETIC_INT8, false, .037, .0106},
        {PH_ARITHMETIC_E4M3_TENSOR, false, .13, .0375}, {PH_ARITHMETIC_E4M3_ROW, false, .13, .0375},
        {PH_ARITHMETIC_E4M3_ROW_GW, true, .13, .0375}, {PH_ARITHMETIC_E4M3_BLOCK, false, .13, .0375}};
    fill(1);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct ph__product_error error = measure(known[i].arithmetic, known[i].is_backward);
        assert_near(error.error, known[i].error, 0, .15);
        assert_near(error.frobenius, known[i].frobenius, 0, .1);
        assert_true(error.mere > error.error);
    }
    /* Gradients of the recipe tensor have two bits of mantissa. */
    const struct ph__product_error gradient = measure(PH_ARITHMETIC_E4M3_TENSOR, true);
    assert_true(gradient.frobenius > .055 && gradient.frobenius < .065);
}

/* Features of unequal scale cost int8 three times as much, and floats nothing. */
static void int8_minds_unequal_features(void **state)
{
    (void)state;
    fill(1);
    const struct ph__product_error even = measure(PH_ARITHMETIC_INT8, false);
    fill(1000);
    const struct ph__product_error uneven = measure(PH_ARITHMETIC_INT8, false);
    const struct ph__product_error floats = measure(PH_ARITHMETIC_E4M3_ROW, false);
    assert_true(uneven.frobenius > 1.5 * even.frobenius);
    assert_near(floats.frobenius, .0375, 0, .1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_normal_numbers_are_known),
        cmocka_unit_test(int8_minds_unequal_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
