/* See hub_kills.h. */
#include "hub/hub_kills.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "hub/keep/job_checkpoint.h"
#include "hub/wire/part_list.h"
#include "support/test_support.h"

enum { MAX_KILLS = 1000000, STEPS_A_KILL = 60, STEPS_MS = 10 /* for some steps */ };

/* ---- chance ---- */

static struct ph__rng_sequence chances;

/* 0 .. limit - 1 */
static uint32_t draw(uint32_t limit)
{
    return (uint32_t)ph__rng_below(&chances, limit);
}

bool hub_kills_begin(uint32_t *num_kills)
{
    const char *text = getenv("PH_TEST_KILLS");
    int64_t number = *num_kills;
    if (text != NULL && (!ph__integer_parse(text, &number) || number < 1 || number > MAX_KILLS)) {
        fprintf(stderr, "PH_TEST_KILLS is no number of kills\n");
        return false;
    }
    *num_kills = (uint32_t)number;
    chances.key = (struct ph__rng_key){.seed = test_seed()};
    return true;
}

/* ---- a job from end to end ---- */

static void start_workers(struct hub_job *job)
{
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        hub_job_start_worker(job, rank, NULL);
}

void hub_kills_start_all(struct hub_job *job)
{
    hub_job_begin(job);
    hub_job_start_hub(job);
    start_workers(job);
}

static bool have_come_to(const struct hub_job *job, void *step)
{
    return hub_job_least_step(job) >= *(const uint64_t *)step;
}

void hub_kills_come_to(struct hub_job *job, uint64_t step)
{
    if (!hub_job_wait(job, have_come_to, &step, HUB_FINISH_MS))
        fail_msg("no worker comes to iteration %llu", (unsigned long long)step);
}

void hub_kills_finish(struct hub_job *job, char sum_out[32])
{
    if (!hub_job_wait(job, hub_job_is_done, NULL, HUB_FINISH_MS))
        fail_msg("the job does not end: it is at iteration %llu; a worker has last said: %s",
            (unsigned long long)hub_job_least_step(job), job->workers[0].last_lost);
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        assert_int_equal(hub_process_wait(&job->workers[rank], HUB_LIMIT_MS), 0);
        assert_string_equal(job->workers[rank].sum, job->workers[0].sum);
    }
    strcpy(sum_out, job->workers[0].sum);
    hub_job_end(job);
}

void hub_kills_run_undisturbed(const struct hub_job *like, char sum_out[32])
{
    struct hub_job job = *like;
    job.folder = NULL;
    hub_kills_start_all(&job);
    hub_kills_finish(&job, sum_out);
}

/* ---- a kill ---- */

void hub_kills_kill(struct hub_job *jobs, uint32_t num_hubs, struct hub_kill *kill)
{
    hub_job_catch_up(jobs);
    for (uint32_t rank = 0; rank < jobs->num_workers; rank++)
        kill->num_lost[rank] = jobs->workers[rank].num_lost;
    kill->killed_ns = ph__clock_ns();
    for (uint32_t hub = 0; hub < num_hubs; hub++) {
        if (kill->is_hub[hub])
            hub_process_kill(&jobs[hub].hub);
    }
    for (uint32_t rank = 0; rank < jobs->num_workers; rank++) {
        if (kill->is_worker[rank])
            hub_process_kill(&jobs->workers[rank]);
    }
    hub_job_catch_up(jobs);
    for (uint32_t rank = 0; rank < jobs->num_workers; rank++)
        kill->num_steps[rank] = jobs->workers[rank].num_steps;
}

bool hub_kills_has_gone_on(const struct hub_job *job, const struct hub_kill *kill, uint32_t rank)
{
    return job->workers[rank].num_steps >= kill->num_steps[rank] + kill->more_steps;
}

static bool have_gone_on(const struct hub_job *job, void *kill)
{
    bool have_all = true;
    for (uint32_t rank = 0; rank < job->num_workers; rank++)
        have_all &= hub_kills_has_gone_on(job, kill, rank);
    return have_all;
}

static bool have_noticed(const struct hub_job *job, void *context)
{
    const struct hub_kill *kill = context;
    bool have_all = true;
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        const bool has_heard = job->workers[rank].num_lost > kill->num_lost[rank];
        const bool has_gone_on = !kill->was_training && hub_kills_has_gone_on(job, kill, rank);
        have_all &= kill->is_worker[rank] || has_heard || has_gone_on;
    }
    return have_all;
}

/* Every survivor's wait ends with an error where all were training, for there is no step without the dead.
 * Where the job was just coming together again, a survivor may have been waiting for the victim alone, and
 * goes on when that is back. */
