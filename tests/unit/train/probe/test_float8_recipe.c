/* Recipes of eight bits: what shares a scale, which format an operand has, and errors that are known. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"
#include "tensor/float8.h"
#include "train/probe/float8_recipe.h"

enum { ROWS = 256, TERMS = 200 };

static ph_real numbers[ROWS * TERMS], rounded[ROWS * TERMS];

static int fill_numbers(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < ROWS * TERMS; i++)
        numbers[i] = (ph_real)ph__rng_next_normal(&random);
    return 0;
}

/* Returns which numbers change when number 0 becomes a thousand times the largest: those that share its
 * scale, as most of them fall among the format's subnormals. Counted in rows and terms. */
static void find_sharing(
    enum ph__float8_recipe recipe, enum ph__float8_operand operand, size_t *rows_out, size_t *terms_out)
{
    static ph_real others[ROWS * TERMS];
    const ph_real first = numbers[0];
    ph__float8_round_operand(recipe, operand, 0, ROWS, TERMS, numbers, rounded);
    numbers[0] = 1e6f;
    ph__float8_round_operand(recipe, operand, 0, ROWS, TERMS, numbers, others);
    numbers[0] = first;
    *rows_out = *terms_out = 0;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t k = 0; k < TERMS; k++)
            if ((r > 0 || k > 0) && rounded[r * TERMS + k] != others[r * TERMS + k]) {
                *rows_out = r + 1 > *rows_out ? r + 1 : *rows_out;
                *terms_out = k + 1 > *terms_out ? k + 1 : *terms_out;
            }
}

static void scales_are_shared_as_the_recipe_says(void **state)
{
    (void)state;
    static const struct {
        enum ph__float8_recipe recipe;
        enum ph__float8_operand operand;
        size_t rows, terms;
    } cases[] = {{PH_FLOAT8_TENSOR, PH_FLOAT8_X, ROWS, TERMS}, {PH_FLOAT8_ROW, PH_FLOAT8_X, 1, TERMS},
        {PH_FLOAT8_ROW, PH_FLOAT8_W_TRANSPOSED, 1, TERMS}, {PH_FLOAT8_ROW_GW_HP, PH_FLOAT8_DY, 1, TERMS},
        {PH_FLOAT8_ROW_GW_HP, PH_FLOAT8_W_TRANSPOSED, ROWS, TERMS}, {PH_FLOAT8_BLOCK, PH_FLOAT8_X, 1, 128},
        {PH_FLOAT8_BLOCK, PH_FLOAT8_W, 128, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t rows, terms;
        find_sharing(cases[i].recipe, cases[i].operand, &rows, &terms);
        if (rows != cases[i].rows || terms != cases[i].terms)
            fail_msg("case %zu: numbers of %zu x %zu share a scale", i, rows, terms);
    }
}

/* Returns the error of a rounded operand relative to its size, Frobenius norms. */
static double error_of(enum ph__float8_recipe recipe, enum ph__float8_operand operand)
{
    double error = 0, size = 0;
    ph__float8_round_operand(recipe, operand, 0, ROWS, TERMS, numbers, rounded);
    for (size_t i = 0; i < ROWS * TERMS; i++) {
        error += ((double)rounded[i] - (double)numbers[i]) * ((double)rounded[i] - (double)numbers[i]);
        size += (double)numbers[i] * (double)numbers[i];
    }
    return sqrt(error / size);
}

/* A mantissa of three bits errs by 2.6% of normal numbers, one of two bits by 5.3%; granularity is nothing to
 * numbers of one scale. Powers of two leave numbers as they are. */
static void errors_are_those_of_the_mantissa(void **state)
{
    (void)state;
    for (enum ph__float8_recipe recipe = 0; recipe < PH_FLOAT8_COUNT; recipe++) {
        const double x = error_of(recipe, PH_FLOAT8_X), dy = error_of(recipe, PH_FLOAT8_DY);
        print_message("recipe %d: X %.4f, dY %.4f\n", (int)recipe, x, dy);
        assert_true(x > .024 && x < .029);
        assert_true(
            recipe == PH_FLOAT8_TENSOR || recipe == PH_FLOAT8_DELAYED ? dy > .048 && dy < .058 : dy == x);
    }
    for (size_t i = 0; i < ROWS * TERMS; i++)
        numbers[i] = ldexpf(i % 2 == 0 ? 1 : -1, (int)(i % 7));
    ph__float8_round_operand(PH_FLOAT8_ROW, PH_FLOAT8_X, 0, ROWS, TERMS, numbers, rounded);
    assert_memory_equal(rounded, numbers, sizeof numbers);
    /* Delayed: 64 is the largest number here, and was half as large before. */
    ph__float8_round_operand(PH_FLOAT8_DELAYED, PH_FLOAT8_X, 32, ROWS, TERMS, numbers, rounded);
    for (size_t i = 0; i < ROWS * TERMS; i++)
        assert_true(rounded[i] == fmaxf(-32, fminf(32, numbers[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_shared_as_the_recipe_says),
        cmocka_unit_test(errors_are_those_of_the_mantissa),
    };
    return cmocka_run_group_tests(tests, fill_numbers, NULL);
}
