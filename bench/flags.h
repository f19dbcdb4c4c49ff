/* The command line of a benchmark. What follows ./run bench ROOM goes to all programs of a room, so each
 * knows --rounds N, --quick,
 * --peers FOLDER and --json FILE, whether it has use for them or not, and flags of its own besides. A flag
 * that it does not know, or a value that is none of that flag's, is named and ends the program with 2:
 * nothing is measured that was not asked for. */
#ifndef PH_BENCH_FLAGS_H
#define PH_BENCH_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

/* What every program is told. */
struct bench_run {
    size_t rounds;      /* before: the default; 1 with --quick */
    size_t most_rounds; /* before: how many there is room for; more are cut to that. 0: BENCH_MAX_ROUNDS */
    bool is_quick;      /* to see that all of it runs: sizes may be small, too */
    const char *peers, *json; /* NULL: not told; borrowed from argv */
};

/* A flag of a program's own: one of the three places is set. */
struct bench_flag {
    const char *name;  /* "--threads" */
    bool *is_set;      /* it has no value */
    size_t *number;    /* a positive number */
    const char **word; /* borrowed from argv */
    const char *words; /* those that there are, "shm|tcp"; NULL: any but the empty one */
};

void bench_read_flags(
    int argc, char **argv, struct bench_run *run, const struct bench_flag *own, size_t num_own);

#endif