static void assert_noticed(struct hub_job *job, struct hub_kill *kill)
{
    kill->more_steps = HUB_STEPS_ON;
    if (!hub_job_wait(job, have_noticed, kill, hub_ms_left(kill->killed_ns, HUB_LIMIT_MS)))
        fail_msg("a survivor has neither heard of a death nor gone on within %d ms", HUB_LIMIT_MS);
}

/* ---- what lies on the disks ---- */

/* Of one hub's folder: iterations of which it has a file that is whole. */
struct files {
    char *path; /* of the kept one */
    uint64_t iterations[PH_HUB_MAX_OPEN_PARTS + 1];
    size_t count;
};

static void add_iteration(struct files *files, uint64_t iteration)
{
    assert_true(files->count < sizeof files->iterations / sizeof *files->iterations);
    files->iterations[files->count++] = iteration;
}

static ph_status visit_part(void *context, const char *name)
{
    struct files *files = context;
    uint64_t iteration;
    if (ph__job_part_is_of(files->path, name, &iteration))
        add_iteration(files, iteration);
    return PH_OK;
}

/* The kept file comes last: an open part may become that at any moment. */
static void list_files(const char *folder, struct files *files_out)
{
    struct ph__job_checkpoint_head head;
    *files_out = (struct files){0};
    assert_ok(ph__job_checkpoint_path(folder, "worker", &files_out->path));
    assert_ok(ph__directory_visit(folder, visit_part, files_out));
    if (ph__file_exists(files_out->path)) {
        assert_ok(ph__job_checkpoint_read_head(files_out->path, &head));
        if (head.num_keys > 0)
            add_iteration(files_out, head.iteration);
    }
    free(files_out->path);
}

static bool has_iteration(const struct files *files, uint64_t iteration)
{
    size_t i = 0;
    while (i < files->count && files->iterations[i] != iteration)
        i++;
    return i < files->count;
}

/* The newest iteration of which all hubs have a file; 0: there is none yet. */
static uint64_t newest_on_disks(const struct hub_job *jobs, uint32_t num_hubs)
{
    struct files files[MAX_KILLED_HUBS];
    uint64_t newest = 0;
    for (uint32_t hub = 0; hub < num_hubs; hub++)
        list_files(jobs[hub].folder, &files[hub]);
    for (size_t i = 0; i < files[0].count; i++) {
        const uint64_t iteration = files[0].iterations[i];
        bool have_all = true;
        for (uint32_t hub = 1; hub < num_hubs; hub++)
            have_all &= has_iteration(&files[hub], iteration);
        newest = have_all && iteration > newest ? iteration : newest;
    }
    return newest;
}

/* ---- a job that survives ---- */

struct survivor {
    struct hub_job jobs[MAX_KILLED_HUBS]; /* the first has the workers; of the other there is a hub alone */
    uint32_t num_hubs;
    char addresses[80];
    uint64_t checkpoint_every;
    uint64_t on_disks; /* an iteration of which there was a checkpoint when something was killed while all
                          trained */
    struct hub_kill last;
};

static void begin(struct survivor *survivor, const struct hub_job *like)
{
    struct hub_job *jobs = survivor->jobs;
    jobs[0] = *like;
    for (uint32_t hub = 0; hub < survivor->num_hubs; hub++) {
        char *text = survivor->addresses;
        const size_t used = strlen(text);
        jobs[hub].folder = test_fresh_folder();
        hub_job_begin(&jobs[hub]);
        hub_job_start_hub(&jobs[hub]);
        snprintf(
            text + used, sizeof survivor->addresses - used, "%s%s", hub > 0 ? "," : "", jobs[hub].address);
    }
    jobs[0].addresses = survivor->addresses;
    start_workers(&jobs[0]);
}

/* One worker stands still, for longer each time, and with it the job: it shall not end before a slow disk has
 * its first checkpoint. */
static void come_to_checkpoint(struct survivor *survivor)
{
    struct hub_job *job = &survivor->jobs[0];
    const uint64_t begin_ns = ph__clock_ns();
    hub_kills_come_to(job, survivor->checkpoint_every);
    for (int still_ms = 1; newest_on_disks(survivor->jobs, survivor->num_hubs) == 0; still_ms *= 2) {
        if (hub_ms_left(begin_ns, HUB_FINISH_MS) == 0)
            fail_msg("no checkpoint is written");
        kill(job->workers[1].id, SIGSTOP);
        hub_job_listen(job, still_ms);
        kill(job->workers[1].id, SIGCONT);
        hub_job_listen(job, STEPS_MS);
    }
    survivor->last.started_ns = ph__clock_ns();
}

