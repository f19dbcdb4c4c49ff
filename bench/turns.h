/* Contestants that take turns: in each round each measures once, and the latency between two processors,
 * measured before and after, tells their placement. A contestant's measurement on processors that share a
 * cache is compared with another's there, not with one across dies. */
#ifndef PH_BENCH_TURNS_H
#define PH_BENCH_TURNS_H

#include <stdbool.h>
#include <stddef.h>

#include "figures.h"

/* take_turns takes at most TURN_STRETCH times the rounds that were asked for, so TURN_MOST_ROUNDS is the most
 * that can be asked for. */
enum { TURN_VALUES = 2, TURN_STRETCH = 3, TURN_MOST_ROUNDS = BENCH_MAX_ROUNDS / TURN_STRETCH };

/* Measures once; NAN in the first value: the contestant has dropped out. */
typedef void turn_measure(void *context, double values_out[TURN_VALUES]);

struct contestant {
    const char *name; /* in the report, as a peer; borrowed */
    turn_measure *measure;
    void *context;
    double values[TURN_VALUES][BENCH_MAX_ROUNDS]; /* by round; the measure defines their meaning */
    const char *placements[BENCH_MAX_ROUNDS];
    size_t rounds; /* taken so far */
};

/* Takes rounds, in which each contestant begins in its turn. Adds rounds until each contestant has ten (or
 * `rounds`, where these are fewer) with the placement of most of its rounds. */
void take_turns(struct contestant *contestants, size_t num_contestants, size_t rounds);

/* Statistics of a contestant's values in the rounds with the placement of most of its rounds. */
struct turn_summary {
    const char *placement;
    size_t rounds;         /* with that placement */
    double median, spread; /* NAN where it has dropped out */
};
struct turn_summary turn_summary(const struct contestant *contestant, size_t value);

/* Theirs over ours, in the rounds in which both had the same placement. */
struct turn_ratio {
    size_t rounds; /* with the same placement; 0: none, and the median is that of all rounds */
    double median;
};
struct turn_ratio turn_ratio(const struct contestant *theirs, const struct contestant *ours, size_t value);

/* A figure of a contestant: the members' data, and what `figure` leaves open (value, spread, placement,
 * rounds, peer's value, ratio). Its rounds are the fewest behind any of its numbers; figure.rounds are those
 * of its share of the limit. */
struct turn_figure {
    struct bench_figure figure;           /* name, unit and whatever else is known */
    const struct contestant *ours, *peer; /* peer: compared with; NULL: none */
    size_t value;
    double scale; /* from a value to the unit; for a rate, from the rate */
    bool is_rate; /* the figure is 1 over the value, scaled */
};
void turn_record(struct ph__json *figures, const struct turn_figure *told); /* also prints a line */

#endif
