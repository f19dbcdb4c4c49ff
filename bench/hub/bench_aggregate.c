/* The hub's arithmetic by itself: how fast one process sums its workers' gradients and steps a momentum
 * optimizer with the sum.
 *
 * - tall beside wide. Tall, which the hub does: one thread sums each chunk, in one pass with the optimizer.
 *   Wide, as servers do that handle each push as it comes: for each worker's copy of a key all threads add
 *   their stripe and meet, then all step. Keys: one of 64 MiB, those of ResNet-50, and 64 MiB of chunks.
 *   This favours wide: a key's copies come one right after the other, so a small sum stays in the caches.
 *   Its threads meet spinning, and in a second way asleep, as where cores are not burnt.
 * - fused: tall beside sums followed by a separate step, over everything and over each cached chunk.
 * - replies: tall that also writes the new weights once for every worker; cached and past the caches.
 * - chunks of 4 KiB to 4 MiB.
 *
 * Two threads of one team, each on a processor of its own. Copying (of BENCH_MAX_COPIED bytes) and the ways
 * take turns (bench/turns.h). Bytes are those that a way moves between threads and memory, whatever a cache
 * saves or costs. A line that is written without having been read comes from memory first, and so counts
 * twice, except with stores past the caches. For n numbers from w workers the bytes are
 *
 *   tall, chunkwise        4 n (w + 4)      copies read; weight and momentum read and written
 *   wide                   4 n (3 w + 5)    first copy moved to the sum, others added to it; sum read
 *   separate               4 n (w + 7)      also the sum written and read
 *   replies                4 n (3 w + 4)
 *   replies, non-temporal  4 n (2 w + 4)
 *
 * bench_aggregate [--rounds N] [--quick] [--json FILE]
 * --quick: one round, a small key for the large one, and at most two workers, to see that all of it runs. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/cpu.h"
#include "bench_aggregate/ways.h"
#include "figures.h"
#include "flags.h"
#include "limits.h"
#include "turns.h"

enum { DEFAULT_ROUNDS = 11, NAME = 96 };
enum { KEY_MIB = 64, QUICK_KEY_MIB = 1, CHUNK_NUMBERS = (32 << 10) / sizeof(float) };
enum { LEAST_CHUNK_BYTES = 4 << 10, NUM_CHUNK_SIZES = 11 /* each twice the former */, SWEPT_WORKERS = 4 };

static const size_t worker_counts[] = {1, 2, 4, 8};
enum { WORKER_COUNTS = sizeof worker_counts / sizeof *worker_counts, QUICK_WORKER_COUNTS = 2 };

struct bench {
    size_t rounds;
    bool is_quick;
    const struct ph__kernels *kernels;
    struct ph__team *team;
    struct bench_limits *limits;
    struct hub_memory memory;
    struct ph__json *figures;
};

/* ---- turns ---- */

/* A way of summing one job, as a contestant. */
struct turn {
    struct job job;
    enum way way;
    double bytes;
};

static void measure_way(void *context, double values_out[TURN_VALUES])
{
    const struct turn *turn = context;
    values_out[0] = way_seconds(&turn->job, turn->way);
}

/* Measures the seconds a byte of copying. Every way moves more bytes than this copies. */
static void measure_copy(void *context, double values_out[TURN_VALUES])
{
    values_out[0] = 1 / bench_copy(context, BENCH_MAX_COPIED);
}

static struct turn turn_of(const struct bench *bench, const struct model_keys *keys,
    const struct chunks *chunks, size_t num_workers, enum way way)
{
    return (struct turn){.job = {.kernels = bench->kernels,
                             .team = bench->team,
                             .memory = &bench->memory,
                             .keys = keys,
                             .chunks = chunks,
                             .num_workers = num_workers},
        .way = way,
        .bytes = way_bytes_a_number(way, num_workers) * (double)keys->numbers};
}

/* Adds the way's bytes to the figure, and the share of copying as many; the figure borrows `text` (NAME). */
static void add_limit(
    const struct contestant *copy, const struct contestant *ours, char *text, struct bench_figure *figure)
{
    static const char *const formulas[NUM_WAYS] = {
        "w + 4", "3 w + 5", "3 w + 5", "w + 7", "w + 4", "3 w + 4", "2 w + 4"};
    const struct turn *turn = ours->context;
    const struct turn_ratio share = turn_ratio(copy, ours, 0);
    snprintf(text, NAME, "4 n (%s) = %.0f MB at %.1f GB/s of copying", formulas[turn->way],
        turn->bytes * 1e-6, 1e-9 / turn_summary(copy, 0).median);
    figure->limit = text;
    figure->of_limit = share.median * turn->bytes;
    figure->rounds = share.rounds;
    figure->bytes = turn->bytes;
    figure->seconds = turn_summary(ours, 0).median;
}

