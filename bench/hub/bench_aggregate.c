/* The hub's arithmetic by itself: how fast one process sums its workers' gradients and steps a momentum optimizer with the sum.
 *
 * - tall (each chunk by one thread, in one pass with the optimizer; what the hub does) beside wide (for each worker's copy of a
 *   key all threads add their stripe and meet, then all step; what servers do that handle a push when it comes in). Keys:
 *   one of 64 MiB, those of ResNet-50, and 64 MiB of chunks. Wide has it easy here: a key's copies come one right after the
 *   other, so that a small sum stays in the caches. Its threads meet spinning, and once more asleep, as where cores are not burnt.
 * - fused: tall beside sums followed by a separate step, over everything and over each chunk while it is in the cache.
 * - replies: the new weights are written once for every worker besides; cached beside stores past the caches.
 * - chunks of 4 KiB to 4 MiB.
 *
 * Two threads of one team, each on a processor of its own. In each round copying (of BENCH_MAX_COPIED bytes) is measured and
 * the ways take turns; medians are told, the ratios' and the shares' too. Bytes are those that a way hands between threads and
 * memory, whatever a cache saves of them or costs; n numbers from w workers are
 *
 *   tall, chunkwise   4 n (w + 4)      copies read; weight and momentum read and written
 *   wide              4 n (3 w + 4)    the first copy moved to the sum, each other one added to it; the sum read again
 *   separate          4 n (w + 6)      the sum written and read besides
 *   replies           4 n (2 w + 4)
 *
 * bench_aggregate [--rounds N] [--quick] [--json FILE]      --quick: one
 * round, a small key instead of the large one, and no more than two workers, to see that all of it runs. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "bench_aggregate/ways.h"
#include "figures.h"
#include "flags.h"
#include "limits.h"

enum { MAX_ROUNDS = BENCH_MAX_ROUNDS, DEFAULT_ROUNDS = 11, NAME = 96 };
enum { KEY_MIB = 64, QUICK_KEY_MIB = 1, CHUNK_NUMBERS = (32 << 10) / sizeof(float) };
enum { LEAST_CHUNK_BYTES = 4 << 10, NUM_CHUNK_SIZES = 11 /* each twice the former */, SWEPT_WORKERS = 4 };

static const size_t worker_counts[] = {1, 2, 4, 8};
enum { WORKER_COUNTS = sizeof worker_counts / sizeof *worker_counts, QUICK_WORKER_COUNTS = 2 };

struct bench {
    size_t rounds;
    bool is_quick;
    const struct ph_kernels *kernels;
    struct ph_team *team;
    struct bench_limits *limits;
    struct hub_memory memory;
    struct ph_json *figures;
};

/* What one way took, round by round, and the rate of copying in the same rounds. */
struct timing {
    double bytes;
    double seconds[MAX_ROUNDS], copy_rate[MAX_ROUNDS];
};

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static struct job job_of(const struct bench *bench, const struct model_keys *keys, size_t num_workers)
{
    return (struct job){.kernels = bench->kernels,
        .team = bench->team,
        .memory = &bench->memory,
        .keys = keys,
        .num_workers = num_workers};
}

/* Every way moves more than what copying is measured with. */
static double copy_rate(const struct bench *bench)
{
    return bench_copy(bench->limits, BENCH_MAX_COPIED);
}

static void measure(const struct job *job, enum way way, double rate, size_t round, struct timing *timing)
{
    timing->bytes = way_bytes_a_number(way, job->num_workers) * (double)job->keys->numbers;
    timing->copy_rate[round] = rate;
    timing->seconds[round] = way_seconds(job, way);
}

/* Where the processors stood in all rounds so far, of which the latest is one. */
static const char *joined_placement(const struct bench *bench, const char *former, double latency_before_ns)
{
    const size_t threads = ph__team_num_threads(bench->team);
    const char *latest = bench_placement(threads, latency_before_ns, bench_core_latency());
    return former == NULL || strcmp(former, latest) == 0 ? latest : "moved";
}

static double share_of_copy(const struct timing *timing, size_t rounds)
{
    double shares[MAX_ROUNDS];
    for (size_t round = 0; round < rounds; round++)
        shares[round] = timing->bytes / timing->copy_rate[round] / timing->seconds[round];
    return bench_median(shares, rounds);
}

