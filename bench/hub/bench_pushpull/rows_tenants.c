/* Two jobs on one hub at once, both always busy: each must have the results that it has alone, bit by bit,
 * and half of the hub, counted in bytes of gradients. See pushpull_rows.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pushpull_rows.h"

enum { NUM_JOBS = 2, NUM_WORKERS = 2, DEPTH = 2 /* so that a push does not wait for the last reply */ };
enum { TOGETHER = NUM_JOBS, NUM_CLUSTERS /* each job alone, and both */ };
enum { COUNT = 40, QUICK_COUNT = 200 };

static const struct pair {
    const char *name, *words;
    size_t key_bytes[NUM_JOBS];
} pairs[] = {
    {"alike", "two jobs of one key", {0, 0}}, {"unlike", "one key, and keys of 16 KiB", {0, 16 << 10}}};
enum { NUM_PAIRS = sizeof pairs / sizeof *pairs };

struct tenants {
    const struct rows *rows;
    const struct pair *pair;
    size_t transport, job_bytes;
    uint32_t count; /* rounds of all keys, a turn */
    struct cluster clusters[NUM_CLUSTERS];
    struct contestant contestants[NUM_CLUSTERS]; /* values: larger share over the mean; seconds a byte */
    struct turn {
        struct tenants *tenants;
        size_t which;
        uint64_t checksums[NUM_JOBS];
    } turns[NUM_CLUSTERS];
};

/* ---- shares ---- */

/* Returns the rounds that a job had done at a moment: whole ones, and a part of the next in proportion. */
static double rounds_until(const struct job_samples *moments, double moment)
{
    for (size_t i = 1; i < moments->count; i++) {
        const double before = moments->samples[i - 1], after = moments->samples[i];
        if (moment <= after)
            return (double)(i - 1) + (moment - before) / (after - before);
    }
    return (double)(moments->count - 1);
}

/* Counts the rounds of each job while all were at work: from when each has done one, until one has done all.
 * Returns the seconds. */
static double count_while_all(const struct job_samples *moments, size_t num_jobs, double rounds_out[NUM_JOBS])
{
    double begin = 0, end = (double)INFINITY;
    for (size_t job = 0; job < num_jobs; job++) {
        begin = fmax(begin, moments[job].samples[1]);
        end = fmin(end, moments[job].samples[moments[job].count - 1]);
    }
    for (size_t job = 0; job < num_jobs; job++)
        rounds_out[job] = rounds_until(&moments[job], end) - rounds_until(&moments[job], begin);
    return end - begin;
}

static void measure_shares(void *context, double values_out[TURN_VALUES])
{
    struct turn *turn = context;
    const struct tenants *tenants = turn->tenants;
    struct cluster *cluster = &turn->tenants->clusters[turn->which];
    const size_t num_jobs = cluster->options.num_jobs;
    const uint32_t counts[NUM_JOBS] = {tenants->count, tenants->count};
    struct job_samples moments[NUM_JOBS];
    double rounds[NUM_JOBS], all = 0, most = 0;
    cluster_order(cluster, VERB_STREAM, counts, 0, moments);
    const double seconds = count_while_all(moments, num_jobs, rounds);
    for (size_t job = 0; job < num_jobs; job++) {
        all += rounds[job];
        most = fmax(most, rounds[job]);
        turn->checksums[job] = moments[job].checksum;
        job_samples_fini(&moments[job]);
    }
    values_out[0] = most / (all / (double)num_jobs);
    values_out[1] = seconds / (all * NUM_WORKERS * (double)tenants->job_bytes);
}

/* ---- figures ---- */

/* Checks that each job has the same parameters alone and beside the other, after as many rounds. */
static void check_bits(const struct tenants *tenants)
{
    for (size_t job = 0; job < NUM_JOBS; job++)
        if (tenants->turns[job].checksums[0] != tenants->turns[TOGETHER].checksums[job])
            bench_check(
                ph_fail(PH_ERROR_DATA, "job %zu of '%s' has different parameters than when it runs alone",
                    job, tenants->pair->words));
    printf("%s: both have the same parameters as when they run alone, bit by bit\n", tenants->pair->words);
}

static void name_figure(const struct tenants *tenants, const char *word, char name_out[ROW_NAME])
{
    snprintf(name_out, ROW_NAME, "hub.tenants.%s.%s.%s", row_transport_names[tenants->transport],
        tenants->pair->name, word);
}

static void report(const struct tenants *tenants)
{
    const struct rows *rows = tenants->rows;
    const struct contestant *together = &tenants->contestants[TOGETHER];
    char name[ROW_NAME];
    name_figure(tenants, "share", name);
    turn_record(rows->figures,
        &(struct turn_figure){.figure = {.name = name, .unit = "max/mean"}, .ours = together, .scale = 1});
    for (size_t job = 0; job < NUM_JOBS; job++) {
        static const char *const words[NUM_JOBS] = {"rate_beside_first_alone", "rate_beside_second_alone"};
        name_figure(tenants, words[job], name);
        turn_record(rows->figures, &(struct turn_figure){.figure = {.name = name, .unit = "GB/s"},
                                       .ours = together,
                                       .peer = &tenants->contestants[job],
                                       .value = 1,
                                       .scale = 1e-9,
                                       .is_rate = true});
    }
}

/* ---- both, and each alone ---- */

static struct job_options job_of(const struct tenants *tenants, size_t job)
{
    const size_t named = tenants->pair->key_bytes[job], key_bytes = named > 0 ? named : tenants->job_bytes;
    return (struct job_options){.num_workers = NUM_WORKERS,
        .num_keys = tenants->job_bytes / key_bytes,
        .key_bytes = key_bytes,
        .depth = DEPTH,
        .scale = (float)(1 << job)}; /* so that jobs have different numbers */
}

static void start(struct tenants *tenants, size_t which)
{
    struct cluster_options options = {
        .transport = row_transports[tenants->transport], .num_jobs = which == TOGETHER ? NUM_JOBS : 1};
    for (size_t job = 0; job < options.num_jobs; job++)
        options.jobs[job] = job_of(tenants, which == TOGETHER ? job : which);
    tenants->clusters[which] = cluster_start(&options);
    tenants->turns[which] = (struct turn){.tenants = tenants, .which = which};
    tenants->contestants[which] =
        (struct contestant){.name = "alone", .measure = measure_shares, .context = &tenants->turns[which]};
}

static void measure_pair(const struct rows *rows, const struct pair *pair, size_t transport)
{
    static struct tenants tenants;
    tenants = (struct tenants){.rows = rows,
        .pair = pair,
        .transport = transport,
        .job_bytes = rows_large_bytes(rows) / NUM_JOBS,
        .count = rows->is_quick ? QUICK_COUNT : COUNT};
    for (size_t which = 0; which < NUM_CLUSTERS; which++)
        start(&tenants, which);
    take_turns(tenants.contestants, NUM_CLUSTERS, rows->rounds);
    check_bits(&tenants);
    report(&tenants);
    for (size_t which = 0; which < NUM_CLUSTERS; which++)
        cluster_end(&tenants.clusters[which]);
}

void rows_tenants(struct rows *rows)
{
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++)
        for (size_t pair = 0; pair < NUM_PAIRS && rows_want(rows, transport); pair++)
            measure_pair(rows, &pairs[pair], transport);
}