/* ---- ways beside each other ---- */

/* Contestants for the same keys from the same number of workers. */
struct comparison {
    const struct model_keys *keys;
    size_t num_workers;
    struct turn turns[NUM_WAYS];
    struct contestant contestants[1 + NUM_WAYS]; /* copying, and the ways */
};

static const struct contestant *of_way(const struct comparison *comparison, enum way way)
{
    return &comparison->contestants[1 + way];
}

/* Reports the way; peer: the way beside it, NUM_WAYS without. */
static void report(const struct bench *bench, const struct comparison *comparison, const char *word,
    enum way way, enum way peer)
{
    char name[NAME], limit[NAME];
    struct turn_figure told = {.figure = {.name = name, .unit = "ms"},
        .ours = of_way(comparison, way),
        .peer = peer < NUM_WAYS ? of_way(comparison, peer) : NULL,
        .scale = 1e3};
    snprintf(
        name, NAME, "hub.aggregate.%s.workers%zu.%s", comparison->keys->name, comparison->num_workers, word);
    add_limit(&comparison->contestants[0], told.ours, limit, &told.figure);
    turn_record(bench->figures, &told);
}

static void report_all(const struct bench *bench, const struct comparison *comparison, size_t num_ways)
{
    report(bench, comparison, "tall", WAY_TALL, WAY_WIDE);
    report(bench, comparison, "tall_beside_asleep", WAY_TALL, WAY_WIDE_ASLEEP);
    report(bench, comparison, "wide", WAY_WIDE, NUM_WAYS);
    report(bench, comparison, "wide_asleep", WAY_WIDE_ASLEEP, NUM_WAYS);
    if (num_ways < NUM_WAYS)
        return;
    report(bench, comparison, "fused", WAY_TALL, WAY_SEPARATE);
    report(bench, comparison, "fused_in_cache", WAY_TALL, WAY_CHUNKWISE);
    report(bench, comparison, "separate", WAY_SEPARATE, NUM_WAYS);
    report(bench, comparison, "chunkwise", WAY_CHUNKWISE, NUM_WAYS);
    report(bench, comparison, "replies", WAY_REPLIES, WAY_REPLIES_NT);
    report(bench, comparison, "replies_non_temporal", WAY_REPLIES_NT, NUM_WAYS);
}

/* Compares the first num_ways ways. */
static void compare(
    const struct bench *bench, const struct model_keys *keys, size_t num_workers, size_t num_ways)
{
    static struct comparison comparison;
    struct chunks chunks = chunks_create(keys, CHUNK_NUMBERS, ph__team_num_threads(bench->team));
    comparison = (struct comparison){.keys = keys, .num_workers = num_workers};
    comparison.contestants[0] = (struct contestant){.measure = measure_copy, .context = bench->limits};
    for (size_t way = 0; way < num_ways; way++) {
        comparison.turns[way] = turn_of(bench, keys, &chunks, num_workers, (enum way)way);
        comparison.contestants[1 + way] = (struct contestant){
            .name = way_names[way], .measure = measure_way, .context = &comparison.turns[way]};
        way_check(&comparison.turns[way].job, (enum way)way);
    }
    take_turns(comparison.contestants, 1 + num_ways, bench->rounds);
    report_all(bench, &comparison, num_ways);
    chunks_destroy(&chunks);
}

/* ---- chunks of any size ---- */

static const struct swept_way {
    enum way way;
    const char *series;
} swept_ways[] = {{WAY_TALL, "weights alone"}, {WAY_REPLIES, "with replies"},
    {WAY_REPLIES_NT, "with replies, non-temporal"}};
enum { NUM_SWEPT = sizeof swept_ways / sizeof *swept_ways };

struct chunk_sweep {
    struct chunks chunks[NUM_CHUNK_SIZES];
    struct turn turns[NUM_CHUNK_SIZES][NUM_SWEPT];
    struct contestant contestants[1 + NUM_CHUNK_SIZES * NUM_SWEPT]; /* copying, and the ways of each size */
};

static size_t chunk_bytes(size_t size)
{
    return (size_t)LEAST_CHUNK_BYTES << size;
}

static struct contestant *of_size(struct chunk_sweep *sweep, size_t size, size_t line)
{
    return &sweep->contestants[1 + size * NUM_SWEPT + line];
}

