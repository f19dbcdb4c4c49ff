#include "train/ranks/rank_clock.h"

#include "support/staged_messages.h"
#include "support/thread_ranks.h"

static void an_answer_was_read_half_way(void **state)
{
    (void)state;
    assert_near(ph__rank_clock_offset(1000, 1200, 5100), 4000, 0, 0);
    assert_near(ph__rank_clock_offset(5000, 5400, 1200), -4000, 0, 0);
    assert_near(ph__rank_clock_offset(1000, 1200, 1000), 0, 0, 0); /* within what the answer tells */
    assert_near(ph__rank_clock_offset(1000, 1200, 1200), 0, 0, 0);
    assert_near(ph__rank_clock_offset(1000, 1200, 1201), 101, 0, 0);
}

static void a_clock_goes_evenly_between_two_readings(void **state)
{
    (void)state;
    const struct ph__rank_clock first = {1000, 500}, last = {3000, 600};
    const struct ph_trace_clock clock = ph__rank_clock_between(&first, &last);
    assert_int_equal(clock.origin_ns, 1000);
    assert_near(clock.offset_ns, 500, 0, 0);
    assert_near(clock.drift, 0.05, 1e-15, 0);
    assert_near(ph__rank_clock_between(&first, &first).drift, 0, 0, 0);
}

static ph_status read_clock(struct ph_comm *comm, void *context)
{
    struct ph__rank_clock clock;
    (void)context;
    PH_TRY(staged_messages_demand(comm));
    PH_TRY(ph__rank_clock_read(comm, &clock));
    RANK_CHECK(clock.offset_ns == 0 && clock.at_ns > 0);
    return PH_OK;
}

static void ranks_of_one_machine_have_one_clock(void **state)
{
    (void)state;
    for (size_t world_size = 1; world_size <= 4; world_size++)
        thread_ranks_run(&(struct thread_ranks){.world_size = world_size}, read_clock, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_was_read_half_way),
        cmocka_unit_test(a_clock_goes_evenly_between_two_readings),
        cmocka_unit_test(ranks_of_one_machine_have_one_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
