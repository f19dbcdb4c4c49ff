/* Jobs of the benchmarks: this very program under mpirun, or alone, or a peer's. They are driven line by line
 * and rest while others are measured. */
#ifndef PH_BENCH_RANK_JOBS_H
#define PH_BENCH_RANK_JOBS_H

#include "peer.h"
#include "turns.h"

enum job_place {
    JOB_ALONE, /* one process, two threads */
    JOB_HOST,  /* two ranks of one thread on this host */
    JOB_LINK,  /* the same on two hosts between which 1 Gb/s go: network namespaces of this machine */
};
enum { JOB_PROCESSORS = 2 };
#define JOB_LINK_BYTES_PER_S 125e6

struct job_settings {
    const char *model, *kind, *wire; /* rank_model.h; words of plan files and of configs */
    bool tells_operators;
};

/* A job that cannot be had is said to be skipped, and peer_is_there tells. */
void job_start(struct peer *job, enum job_place place, const struct job_settings *settings);

/* What takes a turn: an order to a job (rank_process.h), or to a peer that answers with the seconds of all
 * its steps. */
struct job_turn {
    struct peer *job;
    const char *verb;
    size_t steps;
    double sent_bytes; /* of a rank and step, as it has told last */
};
enum { JOB_SECONDS, JOB_EXPOSED }; /* a contestant's values: both of a step */
turn_measure job_measure, job_measure_peer;

/* So many steps that a turn takes about a second. */
void job_count_steps(struct job_turn *turn);

#endif
