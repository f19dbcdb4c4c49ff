/* A hub and its jobs, each process by itself. All rest unless a function of this header waits for them. */
#ifndef PH_BENCH_CLUSTER_H
#define PH_BENCH_CLUSTER_H

#include "hub_process.h"
#include "worker_process.h"

enum { CLUSTER_MAX_JOBS = 2, CLUSTER_MAX_WORKERS = 4 };

struct job_options {
    uint32_t num_workers;
    size_t num_keys, key_bytes;        /* keys of one size, or */
    const struct model_shapes *shapes; /* keys of a model; static */
    uint32_t depth;                    /* 0 means 1 */
    float scale;                       /* factor of its gradients, a power of two; 0 means 1 */
};

struct cluster_options { /* zeros, except for the jobs: the defaults */
    enum ph_hub_transport transport;
    enum ph_hub_wait_policy wait; /* hub and workers */
    bool has_no_thread;           /* true: workers move TCP links in their own calls */
    uint32_t num_threads;         /* core threads; 0: one a processor */
    uint32_t chunk_bytes;
    enum ph_hub_results results;
    bool is_wide; /* true: the hub aggregates wide */
    /* true: the hub's threads stay on the second processor, workers on the first, if there are two: for one
     * core thread and one worker. */
    bool is_pinned;
    struct job_options jobs[CLUSTER_MAX_JOBS];
    size_t num_jobs;
};

struct cluster {
    struct cluster_options options;
    struct child hub;
    char address[HUB_ADDRESS];
    struct child workers[CLUSTER_MAX_JOBS][CLUSTER_MAX_WORKERS];
    struct worker_joined joined; /* message of the last worker */
};

struct cluster cluster_start(const struct cluster_options *options);
void cluster_end(struct cluster *cluster); /* nothing for zeros */

/* Samples of a job. cluster_order() carries out an order in all workers of all jobs, with the count counts[j]
 * in job j, and gives the samples of each job. It ends the program when a parameter is wrong. */
struct job_samples {
    size_t count;
    /* (count) rounds: seconds of the slowest worker; latencies: of rank 0; streams: moments of rank 0 */
    double *samples;
    uint64_t checksum;
};
void cluster_order(struct cluster *cluster, enum verb verb, const uint32_t *counts, uint32_t in_flight,
    struct job_samples *samples_out);
void job_samples_fini(struct job_samples *samples);

/* Returns the median seconds of `count` rounds of the first job. */
double cluster_round_seconds(struct cluster *cluster, uint32_t count);

/* Counts of a cluster's processes since they began, and their processor time. */
struct cluster_counters {
    struct hub_counters hub;
    struct worker_counters workers;                            /* sum of all workers */
    double hub_user, hub_system, workers_user, workers_system; /* seconds */
};
struct cluster_counters cluster_count(struct cluster *cluster);
/* Prints a line of the counts since `before`, for each of `rounds`. */
void cluster_print_since(const struct cluster_counters *before, struct cluster *cluster, double rounds);

#endif
