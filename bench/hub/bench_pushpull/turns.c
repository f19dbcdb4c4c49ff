/* See turns.h. */
#include "turns.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "limits.h"

static const char moved[] = "moved";

void take_turns(struct contestant *contestants, size_t num_contestants, size_t rounds)
{
    assert(rounds <= BENCH_MAX_ROUNDS);
    for (size_t round = 0; round < rounds; round++) {
        double before = bench_core_latency();
        for (size_t i = 0; i < num_contestants; i++) {
            struct contestant *contestant = &contestants[(round + i) % num_contestants];
            double values[TURN_VALUES] = {0};
            contestant->measure(contestant->context, values);
            const double after = bench_core_latency();
            for (size_t value = 0; value < TURN_VALUES; value++)
                contestant->values[value][round] = values[value];
            contestant->placements[round] = bench_placement(2, before, after);
            before = after;
        }
    }
}

static size_t count_placement(const struct contestant *contestant, const char *placement, size_t rounds)
{
    size_t count = 0;
    for (size_t round = 0; round < rounds; round++)
        count += strcmp(contestant->placements[round], placement) == 0;
    return count;
}

/* Where the processors stood in most of its rounds; that they moved only where they always did. */
static const char *usual_placement(const struct contestant *contestant, size_t rounds)
{
    const char *usual = moved;
    size_t most = 0;
    for (size_t round = 0; round < rounds; round++) {
        const char *placement = contestant->placements[round];
        const size_t count = count_placement(contestant, placement, rounds);
        if (strcmp(placement, moved) != 0 && count > most) {
            most = count;
            usual = placement;
        }
    }
    return usual;
}

struct turn_summary turn_summary(const struct contestant *contestant, size_t value, size_t rounds)
{
    struct turn_summary summary = {.placement = usual_placement(contestant, rounds)};
    double kept[BENCH_MAX_ROUNDS];
    size_t count = 0;
    for (size_t round = 0; round < rounds; round++)
        if (strcmp(contestant->placements[round], summary.placement) == 0)
            kept[count++] = contestant->values[value][round];
    summary.median = bench_median(kept, count);
    summary.spread = bench_spread(kept, count);
    return summary;
}

double turn_ratio(const struct contestant *theirs, const struct contestant *ours, size_t value, size_t rounds)
{
    double alike[BENCH_MAX_ROUNDS], all[BENCH_MAX_ROUNDS];
    size_t num_alike = 0;
    for (size_t round = 0; round < rounds; round++) {
        all[round] = theirs->values[value][round] / ours->values[value][round];
        if (strcmp(ours->placements[round], moved) != 0 &&
            strcmp(ours->placements[round], theirs->placements[round]) == 0)
            alike[num_alike++] = all[round];
    }
    return num_alike > 0 ? bench_median(alike, num_alike) : bench_median(all, rounds);
}

static double in_unit(const struct turn_figure *told, double value)
{
    return told->is_rate ? told->scale / value : told->scale * value;
}

void turn_record(struct ph_json *figures, const struct turn_figure *told)
{
    struct bench_figure figure = told->figure;
    const struct turn_summary ours = turn_summary(told->ours, told->value, told->rounds);
    figure.value = in_unit(told, ours.median);
    figure.spread = ours.spread;
    figure.placement = ours.placement;
    if (isnan(ours.median))
        return;
    printf("%-52s %10.3f %-4s", figure.name, figure.value, figure.unit);
    if (figure.limit != NULL && figure.of_limit > 0)
        printf(" %4.0f%%", 100 * figure.of_limit);
    if (told->peer != NULL) {
        figure.peer_value = in_unit(told, turn_summary(told->peer, told->value, told->rounds).median);
        figure.ratio = turn_ratio(told->peer, told->ours, told->value, told->rounds);
        figure.peer = isnan(figure.peer_value) ? NULL : told->peer->name;
    }
    if (figure.peer != NULL)
        printf("  %6.2fx %s (%.3f)", figure.ratio, figure.peer, figure.peer_value);
    printf("  [%s]\n", figure.placement);
    fflush(stdout);
    bench_record(figures, &figure);
}
