/* Jobs of the parameter hub through the deaths of their workers and of the hub: whoever is left hears of it within five
 * seconds, and a synchronous job that goes on ends with the bits of one that nothing has happened to.
 *
 * $PH_TEST_KILLS: how often something is killed (5), one time at least. The kills are drawn from the seed that is printed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/rng.h"
#include "hub/hub_processes.h"
#include "support/test_support.h"

enum {
    LIMIT_MS =
        5000, /* within which a death is noticed, and a job that is complete again goes on: the hub's promise */
    FINISH_MS = 120000, /* within which a job has to end: no limit of its own, but the test's */
};

/* ---- chance ---- */

static struct ph_rng_sequence chances;

/* 0 .. limit - 1 */
static uint32_t draw(uint32_t limit)
{
    return (uint32_t)ph__rng_below(&chances, limit);
}

static uint32_t num_kills = 5;

/* ---- jobs ---- */

static const char *fresh_folder(void)
{
    static uint32_t count;
    char name[32];
    snprintf(name, sizeof name, "checkpoints-%u", count++);
    const char *path = test_path(name);
    assert_ok(ph__directory_create(path));
    return path;
}

static void start_all(struct hub_job *job)
{
    hub_job_begin(job);
    hub_job_start_hub(job);
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        hub_job_start_worker(job, rank, NULL);
}

/* All workers end alike; their sum. */
static void finish(struct hub_job *job, char sum_out[32])
{
    if (!hub_job_wait(job, hub_job_is_done, NULL, FINISH_MS))
        fail_msg(
            "the job does not end: it is at iteration %llu", (unsigned long long)hub_job_least_step(job));
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        assert_int_equal(hub_process_wait(&job->workers[rank], LIMIT_MS), 0);
        assert_string_equal(job->workers[rank].sum, job->workers[0].sum);
    }
    strcpy(sum_out, job->workers[0].sum);
    hub_job_end(job);
}

static void run_undisturbed(const struct hub_job *like, char sum_out[32])
{
    struct hub_job job = *like;
    job.folder = NULL;
    start_all(&job);
    finish(&job, sum_out);
}

/* ---- kills ---- */

/* A survivor that has done so many steps has not made them of what the dead had left: a worker that waits for each iteration
 * is one ahead of another at most, so at most two of its pushes or answers were there. */
enum { STEPS_ON = 3 };

struct progress { /* when something was killed */
    bool is_killed[MAX_HUB_WORKERS];
    uint64_t num_lost[MAX_HUB_WORKERS], num_steps[MAX_HUB_WORKERS];
    uint64_t more_steps; /* that are waited for */
    bool was_training;
    uint64_t killed_ns, started_ns; /* ... and when the last of it was started again */
};

static bool has_gone_on(const struct hub_job *job, const struct progress *before, uint32_t rank)
{
    return job->workers[rank].num_steps >= before->num_steps[rank] + before->more_steps;
}

static bool have_gone_on(const struct hub_job *job, void *context)
{
    bool have_all = true;
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        have_all &= has_gone_on(job, context, rank);
    return have_all;
}

static bool have_noticed(const struct hub_job *job, void *context)
{
    const struct progress *before = context;
    bool have_all = true;
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        const bool has_heard = job->workers[rank].num_lost > before->num_lost[rank];
        have_all &=
            before->is_killed[rank] || has_heard || (!before->was_training && has_gone_on(job, before, rank));
    }
    return have_all;
}

static void assert_goes_on(struct hub_job *job, struct progress *last, uint64_t more_steps)
{
    last->more_steps = more_steps;
    if (!hub_job_wait(job, have_gone_on, last, hub_ms_left(last->started_ns, LIMIT_MS)))
        fail_msg("the job does not go on within %d ms: it is at iteration %llu", LIMIT_MS,
            (unsigned long long)hub_job_least_step(job));
}

/* Every survivor's wait ends with an error where all were training, for there is no step without the dead. Where the job was just
 * coming together again, a survivor may have been waiting for the victim alone, and goes on when that is back. */
static void assert_noticed(struct hub_job *job, struct progress *last)
{
    last->more_steps = STEPS_ON;
    if (!hub_job_wait(job, have_noticed, last, hub_ms_left(last->killed_ns, LIMIT_MS)))
        fail_msg("a survivor has neither heard of a death nor gone on within %d ms", LIMIT_MS);
}

