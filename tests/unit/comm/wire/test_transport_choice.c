/* Which transport a process takes, by what launchers leave in the environment. */
#include "comm/wire/transport_open.h"

#include <stdlib.h>

#include "support/test_support.h"

static const char *const variables[] = {"PHLOEM_MPI", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
    "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
    "SLURM_LOCALID", "SLURM_PROCID", "SLURM_NTASKS", "LOCAL_RANK"};

/* No launcher but what the test says. */
static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

static void set(const char *variable, const char *value)
{
    assert_int_equal(setenv(variable, value, 1), 0);
}

static void assert_choice(const char *wanted, const char *name, size_t num_ranks)
{
    struct ph__transport_choice choice;
    assert_ok(ph__transport_choose(wanted, &choice));
    assert_string_equal(choice.name, name);
    assert_int_equal(choice.num_ranks, num_ranks);
    assert_int_equal(choice.counted_by != NULL, num_ranks > 0);
}

static void without_a_launcher_it_is_self(void **state)
{
    (void)state;
    assert_choice(NULL, "self", 0);
    assert_choice("auto", "self", 0);
    set("SLURM_STEP_NUM_TASKS", "1");
    assert_choice("auto", "self", 0);
}

static void each_launcher_is_known_by_its_variables(void **state)
{
    (void)state;
    set("PMIX_RANK", "0");
    assert_choice("auto", "openmpi", 0);
    set("SLURM_STEP_NUM_TASKS", "8");
    assert_choice("auto", "openmpi", 8);
    set("PMI_RANK", "3");
    set("PMI_SIZE", "4");
    assert_choice("auto", "mpich", 4);
    set("OMPI_COMM_WORLD_SIZE", "2"); /* its mpirun sets those of PMIx, too */
    assert_choice(NULL, "openmpi", 2);
}

static void who_was_started_alone_is_self(void **state)
{
    (void)state;
    set("OMPI_COMM_WORLD_SIZE", "1");
    assert_choice("auto", "self", 1);
    assert_choice("openmpi", "openmpi", 1);
}

static void a_wish_comes_before_the_environment_and_that_before_the_launcher(void **state)
{
    (void)state;
    set("OMPI_COMM_WORLD_SIZE", "2");
    set("PHLOEM_MPI", "mpich");
    assert_choice("auto", "mpich", 2);
    assert_choice("self", "self", 2);
    set("PHLOEM_MPI", "auto");
    assert_choice("auto", "openmpi", 2);
}

static void what_is_no_transport_is_refused(void **state)
{
    (void)state;
    struct ph__transport_choice choice;
    assert_fails(ph__transport_choose("mpi", &choice), PH_ERROR_USAGE,
        "transport must be auto, self, openmpi or mpich, not 'mpi'");
    set("PHLOEM_MPI", "");
    assert_fails(ph__transport_choose(NULL, &choice), PH_ERROR_USAGE,
        "PHLOEM_MPI must be auto, self, openmpi or mpich, not ''");
}

static void processes_that_were_not_told_how_to_meet_are_refused(void **state)
{
    (void)state;
    struct ph__transport_choice choice;
    set("SLURM_STEP_NUM_TASKS", "4");
    assert_fails(ph__transport_choose("auto", &choice), PH_ERROR_USAGE,
        "SLURM_STEP_NUM_TASKS=4: several processes were started without MPI: use srun "
        "--mpi=pmix");
    assert_choice("self", "self", 0);
    clear_environment(NULL);
    set("LOCAL_WORLD_SIZE", "2");
    assert_fails(ph__transport_choose("auto", &choice), PH_ERROR_USAGE, "use mpirun");
}

/* One that all launchers' variables of a host's second process are set for, one launcher at a time. */
static void the_first_process_of_a_host_is_known_by_its_launcher(void **state)
{
    static const char *const launchers[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        {"PMI_RANK", "MPI_LOCALRANKID"}, {"PMI_RANK", "SLURM_LOCALID"}, {"PMIX_RANK", "SLURM_LOCALID"},
        {"SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}, {"LOCAL_WORLD_SIZE", "LOCAL_RANK"}};
    assert_true(ph__transport_is_first_of_host());
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        clear_environment(state);
        set(launchers[i][0], "2");
        set(launchers[i][1], "0");
        assert_true(ph__transport_is_first_of_host());
        set(launchers[i][1], "1");
        assert_false(ph__transport_is_first_of_host());
        set("PHLOEM_MPI", "self");
        assert_true(ph__transport_is_first_of_host());
    }
}

/* Slurm starts one proxy of Hydra on each host, and that the ranks, which find the proxy's number. */
static void hydra_numbers_processes_within_slurm(void **state)
{
    (void)state;
    set("PMI_RANK", "3");
    set("SLURM_LOCALID", "0");
    set("MPI_LOCALRANKID", "1");
    assert_false(ph__transport_is_first_of_host());
    set("SLURM_LOCALID", "1");
    set("MPI_LOCALRANKID", "0");
    assert_true(ph__transport_is_first_of_host());
}

static void processes_that_nothing_numbers_are_first_each(void **state)
{
    (void)state;
    set("PMIX_RANK", "3");
    assert_true(ph__transport_is_first_of_host());
    set("PMI_RANK", "3");
    assert_true(ph__transport_is_first_of_host());
}

/* Slurm runs it once, whatever the job's tasks are: it is a step by itself, of no tasks. */
static void a_batch_script_is_one_process(void **state)
{
    (void)state;
    set("SLURM_NTASKS", "8");
    set("SLURM_PROCID", "0");
    set("SLURM_LOCALID", "0");
    assert_choice("auto", "self", 0);
    assert_true(ph__transport_is_first_of_host());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_launcher_it_is_self, clear_environment),
        cmocka_unit_test_setup(each_launcher_is_known_by_its_variables, clear_environment),
        cmocka_unit_test_setup(who_was_started_alone_is_self, clear_environment),
        cmocka_unit_test_setup(
            a_wish_comes_before_the_environment_and_that_before_the_launcher, clear_environment),
        cmocka_unit_test_setup(what_is_no_transport_is_refused, clear_environment),
        cmocka_unit_test_setup(processes_that_were_not_told_how_to_meet_are_refused, clear_environment),
        cmocka_unit_test_setup(the_first_process_of_a_host_is_known_by_its_launcher, clear_environment),
        cmocka_unit_test_setup(hydra_numbers_processes_within_slurm, clear_environment),
        cmocka_unit_test_setup(processes_that_nothing_numbers_are_first_each, clear_environment),
        cmocka_unit_test_setup(a_batch_script_is_one_process, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
