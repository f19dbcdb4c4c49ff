#include "comm/comm_patience.h"

#include "base/cpu.h"
#include "support/test_support.h"

static void the_own_processors_are_those_of_this_process(void **state)
{
    (void)state;
    struct ph_processors own, all = PH_NO_PROCESSORS;
    ph__processors_own(&own);
    assert_int_equal(own.most, ph__cpu_count());
    ph__processors_join(&all, &own);
    assert_int_equal(ph__processors_count(&all), ph__cpu_count());
}

static uint64_t count_together(const struct ph_processors *processes, size_t count)
{
    struct ph_processors all = PH_NO_PROCESSORS;
    for (size_t i = 0; i < count; i++)
        ph__processors_join(&all, &processes[i]);
    return ph__processors_count(&all);
}

static void processes_share_processors_or_have_some_each(void **state)
{
    (void)state;
    const struct ph_processors shared[] = {{{0xF}, 4}, {{0xF}, 4}};
    const struct ph_processors bound[] = {{{1}, 1}, {{2}, 1}, {{0, 1}, 1}};
    const struct ph_processors under_a_quota[] = {{{0xFF}, 2}, {{0xFF}, 2}, {{0xFF}, 2}};
    const struct ph_processors unknown[] = {{{0}, 6}, {{0}, 6}};
    assert_int_equal(count_together(shared, 2), 4);
    assert_int_equal(count_together(bound, 3), 3);
    assert_int_equal(count_together(under_a_quota, 3), 2);
    assert_int_equal(count_together(unknown, 2), 6);
}

/* However long nothing has come, whoever waits comes back to look. */
static void patience_ends_at_every_stage(void **state)
{
    (void)state;
    for (int is_crowded = 0; is_crowded <= 1; is_crowded++) {
        struct ph_patience patience = {.is_crowded = is_crowded != 0};
        ph__patience_reset(&patience, 1000);
        for (uint64_t idle_ns = 0; idle_ns < 10000000000000u; idle_ns = idle_ns * 3 + 1)
            ph__patience_pass(&patience, 1000 + idle_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_own_processors_are_those_of_this_process),
        cmocka_unit_test(processes_share_processors_or_have_some_each),
        cmocka_unit_test(patience_ends_at_every_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
