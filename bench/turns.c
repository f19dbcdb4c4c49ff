/* Takes the turns and summarises them: see turns.h. */
#include "turns.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "limits.h"

enum { LEAST_ALIKE = 10 };

static const char moved[] = "moved";

static size_t count_placement(const struct contestant *contestant, const char *placement)
{
    size_t count = 0;
    for (size_t round = 0; round < contestant->rounds; round++)
        count += strcmp(contestant->placements[round], placement) == 0;
    return count;
}

/* Returns the processors' placement in most of its rounds; "moved" only where they always did. */
static const char *usual_placement(const struct contestant *contestant)
{
    const char *usual = moved;
    size_t most = 0;
    for (size_t round = 0; round < contestant->rounds; round++) {
        const char *placement = contestant->placements[round];
        const size_t count = count_placement(contestant, placement);
        if (strcmp(placement, moved) != 0 && count > most) {
            most = count;
            usual = placement;
        }
    }
    return usual;
}

/* ---- turns ---- */

static void take_round(struct contestant *contestants, size_t num_contestants, size_t round)
{
    double before = bench_core_latency();
    for (size_t i = 0; i < num_contestants; i++) {
        struct contestant *contestant = &contestants[(round + i) % num_contestants];
        double values[TURN_VALUES] = {0};
        contestant->measure(contestant->context, values);
        const double after = bench_core_latency();
        for (size_t value = 0; value < TURN_VALUES; value++)
            contestant->values[value][round] = values[value];
        contestant->placements[round] = bench_placement(2, before, after);
        contestant->rounds = round + 1;
        before = after;
    }
}

static bool have_enough(const struct contestant *contestants, size_t num_contestants, size_t rounds)
{
    const size_t wanted = rounds < LEAST_ALIKE ? rounds : LEAST_ALIKE;
    for (size_t i = 0; i < num_contestants; i++)
        if (count_placement(&contestants[i], usual_placement(&contestants[i])) < wanted)
            return false;
    return true;
}

void take_turns(struct contestant *contestants, size_t num_contestants, size_t rounds)
{
    assert(rounds <= TURN_MOST_ROUNDS);
    for (size_t round = 0; round < TURN_STRETCH * rounds; round++) {
        if (round >= rounds && have_enough(contestants, num_contestants, rounds))
            break;
        take_round(contestants, num_contestants, round);
    }
}

/* ---- results ---- */

struct turn_summary turn_summary(const struct contestant *contestant, size_t value)
{
    struct turn_summary summary = {.placement = usual_placement(contestant)};
    double kept[BENCH_MAX_ROUNDS];
    for (size_t round = 0; round < contestant->rounds; round++)
        if (strcmp(contestant->placements[round], summary.placement) == 0)
            kept[summary.rounds++] = contestant->values[value][round];
    summary.median = bench_median(kept, summary.rounds);
    summary.spread = bench_spread(kept, summary.rounds);
    return summary;
}

struct turn_ratio turn_ratio(const struct contestant *theirs, const struct contestant *ours, size_t value)
{
    double alike[BENCH_MAX_ROUNDS], all[BENCH_MAX_ROUNDS];
    struct turn_ratio ratio = {0};
    for (size_t round = 0; round < ours->rounds; round++) {
        all[round] = theirs->values[value][round] / ours->values[value][round];
        if (strcmp(ours->placements[round], moved) != 0 &&
            strcmp(ours->placements[round], theirs->placements[round]) == 0)
            alike[ratio.rounds++] = all[round];
    }
    ratio.median = ratio.rounds > 0 ? bench_median(alike, ratio.rounds) : bench_median(all, ours->rounds);
    return ratio;
}

static size_t fewer(size_t left, size_t right)
{
    return left < right ? left : right;
}

static double in_unit(const struct turn_figure *told, double value)
{
    return told->is_rate ? told->scale / value : told->scale * value;
}

/* Adds the peer's value, ratio and rounds, unless the peer has dropped out. */
static void add_peer(const struct turn_figure *told, struct bench_figure *figure)
{
    const struct turn_summary theirs = turn_summary(told->peer, told->value);
    const struct turn_ratio ratio = turn_ratio(told->peer, told->ours, told->value);
    if (isnan(theirs.median))
        return;
    figure->peer = told->peer->name;
    figure->peer_value = in_unit(told, theirs.median);
    figure->ratio = ratio.median;
    figure->rounds = fewer(figure->rounds, fewer(theirs.rounds, ratio.rounds));
}

void turn_record(struct ph__json *figures, const struct turn_figure *told)
{
    struct bench_figure figure = told->figure;
    const struct turn_summary ours = turn_summary(told->ours, told->value);
    figure.value = in_unit(told, ours.median);
    figure.spread = ours.spread;
    figure.placement = ours.placement;
    figure.rounds = figure.limit != NULL ? fewer(figure.rounds, ours.rounds) : ours.rounds;
    figure.of_rounds = told->ours->rounds;
    if (isnan(ours.median))
        return;
    if (told->peer != NULL)
        add_peer(told, &figure);
    printf("%-52s %10.3f %-4s", figure.name, figure.value, figure.unit);
    if (figure.limit != NULL && figure.of_limit > 0)
        printf(" %4.0f%%", 100 * figure.of_limit);
    if (figure.peer != NULL)
        printf("  %6.2fx %s (%.3f)", figure.ratio, figure.peer, figure.peer_value);
    printf("  [%s, %zu of %zu rounds]\n", figure.placement, figure.rounds, figure.of_rounds);
    fflush(stdout);
    bench_record(figures, &figure);
}