static void describe_limit(enum way way, const struct timing *timing, size_t rounds, char limit[NAME])
{
    static const char *const formulas[NUM_WAYS] = {
        "w + 4", "3 w + 4", "3 w + 4", "w + 6", "w + 4", "2 w + 4", "2 w + 4"};
    snprintf(limit, NAME, "4 n (%s) = %.0f MB at %.1f GB/s of copying", formulas[way], timing->bytes * 1e-6,
        bench_median(timing->copy_rate, rounds) * 1e-9);
}

/* ---- ways beside each other -------------------------------------------------------------------------------------- */

/* Some keys from some workers. */
struct comparison {
    const struct model_keys *keys;
    size_t num_workers;
    const char *placement;
    struct timing timings[NUM_WAYS];
};

/* peer: a way, or NUM_WAYS where there is none to tell. */
static void report(const struct bench *bench, const struct comparison *comparison, const char *word,
    enum way way, enum way peer)
{
    const struct timing *ours = &comparison->timings[way], *theirs = &comparison->timings[peer % NUM_WAYS];
    double ratios[MAX_ROUNDS];
    char name[NAME], limit[NAME];
    for (size_t round = 0; round < bench->rounds; round++)
        ratios[round] = theirs->seconds[round] / ours->seconds[round];
    snprintf(
        name, NAME, "hub.aggregate.%s.workers%zu.%s", comparison->keys->name, comparison->num_workers, word);
    describe_limit(way, ours, bench->rounds, limit);
    const double seconds = bench_median(ours->seconds, bench->rounds);
    const struct bench_figure figure = {.name = name,
        .unit = "ms",
        .value = seconds * 1e3,
        .spread = bench_spread(ours->seconds, bench->rounds),
        .peer = peer < NUM_WAYS ? way_names[peer] : NULL,
        .peer_value = bench_median(theirs->seconds, bench->rounds) * 1e3,
        .ratio = bench_median(ratios, bench->rounds),
        .limit = limit,
        .of_limit = share_of_copy(ours, bench->rounds),
        .placement = comparison->placement,
        .bytes = ours->bytes,
        .seconds = seconds};
    bench_record(bench->figures, &figure);
    printf("%-56s %8.2f ms %6.1f GB/s %4.0f%%", name, figure.value, ours->bytes / seconds * 1e-9,
        100 * figure.of_limit);
    if (figure.peer != NULL)
        printf("  %5.2fx %s", figure.ratio, figure.peer);
    printf("\n");
}

static void report_all(const struct bench *bench, const struct comparison *comparison, size_t num_ways)
{
    report(bench, comparison, "tall", WAY_TALL, WAY_WIDE);
    report(bench, comparison, "tall_beside_asleep", WAY_TALL, WAY_WIDE_ASLEEP);
    report(bench, comparison, "wide", WAY_WIDE, NUM_WAYS);
    report(bench, comparison, "wide_asleep", WAY_WIDE_ASLEEP, NUM_WAYS);
    if (num_ways == NUM_WAYS) {
        report(bench, comparison, "fused", WAY_TALL, WAY_SEPARATE);
        report(bench, comparison, "fused_in_cache", WAY_TALL, WAY_CHUNKWISE);
        report(bench, comparison, "separate", WAY_SEPARATE, NUM_WAYS);
        report(bench, comparison, "chunkwise", WAY_CHUNKWISE, NUM_WAYS);
        report(bench, comparison, "replies", WAY_REPLIES, WAY_REPLIES_NT);
        report(bench, comparison, "replies_non_temporal", WAY_REPLIES_NT, NUM_WAYS);
    }
    printf("%s\n\n", comparison->placement);
    fflush(stdout);
}

/* The first num_ways ways. */
static void compare(
    const struct bench *bench, const struct model_keys *keys, size_t num_workers, size_t num_ways)
{
    static struct comparison comparison;
    struct chunks chunks = chunks_create(keys, CHUNK_NUMBERS, ph__team_num_threads(bench->team));
    struct job job = job_of(bench, keys, num_workers);
    job.chunks = &chunks;
    comparison = (struct comparison){.keys = keys, .num_workers = num_workers};
    for (size_t way = 0; way < num_ways; way++)
        way_check(&job, (enum way)way);
    for (size_t round = 0; round < bench->rounds; round++) {
        const double before = bench_core_latency(), rate = copy_rate(bench);
        for (size_t i = 0; i < num_ways; i++) { /* which goes first alternates */
            const size_t way = (round + i) % num_ways;
            measure(&job, (enum way)way, rate, round, &comparison.timings[way]);
        }
        comparison.placement = joined_placement(bench, comparison.placement, before);
    }
    report_all(bench, &comparison, num_ways);
    chunks_destroy(&chunks);
}