/* All have joined since the last kill, where they have gone on after that. */
static void assert_resumed(const struct survivor *survivor)
{
    for (uint32_t rank = 0; rank < survivor->jobs[0].num_workers; rank++) {
        const uint64_t first = survivor->jobs[0].workers[rank].first_iteration;
        if (first < survivor->on_disks || first % survivor->checkpoint_every != 0)
            fail_msg("worker %u goes on from iteration %llu, but there was a checkpoint of iteration %llu",
                rank, (unsigned long long)first, (unsigned long long)survivor->on_disks);
    }
}

static void goes_on(struct survivor *survivor, uint64_t more_steps)
{
    struct hub_job *job = &survivor->jobs[0];
    struct hub_kill *last = &survivor->last;
    last->more_steps = more_steps;
    if (!hub_job_wait(job, have_gone_on, last, hub_ms_left(last->started_ns, HUB_LIMIT_MS)))
        fail_msg("the job does not go on within %d ms: it is at iteration %llu; a worker has last said: %s",
            HUB_LIMIT_MS, (unsigned long long)hub_job_least_step(job), job->workers[0].last_lost);
    assert_resumed(survivor);
}

/* Some, to be killed at once: a worker, one hub or all, and sometimes another worker. */
static void choose_victims(struct survivor *survivor)
{
    struct hub_kill *last = &survivor->last;
    const uint32_t num_workers = survivor->jobs[0].num_workers;
    *last = (struct hub_kill){.was_training = last->was_training};
    const uint32_t first = draw(num_workers + 2 * survivor->num_hubs);
    const uint32_t hubs =
        first >= num_workers ? 1 + draw((1u << survivor->num_hubs) - 1) : 0; /* a bit a hub */
    if (first < num_workers)
        last->is_worker[first] = true;
    for (uint32_t hub = 0; hub < survivor->num_hubs; hub++)
        last->is_hub[hub] = (hubs >> hub & 1) != 0;
    if (draw(5) == 0)
        last->is_worker[draw(num_workers)] = true;
}

/* A little later, as whoever keeps an eye on them would. */
static void restart_victims(struct survivor *survivor)
{
    struct hub_kill *last = &survivor->last;
    struct hub_job *job = &survivor->jobs[0];
    hub_job_listen(job, (int)draw(100));
    for (uint32_t hub = 0; hub < survivor->num_hubs; hub++) {
        if (last->is_hub[hub])
            hub_job_start_hub(&survivor->jobs[hub]);
    }
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        if (last->is_worker[rank])
            hub_job_start_worker(job, rank, NULL);
    }
    last->started_ns = ph__clock_ns();
}

/* While all train, whatever hubs write just then; or in quick succession: of a job that is just coming
 * together again, from parts that may be forgotten where not all hubs had come to have them. */
static void kill_once(struct survivor *survivor)
{
    struct hub_job *job = &survivor->jobs[0];
    survivor->last.was_training = draw(4) > 0;
    if (survivor->last.was_training) {
        goes_on(survivor, HUB_STEPS_ON + draw(20));
        hub_job_listen(job, (int)draw(10));
        survivor->on_disks = newest_on_disks(survivor->jobs, survivor->num_hubs);
    } else {
        hub_job_listen(job, (int)draw(60));
    }
    choose_victims(survivor);
    hub_kills_kill(survivor->jobs, survivor->num_hubs, &survivor->last);
    restart_victims(survivor);
    assert_noticed(job, &survivor->last);
}

void hub_kills_survive(
    const struct hub_job *like, uint32_t num_hubs, uint64_t checkpoint_every, uint32_t num_kills)
{
    char undisturbed[32], sum[32], option[48];
    struct hub_job job = *like;
    size_t num_options = 0;
    struct survivor survivor = {.num_hubs = num_hubs, .checkpoint_every = checkpoint_every};
    while (job.options[num_options] != NULL)
        num_options++;
    snprintf(option, sizeof option, "checkpoint_every=%llu", (unsigned long long)checkpoint_every);
    job.options[num_options] = option;
    job.num_iterations = 100 + STEPS_A_KILL * (uint64_t)num_kills;
    hub_kills_run_undisturbed(&job, undisturbed);
    begin(&survivor, &job);
    come_to_checkpoint(&survivor);
    for (uint32_t i = 0; i < num_kills; i++)
        kill_once(&survivor);
    goes_on(&survivor, HUB_STEPS_ON);
    hub_kills_finish(&survivor.jobs[0], sum);
    assert_string_equal(sum, undisturbed);
    for (uint32_t hub = 1; hub < num_hubs; hub++)
        hub_job_end(&survivor.jobs[hub]);
}
