/* Starts hubs with their jobs and gives orders; see cluster.h. */
#include "cluster.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "figures.h"
#include "pinned.h"

typedef void child_function(const struct child *child);

static void for_each(const struct cluster *cluster, child_function *function)
{
    for (size_t job = 0; job < cluster->options.num_jobs; job++)
        for (size_t rank = 0; rank < cluster->options.jobs[job].num_workers; rank++)
            function(&cluster->workers[job][rank]);
    function(&cluster->hub);
}

/* ---- beginning and end ---- */

static int pinned_processor(const struct cluster_options *options, size_t index)
{
    int processors[2];
    const bool is_possible = options->is_pinned && bench_processors(processors, 2) == 2;
    return is_possible ? processors[index] : -1;
}

static void start_hub(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    struct hub_process_options hub = {.server = {.size = sizeof(struct ph_hub_server_options),
                                          .num_threads = options->num_threads,
                                          .wait = options->wait,
                                          .results = options->results,
                                          .aggregation = options->is_wide ? PH_HUB_WIDE : PH_HUB_TALL},
        .processor = pinned_processor(options, 1)};
    cluster->hub = child_start("bench hub", hub_process, &hub);
    child_hear(&cluster->hub, cluster->address, sizeof cluster->address);
}

static void start_workers(struct cluster *cluster, size_t job)
{
    const struct cluster_options *options = &cluster->options;
    const struct job_options *of_job = &options->jobs[job];
    struct worker_options worker = {.transport = options->transport,
        .wait = options->wait,
        .has_no_thread = options->has_no_thread,
        .num_workers = of_job->num_workers,
        .chunk_bytes = options->chunk_bytes,
        .depth = of_job->depth > 0 ? of_job->depth : 1,
        .num_keys = of_job->shapes != NULL ? of_job->shapes->num_tensors : of_job->num_keys,
        .shapes = of_job->shapes,
        .key_bytes = of_job->key_bytes,
        .scale = of_job->scale > 0 ? of_job->scale : 1,
        .processor = pinned_processor(options, 0),
        .meeting = shared_zeros(sizeof *worker.meeting)};
    snprintf(worker.address, sizeof worker.address, "%s", cluster->address);
    snprintf(worker.job, sizeof worker.job, "job %zu", job);
    assert(of_job->num_workers <= CLUSTER_MAX_WORKERS);
    for (worker.rank = 0; worker.rank < worker.num_workers; worker.rank++)
        cluster->workers[job][worker.rank] = child_start("bench worker", worker_process, &worker);
}

struct cluster cluster_start(const struct cluster_options *options)
{
    struct cluster cluster = {.options = *options};
    start_hub(&cluster);
    for (size_t job = 0; job < options->num_jobs; job++)
        start_workers(&cluster, job);
    for (size_t job = 0; job < options->num_jobs; job++)
        for (size_t rank = 0; rank < options->jobs[job].num_workers; rank++)
            child_hear(&cluster.workers[job][rank], &cluster.joined, sizeof cluster.joined);
    for_each(&cluster, child_pause);
    return cluster;
}

void cluster_end(struct cluster *cluster)
{
    if (cluster->hub.process == 0)
        return;
    for_each(cluster, child_go_on);
    for (size_t job = 0; job < cluster->options.num_jobs; job++)
        for (size_t rank = 0; rank < cluster->options.jobs[job].num_workers; rank++)
            child_end(&cluster->workers[job][rank]);
    child_end(&cluster->hub);
    *cluster = (struct cluster){0};
}

/* ---- orders ---- */

static void hear_samples(const struct child *worker, struct worker_answer *answer_out, double *samples_out)
{
    child_hear(worker, answer_out, sizeof *answer_out);
    child_hear(worker, samples_out, answer_out->count * sizeof *samples_out);
    if (!answer_out->is_right)
        bench_check(ph_fail(PH_ERROR_DATA, "the hub's parameters are wrong"));
}

