/* Memory is measured anywhere, links where there are any; how fast they are is nobody's to assert. */
#include "cli/verb/machine_speed.h"

#include <math.h>

#include "support/thread_ranks.h"

static bool is_speed(double bytes_per_s)
{
    return isfinite(bytes_per_s) && bytes_per_s > 0;
}

static void every_width_of_row_is_measured(void **state)
{
    (void)state;
    static const size_t dims[] = {1, 64, 1000};
    struct ph__team *team;
    assert_ok(ph__team_create(2, &team));
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        double bytes_per_s = 0;
        assert_ok(cli_memory_speed_measure(dims[i], 1, team, &bytes_per_s));
        assert_true(is_speed(bytes_per_s));
        print_message("rows of %zu reals: %.2f GB/s\n", dims[i], bytes_per_s / 1e9);
    }
    ph__team_destroy(team);
}

/* Rows of all ranks of a machine leave most of the free memory alone. */
static void ranks_that_measure_at_once_share_what_is_free(void **state)
{
    (void)state;
    const uint64_t mib = 1 << 20;
    assert_int_equal(cli_memory_speed_bytes(4096 * mib, 1), 128 * mib);
    assert_int_equal(cli_memory_speed_bytes(512 * mib, 1), 64 * mib);
    assert_int_equal(cli_memory_speed_bytes(512 * mib, 8), 8 * mib);
    assert_int_equal(cli_memory_speed_bytes(65536 * mib, 64), 128 * mib);
    assert_int_equal(cli_memory_speed_bytes(0, 64), 0);
}

/* Only a group of several ranks has links. */
static ph_status measure(struct ph_comm *comm, void *context)
{
    const size_t world_size = ph_comm_world_size(comm), ranks_per_host = ph_comm_ranks_per_host(comm);
    struct ph__plan_machine machine = {.memory_bytes_per_s = -1, .rank_bytes = 4};
    (void)context;
    PH_TRY(cli_link_speeds_measure(comm, &machine));
    RANK_CHECK(machine.memory_bytes_per_s == -1 && machine.rank_bytes == 4);
    RANK_CHECK(ranks_per_host > 1 ? is_speed(machine.host_bytes_per_s) : isnan(machine.host_bytes_per_s));
    RANK_CHECK(ranks_per_host < world_size ? is_speed(machine.network_bytes_per_s)
                                           : isnan(machine.network_bytes_per_s));
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width_of_row_is_measured),
        cmocka_unit_test(ranks_that_measure_at_once_share_what_is_free),
        cmocka_unit_test(links_that_there_are_have_a_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
