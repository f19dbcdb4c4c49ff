/* The command line of a benchmark. ./run bench ROOM passes its arguments to all programs of a room, so each
 * accepts --rounds N, --quick, --peers FOLDER and --json FILE, used or not, and flags of its own. An unknown
 * flag or value is named and ends the program with 2: nothing is measured that was not asked for. */
#ifndef PH_BENCH_FLAGS_H
#define PH_BENCH_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

/* Flags of every program. */
struct bench_run {
    size_t rounds;            /* before: the default; 1 with --quick */
    size_t most_rounds;       /* before: the limit to which rounds are cut; 0: BENCH_MAX_ROUNDS */
    bool is_quick;            /* smoke test: sizes may be small, too */
    const char *peers, *json; /* NULL: not given; borrowed from argv */
};

/* A flag of one program: exactly one of is_set, number and word is set. */
struct bench_flag {
    const char *name;  /* "--threads" */
    bool *is_set;      /* the flag has no value */
    size_t *number;    /* a positive number */
    const char **word; /* borrowed from argv */
    const char *words; /* allowed words, "shm|tcp"; NULL: any word but the empty one */
};

void bench_read_flags(
    int argc, char **argv, struct bench_run *run, const struct bench_flag *own, size_t num_own);

#endif