static void kill_victims(struct hub_job *job, bool is_hub_killed, struct progress *before)
{
    hub_job_catch_up(job);
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        before->num_lost[rank] = job->workers[rank].num_lost;
    before->killed_ns = ph__clock_ns();
    if (is_hub_killed)
        hub_process_kill(&job->hub);
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        if (before->is_killed[rank])
            hub_process_kill(&job->workers[rank]);
    }
    hub_job_catch_up(job);
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        before->num_steps[rank] = job->workers[rank].num_steps;
}

/* A little later, as whoever keeps an eye on them would. */
static void restart_victims(struct hub_job *job, bool is_hub_killed, struct progress *before)
{
    hub_job_listen(job, (int)draw(100));
    if (is_hub_killed)
        hub_job_start_hub(job);
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        if (before->is_killed[rank])
            hub_job_start_worker(job, rank, NULL);
    }
    before->started_ns = ph__clock_ns();
}

/* Some of them, to be killed at once; whether the hub is among them. */
static bool choose_victims(const struct hub_job *job, struct progress *before)
{
    *before = (struct progress){.was_training = before->was_training};
    const uint32_t first = draw(job->num_workers + 2);
    if (first < job->num_workers)
        before->is_killed[first] = true;
    const bool is_hub_killed = first >= job->num_workers;
    if (draw(5) == 0)
        before->is_killed[draw(job->num_workers)] = true;
    return is_hub_killed;
}

/* While all train, or in quick succession: of a job that is just coming together again. */
static void kill_once(struct hub_job *job, struct progress *last)
{
    last->was_training = draw(4) > 0;
    if (last->was_training)
        assert_goes_on(job, last, STEPS_ON + draw(20));
    else
        hub_job_listen(job, (int)draw(60));
    const bool is_hub_killed = choose_victims(job, last);
    kill_victims(job, is_hub_killed, last);
    restart_victims(job, is_hub_killed, last);
    assert_noticed(job, last);
}

static void survives(struct hub_job *job, uint32_t kills)
{
    char undisturbed[32], sum[32];
    job->num_iterations = 100 + 60 * (uint64_t)kills;
    run_undisturbed(job, undisturbed);
    job->folder = fresh_folder();
    start_all(job);
    struct progress last = {.started_ns = ph__clock_ns()};
    for (uint32_t i = 0; i < kills; i++)
        kill_once(job, &last);
    assert_goes_on(job, &last, STEPS_ON);
    finish(job, sum);
    assert_string_equal(sum, undisturbed);
}

static void a_job_with_momentum_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    struct hub_job job = {
        .num_workers = 3, .options = {"optimizer=momentum", "checkpoint_every=10", "pause_ms=2"}};
    survives(&job, (num_kills + 2) / 3);
}

static void a_clipped_job_with_adam_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    struct hub_job job = {
        .num_workers = 2, .options = {"optimizer=adam", "clip_norm=0.3", "checkpoint_every=7", "pause_ms=2"}};
    survives(&job, (num_kills + 1) / 3);
}

static void a_job_over_tcp_survives_kills_bit_for_bit(void **state)
{
    (void)state;
    struct hub_job job = {
        .num_workers = 2, .options = {"optimizer=nesterov", "checkpoint_every=10", "pause_ms=2", "tcp=1"}};
    survives(&job, num_kills / 3);
}

/* ---- single faults ---- */

static struct hub_job job_of_two(const char *first_option, const char *second_option)
{
    return (struct hub_job){
        .num_workers = 2, .num_iterations = 1000000, .options = {"pause_ms=2", first_option, second_option}};
}

static bool have_come_to(const struct hub_job *job, void *step)
{
    return hub_job_least_step(job) >= *(const uint64_t *)step;
}

static void come_to(struct hub_job *job, uint64_t step)
{
    if (!hub_job_wait(job, have_come_to, &step, FINISH_MS))
        fail_msg("no worker comes to iteration %llu", (unsigned long long)step);
}

static void a_death_is_an_error_for_the_others(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", NULL);
    start_all(&job);
    come_to(&job, 5);
    hub_process_kill(&job.workers[1]);
    assert_int_equal(hub_process_wait(&job.workers[0], LIMIT_MS), 6);
    hub_job_end(&job);
}

