/* Contestants that take turns: in each round each measures once, and before and after each the latency
 * between two processors tells where these stood. What one contestant did on processors that share a cache is
 * compared with what another did there, not with what it did across dies. */
#ifndef PH_BENCH_TURNS_H
#define PH_BENCH_TURNS_H

#include <stdbool.h>
#include <stddef.h>

#include "figures.h"

/* At most TURN_STRETCH times the rounds that were asked for are taken, and so no more than TURN_MOST_ROUNDS
 * can be. */
enum { TURN_VALUES = 2, TURN_STRETCH = 3, TURN_MOST_ROUNDS = BENCH_MAX_ROUNDS / TURN_STRETCH };

/* Measures once; NAN in the first value: it cannot any more. */
typedef void turn_measure(void *context, double values_out[TURN_VALUES]);

struct contestant {
    const char *name; /* as the report tells a peer; borrowed */
    turn_measure *measure;
    void *context;
    double values[TURN_VALUES][BENCH_MAX_ROUNDS]; /* by round; what a measure means by them */
    const char *placements[BENCH_MAX_ROUNDS];
    size_t rounds; /* taken so far */
};

/* Each begins in its turn. After `rounds` of them, rounds are added until each contestant has had ten (or
 * `rounds`, where these are fewer) in which the processors stood as in most of its own. */
void take_turns(struct contestant *contestants, size_t num_contestants, size_t rounds);

/* Of a contestant's values in those rounds in which the processors stood as in most of its rounds. */
struct turn_summary {
    const char *placement;
    size_t rounds;         /* these */
    double median, spread; /* NAN where it dropped out */
};
struct turn_summary turn_summary(const struct contestant *contestant, size_t value);

/* Of theirs over ours, in those rounds in which the processors stood alike for both. */
struct turn_ratio {
    size_t rounds; /* these; 0: there were none, and the median is that of all */
    double median;
};
struct turn_ratio turn_ratio(const struct contestant *theirs, const struct contestant *ours, size_t value);

/* A figure of a contestant: what a member says and `figure` leaves open (value, spread, placement, rounds,
 * peer's value, ratio). Its rounds are the fewest that one of its numbers stands on; figure.rounds are those
 * of its share of the limit. */
struct turn_figure {
    struct bench_figure figure;           /* name, unit and whatever else is known */
    const struct contestant *ours, *peer; /* peer: NULL, or to be compared with */
    size_t value;
    double scale; /* from a value to the unit; where it is a rate, from the rate */
    bool is_rate; /* the figure is 1 over the value, scaled */
};
void turn_record(struct ph__json *figures, const struct turn_figure *told); /* and prints a line */

#endif
