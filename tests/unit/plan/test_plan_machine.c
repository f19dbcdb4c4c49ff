#include "plan/plan_machine.h"

#include <math.h>

#include "support/test_support.h"

static void every_width_of_row_is_measured(void **state)
{
    (void)state;
    static const size_t dims[] = {1, 64, 1000};
    struct ph_team *team;
    assert_ok(ph__team_create(2, &team));
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        struct ph_plan_machine machine = {0};
        assert_ok(ph__plan_machine_measure(dims[i], 1, team, &machine));
        assert_true(isfinite(machine.memory_bytes_per_s) && machine.memory_bytes_per_s > 0);
        assert_true(machine.host_bytes_per_s == PH_PLAN_HOST_BYTES_PER_S);
        assert_true(machine.network_bytes_per_s == PH_PLAN_NETWORK_BYTES_PER_S);
        assert_int_equal(machine.rank_bytes, 0);
        print_message("rows of %zu reals: %.2f GB/s\n", dims[i], machine.memory_bytes_per_s / 1e9);
    }
    ph__team_destroy(team);
}

/* What all ranks of a machine take at the same time leaves most of what is free. */
static void ranks_that_measure_at_once_share_what_is_free(void **state)
{
    (void)state;
    const uint64_t mib = 1 << 20;
    assert_int_equal(ph__plan_machine_bytes(4096 * mib, 1), 128 * mib);
    assert_int_equal(ph__plan_machine_bytes(512 * mib, 1), 64 * mib);
    assert_int_equal(ph__plan_machine_bytes(512 * mib, 8), 8 * mib);
    assert_int_equal(ph__plan_machine_bytes(65536 * mib, 64), 128 * mib);
    assert_int_equal(ph__plan_machine_bytes(0, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width_of_row_is_measured),
        cmocka_unit_test(ranks_that_measure_at_once_share_what_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
