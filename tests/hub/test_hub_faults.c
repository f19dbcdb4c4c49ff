/* Jobs of the parameter hub through the deaths of their workers and of the hub: whoever is left hears of it
 * within five seconds, and a synchronous job that goes on ends with the bits of one that nothing has happened
 * to.
 *
 * $PH_TEST_KILLS: how often something is killed (5), one time at least. The kills are drawn from the seed
 * that is printed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub_kills.h"
#include "support/test_support.h"

static uint32_t num_kills = 5;

/* ---- kills ---- */

static void a_job_with_momentum_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    struct hub_job job = {.num_workers = 3, .options = {"optimizer=momentum", "pause_ms=2"}};
    hub_kills_survive(&job, 1, 10, (num_kills + 2) / 3);
}

static void a_clipped_job_with_adam_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    struct hub_job job = {.num_workers = 2, .options = {"optimizer=adam", "clip_norm=0.3", "pause_ms=2"}};
    hub_kills_survive(&job, 1, 7, (num_kills + 1) / 3);
}

static void a_job_over_tcp_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    struct hub_job job = {.num_workers = 2, .options = {"optimizer=nesterov", "pause_ms=2", "tcp=1"}};
    hub_kills_survive(&job, 1, 10, num_kills / 3);
}

/* ---- single faults ---- */

static struct hub_job job_of_two(const char *first_option, const char *second_option)
{
    return (struct hub_job){
        .num_workers = 2, .num_iterations = 1000000, .options = {"pause_ms=2", first_option, second_option}};
}

static void a_death_is_an_error_for_the_others(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", NULL);
    hub_kills_start_all(&job);
    hub_kills_come_to(&job, 5);
    hub_process_kill(&job.workers[1]);
    assert_int_equal(hub_process_wait(&job.workers[0], HUB_LIMIT_MS), 6);
    hub_job_end(&job);
}

static void whoever_tests_hears_of_a_death(void **state)
{
    static const char *const transports[] = {NULL, "tcp=1"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct hub_job job = job_of_two("patience_ms=0", "test_ms=10");
        job.options[3] = transports[i];
        hub_kills_start_all(&job);
        hub_kills_come_to(&job, 5);
        hub_process_kill(&job.workers[1]);
        assert_int_equal(hub_process_wait(&job.workers[0], HUB_LIMIT_MS), 6);
        hub_job_end(&job);
    }
}

static void a_death_shows_though_a_child_holds_the_sockets(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", NULL);
    hub_job_begin(&job);
    hub_job_start_hub(&job);
    hub_job_start_worker(&job, 0, NULL);
    hub_job_start_worker(&job, 1, "child=1");
    hub_kills_come_to(&job, 5);
    kill(job.workers[1].id, SIGKILL);
    assert_int_equal(hub_process_wait(&job.workers[1], HUB_LIMIT_MS), 128 + SIGKILL);
    assert_int_equal(hub_process_wait(&job.workers[0], HUB_LIMIT_MS), 6);
    hub_job_end(&job);
}

static void the_end_of_the_hub_is_an_error_for_all(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", NULL);
    hub_kills_start_all(&job);
    hub_kills_come_to(&job, 5);
    hub_process_kill(&job.hub);
    assert_int_equal(hub_process_wait(&job.workers[0], HUB_LIMIT_MS), 6);
    assert_int_equal(hub_process_wait(&job.workers[1], HUB_LIMIT_MS), 6);
    hub_job_end(&job);
}

static bool is_step_of_survivors(const struct hub_job *job, void *context)
{
    const struct hub_kill *before = context;
    uint32_t num_survivors = 0;
    bool are_all = true;
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        num_survivors += job->workers[rank].id != 0;
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        const struct hub_process *worker = &job->workers[rank];
        are_all &= worker->id == 0 ||
                   (hub_kills_has_gone_on(job, before, rank) && worker->num_contributors == num_survivors);
    }
    return are_all;
}

