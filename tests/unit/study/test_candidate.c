#include "study/candidate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct ph__arena arena;

static int drop(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    arena = (struct ph__arena){0};
    return 0;
}

static const char *text_of(const struct ph__range_settings *range, uint64_t index)
{
    const char *text = ph__candidate_value(range, 7, index, &arena);
    assert_non_null(text);
    return text;
}

static double number_of(const struct ph__range_settings *range, uint64_t index)
{
    return strtod(text_of(range, index), NULL);
}

/* Of 4000 draws, the share in each quarter of the scale is a quarter, within five standard deviations of it.
 */
static void expect_even(const struct ph__range_settings *range, const double *quarters)
{
    size_t counts[4] = {0};
    for (uint64_t i = 1; i <= 4000; i++) {
        const double number = number_of(range, i);
        assert_true(number >= range->min && number <= range->max);
        counts[(number >= quarters[0]) + (number >= quarters[1]) + (number >= quarters[2])]++;
    }
    for (size_t i = 0; i < 4; i++)
        assert_near((double)counts[i], 1000, 5 * sqrt(4000 * 0.25 * 0.75), 0);
}

static void values_are_even_on_their_scale(void **state)
{
    (void)state;
    static const double linear[] = {0.25, 0.5, 0.75}, logarithmic[] = {1e-3, 1e-2, 1e-1}, whole[] = {3, 5, 7};
    expect_even(&(struct ph__range_settings){.key = "a", .min = 0, .max = 1}, linear);
    expect_even(
        &(struct ph__range_settings){.key = "b", .min = 1e-4, .max = 1, .scale = PH_RANGE_LOG}, logarithmic);
    expect_even(
        &(struct ph__range_settings){.key = "c", .min = 1, .max = 8, .kind = PH_RANGE_INTEGER}, whole);
}

static void numbers_have_four_digits_and_stay_in_the_range(void **state)
{
    (void)state;
    const struct ph__range_settings range = {.key = "a", .min = 0.123456, .max = 0.123459};
    for (uint64_t i = 1; i < 100; i++) {
        const double number = number_of(&range, i);
        assert_true(number >= range.min && number <= range.max);
    }
    const struct ph__range_settings wide = {.key = "a", .min = 1, .max = 2};
    for (uint64_t i = 1; i < 100; i++)
        assert_true(strlen(text_of(&wide, i)) <= strlen("1.234"));
}

static void integers_reach_both_ends(void **state)
{
    (void)state;
    const struct ph__range_settings range = {
        .key = "a", .min = 2, .max = 4, .kind = PH_RANGE_INTEGER, .scale = PH_RANGE_LOG};
    size_t counts[5] = {0};
    for (uint64_t i = 1; i < 1000; i++)
        counts[(size_t)number_of(&range, i)]++;
    assert_int_equal(counts[0] + counts[1], 0);
    assert_true(counts[2] > 200 && counts[3] > 200 && counts[4] > 150);
}

static void listed_values_are_as_they_stand(void **state)
{
    (void)state;
    const struct ph__range_settings range = {.key = "a", .values = {3, {"0", "400,400", "true"}}};
    size_t counts[3] = {0};
    for (uint64_t i = 1; i < 3000; i++)
        for (size_t v = 0; v < 3; v++)
            counts[v] += strcmp(text_of(&range, i), range.values.items[v]) == 0;
    assert_int_equal(counts[0] + counts[1] + counts[2], 2999);
    assert_true(counts[0] > 850 && counts[1] > 850 && counts[2] > 850);
}

/* The same whatever else is varied, in whatever order; another seed, other values. */
static void a_value_hangs_on_seed_key_and_number_alone(void **state)
{
    (void)state;
    struct ph__range_settings ranges[] = {{.key = "a", .min = 0, .max = 1}, {.key = "b", .min = 0, .max = 1}};
    struct ph__range_settings turned[] = {ranges[1], ranges[0]};
    const struct ph__tune_settings both = {.seed = 7, .ranges = {2, ranges}};
    const struct ph__tune_settings other = {.seed = 7, .ranges = {2, turned}};
    const struct ph__tune_settings reseeded = {.seed = 8, .ranges = {2, ranges}};
    const char *const *sets[3];
    size_t num_sets;
    for (uint64_t i = 1; i < 20; i++) {
        assert_ok(ph__candidate_sets(&both, i, &arena, &sets[0], &num_sets));
        assert_int_equal(num_sets, 2);
        assert_ok(ph__candidate_sets(&other, i, &arena, &sets[1], &num_sets));
        assert_ok(ph__candidate_sets(&reseeded, i, &arena, &sets[2], &num_sets));
        assert_string_equal(sets[0][0], sets[1][1]);
        assert_string_equal(sets[0][1], sets[1][0]);
        assert_string_not_equal(sets[0][0], sets[2][0]);
        assert_string_not_equal(sets[0][0] + 1, sets[0][1] + 1);
        assert_int_equal(strncmp(sets[0][0], "a=0.", 4), 0);
    }
    assert_ok(ph__candidate_sets(&both, 0, &arena, &sets[0], &num_sets));
    assert_int_equal(num_sets, 0);
}

