#include "embedding_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const classes[] = {"same complex", "across dies", "moved"};
enum { NUM_CLASSES = sizeof classes / sizeof *classes, MAX_NAME = 160 };

/* One of the two halves of a step. */
struct half {
    const char *name; /* "forward", "update.adagrad" */
    const double *seconds, *theirs, *of_limit;
    const char *limit;
};

static struct half forward_half(const struct embedding_team *team)
{
    return (struct half){
        "forward", team->forward, team->their_forward, team->of_gather, EMBEDDING_GATHER_FORMULA};
}

static struct half update_half(const struct embedding_team *team, const char *name)
{
    return (struct half){name, team->update, team->their_update, team->of_update, EMBEDDING_UPDATE_FORMULA};
}

static double ratio_of(const double *theirs, const double *ours, size_t rounds)
{
    double ratios[EMBEDDING_MAX_ROUNDS];
    for (size_t i = 0; i < rounds; i++)
        ratios[i] = theirs[i] / ours[i];
    return bench_median(ratios, rounds);
}

static const char *placement_of(const struct embedding_team *team, size_t rounds)
{
    for (size_t i = 1; i < rounds; i++)
        if (strcmp(team->placement[i], team->placement[0]) != 0)
            return "moved";
    return team->placement[0];
}

/* ---- figures ---- */

/* Names a series: "forward, 2 threads", or "forward" when the threads are what is varied. */
static void name_series(
    const struct embedding_run *run, const struct half *half, size_t threads, char name_out[MAX_NAME])
{
    if (run->sweep != NULL && strcmp(run->sweep, "threads") == 0)
        snprintf(name_out, MAX_NAME, "%s", half->name);
    else
        snprintf(name_out, MAX_NAME, "%s, %zu thread%s", half->name, threads, threads > 1 ? "s" : "");
}

static void record_half(struct ph__json *figures, const struct embedding_run *run,
    const struct embedding_team *team, const struct half *half)
{
    const double millions = 1e-6 * (double)(run->of->tables * run->of->batch * run->of->pooling);
    const double ratio = ratio_of(half->theirs, half->seconds, run->rounds);
    char name[MAX_NAME], series[MAX_NAME];
    snprintf(name, sizeof name, "train.embedding.%s.%s.threads%zu", run->name, half->name, team->threads);
    name_series(run, half, team->threads, series);
    bench_record(figures, &(struct bench_figure){.name = name,
                              .unit = "M ids/s",
                              .value = millions / bench_median(half->seconds, run->rounds),
                              .spread = bench_spread(half->seconds, run->rounds),
                              .peer = isnan(ratio) ? NULL : team->peer,
                              .peer_value = millions / bench_median(half->theirs, run->rounds),
                              .ratio = ratio,
                              .limit = half->limit,
                              .of_limit = bench_median(half->of_limit, run->rounds),
                              .placement = placement_of(team, run->rounds),
                              .sweep = run->sweep,
                              .series = series,
                              .at = run->at != 0 ? run->at : (double)team->threads});
}

static void record_operators(
    struct ph__json *figures, const struct embedding_run *run, const struct embedding_team *team)
{
    const double update = bench_median(team->update, run->rounds);
    char of_step[MAX_NAME], name[MAX_NAME + 32];
    snprintf(of_step, sizeof of_step, "train.embedding.%s.update.%s.threads%zu", run->name, run->optimizer,
        team->threads);
    for (size_t k = LOOKUP_BAG + 1; k < LOOKUP_OPERATORS; k++) {
        const double seconds = bench_median(team->seconds[k], run->rounds);
        snprintf(name, sizeof name, "%s.op.%s", of_step, lookup_operator_names[k]);
        bench_record(figures, &(struct bench_figure){.name = name,
                                  .unit = "ms",
                                  .value = 1e3 * seconds,
                                  .spread = bench_spread(team->seconds[k], run->rounds),
                                  .limit = BENCH_FLOOR_FORMULA,
                                  .of_limit = bench_median(team->of_floor[k], run->rounds),
                                  .of_step = of_step,
                                  .share = seconds / update});
    }
}

/* ---- one thread against two ---- */