static void a_job_that_shrinks_goes_on_without_the_dead(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", "shrink=1");
    job.num_workers = 3;
    job.num_iterations = 600;
    hub_kills_start_all(&job);
    hub_kills_come_to(&job, 5);
    assert_int_equal(job.workers[0].num_contributors, 3);
    for (uint32_t victim = 2; victim > 0; victim--) {
        struct hub_kill before = {.more_steps = HUB_STEPS_ON};
        before.is_worker[victim] = true;
        hub_kills_kill(&job, 1, &before);
        if (!hub_job_wait(&job, is_step_of_survivors, &before, hub_ms_left(before.killed_ns, HUB_LIMIT_MS)))
            fail_msg("the survivors of worker %u do not go on alone within %d ms", victim, HUB_LIMIT_MS);
    }
    assert_int_equal(hub_process_wait(&job.workers[0], HUB_FINISH_MS), 0);
    hub_job_end(&job);
}

static void a_hub_that_stands_still_is_a_timeout(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", "timeout_ms=700");
    hub_kills_start_all(&job);
    hub_kills_come_to(&job, 5);
    kill(job.hub.id, SIGSTOP);
    assert_int_equal(hub_process_wait(&job.workers[0], HUB_LIMIT_MS), 6);
    assert_int_equal(hub_process_wait(&job.workers[1], HUB_LIMIT_MS), 6);
    hub_job_end(&job);
}

static void a_worker_that_stands_still_is_a_timeout_for_the_others(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", "timeout_ms=700");
    hub_kills_start_all(&job);
    hub_kills_come_to(&job, 5);
    kill(job.workers[1].id, SIGSTOP);
    assert_int_equal(hub_process_wait(&job.workers[0], HUB_LIMIT_MS), 6);
    kill(job.workers[1].id, SIGCONT); /* and hears, late, that the job is over */
    assert_int_equal(hub_process_wait(&job.workers[1], HUB_LIMIT_MS), 6);
    hub_job_end(&job);
}

static void without_checkpoints_a_job_begins_anew(void **state)
{
    (void)state;
    char undisturbed[32], sum[32];
    struct hub_job job = job_of_two(NULL, NULL);
    job.num_iterations = 60;
    hub_kills_run_undisturbed(&job, undisturbed);
    hub_kills_start_all(&job);
    hub_kills_come_to(&job, 10);
    hub_process_kill(&job.hub);
    hub_job_start_hub(&job);
    hub_kills_finish(&job, sum);
    assert_string_equal(sum, undisturbed);
}

/* Nothing was ever asked to be written but in the end. */
static void a_hub_that_is_stopped_keeps_its_jobs(void **state)
{
    (void)state;
    struct hub_job job = job_of_two(NULL, NULL);
    job.num_iterations = 200;
    char undisturbed[32], sum[32];
    hub_kills_run_undisturbed(&job, undisturbed);
    job.folder = test_fresh_folder();
    hub_kills_start_all(&job);
    hub_kills_come_to(&job, 20);
    kill(job.hub.id, SIGTERM);
    assert_int_equal(hub_process_wait(&job.hub, HUB_FINISH_MS), 0);
    const uint64_t step = hub_job_least_step(&job);
    hub_job_start_hub(&job);
    hub_kills_finish(&job, sum);
    assert_string_equal(sum, undisturbed);
    assert_true(job.workers[0].first_iteration >= 20 && step >= 20);
}

#define test_of_job(test) cmocka_unit_test_teardown(test, hub_processes_teardown)

int main(void)
{
    if (!hub_kills_begin(&num_kills))
        return 2;
    const struct CMUnitTest tests[] = {
        test_of_job(a_job_with_momentum_survives_kills_bit_for_bit),
        test_of_job(a_clipped_job_with_adam_survives_kills_bit_for_bit),
        test_of_job(a_job_over_tcp_survives_kills_bit_for_bit),
        test_of_job(a_death_is_an_error_for_the_others),
        test_of_job(whoever_tests_hears_of_a_death),
        test_of_job(a_death_shows_though_a_child_holds_the_sockets),
        test_of_job(the_end_of_the_hub_is_an_error_for_all),
        test_of_job(a_job_that_shrinks_goes_on_without_the_dead),
        test_of_job(a_hub_that_stands_still_is_a_timeout),
        test_of_job(a_worker_that_stands_still_is_a_timeout_for_the_others),
        test_of_job(without_checkpoints_a_job_begins_anew),
        test_of_job(a_hub_that_is_stopped_keeps_its_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
