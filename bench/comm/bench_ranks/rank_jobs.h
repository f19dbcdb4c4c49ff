/* Jobs of the benchmarks: this program under mpirun, or alone, or a peer's. They read orders line by line,
 * and sleep while other jobs are measured. */
#ifndef PH_BENCH_RANK_JOBS_H
#define PH_BENCH_RANK_JOBS_H

#include "peer.h"
#include "turns.h"

enum job_place {
    JOB_ALONE, /* one process, two threads */
    JOB_HOST,  /* two ranks of one thread on this host */
    JOB_LINK,  /* the same on two hosts with a link of 1 Gb/s: network namespaces of this machine */
};
enum { JOB_PROCESSORS = 2 };
#define JOB_LINK_BYTES_PER_S 125e6

struct job_settings {
    const char *model, *kind, *wire; /* rank_model.h; words of plan files and of configs */
    bool tells_operators;
};

/* Starts a job. Where that is impossible, prints that the job is skipped; peer_is_there tells. */
void job_start(struct peer *job, enum job_place place, const struct job_settings *settings);

/* A job's turn: an order to ranks (rank_process.h), or to a peer that answers with the seconds of all its
 * steps. */
struct job_turn {
    struct peer *job;
    const char *verb;
    size_t steps;
    double sent_bytes; /* of a rank and step, as reported last */
};
enum { JOB_SECONDS, JOB_EXPOSED }; /* a contestant's values: both of a step */
turn_measure job_measure, job_measure_peer;

/* Sets the number of steps so that a turn takes about a second. */
void job_count_steps(struct job_turn *turn);

#endif