static void ranges_that_contradict_themselves_are_named(void **state)
{
    (void)state;
    static const struct {
        struct ph__range_settings range;
        const char *part;
    } wrong[] = {
        {{.key = "a"}, "requires min and max, or values"},
        {{.key = "a", .max = 1, .values = {1, {"1"}}}, "both"},
        {{.key = "a", .min = 1, .max = 1}, "below"},
        {{.key = "a", .min = 2, .max = 1}, "below"},
        {{.key = "a", .min = 0, .max = 1, .scale = PH_RANGE_LOG}, "above 0"},
        {{.key = "a", .min = 0.5, .max = 1, .kind = PH_RANGE_INTEGER}, "integers"},
        {{.key = "seed", .max = 1}, "cannot be tuned"},
        {{.key = "data.test", .values = {1, {"x"}}}, "cannot be tuned"},
        {{.key = "tune.runs", .max = 1}, "cannot be tuned"},
    };
    struct ph__range_settings twice[] = {
        {.key = "x", .max = 1}, {.key = "y", .max = 1}, {.key = "x", .max = 2}};
    struct ph__range_settings epochs = {.key = "train.epochs", .min = 1, .max = 5};
    struct ph__tune_settings tune = {0};
    assert_fails(ph__ranges_check(&tune), PH_ERROR_CONFIG, "tune.ranges is empty");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct ph__range_settings range = wrong[i].range;
        tune.ranges = (struct ph__record_list){1, &range};
        assert_fails(ph__ranges_check(&tune), PH_ERROR_CONFIG, wrong[i].part);
    }
    tune.ranges = (struct ph__record_list){3, twice};
    assert_fails(ph__ranges_check(&tune), PH_ERROR_CONFIG, "tune.ranges[2]: x is given twice");
    tune.ranges = (struct ph__record_list){1, &epochs};
    assert_ok(ph__ranges_check(&tune));
    tune.search = PH_TUNE_HALVING;
    assert_fails(ph__ranges_check(&tune), PH_ERROR_CONFIG, "train.epochs");
}

static struct ph__rung rungs[PH_MAX_RUNGS];

static void expect(size_t count, const struct ph__rung *wanted, size_t num_wanted)
{
    assert_int_equal(count, num_wanted);
    for (size_t i = 0; i < num_wanted; i++) {
        assert_int_equal(rungs[i].num_candidates, wanted[i].num_candidates);
        assert_int_equal(rungs[i].epochs, wanted[i].epochs);
    }
}

/* The brackets of Hyperband, table 1: R = 81, eta = 3. */
static void rungs_are_those_of_the_paper(void **state)
{
    (void)state;
    static const struct ph__rung most[] = {{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}};
    static const struct ph__rung fewer[] = {{27, 3}, {9, 9}, {3, 27}, {1, 81}};
    expect(ph__halving_rungs(81, 3, 1, 81, rungs), most, 5);
    expect(ph__halving_rungs(27, 3, 3, 81, rungs), fewer, 4);
}

static void what_does_not_divide_is_rounded_down_and_cut(void **state)
{
    (void)state;
    static const struct ph__rung uneven[] = {{10, 2}, {5, 4}, {2, 8}, {1, 16}, {1, 20}};
    expect(ph__halving_rungs(10, 2, 2, 20, rungs), uneven, 5);
    static const struct ph__rung few[] = {{2, 1}, {1, 3}, {1, 9}};
    expect(ph__halving_rungs(2, 3, 1, 9, rungs), few, 3);
}

static void one_rung_is_everybody_to_the_end(void **state)
{
    (void)state;
    static const struct ph__rung all[] = {{7, 5}};
    expect(ph__halving_rungs(7, 3, 5, 5, rungs), all, 1);
    expect(ph__halving_rungs(7, 3, 9, 5, rungs), all, 1);
}

static void rungs_are_few_whatever_the_numbers(void **state)
{
    (void)state;
    const size_t count = ph__halving_rungs(10000, 2, 1, INT64_MAX, rungs);
    assert_int_equal(count, 64);
    assert_int_equal(rungs[count - 1].epochs, INT64_MAX);
    assert_int_equal(rungs[count - 1].num_candidates, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(values_are_even_on_their_scale, drop),
        cmocka_unit_test_teardown(numbers_have_four_digits_and_stay_in_the_range, drop),
        cmocka_unit_test_teardown(integers_reach_both_ends, drop),
        cmocka_unit_test_teardown(listed_values_are_as_they_stand, drop),
        cmocka_unit_test_teardown(a_value_hangs_on_seed_key_and_number_alone, drop),
        cmocka_unit_test_teardown(ranges_that_contradict_themselves_are_named, drop),
        cmocka_unit_test(rungs_are_those_of_the_paper),
        cmocka_unit_test(what_does_not_divide_is_rounded_down_and_cut),
        cmocka_unit_test(one_rung_is_everybody_to_the_end),
        cmocka_unit_test(rungs_are_few_whatever_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
