/* A job whose keys two hubs share, as processes, of which hubs and workers are killed again and again while
 * parts of its checkpoints are written: also both hubs at once, and rank 0, which decides what they keep.
 *
 * $PH_TEST_KILLS: how often something is killed (6). The kills are drawn from the seed that is printed. */
#include "hub/hub_kills.h"
#include "support/test_support.h"

static uint32_t num_kills = 6;

static void survives(const char *optimizer)
{
    const struct hub_job job = {.num_workers = 2, .options = {optimizer, "pause_ms=1"}};
    hub_kills_survive(&job, 2, 1, num_kills);
}

static void a_job_of_two_hubs_with_momentum_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    survives("optimizer=momentum");
}

static void a_job_of_two_hubs_with_adam_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    survives("optimizer=adam");
}

#define test_of_job(test) cmocka_unit_test_teardown(test, hub_processes_teardown)

int main(void)
{
    if (!hub_kills_begin(&num_kills))
        return 2;
    const struct CMUnitTest tests[] = {
        test_of_job(a_job_of_two_hubs_with_momentum_survives_kills_bit_for_bit),
        test_of_job(a_job_of_two_hubs_with_adam_survives_kills_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