/* Records the scaling by where the two processors were in a round: medians of the classes that occurred. */
static void tell_scaling(struct ph__json *figures, const struct embedding_run *run, const char *name,
    const double *alone, const double *together)
{
    for (size_t c = 0; c < NUM_CLASSES; c++) {
        double ratios[EMBEDDING_MAX_ROUNDS];
        char figure[MAX_NAME];
        size_t count = 0;
        for (size_t i = 0; i < run->rounds; i++)
            if (strcmp(run->teams[1].placement[i], classes[c]) == 0)
                ratios[count++] = alone[i] / together[i];
        if (count == 0)
            continue;
        printf("   %s with 2 threads, %s: %.2f x the speed of 1 (%zu rounds)\n", name, classes[c],
            bench_median(ratios, count), count);
        snprintf(figure, sizeof figure, "train.embedding.%s.%s.scaling.%.*s", run->name, name,
            (int)strcspn(classes[c], " "), classes[c]);
        bench_record(figures, &(struct bench_figure){.name = figure,
                                  .unit = "x",
                                  .value = bench_median(ratios, count),
                                  .spread = bench_spread(ratios, count),
                                  .placement = classes[c]});
    }
}

/* ---- the table ---- */

void embedding_print_heads(void)
{
    printf("of gather: %s\nof update: %s\nof floor: %s\n\n", EMBEDDING_GATHER_FORMULA,
        EMBEDDING_UPDATE_FORMULA, BENCH_FLOOR_FORMULA);
    printf("%-30s %7s | %-41s | %-73s |\n", "", "", "forward", "backward + update");
    printf("%-22s %-7s %7s | %8s %7s %9s %6s %7s | %8s %9s %6s %7s  %-39s | %s\n", "case", "optim.",
        "threads", "ms", "GB/s", "of gather", "floor", "ratio", "ms", "of update", "floor", "ratio",
        "share of slots, merge, entries, update", "placement");
}

static const char *short_optimizer(const char *name)
{
    return strcmp(name, "rowwise_adagrad") == 0 ? "rowwise" : name;
}

static void print_ratio(double ratio)
{
    if (isnan(ratio))
        printf(" %7s", "-");
    else
        printf(" %5.2f x", ratio);
}

static void print_team(const struct embedding_run *run, const struct embedding_team *team)
{
    const size_t rounds = run->rounds;
    const double forward = bench_median(team->forward, rounds), update = bench_median(team->update, rounds);
    printf("%-22s %-7s %7zu | %8.3f %7.2f %8.0f%% %5.0f%%", run->name, short_optimizer(run->optimizer),
        team->threads, 1e3 * forward, 1e-9 * team->latest[LOOKUP_BAG].cost.gathered_bytes / forward,
        100 * bench_median(team->of_gather, rounds), 100 * bench_median(team->forward_of_floor, rounds));
    print_ratio(ratio_of(team->their_forward, team->forward, rounds));
    printf(" | %8.3f %8.0f%% %5.0f%%", 1e3 * update, 100 * bench_median(team->of_update, rounds),
        100 * bench_median(team->update_of_floor, rounds));
    print_ratio(ratio_of(team->their_update, team->update, rounds));
    for (size_t k = LOOKUP_BAG + 1; k < LOOKUP_OPERATORS; k++)
        printf(" %8.1f%%", 100 * bench_median(team->seconds[k], rounds) / update);
    printf("    | %s\n", placement_of(team, rounds));
}

void embedding_report(struct ph__json *figures, const struct embedding_run *run)
{
    char update[MAX_NAME];
    snprintf(update, sizeof update, "update.%s", run->optimizer);
    for (size_t t = 0; t < run->num_teams; t++) {
        const struct embedding_team *team = &run->teams[t];
        const struct half forward = forward_half(team), backward = update_half(team, update);
        print_team(run, team);
        if (run->has_forward)
            record_half(figures, run, team, &forward);
        record_half(figures, run, team, &backward);
        if (run->sweep == NULL)
            record_operators(figures, run, team);
    }
    if (run->num_teams > 1 && run->sweep == NULL) {
        if (run->has_forward)
            tell_scaling(figures, run, "forward", run->teams[0].forward, run->teams[1].forward);
        tell_scaling(figures, run, update, run->teams[0].update, run->teams[1].update);
    }
    fflush(stdout);
}
