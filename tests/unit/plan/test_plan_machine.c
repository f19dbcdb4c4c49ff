/* Nominal figures: one table, which says of each where it is from. */
#include "plan/plan_machine.h"

#include <math.h>

#include "support/test_support.h"

static void every_nominal_figure_has_a_name_a_value_and_a_source(void **state)
{
    (void)state;
    const struct ph_plan_machine machine = ph__plan_machine_nominal(0);
    for (size_t i = 0; i < PH_PLAN_NUM_FIGURES; i++) {
        const struct ph_plan_figure *figure = &ph__plan_figures[i];
        assert_true(figure->name[0] != '\0' && figure->source[0] != '\0');
        assert_true(isfinite(figure->nominal) && figure->nominal > 0);
        assert_true(ph__plan_machine_figure(&machine, figure) == figure->nominal);
        for (size_t other = 0; other < i; other++)
            assert_true(ph__plan_figures[other].offset != figure->offset);
    }
}

static void the_nominal_machine_has_all_of_them_and_the_limit(void **state)
{
    (void)state;
    const struct ph_plan_machine machine = ph__plan_machine_nominal(12345);
    assert_int_equal(machine.rank_bytes, 12345);
    assert_true(machine.memory_bytes_per_s > machine.host_bytes_per_s);
    assert_true(machine.host_bytes_per_s > machine.network_bytes_per_s);
    assert_true(machine.network_bytes_per_s > 0);
}

static void a_measured_figure_takes_the_place_of_one_nominal_figure(void **state)
{
    (void)state;
    for (size_t i = 0; i < PH_PLAN_NUM_FIGURES; i++) {
        struct ph_plan_machine machine = ph__plan_machine_nominal(0);
        ph__plan_machine_set(&machine, &ph__plan_figures[i], 7);
        for (size_t other = 0; other < PH_PLAN_NUM_FIGURES; other++) {
            const struct ph_plan_figure *figure = &ph__plan_figures[other];
            assert_true(ph__plan_machine_figure(&machine, figure) == (other == i ? 7 : figure->nominal));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_nominal_figure_has_a_name_a_value_and_a_source),
        cmocka_unit_test(the_nominal_machine_has_all_of_them_and_the_limit),
        cmocka_unit_test(a_measured_figure_takes_the_place_of_one_nominal_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
