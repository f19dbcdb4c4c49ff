#include "base/statistics.h"

#include <math.h>

#include "support/test_support.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void the_middle_and_the_spread_are_those_of_the_textbook(void **state)
{
    (void)state;
    static const double values[] = {
        2, 4, 4, 4, 5, 5, 7, 9}; /* squares of the distances from 5 add up to 32 */
    double median;
    assert_true(ph__mean(values, 8) == 5);
    assert_near(ph__sample_deviation(values, 8), sqrt(32.0 / 7), 0, 1e-15);
    assert_ok(ph__median(values, 8, &median));
    assert_true(median == 4.5);
    static const double unsorted[] = {3, -1, 10};
    assert_ok(ph__median(unsorted, 3, &median));
    assert_true(median == 3 && unsorted[0] == 3 && unsorted[2] == 10);
    double sorted[] = {3, -1, 10, 4};
    ph__sort_numbers(sorted, 4);
    assert_true(sorted[0] == -1 && sorted[1] == 3 && sorted[2] == 4 && sorted[3] == 10);
    assert_true(ph__sorted_median(sorted, 4) == 3.5 && ph__sorted_median(sorted, 3) == 3);
}

static void what_too_few_numbers_do_not_define_is_nan(void **state)
{
    (void)state;
    static const double one[] = {1};
    double median;
    assert_true(isnan(ph__mean(one, 0)) && ph__mean(one, 1) == 1);
    assert_true(isnan(ph__sample_deviation(one, 1)) && isnan(ph__mean_half_width(one, 1, 0.95)));
    assert_ok(ph__median(one, 0, &median));
    assert_true(isnan(median));
    assert_true(isnan(ph__student_t_quantile(0.975, 0)) && isnan(ph__student_t_quantile(1, 3)));
}

/* SciPy 1.17: scipy.stats.t.ppf. */
static void quantiles_are_those_of_the_tables(void **state)
{
    (void)state;
    static const struct {
        size_t degrees_of_freedom;
        double at_90, at_975, at_9995;
    } known[] = {
        {1, 3.07768353717525, 12.7062047361747, 636.61924876879},
        {2, 1.88561808316413, 4.30265272974946, 31.5990545764454},
        {3, 1.63774435369621, 3.18244630528371, 12.923978636688},
        {4, 1.53320627405894, 2.77644510519779, 8.61030158137952},
        {5, 1.47588404882448, 2.57058183563631, 6.86882662588128},
        {7, 1.41492392765051, 2.36462425159278, 5.40788252086183},
        {10, 1.37218364111034, 2.22813885198627, 4.58689385870271},
        {15, 1.34060560785046, 2.13144954555978, 4.07276519590385},
        {30, 1.3104150253914, 2.04227245630124, 3.64595863504206},
        {101, 1.28998980856797, 1.98373100295561, 3.38947488404731},
        {1000, 1.28239872146092, 1.96233908082641, 3.30028264842394},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        const size_t n = known[i].degrees_of_freedom;
        assert_near(ph__student_t_quantile(0.9, n), known[i].at_90, 0, 1e-12);
        assert_near(ph__student_t_quantile(0.975, n), known[i].at_975, 0, 1e-12);
        assert_near(ph__student_t_quantile(0.9995, n), known[i].at_9995, 0, 1e-11);
        assert_near(ph__student_t_quantile(0.1, n), -known[i].at_90, 0, 1e-12);
        assert_near(ph__student_t_quantile(0.5, n), 0, 1e-15, 0);
    }
}

/* The density without its constant factor. */
static double density(double t, double n)
{
    return pow(1 + t * t / n, -(n + 1) / 2);
}

/* The integral of the density from 0 to `to`, by Simpson's rule. */
static double area(double to, double n)
{
    enum { PARTS = 20000 };
    const double step = to / PARTS;
    double sum = density(0, n) + density(to, n);
    for (int i = 1; i < PARTS; i++)
        sum += (i % 2 == 1 ? 4 : 2) * density(i * step, n);
    return sum * step / 3;
}

static void a_quantile_cuts_the_area_under_the_density(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 40; n += 3) {
        const double dof = (double)n;
        const double total = sqrt(dof * acos(-1)) * exp(lgamma(dof / 2) - lgamma((dof + 1) / 2));
        for (double probability = 0.55; probability < 0.99; probability += 0.06)
            assert_near(
                0.5 + area(ph__student_t_quantile(probability, n), dof) / total, probability, 1e-9, 0);
    }
}

/* Gosset's sleep data ("The probable error of a mean", 1908, section IX): ten differences, 1.58 +- .88 at
 * 95%. */
static void an_interval_of_paired_differences_is_that_of_the_paper(void **state)
{
    (void)state;
    static const double gains[] = {1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4};
    assert_near(ph__mean(gains, 10), 1.58, 0, 1e-14);
    assert_near(ph__mean_half_width(gains, 10, 0.95), (2.4598858 - 0.7001142) / 2, 1e-7, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_middle_and_the_spread_are_those_of_the_textbook),
        cmocka_unit_test(what_too_few_numbers_do_not_define_is_nan),
        cmocka_unit_test(quantiles_are_those_of_the_tables),
        cmocka_unit_test(a_quantile_cuts_the_area_under_the_density),
        cmocka_unit_test(an_interval_of_paired_differences_is_that_of_the_paper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