static void whoever_tests_hears_of_a_death(void **state)
{
    static const char *const transports[] = {NULL, "tcp=1"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct hub_job job = job_of_two("patience_ms=0", "test_ms=10");
        job.options[3] = transports[i];
        start_all(&job);
        come_to(&job, 5);
        hub_process_kill(&job.workers[1]);
        assert_int_equal(hub_process_wait(&job.workers[0], LIMIT_MS), 6);
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
    come_to(&job, 5);
    kill(job.workers[1].id, SIGKILL);
    assert_int_equal(hub_process_wait(&job.workers[1], LIMIT_MS), 128 + SIGKILL);
    assert_int_equal(hub_process_wait(&job.workers[0], LIMIT_MS), 6);
    hub_job_end(&job);
}

static void the_end_of_the_hub_is_an_error_for_all(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", NULL);
    start_all(&job);
    come_to(&job, 5);
    hub_process_kill(&job.hub);
    assert_int_equal(hub_process_wait(&job.workers[0], LIMIT_MS), 6);
    assert_int_equal(hub_process_wait(&job.workers[1], LIMIT_MS), 6);
    hub_job_end(&job);
}

static bool is_step_of_survivors(const struct hub_job *job, void *context)
{
    const struct progress *before = context;
    uint32_t num_survivors = 0;
    bool are_all = true;
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        num_survivors += job->workers[rank].id != 0;
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        const struct hub_process *worker = &job->workers[rank];
        are_all &=
            worker->id == 0 || (has_gone_on(job, before, rank) && worker->num_contributors == num_survivors);
    }
    return are_all;
}

static void a_job_that_shrinks_goes_on_without_the_dead(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", "shrink=1");
    job.num_workers = 3;
    job.num_iterations = 600;
    start_all(&job);
    come_to(&job, 5);
    assert_int_equal(job.workers[0].num_contributors, 3);
    for (uint32_t victim = 2; victim > 0; victim--) {
        struct progress before = {.more_steps = STEPS_ON};
        before.is_killed[victim] = true;
        kill_victims(&job, false, &before);
        if (!hub_job_wait(&job, is_step_of_survivors, &before, hub_ms_left(before.killed_ns, LIMIT_MS)))
            fail_msg("the survivors of worker %u do not go on alone within %d ms", victim, LIMIT_MS);
    }
    assert_int_equal(hub_process_wait(&job.workers[0], FINISH_MS), 0);
    hub_job_end(&job);
}

static void a_hub_that_stands_still_is_a_timeout(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", "timeout_ms=700");
    start_all(&job);
    come_to(&job, 5);
    kill(job.hub.id, SIGSTOP);
    assert_int_equal(hub_process_wait(&job.workers[0], LIMIT_MS), 6);
    assert_int_equal(hub_process_wait(&job.workers[1], LIMIT_MS), 6);
    hub_job_end(&job);
}

static void a_worker_that_stands_still_is_a_timeout_for_the_others(void **state)
{
    (void)state;
    struct hub_job job = job_of_two("patience_ms=0", "timeout_ms=700");
    start_all(&job);
    come_to(&job, 5);
    kill(job.workers[1].id, SIGSTOP);
    assert_int_equal(hub_process_wait(&job.workers[0], LIMIT_MS), 6);
    kill(job.workers[1].id, SIGCONT); /* and hears, late, that the job is over */
    assert_int_equal(hub_process_wait(&job.workers[1], LIMIT_MS), 6);
    hub_job_end(&job);
}

static void without_checkpoints_a_job_begins_anew(void **state)
{
    (void)state;
    char undisturbed[32], sum[32];
    struct hub_job job = job_of_two(NULL, NULL);
    job.num_iterations = 60;
    run_undisturbed(&job, undisturbed);
    start_all(&job);
    come_to(&job, 10);
    hub_process_kill(&job.hub);
    hub_job_start_hub(&job);
    finish(&job, sum);
    assert_string_equal(sum, undisturbed);
}

/* Nothing was ever asked to be written but in the end. */
static void a_hub_that_is_stopped_keeps_its_jobs(void **state)
{
    (void)state;
    struct hub_job job = job_of_two(NULL, NULL);
    job.num_iterations = 200;
    char undisturbed[32], sum[32];
    run_undisturbed(&job, undisturbed);
    job.folder = fresh_folder();
    start_all(&job);
    come_to(&job, 20);
    kill(job.hub.id, SIGTERM);
    assert_int_equal(hub_process_wait(&job.hub, FINISH_MS), 0);
    const uint64_t step = hub_job_least_step(&job);
    hub_job_start_hub(&job);
    finish(&job, sum);
    assert_string_equal(sum, undisturbed);
    assert_true(job.workers[0].first_iteration >= 20 && step >= 20);
}

#define test_of_job(test) cmocka_unit_test_teardown(test, hub_processes_teardown)

int main(void)
{
    if (!hub_kills_read(&num_kills))
        return 2;
    chances.key = (struct ph_rng_key){.seed = test_seed()};
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
