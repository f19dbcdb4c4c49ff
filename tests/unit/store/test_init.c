#include "store/init.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"
#include "tensor/float16.h"
#include "tensor/row_format.h"

enum { ROWS = 4001, COLUMNS = 23 };

static ph_real *fill(
    struct ph_init init, const char *name, size_t rows, size_t columns, struct ph__team *team)
{
    ph_real *data = calloc(rows * columns + 1, sizeof *data);
    assert_non_null(data);
    const struct ph__init_target target = {.name = name,
        .rows = rows,
        .columns = columns,
        .whole_rows = rows,
        .whole_columns = columns,
        .data = data};
    ph__init_fill(&init, test_seed(), &target, team);
    return data;
}

static void rows_in_fewer_bytes_begin_with_the_nearest_of_the_same_values(void **state)
{
    (void)state;
    enum { WIDE = 700 };
    const struct ph_init inits[] = {{PH_INIT_NORMAL, 0.3}, {PH_INIT_CONSTANT, 0.7}};
    static const enum ph_row_format formats[] = {PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    uint16_t *words = calloc((size_t)20 * WIDE, sizeof *words), *low = calloc((size_t)20 * WIDE, sizeof *low);
    uint16_t *wanted = calloc((size_t)20 * WIDE, sizeof *wanted);
    assert_true(words != NULL && low != NULL && wanted != NULL);
    for (size_t i = 0; i < 6; i++) {
        const struct ph_init init = inits[i / 3];
        const struct ph__init_target target = {.name = "t",
            .rows = 20,
            .columns = WIDE,
            .whole_rows = 20,
            .whole_columns = WIDE,
            .row_format = formats[i % 3],
            .data = words,
            .low = formats[i % 3] == PH_ROWS_BF16_SPLIT ? low : NULL};
        ph_real *numbers = fill(init, "t", 20, WIDE, NULL);
        ph__init_fill(&init, test_seed(), &target, NULL);
        ph__rows_encode(formats[i % 3], 20, WIDE, numbers, wanted, NULL);
        assert_memory_equal(words, wanted, (size_t)20 * WIDE * sizeof *words);
        for (size_t k = 0; target.low != NULL && k < (size_t)20 * WIDE; k++)
            assert_true(ph__join_float(words[k], low[k]) == (float)numbers[k]);
        free(numbers);
    }
    free(words);
    free(low);
    free(wanted);
}

struct moments {
    double mean, variance, kurtosis, most;
};

static struct moments measure(const ph_real *data, size_t count)
{
    struct moments result = {0};
    for (size_t i = 0; i < count; i++)
        result.mean += (double)data[i] / (double)count;
    double fourth = 0;
    for (size_t i = 0; i < count; i++) {
        const double difference = (double)data[i] - result.mean;
        result.variance += difference * difference / (double)count;
        fourth += difference * difference * difference * difference / (double)count;
        result.most = fmax(result.most, fabs((double)data[i]));
    }
    result.kurtosis = fourth / (result.variance * result.variance);
    return result;
}

static void normal_has_the_moments_of_a_normal(void **state)
{
    (void)state;
    ph_real *data = fill((struct ph_init){PH_INIT_NORMAL, 0.5}, "w", ROWS, COLUMNS, NULL);
    const struct moments moments = measure(data, ROWS * COLUMNS);
    assert_near(moments.mean, 0, 0.01, 0);
    assert_near(moments.variance, 0.25, 0, 0.03);
    assert_near(moments.kurtosis, 3, 0.15, 0);
    assert_true(moments.most > 0.5 * 3.5 && moments.most < 0.5 * 7);
    free(data);
}

/* Share of values below z against the distribution function. */
static void normal_has_the_quantiles_of_a_normal(void **state)
{
    (void)state;
    ph_real *data = fill((struct ph_init){PH_INIT_NORMAL, 1}, "w", ROWS, COLUMNS, NULL);
    for (double z = -3; z <= 3; z += 0.25) {
        size_t below = 0;
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            below += (double)data[i] < z;
        assert_near((double)below / (ROWS * COLUMNS), 0.5 * erfc(-z / sqrt(2)), 0.008, 0);
    }
    free(data);
}

static void neighbours_are_uncorrelated(void **state)
{
    (void)state;
    ph_real *data = fill((struct ph_init){PH_INIT_NORMAL, 1}, "w", ROWS, COLUMNS, NULL);
    const size_t distances[] = {1, 2, 3, 4, COLUMNS};
    for (size_t k = 0; k < sizeof distances / sizeof *distances; k++) {
        const size_t count = ROWS * COLUMNS - distances[k];
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += (double)data[i] * (double)data[i + distances[k]];
        assert_near(sum / (double)count, 0, 0.016, 0);
    }
    free(data);
}

static void uniform_fills_its_interval(void **state)
{
    (void)state;
    ph_real *data = fill((struct ph_init){PH_INIT_UNIFORM, 0.2}, "w", ROWS, COLUMNS, NULL);
    const struct moments moments = measure(data, ROWS * COLUMNS);
    assert_near(moments.mean, 0, 0.003, 0);
    assert_near(moments.variance, 0.04 / 3, 0, 0.03);
    assert_true(moments.most <= 0.2 && moments.most > 0.199);
    free(data);
}

static void xavier_scales_with_both_fans(void **state)
{
    (void)state;
    const double fans = 300 + 100;
    ph_real *normal = fill((struct ph_init){PH_INIT_XAVIER_NORMAL, 1}, "w", 300, 100, NULL);
    ph_real *uniform = fill((struct ph_init){PH_INIT_XAVIER_UNIFORM, 1}, "w", 300, 100, NULL);
    assert_near(measure(normal, 30000).variance, 2 / fans, 0, 0.05);
    assert_near(measure(uniform, 30000).variance, 2 / fans, 0, 0.05);
    assert_true(measure(uniform, 30000).most <= sqrt(6 / fans));
    free(normal);
    free(uniform);
}

static void constant_is_the_constant(void **state)
{
    (void)state;
    ph_real *data = fill((struct ph_init){PH_INIT_CONSTANT, 0.75}, "w", 3, 5, NULL);
    for (size_t i = 0; i < 15; i++)
        assert_true(data[i] == (ph_real)0.75);
    free(data);
}

static void values_do_not_depend_on_threads(void **state)
{
    (void)state;
    const enum ph_init_kind kinds[] = {PH_INIT_NORMAL, PH_INIT_UNIFORM, PH_INIT_XAVIER_NORMAL};
    for (size_t k = 0; k < 3; k++) {
        const struct ph_init init = {kinds[k], 1};
        ph_real *serial = fill(init, "w", 20011, COLUMNS, NULL);
        for (size_t threads = 1; threads <= 3; threads++) {
            struct ph__team *team;
            assert_ok(ph__team_create(threads, &team));
            ph_real *parallel = fill(init, "w", 20011, COLUMNS, team);
            assert_memory_equal(serial, parallel, 20011 * COLUMNS * sizeof *serial);
            free(parallel);
            ph__team_destroy(team);
        }
        free(serial);
    }
}

static void values_depend_on_name_row_and_column_alone(void **state)
{
    (void)state;
    const struct ph_init init = {PH_INIT_NORMAL, 1};
    ph_real *large = fill(init, "w", 50, 12, NULL);
    ph_real *small = fill(init, "w", 20, 5, NULL);
    ph_real *other = fill(init, "v", 50, 12, NULL);
    for (size_t row = 0; row < 20; row++)
        assert_memory_equal(large + row * 12, small + row * 5, 5 * sizeof *small);
    assert_memory_not_equal(large, other, 50 * 12 * sizeof *large);
    free(large);
    free(small);
    free(other);
}

static void nothing_is_filled_where_nothing_is(void **state)
{
    (void)state;
    free(fill((struct ph_init){PH_INIT_NORMAL, 1}, "w", 0, 4, NULL));
    free(fill((struct ph_init){PH_INIT_XAVIER_NORMAL, 1}, "w", 4, 0, NULL));
}

static void shapes_are_seen_as_matrices(void **state)
{
    (void)state;
    const struct ph_shape shapes[] = {{0, {0}}, {1, {7}}, {2, {3, 4}}, {3, {3, 4, 5}}};
    const size_t rows[] = {1, 1, 3, 3}, columns[] = {1, 7, 4, 20};
    for (size_t i = 0; i < 4; i++) {
        size_t r, c;
        ph__init_matrix(&shapes[i], &r, &c);
        assert_int_equal(r, rows[i]);
        assert_int_equal(c, columns[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_fewer_bytes_begin_with_the_nearest_of_the_same_values),
        cmocka_unit_test(normal_has_the_moments_of_a_normal),
        cmocka_unit_test(normal_has_the_quantiles_of_a_normal),
        cmocka_unit_test(neighbours_are_uncorrelated),
        cmocka_unit_test(uniform_fills_its_interval),
        cmocka_unit_test(xavier_scales_with_both_fans),
        cmocka_unit_test(constant_is_the_constant),
        cmocka_unit_test(values_do_not_depend_on_threads),
        cmocka_unit_test(values_depend_on_name_row_and_column_alone),
        cmocka_unit_test(nothing_is_filled_where_nothing_is),
        cmocka_unit_test(shapes_are_seen_as_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
