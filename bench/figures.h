/* Figures of a benchmark: statistics over rounds, and the array of figures that ./run bench writes (docs/ and
 * CONTRIBUTING.md explain its keys). */
#ifndef PH_BENCH_FIGURES_H
#define PH_BENCH_FIGURES_H

#include <stddef.h>

#include "base/format/json.h"
#include "phloem/status.h"

#define BENCH_MAX_ROUNDS 201

/* Ends the program with the status's text and exit code unless it is PH_OK. */
void bench_check(ph_status status);

double bench_median(
    const double *values, size_t count); /* count in 1 .. BENCH_MAX_ROUNDS; NAN where a value is */
/* Returns the interquartile range over the median. */
double bench_spread(const double *values, size_t count);

/* One measured figure. Members left zero are not written, except for value; `ratio` > 1 means that ours is
 * better. */
struct bench_figure {
    const char *name, *unit; /* dotted, from the room down */
    double value, spread;
    const char *peer;
    double peer_value, ratio;
    const char *limit; /* formula, with the machine's figure in it */
    double of_limit;
    const char *placement;      /* two threads' processors: see limits.h */
    const char *congestion;     /* TCP's congestion control, of sockets that name none, as a peer's */
    size_t rounds, of_rounds;   /* the figure uses `rounds` of the rounds taken: those with that placement;
                                   of_rounds 0: not written */
    const char *sweep, *series; /* the varied quantity's name, and the line of the plot that has this point */
    double at;                  /* the varied quantity */
    double flops, bytes, seconds; /* one call's, for the roofline */
    const char *of_step;          /* an operator: the figure of its whole step */
    double share;                 /* the operator's share of the step's time */
};
void bench_record(struct ph__json *figures, const struct bench_figure *figure);

/* Writes the figures to `path` unless it is NULL, and frees them. Ends the program with 2 where there are
 * none: the caller asked for something that does not exist. */
void bench_finish(struct ph__json *figures, const char *path);

/* Makes a folder with this name and six letters in $TMPDIR, or /tmp; the caller removes it. */
void bench_make_folder(const char *name, char *folder_out, size_t size);
void bench_remove_folder(const char *folder); /* with all that is in it */

#endif
