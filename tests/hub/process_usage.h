/* What a process has of the system, and whether that grows: descriptors, threads, mappings and private
 * memory, from proc(5). */
#ifndef PH_TEST_PROCESS_USAGE_H
#define PH_TEST_PROCESS_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_usage {
    size_t num_descriptors, num_threads, num_mappings;
    uint64_t
        bytes; /* of memory that is its own, in pages: anonymous, swapped, and its share of mapped shmem */
};

void process_usage_read(pid_t id, struct process_usage *usage_out);

/* ---- growth ---- */

enum { MAX_USAGE_SAMPLES = 1 << 16, MIN_USAGE_SAMPLES = 32 };

/* Samples of moments at which nothing is under way, with the number of jobs that there have been. When there
 * is room for no more, every other one is dropped, and from then on half as many are taken. */
struct usage_history { /* zero-initialised: there are none */
    size_t count;
    uint64_t num_added;
    unsigned num_thinnings;
    struct usage_sample {
        uint64_t num_jobs, num_mappings, bytes;
    } samples[MAX_USAGE_SAMPLES];
};

/* What the least of the last quarter of the samples may be above the least of the second; the first quarter
 * is left out, in which caches fill and heaps find their size. Pages come and go with how allocations happen
 * to lie, but the least that is ever there does not; what leaks with each job raises it, by half of all jobs
 * times the leak. So a leak is found when it is more than bytes_per_job, with jobs enough to outweigh
 * `bytes`. */
struct usage_limits {
    uint64_t bytes, bytes_per_job, mappings, jobs_per_mapping;
};

void usage_history_add(struct usage_history *history, const struct usage_sample *sample);
/* Fails the test where something has grown; says how much in any case. Under a sanitizer, which has memory of
 * its own and keeps what was freed, it only says so: there leaks are found when the process ends. */
void usage_history_check(
    const struct usage_history *history, const char *process, const struct usage_limits *limits);

#endif
