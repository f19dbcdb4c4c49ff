/* The correction for sampled negatives, against the definition and against sampling. */
#include "serve/probability.h"

#include <math.h>

#include "base/rng.h"
#include "support/test_support.h"

static double corrected(double p, double rate)
{
    return ph__sigmoid(log(p / (1 - p)) + ph__negative_rate_shift(rate));
}

static void correction_is_that_of_the_paper(void **state)
{
    (void)state;
    static const double rates[] = {1, 0.5, 0.1, 0.025, 1e-4};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (double p = 0.01; p < 1; p += 0.07)
            assert_near(corrected(p, rates[i]), p / (p + (1 - p) / rates[i]), 1e-12, 1e-12);
}

static void all_negatives_need_no_correction(void **state)
{
    (void)state;
    assert_true(ph__negative_rate_shift(1) == 0);
    assert_true(ph__negative_rate_shift(0) == 0);
}

/* Clicks drawn with probability q, of whose misses a tenth is kept: what remains clicks with some p, and p corrected is
 * q again. */
static void correction_undoes_what_sampling_does_to_a_base_rate(void **state)
{
    (void)state;
    enum { ROWS = 400000 };
    const double rate = 0.1;
    struct ph_rng_sequence random = {.key.seed = test_seed()};
    for (double q = 0.02; q < 0.6; q *= 3) {
        double positives = 0, kept = 0;
        for (int i = 0; i < ROWS; i++) {
            int label = ph__rng_next_uniform(&random) < q;
            if (!label && ph__rng_next_uniform(&random) >= rate)
                continue;
            positives += label;
            kept++;
        }
        double relative_error = sqrt(1 / positives + 1 / (kept - positives));
        assert_near(corrected(positives / kept, rate), q, 5 * relative_error * q, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correction_is_that_of_the_paper),
        cmocka_unit_test(all_negatives_need_no_correction),
        cmocka_unit_test(correction_undoes_what_sampling_does_to_a_base_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
