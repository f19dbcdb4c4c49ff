/* A job whose keys two hubs share, as processes, of which one or both are killed again and again while they write their parts of its
 * checkpoints: it always goes on, and ends with the bits of one that nothing has happened to.
 *
 * $PH_TEST_KILLS: how often hubs are killed (6). The kills are drawn from the seed that is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/rng.h"
#include "hub/hub_processes.h"
#include "support/test_support.h"

enum { NUM_HUBS = 2, LIMIT_MS = 10000, FINISH_MS = 120000, STEPS_A_KILL = 40 };

static struct ph_rng_sequence chances;
static uint32_t num_kills = 6;

static uint32_t draw(uint32_t limit)
{
    return (uint32_t)ph__rng_below(&chances, limit);
}

/* The first is the job with its workers; the second is a hub alone. */
struct pair {
    struct hub_job jobs[NUM_HUBS];
    char addresses[80], folders[NUM_HUBS][300];
};

static void begin(struct pair *pair, const struct hub_job *like)
{
    static uint32_t count;
    *pair = (struct pair){.jobs = {*like}};
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++) {
        char name[32];
        snprintf(name, sizeof name, "checkpoints-%u", count++);
        snprintf(pair->folders[hub], sizeof pair->folders[hub], "%s", test_path(name));
        assert_ok(ph__directory_create(pair->folders[hub]));
        pair->jobs[hub].folder = pair->folders[hub];
        hub_job_begin(&pair->jobs[hub]);
        hub_job_start_hub(&pair->jobs[hub]);
    }
    snprintf(pair->addresses, sizeof pair->addresses, "%s,%s", pair->jobs[0].address, pair->jobs[1].address);
    pair->jobs[0].addresses = pair->addresses;
}

static void finish(struct hub_job *job, char sum_out[32])
{
    if (!hub_job_wait(job, hub_job_is_done, NULL, FINISH_MS))
        fail_msg("the job does not end: it is at iteration %llu; a worker has last said: %s",
            (unsigned long long)hub_job_least_step(job), job->workers[0].last_lost);
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        assert_int_equal(hub_process_wait(&job->workers[rank], LIMIT_MS), 0);
    strcpy(sum_out, job->workers[0].sum);
}

static void run_undisturbed(const struct hub_job *like, char sum_out[32])
{
    struct hub_job job = *like;
    hub_job_begin(&job);
    hub_job_start_hub(&job);
    for (uint32_t rank = 0; rank < job.num_workers; rank++)
        hub_job_start_worker(&job, rank, NULL);
    finish(&job, sum_out);
    hub_job_end(&job);
}

struct steps {
    uint64_t before[MAX_HUB_WORKERS], more;
};

static bool have_gone_on(const struct hub_job *job, void *context)
{
    const struct steps *steps = context;
    bool have = true;
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        have &= job->workers[rank].num_steps >= steps->before[rank] + steps->more;
    return have;
}

static void go_on(struct hub_job *job, uint64_t more)
{
    struct steps steps = {.more = more};
    hub_job_catch_up(job);
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        steps.before[rank] = job->workers[rank].num_steps;
    if (!hub_job_wait(job, have_gone_on, &steps, LIMIT_MS))
        fail_msg("the job does not go on: it is at iteration %llu; a worker has last said: %s",
            (unsigned long long)hub_job_least_step(job), job->workers[0].last_lost);
}

/* Often at once: the job is just coming together again. Else it has gone on for a while. */
static void kill_once(struct pair *pair)
{
    if (draw(4) > 0)
        go_on(&pair->jobs[0], 1 + draw(STEPS_A_KILL / 2));
    hub_job_listen(&pair->jobs[0], (int)draw(10));
    const uint32_t victims = 1 + draw(3); /* a bit a hub */
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++) {
        if ((victims >> hub & 1) != 0)
            hub_process_kill(&pair->jobs[hub].hub);
    }
    hub_job_listen(&pair->jobs[0], (int)draw(30));
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++) {
        if ((victims >> hub & 1) != 0)
            hub_job_start_hub(&pair->jobs[hub]);
    }
}

static void survives(const char *optimizer)
{
    struct pair pair;
    char undisturbed[32], sum[32];
    const struct hub_job like = {.num_workers = 2,
        .num_iterations = 60 + (uint64_t)num_kills * STEPS_A_KILL,
        .options = {optimizer, "checkpoint_every=1", "pause_ms=1"}};
    run_undisturbed(&like, undisturbed);
    begin(&pair, &like);
    for (uint32_t rank = 0; rank < like.num_workers; rank++)
        hub_job_start_worker(&pair.jobs[0], rank, NULL);
    go_on(&pair.jobs[0], STEPS_A_KILL);
    for (uint32_t i = 0; i < num_kills; i++)
        kill_once(&pair);
    go_on(&pair.jobs[0], 1);
    assert_true(pair.jobs[0].workers[0].first_iteration > 0); /* not from the beginning, after all that */
    finish(&pair.jobs[0], sum);
    assert_string_equal(sum, undisturbed);
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        hub_job_end(&pair.jobs[hub]);
}

static void a_job_of_two_hubs_survives_their_kills_bit_for_bit(void **state)
{
    (void)state;
    survives("optimizer=momentum");
}

static void so_does_one_with_adam(void **state)
{
    (void)state;
    survives("optimizer=adam");
}

int main(void)
{
    if (!hub_kills_read(&num_kills))
        return 2;
    chances.key = (struct ph_rng_key){.seed = test_seed()};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_job_of_two_hubs_survives_their_kills_bit_for_bit, hub_processes_teardown),
        cmocka_unit_test_teardown(so_does_one_with_adam, hub_processes_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
