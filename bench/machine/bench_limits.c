/* The machine's limits, which every other benchmark measures again beside its own figures.
 *
 * bench_limits [--rounds N] [--json FILE] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "figures.h"
#include "flags.h"
#include "limits.h"

enum { MAX_THREADS = 2, TABLE_GIB = 2, SLOTS = 1 << 15, NUM_SETS = 8 };
static const size_t dims[] = {16, 32, 64, 128};

static const char *placement; /* of the last sample */

struct limit {
    const char *name, *unit;
    double scale; /* of the unit */
};

static void report(
    struct ph__json *figures, const struct limit *limit, size_t threads, const double *values, size_t rounds)
{
    char name[96];
    snprintf(name, sizeof name, "machine.%s.threads%zu", limit->name, threads);
    const struct bench_figure figure = {.name = name,
        .unit = limit->unit,
        .value = bench_median(values, rounds) / limit->scale,
        .spread = bench_spread(values, rounds),
        .placement = placement};
    printf("%-36s %10.1f %-8s +- %2.0f%%   %s\n", name, figure.value, limit->unit, 50 * figure.spread,
        placement);
    fflush(stdout);
    bench_record(figures, &figure);
}

/* Random slots, one of each of `count` equal parts of the table, so that all are distinct, in any order. */
static struct bench_slots random_slots(size_t rows, struct ph__rng_sequence *rng)
{
    uint32_t *slots = malloc(SLOTS * sizeof *slots);
    if (slots == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: slots"));
    for (size_t i = 0; i < SLOTS; i++)
        slots[i] = (uint32_t)(i * (rows / SLOTS) + ph__rng_below(rng, rows / SLOTS));
    ph__rng_shuffle(rng, slots, SLOTS);
    return (struct bench_slots){slots, SLOTS};
}

static void measure_rows(
    struct ph__json *figures, struct bench_limits *limits, float *table, size_t dim, size_t rounds)
{
    const size_t threads = ph__team_num_threads(bench_limits_team(limits));
    const size_t row_bytes = dim * sizeof *table;
    struct ph__rng_sequence rng = {.key = {.seed = 7}};
    struct bench_slots sets[NUM_SETS];
    for (size_t i = 0; i < NUM_SETS; i++)
        sets[i] = random_slots(((size_t)TABLE_GIB << 30) / row_bytes, &rng);
    const struct bench_rows rows = {table, dim, NUM_SETS, sets};
    double gathered[BENCH_MAX_ROUNDS], updated[BENCH_MAX_ROUNDS];
    char name[64];
    for (size_t round = 0; round < rounds; round++) {
        const double before = bench_core_latency();
        gathered[round] = bench_gather(limits, &rows);
        updated[round] = bench_update(limits, &rows);
        placement = bench_placement(threads, before, bench_core_latency());
    }
    for (size_t i = 0; i < NUM_SETS; i++)
        free((void *)(uintptr_t)sets[i].slots);
    snprintf(name, sizeof name, "gather.%zuB", row_bytes);
    report(figures, &(struct limit){name, "GB/s", 1e9}, threads, gathered, rounds);
    snprintf(name, sizeof name, "update.%zuB", row_bytes);
    report(figures, &(struct limit){name, "GB/s", 1e9}, threads, updated, rounds);
}

static void measure(struct ph__json *figures, struct bench_limits *limits, const struct limit *limit,
    double (*function)(struct bench_limits *), size_t rounds)
{
    const size_t threads = ph__team_num_threads(bench_limits_team(limits));
    double values[BENCH_MAX_ROUNDS];
    for (size_t round = 0; round < rounds; round++) {
        const double before = bench_core_latency();
        values[round] = function(limits);
        placement = bench_placement(threads, before, bench_core_latency());
    }
    report(figures, limit, threads, values, rounds);
}

static double copy_far(struct bench_limits *limits)
{
    return bench_copy(limits, BENCH_MAX_COPIED);
}

static double copy_near(struct bench_limits *limits)
{
    return bench_copy(limits, (size_t)4 << 20);
}

static void measure_threads(struct ph__json *figures, size_t threads, float *table, size_t rounds)
{
    struct ph__team *team;
    bench_check(ph__team_create(threads, &team));
    struct bench_limits *limits = bench_limits_create(team);
    measure(figures, limits, &(struct limit){"fp32_peak", "GFLOP/s", 1e9}, bench_peak_fp32, rounds);
    measure(figures, limits, &(struct limit){"fp32_product", "GFLOP/s", 1e9}, bench_peak_product, rounds);
    if (bench_peak_bf16(limits) > 0)
        measure(figures, limits, &(struct limit){"bf16_peak", "GFLOP/s", 1e9}, bench_peak_bf16, rounds);
    else
        printf("machine.bf16_peak: skipped: the processor has no bf16 products\n");
    measure(figures, limits, &(struct limit){"copy", "GB/s", 1e9}, copy_far, rounds);
    measure(figures, limits, &(struct limit){"copy.4MiB", "GB/s", 1e9}, copy_near, rounds);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        measure_rows(figures, limits, table, dims[i], rounds);
    bench_limits_destroy(limits);
    ph__team_destroy(team);
}

int main(int argc, char **argv)
{
    struct bench_run run = {.rounds = 7};
    bench_read_flags(argc, argv, &run, NULL, 0);
    struct ph__json *figures = ph__json_array();
    void *table;
    bench_check(ph__memory_alloc((size_t)TABLE_GIB << 30, "a table", &table));
    memset(table, 0, (size_t)TABLE_GIB << 30);
    printf("core to core: %.0f ns one way\n", bench_core_latency());
    for (size_t threads = 1; threads <= MAX_THREADS; threads++)
        measure_threads(figures, threads, table, run.rounds);
    ph__memory_free(table, (size_t)TABLE_GIB << 30);
    bench_finish(figures, run.json);
    return 0;
}