static void report_chunk(const struct bench *bench, struct chunk_sweep *sweep, size_t size, size_t line)
{
    char name[NAME], limit[NAME];
    struct turn_figure told = {.figure = {.name = name,
                                   .unit = "ms",
                                   .sweep = "chunk size in KiB",
                                   .series = swept_ways[line].series,
                                   .at = (double)(chunk_bytes(size) >> 10)},
        .ours = of_size(sweep, size, line),
        .scale = 1e3};
    snprintf(name, NAME, "hub.aggregate.chunk%zuKiB.workers%d.%s", chunk_bytes(size) >> 10, SWEPT_WORKERS,
        way_names[swept_ways[line].way]);
    add_limit(&sweep->contestants[0], told.ours, limit, &told.figure);
    turn_record(bench->figures, &told);
}

static void start_size(
    const struct bench *bench, const struct model_keys *keys, struct chunk_sweep *sweep, size_t size)
{
    sweep->chunks[size] =
        chunks_create(keys, chunk_bytes(size) / sizeof(float), ph__team_num_threads(bench->team));
    for (size_t line = 0; line < NUM_SWEPT; line++) {
        struct turn *turn = &sweep->turns[size][line];
        *turn = turn_of(bench, keys, &sweep->chunks[size], SWEPT_WORKERS, swept_ways[line].way);
        *of_size(sweep, size, line) = (struct contestant){.measure = measure_way, .context = turn};
    }
}

static void sweep_chunks(const struct bench *bench, const struct model_keys *keys)
{
    static struct chunk_sweep sweep;
    sweep.contestants[0] = (struct contestant){.measure = measure_copy, .context = bench->limits};
    for (size_t size = 0; size < NUM_CHUNK_SIZES; size++)
        start_size(bench, keys, &sweep, size);
    take_turns(sweep.contestants, 1 + NUM_CHUNK_SIZES * NUM_SWEPT, bench->rounds);
    for (size_t line = 0; line < NUM_SWEPT; line++)
        for (size_t size = 0; size < NUM_CHUNK_SIZES; size++)
            report_chunk(bench, &sweep, size, line);
    for (size_t size = 0; size < NUM_CHUNK_SIZES; size++)
        chunks_destroy(&sweep.chunks[size]);
}

static size_t num_threads(void)
{
    const size_t processors = ph__cpu_count();
    return processors < MAX_OWNERS ? processors : MAX_OWNERS;
}

static void compare_and_sweep(struct bench *bench)
{
    static struct model_keys key, chunks, model;
    const size_t mib = bench->is_quick ? QUICK_KEY_MIB : KEY_MIB, numbers = (mib << 20) / sizeof(float);
    const size_t num_counts = bench->is_quick ? QUICK_WORKER_COUNTS : WORKER_COUNTS;
    char size[NAME];
    snprintf(size, sizeof size, "%zuMiB", mib);
    key = equal_keys(size, numbers, numbers);
    chunks = equal_keys("chunks32KiB", numbers, CHUNK_NUMBERS);
    model = keys_of_model(MODEL_RESNET50);
    bench->memory = hub_memory_create(model.numbers, numbers, CHUNK_NUMBERS);
    for (size_t i = 0; i < num_counts; i++) {
        compare(bench, &key, worker_counts[i], NUM_WAYS);
        compare(bench, &model, worker_counts[i], NUM_TALL_WIDE);
        compare(bench, &chunks, worker_counts[i], NUM_TALL_WIDE);
    }
    sweep_chunks(bench, &key);
    hub_memory_destroy(&bench->memory);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct bench_run run = {.rounds = DEFAULT_ROUNDS, .most_rounds = TURN_MOST_ROUNDS};
    bench_read_flags(argc, argv, &run, NULL, 0);
    bench.rounds = run.rounds;
    bench.is_quick = run.is_quick;
    enum ph__isa isa;
    bench_check(ph__cpu_isa(&isa));
    bench.kernels = ph__kernels_for(isa);
    bench.figures = ph__json_array();
    bench_check(ph__team_create(num_threads(), &bench.team));
    bench.limits = bench_limits_create(bench.team);
    printf("%s, %zu threads, chunks of %d KiB; shares are of copying\n", ph__isa_name(isa),
        ph__team_num_threads(bench.team), (int)(CHUNK_NUMBERS * sizeof(float)) >> 10);
    compare_and_sweep(&bench);
    bench_limits_destroy(bench.limits);
    ph__team_destroy(bench.team);
    bench_finish(bench.figures, run.json);
    return 0;
}
