/* Links of ranks are measured where there are any; how fast they are is nobody's to assert. */
#include "support/thread_ranks.h"

#include <math.h>

#include "train/link_speed.h"

/* What no link can have. */
static const struct ph_plan_machine unmeasured = {
    .memory_bytes_per_s = -1, .host_bytes_per_s = -2, .network_bytes_per_s = -3, .rank_bytes = 4};

static bool is_speed(double bytes_per_s)
{
    return isfinite(bytes_per_s) && bytes_per_s > 0;
}

/* A group of its size has links. */
static ph_status measure(struct ph_comm *comm, void *context)
{
    const size_t world_size = ph_comm_world_size(comm), ranks_per_host = ph_comm_ranks_per_host(comm);
    struct ph_plan_machine machine = unmeasured;
    (void)context;
    PH_TRY(ph__link_speeds_measure(comm, &machine));
    RANK_CHECK(machine.memory_bytes_per_s == -1 && machine.rank_bytes == 4);
    if (ranks_per_host > 1)
        RANK_CHECK(is_speed(machine.host_bytes_per_s));
    else
        RANK_CHECK(machine.host_bytes_per_s == -2);
    if (ranks_per_host < world_size)
        RANK_CHECK(is_speed(machine.network_bytes_per_s));
    else
        RANK_CHECK(machine.network_bytes_per_s == -3);
    return PH_OK;
}

static void links_that_there_are_have_a_speed(void **state)
{
    static const struct {
        size_t world_size, ranks_per_host;
    } worlds[] = {{1, 1}, {2, 2}, {2, 1}, {4, 2}, {6, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        thread_ranks_run(&(struct thread_ranks){.world_size = worlds[i].world_size,
                             .options = {.ranks_per_host = worlds[i].ranks_per_host}},
            measure, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(links_that_there_are_have_a_speed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
