#include "study/halving.h"

#include "support/test_support.h"

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
        cmocka_unit_test(rungs_are_those_of_the_paper),
        cmocka_unit_test(what_does_not_divide_is_rounded_down_and_cut),
        cmocka_unit_test(one_rung_is_everybody_to_the_end),
        cmocka_unit_test(rungs_are_few_whatever_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