static struct job_samples hear_job(const struct cluster *cluster, size_t job, enum verb verb)
{
    static double others[WORKER_MAX_SAMPLES + 1];
    struct worker_answer answer;
    struct job_samples samples = {.samples = calloc(WORKER_MAX_SAMPLES + 1, sizeof *samples.samples)};
    if (samples.samples == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: samples"));
    hear_samples(&cluster->workers[job][0], &answer, samples.samples);
    samples.count = answer.count;
    samples.checksum = answer.checksum;
    for (size_t rank = 1; rank < cluster->options.jobs[job].num_workers; rank++) {
        hear_samples(&cluster->workers[job][rank], &answer, others);
        if (answer.checksum != samples.checksum)
            bench_check(ph_fail(PH_ERROR_DATA, "workers of a job have different parameters"));
        for (size_t i = 0; verb == VERB_ROUNDS && i < samples.count; i++)
            samples.samples[i] = others[i] > samples.samples[i] ? others[i] : samples.samples[i];
    }
    return samples;
}

void cluster_order(struct cluster *cluster, enum verb verb, const uint32_t *counts, uint32_t in_flight,
    struct job_samples *samples_out)
{
    for_each(cluster, child_go_on);
    for (size_t job = 0; job < cluster->options.num_jobs; job++) {
        const struct order order = {verb, counts[job], in_flight};
        for (size_t rank = 0; rank < cluster->options.jobs[job].num_workers; rank++)
            child_tell(&cluster->workers[job][rank], &order, sizeof order);
    }
    for (size_t job = 0; job < cluster->options.num_jobs; job++)
        samples_out[job] = hear_job(cluster, job, verb);
    for_each(cluster, child_pause);
}

void job_samples_fini(struct job_samples *samples)
{
    free(samples->samples);
    *samples = (struct job_samples){0};
}

double cluster_round_seconds(struct cluster *cluster, uint32_t count)
{
    struct job_samples samples[CLUSTER_MAX_JOBS];
    const uint32_t counts[CLUSTER_MAX_JOBS] = {count};
    cluster_order(cluster, VERB_ROUNDS, counts, 0, samples);
    const double median = bench_median(samples[0].samples, samples[0].count);
    for (size_t job = 0; job < cluster->options.num_jobs; job++)
        job_samples_fini(&samples[job]);
    return median;
}

/* ---- counters ---- */

/* Adds the processor time of a process; see proc(5). */
static void add_seconds(const struct child *child, double *user, double *system)
{
    char path[64], line[1024] = "";
    unsigned long user_ticks = 0, system_ticks = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)child->process);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    const char *behind_name = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    if (behind_name == NULL || sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                   &user_ticks, &system_ticks) != 2)
        return;
    *user += (double)user_ticks / (double)sysconf(_SC_CLK_TCK);
    *system += (double)system_ticks / (double)sysconf(_SC_CLK_TCK);
}

static void add_worker(const struct child *worker, struct cluster_counters *counters)
{
    const struct order order = {.verb = VERB_COUNTERS};
    struct worker_counters told;
    child_tell(worker, &order, sizeof order);
    child_hear(worker, &told, sizeof told);
    counters->workers.messages += told.messages;
    counters->workers.system_calls += told.system_calls;
    counters->workers.doorbells += told.doorbells;
    add_seconds(worker, &counters->workers_user, &counters->workers_system);
}

struct cluster_counters cluster_count(struct cluster *cluster)
{
    struct cluster_counters counters = {0};
    for_each(cluster, child_go_on);
    for (size_t job = 0; job < cluster->options.num_jobs; job++)
        for (size_t rank = 0; rank < cluster->options.jobs[job].num_workers; rank++)
            add_worker(&cluster->workers[job][rank], &counters);
    child_tell(&cluster->hub, "", 1);
    child_hear(&cluster->hub, &counters.hub, sizeof counters.hub);
    add_seconds(&cluster->hub, &counters.hub_user, &counters.hub_system);
    for_each(cluster, child_pause);
    return counters;
}

void cluster_print_since(const struct cluster_counters *before, struct cluster *cluster, double rounds)
{
    const struct cluster_counters now = cluster_count(cluster);
#define EACH(member) ((double)(now.member - before->member) / rounds)
    printf("  hub: %.0f turns, %.0f of them idle, %.1f sleeps, %.0f messages, %.0f system calls, %.1f "
           "doorbells, %.0f waits for replies; %.1f ms user, %.1f ms system\n",
        EACH(hub.rounds), EACH(hub.idle_rounds), EACH(hub.sleeps), EACH(hub.messages), EACH(hub.system_calls),
        EACH(hub.doorbells), EACH(hub.waits_for_replies), 1e3 * EACH(hub_user), 1e3 * EACH(hub_system));
    printf("  workers: %.0f messages, %.0f system calls, %.1f doorbells; %.1f ms user, %.1f ms system\n",
        EACH(workers.messages), EACH(workers.system_calls), EACH(workers.doorbells), 1e3 * EACH(workers_user),
        1e3 * EACH(workers_system));
#undef EACH
}
