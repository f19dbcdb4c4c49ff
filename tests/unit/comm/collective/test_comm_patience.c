#include "comm/collective/comm_patience.h"

#include <stdio.h>
#include <string.h>

#include "base/thread/cpu.h"
#include "comm/collective/comm_inside.h"
#include "support/thread_ranks.h"

enum { SPINS = PH_PATIENCE_SPINS, OFFERS = PH_PATIENCE_OFFERS, SLEEPS = PH_PATIENCE_SLEEPS };

static void the_own_processors_are_those_of_this_process(void **state)
{
    (void)state;
    struct ph__processors own, all = PH_NO_PROCESSORS;
    ph__processors_own(&own);
    assert_int_equal(own.most, ph__cpu_count());
    ph__processors_join(&all, &own);
    assert_int_equal(ph__processors_count(&all), ph__cpu_count());
}

static uint64_t count_together(const struct ph__processors *processes, size_t count)
{
    struct ph__processors all = PH_NO_PROCESSORS;
    for (size_t i = 0; i < count; i++)
        ph__processors_join(&all, &processes[i]);
    return ph__processors_count(&all);
}

static void processes_share_processors_or_have_some_each(void **state)
{
    (void)state;
    const struct ph__processors shared[] = {{{0xF}, 4}, {{0xF}, 4}};
    const struct ph__processors bound[] = {{{1}, 1}, {{2}, 1}, {{0, 1}, 1}};
    const struct ph__processors under_a_quota[] = {{{0xFF}, 2}, {{0xFF}, 2}, {{0xFF}, 2}};
    const struct ph__processors unknown[] = {{{0}, 6}, {{0}, 6}};
    assert_int_equal(count_together(shared, 2), 4);
    assert_int_equal(count_together(bound, 3), 3);
    assert_int_equal(count_together(under_a_quota, 3), 2);
    assert_int_equal(count_together(unknown, 2), 6);
}

/* The stage of one that nothing has come for so long, and how long it sleeps. */
static enum ph__patience_stage stage_after(bool is_crowded, uint64_t idle_ns, uint64_t *sleep_ns_out)
{
    struct ph__patience patience = {.is_crowded = is_crowded};
    ph__patience_reset(&patience, 1000);
    return ph__patience_stage(&patience, 1000 + idle_ns, sleep_ns_out);
}

static void the_longer_nothing_comes_the_less_a_rank_takes_of_its_core(void **state)
{
    (void)state;
    static const struct {
        bool is_crowded;
        uint64_t idle_ns;
        int stage;
        uint64_t sleep_ns;
    } cases[] = {
        {false, 0, SPINS, 0},
        {false, 99999, SPINS, 0},
        {false, 100000, OFFERS, 0},
        {false, 9999999, OFFERS, 0},
        {false, 10000000, SLEEPS, 20000},
        {false, 10800000, SLEEPS, 100000},
        {false, 11600000, SLEEPS, 200000},
        {true, 0, SPINS, 0},
        {true, 1999, SPINS, 0},
        {true, 2000, OFFERS, 0},
        {true, 99999, OFFERS, 0},
        {true, 100000, SLEEPS, 20000},
        {true, 900000, SLEEPS, 100000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t sleep_ns;
        assert_int_equal(stage_after(cases[i].is_crowded, cases[i].idle_ns, &sleep_ns), cases[i].stage);
        assert_int_equal(sleep_ns, cases[i].sleep_ns);
    }
}

/* However long nothing has come, whoever waits comes back to look. */
static void no_sleep_is_a_long_one(void **state)
{
    (void)state;
    for (int is_crowded = 0; is_crowded <= 1; is_crowded++) {
        for (uint64_t idle_ns = 10000000; idle_ns < UINT64_MAX / 3; idle_ns *= 3) {
            uint64_t sleep_ns;
            assert_int_equal(stage_after(is_crowded != 0, idle_ns, &sleep_ns), SLEEPS);
            assert_in_range(sleep_ns, 20000, 200000);
        }
    }
}

/* Rank 0 waits so long for rank 1, which does not come before it has failed. */
struct waiting {
    bool is_crowded;
    uint64_t timeout_ns;
    enum ph__patience_stage stage; /* in which the time is over */
};

static ph_status wait_in_vain(struct ph_comm *comm, void *context)
{
    struct waiting *waiting = context;
    uint64_t sleep_ns;
    if (ph_comm_rank(comm) == 1) {
        for (;;)
            PH_TRY(ph__comm_progress(comm));
    }
    comm->patience.is_crowded = waiting->is_crowded;
    comm->timeout_ns = waiting->timeout_ns;
    const ph_status status = ph__comm_barrier(comm);
    waiting->stage =
        ph__patience_stage(&comm->patience, comm->patience.since_ns + waiting->timeout_ns, &sleep_ns);
    return status;
}

static void check_wait(bool is_crowded, uint64_t timeout_ns, enum ph__patience_stage stage)
{
    struct thread_rank_end ends[2];
    struct waiting waiting = {is_crowded, timeout_ns, PH_PATIENCE_SPINS};
    char wanted[96];
    snprintf(wanted, sizeof wanted, "barrier timed out: rank 0 has waited %.3g s for rank 1 (process ",
        (double)timeout_ns * 1e-9);
    thread_ranks_run(&(struct thread_ranks){.world_size = 2}, wait_in_vain, &waiting, ends);
    assert_int_equal(waiting.stage, stage);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_PEER);
        assert_ptr_equal(strstr(ends[rank].text, wanted), ends[rank].text);
    }
}

static void a_wait_ends_with_its_time_out_at_every_stage(void **state)
{
    (void)state;
    check_wait(false, 50000, PH_PATIENCE_SPINS);
    check_wait(false, 5000000, PH_PATIENCE_OFFERS);
    check_wait(false, 50000000, PH_PATIENCE_SLEEPS);
    check_wait(true, 1000, PH_PATIENCE_SPINS);
    check_wait(true, 50000, PH_PATIENCE_OFFERS);
    check_wait(true, 50000000, PH_PATIENCE_SLEEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_own_processors_are_those_of_this_process),
        cmocka_unit_test(processes_share_processors_or_have_some_each),
        cmocka_unit_test(the_longer_nothing_comes_the_less_a_rank_takes_of_its_core),
        cmocka_unit_test(no_sleep_is_a_long_one),
        cmocka_unit_test(a_wait_ends_with_its_time_out_at_every_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