/* ---- chunks of any size ------------------------------------------------------------------------------------------ */

static const struct swept_way {
    enum way way;
    const char *series;
} swept_ways[] = {{WAY_TALL, "weights alone"}, {WAY_REPLIES, "with replies"},
    {WAY_REPLIES_NT, "with replies, non-temporal"}};
enum { NUM_SWEPT = sizeof swept_ways / sizeof *swept_ways };

struct chunk_sweep {
    const char *placement;
    struct chunks chunks[NUM_CHUNK_SIZES];
    struct timing timings[NUM_CHUNK_SIZES][NUM_SWEPT];
};

static size_t chunk_bytes(size_t size)
{
    return (size_t)LEAST_CHUNK_BYTES << size;
}

static void report_chunk(const struct bench *bench, const struct chunk_sweep *sweep, size_t size, size_t line)
{
    const struct timing *timing = &sweep->timings[size][line];
    double rates[MAX_ROUNDS];
    char name[NAME], limit[NAME];
    for (size_t round = 0; round < bench->rounds; round++)
        rates[round] = timing->bytes / timing->seconds[round];
    snprintf(name, NAME, "hub.aggregate.chunk%zuKiB.workers%d.%s", chunk_bytes(size) >> 10, SWEPT_WORKERS,
        way_names[swept_ways[line].way]);
    describe_limit(swept_ways[line].way, timing, bench->rounds, limit);
    const struct bench_figure figure = {.name = name,
        .unit = "GB/s",
        .value = bench_median(rates, bench->rounds) * 1e-9,
        .spread = bench_spread(rates, bench->rounds),
        .limit = limit,
        .of_limit = share_of_copy(timing, bench->rounds),
        .placement = sweep->placement,
        .sweep = "chunk size in KiB",
        .series = swept_ways[line].series,
        .at = (double)(chunk_bytes(size) >> 10),
        .bytes = timing->bytes,
        .seconds = bench_median(timing->seconds, bench->rounds)};
    bench_record(bench->figures, &figure);
    printf("%-56s %18.1f GB/s %4.0f%%\n", name, figure.value, 100 * figure.of_limit);
}

static void sweep_round(
    const struct bench *bench, const struct model_keys *keys, size_t round, struct chunk_sweep *sweep)
{
    const double before = bench_core_latency(), rate = copy_rate(bench);
    for (size_t i = 0; i < NUM_CHUNK_SIZES; i++) {
        const size_t size = (round + i) % NUM_CHUNK_SIZES;
        struct job job = job_of(bench, keys, SWEPT_WORKERS);
        job.chunks = &sweep->chunks[size];
        for (size_t line = 0; line < NUM_SWEPT; line++)
            measure(&job, swept_ways[line].way, rate, round, &sweep->timings[size][line]);
    }
    sweep->placement = joined_placement(bench, sweep->placement, before);
}

static void sweep_chunks(const struct bench *bench, const struct model_keys *keys)
{
    static struct chunk_sweep sweep;
    for (size_t size = 0; size < NUM_CHUNK_SIZES; size++)
        sweep.chunks[size] =
            chunks_create(keys, chunk_bytes(size) / sizeof(float), ph__team_num_threads(bench->team));
    for (size_t round = 0; round < bench->rounds; round++)
        sweep_round(bench, keys, round, &sweep);
    for (size_t line = 0; line < NUM_SWEPT; line++)
        for (size_t size = 0; size < NUM_CHUNK_SIZES; size++)
            report_chunk(bench, &sweep, size, line);
    for (size_t size = 0; size < NUM_CHUNK_SIZES; size++)
        chunks_destroy(&sweep.chunks[size]);
    printf("%s\n", sweep.placement);
}

/* ------------------------------------------------------------------------------------------------------------------ */

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
    struct bench_run run = {.rounds = DEFAULT_ROUNDS};
    bench_read_flags(argc, argv, &run, NULL, 0);
    bench.rounds = run.rounds;
    bench.is_quick = run.is_quick;
    enum ph_isa isa;
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
