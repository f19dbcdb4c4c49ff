/* Measures aggregation over the neighbours in a graph, all of them and samples, F = 64 in fp32, against the
 * sparse products of other libraries, on one and two threads.
 *
 * Each round takes, one after the other, the rate of gathering random rows of a matrix of x's size, the full
 * aggregation, samples of several widths, and each peer (bench/peers/torch_sparse.py, mkl.py, scipy.py,
 * graphblas.py, dgl.py). Ratios are medians over rounds. Samples are drawn inside the aggregation; beside
 * them stand the same lists drawn before (`listed`), and the time of drawing alone as a share. Graphs: pages
 * of Facebook, where a node has 15 neighbours, and a random graph of classes, where it has 280, also with the
 * neighbours shuffled, so that the first ones are a random sample. Peers get the
 * means as values of a matrix, ours divides the sum; `weighted` has values, too.
 *
 * bench_aggregation [--rounds N] [--case facebook|csbm] [--threads N] [--quick] [--peers FOLDER]
 *                   [--json FILE] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "bench_aggregation/aggregation_run.h"
#include "figures.h"
#include "flags.h"
#include "limits.h"
#include "peer.h"

enum { DIM = 64, MAX_TEAMS = 2, NUM_SETS = 2 };
static const char case_folder[] = "build/bench/graph";
static const double sample_seconds = 0.02; /* about so long in a round */

static const char *const peer_names[] = {"torch_sparse", "mkl", "scipy", "graphblas", "dgl"};
enum { NUM_PEERS = sizeof peer_names / sizeof *peer_names };

/* Speedups over the full aggregation that samples are to reach; 0: none. */
static const struct sample {
    const char *graph, *name;
    struct ph_sampling sampling;
    double target;
} samples[] = {
    {"facebook", "bucket", {.width = 4}, 3.5},
    {"facebook", "stride", {.width = 4, .strategy = PH_SAMPLING_STRIDE}, 3.1},
    {"facebook", "even", {.width = 4, .strategy = PH_SAMPLING_EVEN}, 0},
    {"facebook", "aes", {.width = 4, .strategy = PH_SAMPLING_AES}, 0},
    {"facebook", "residue", {.width = 4, .strategy = PH_SAMPLING_RESIDUE}, 0},
    {"facebook", "bucket", {.width = 8}, 2.2},
    {"facebook", "stride", {.width = 8, .strategy = PH_SAMPLING_STRIDE}, 2.2},
    {"facebook", "bucket", {.width = 16}, 1.5},
    {"facebook", "stride", {.width = 16, .strategy = PH_SAMPLING_STRIDE}, 1.5},
    {"csbm", "bucket", {.width = 64}, 3.5},
    {"csbm", "stride", {.width = 64, .strategy = PH_SAMPLING_STRIDE}, 3.5},
    {"csbm", "even", {.width = 64, .strategy = PH_SAMPLING_EVEN}, 0},
    {"csbm", "bucket", {.width = 32}, 6.5},
    {"csbm", "stride", {.width = 32, .strategy = PH_SAMPLING_STRIDE}, 6.5},
    {"csbm", "bucket", {.width = 16}, 12},
    {"csbm", "stride", {.width = 16, .strategy = PH_SAMPLING_STRIDE}, 12},
    {"shuffled", "bucket", {.width = 64}, 3.5},
    {"shuffled", "bucket", {.width = 32}, 6.5},
    {"shuffled", "bucket", {.width = 16}, 12},
};
enum { NUM_SAMPLES = sizeof samples / sizeof *samples };

struct times {
    double whole[BENCH_MAX_ROUNDS], lists[BENCH_MAX_ROUNDS], listed[BENCH_MAX_ROUNDS];
};

/* One team's part in a graph's case. */
struct contest {
    const struct graph_case *graph;
    size_t num_threads, rounds;
    struct bench_limits *limits;
    struct bench_rows rows; /* random, as many as the graph's edges */
    struct aggregation_run full, weighted, sampled[NUM_SAMPLES];
    struct times full_times, weighted_times, sample_times[NUM_SAMPLES];
    struct peer peers[NUM_PEERS];
    size_t peer_steps[NUM_PEERS];
    double peer_times[NUM_PEERS][BENCH_MAX_ROUNDS], gather[BENCH_MAX_ROUNDS];
};

struct options {
    size_t threads;
    const char *of;
    struct bench_run run;
};

/* ---- rounds ---- */

static double repeat(double (*measure)(struct aggregation_run *run), struct aggregation_run *run)
{
    double seconds = measure(run), total = seconds;
    size_t count = 1;
    for (; total < sample_seconds; count++) {
        const double here = measure(run);
        total += here;
        seconds = here < seconds ? here : seconds;
    }
    return seconds;
}

static void run_ours(struct aggregation_run *run, struct times *times, size_t round)
{
    times->whole[round] = repeat(aggregation_run_whole, run);
    if (run->slots == NULL)
        return;
    times->lists[round] = repeat(aggregation_run_lists, run);
    times->listed[round] = repeat(aggregation_run_listed, run);
}

static bool is_of(const struct contest *contest, size_t sample)
{
    return strcmp(samples[sample].graph, contest->graph->name) == 0;
}

/* Returns the least seconds of the steps, as for ours; NAN without the peer. */
static double run_peer(struct peer *peer, size_t steps)
{
    double least = (double)NAN;
    for (size_t i = 0; i < steps; i++) {
        const char *answer = peer_ask(peer, "multiply 1");
        const double seconds = answer != NULL ? strtod(answer, NULL) : 0;
        if (seconds > 0 && !(seconds >= least))
            least = seconds;
    }
    return least;
}

static void take_round(struct contest *contest, size_t round)
{
    contest->gather[round] = bench_gather(contest->limits, &contest->rows);
    run_ours(&contest->full, &contest->full_times, round);
    run_ours(&contest->weighted, &contest->weighted_times, round);
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        if (is_of(contest, i))
            run_ours(&contest->sampled[i], &contest->sample_times[i], round);
    for (size_t i = 0; i < NUM_PEERS; i++)
        contest->peer_times[i][round] = run_peer(&contest->peers[i], contest->peer_steps[i]);
}

/* ---- a case ---- */

static ph_real *random_reals(size_t count)
{
    struct ph__rng_sequence random = {.key = {.seed = 2}};
    void *memory = NULL;
    bench_check(ph__memory_alloc(count * sizeof(ph_real), "a matrix", &memory));
    for (size_t i = 0; i < count; i++)
        ((ph_real *)memory)[i] = (ph_real)ph__rng_next_normal(&random);
    return memory;
}

/* Gives each edge the weight 1/d: as values of peers' matrices. */
static ph_real *mean_weights(const struct graph_case *graph)
{
    void *memory = NULL;
    bench_check(ph__memory_alloc(graph->num_items * sizeof(ph_real), "weights", &memory));
    for (size_t node = 0; node < graph->num_nodes; node++)
        for (size_t i = graph->offsets[node]; i < graph->offsets[node + 1]; i++)
            ((ph_real *)memory)[i] = 1 / (ph_real)(graph->offsets[node + 1] - graph->offsets[node]);
    return memory;
}

static struct bench_slots random_slots(const struct graph_case *graph, uint64_t seed)
{
    struct ph__rng_sequence random = {.key = {.seed = seed}};
    void *memory = NULL;
    bench_check(ph__memory_alloc(graph->num_items * sizeof(uint32_t), "slots", &memory));
    for (size_t i = 0; i < graph->num_items; i++)
        ((uint32_t *)memory)[i] = (uint32_t)ph__rng_below(&random, graph->num_nodes);
    return (struct bench_slots){memory, graph->num_items};
}

/* Drops a peer whose product is not ours. */
static bool is_right(struct peer *peer, const ph_real *y, size_t count)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (double)y[i] * (double)y[i];
    const char *answer = peer_ask(peer, "squares 1");
    const double theirs = answer != NULL ? strtod(answer, NULL) : 0;
    if (fabs(theirs - squares) <= 1e-4 * squares)
        return true;
    printf(
        "peer %s: skipped: the squares of its product sum to %g, ours to %g\n", peer->name, theirs, squares);
    return false;
}

static void prepare_peer(struct contest *contest, size_t i, const char *folder, const ph_real *y)
{
    struct peer *peer = &contest->peers[i];
    peer_start(peer, folder, peer_names[i]);
    if (!peer_is_there(peer) ||
        !peer_accepts(peer, "case %s threads=%zu", case_folder, contest->num_threads) ||
        !is_right(peer, y, contest->graph->num_nodes * DIM))
        return;
    const double once = run_peer(peer, 2);
    contest->peer_steps[i] = once > 0 ? 1 + (size_t)(sample_seconds / once) : 0;
}

/* ---- reports ---- */

static double ratio(const double *theirs, const double *ours, size_t rounds)
{
    double ratios[BENCH_MAX_ROUNDS];
    for (size_t round = 0; round < rounds; round++)
        ratios[round] = theirs[round] / ours[round];
    return bench_median(ratios, rounds);
}

static size_t best_peer(const struct contest *contest)
{
    size_t best = NUM_PEERS;
    for (size_t i = 0; i < NUM_PEERS; i++)
        if (contest->peer_steps[i] > 0 &&
            (best == NUM_PEERS || bench_median(contest->peer_times[i], contest->rounds) <
                                      bench_median(contest->peer_times[best], contest->rounds)))
            best = i;
    return best;
}

static void record(struct ph__json *figures, const struct contest *contest, const char *what,
    const double *seconds, struct bench_figure figure)
{
    char name[128];
    snprintf(name, sizeof name, "kernel.aggregation.%s.%s.%zuthreads", contest->graph->name, what,
        contest->num_threads);
    figure.name = name;
    figure.unit = "ms";
    figure.value = 1e3 * bench_median(seconds, contest->rounds);
    figure.spread = bench_spread(seconds, contest->rounds);
    bench_record(figures, &figure);
}

static void report_full(
    struct ph__json *figures, const struct contest *contest, const char *what, const struct times *times)
{
    const size_t best = best_peer(contest), rounds = contest->rounds;
    const double bytes = (double)contest->graph->num_items * DIM * sizeof(ph_real);
    double rates[BENCH_MAX_ROUNDS], of_gather[BENCH_MAX_ROUNDS];
    for (size_t round = 0; round < rounds; round++) {
        rates[round] = bytes / times->whole[round];
        of_gather[round] = rates[round] / contest->gather[round];
    }
    printf("  %-22s %8.3f ms  %6.1f GB/s of rows, %3.0f%% of gathering random ones\n", what,
        1e3 * bench_median(times->whole, rounds), 1e-9 * bench_median(rates, rounds),
        100 * bench_median(of_gather, rounds));
    struct bench_figure figure = {
        .limit = "edges * row bytes / gathering random rows", .of_limit = bench_median(of_gather, rounds)};
    if (best < NUM_PEERS) {
        figure.peer = contest->peers[best].version;
        figure.peer_value = 1e3 * bench_median(contest->peer_times[best], rounds);
        figure.ratio = ratio(contest->peer_times[best], times->whole, rounds);
    }
    record(figures, contest, what, times->whole, figure);
    for (size_t i = 0; i < NUM_PEERS; i++)
        if (contest->peer_steps[i] > 0)
            printf("    %-20s %8.3f ms  ours is %.2f times as fast\n", contest->peers[i].version,
                1e3 * bench_median(contest->peer_times[i], rounds),
                ratio(contest->peer_times[i], times->whole, rounds));
}

static void report_sample(struct ph__json *figures, const struct contest *contest, size_t i)
{
    const struct sample *sample = &samples[i];
    const struct times *times = &contest->sample_times[i];
    const double *full = contest->full_times.whole;
    const size_t rounds = contest->rounds, width = sample->sampling.width;
    const double ceiling = graph_case_ceiling(contest->graph, width);
    const double speedup = ratio(full, times->whole, rounds);
    char what[64];
    snprintf(what, sizeof what, "%s.w%zu", sample->name, width);
    printf("  %-12s %7.3f ms %6.2f x full", what, 1e3 * bench_median(times->whole, rounds), speedup);
    if (sample->target > 0)
        printf(" (target %.1f)", sample->target);
    printf(", edges alone %.2f; sampling %.0f%%; listed before %.2f x, full as well %.2f x\n", ceiling,
        100 * ratio(times->lists, times->whole, rounds), ratio(full, times->listed, rounds),
        ratio(contest->full_times.listed, times->listed, rounds));
    record(figures, contest, what, times->whole,
        (struct bench_figure){.peer = "all neighbours, ours",
            .peer_value = 1e3 * bench_median(full, rounds),
            .ratio = speedup,
            .limit = "edges read of all edges",
            .of_limit = speedup / ceiling});
}

static void report(struct ph__json *figures, const struct contest *contest)
{
    printf("%s, %zu nodes, %zu edges, %zu threads, %zu rounds: random rows of x %.1f GB/s\n",
        contest->graph->name, contest->graph->num_nodes, contest->graph->num_items, contest->num_threads,
        contest->rounds, 1e-9 * bench_median(contest->gather, contest->rounds));
    report_full(figures, contest, "full", &contest->full_times);
    report_full(figures, contest, "weighted", &contest->weighted_times);
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        if (is_of(contest, i))
            report_sample(figures, contest, i);
    fflush(stdout);
}

/* ---- the program ---- */

static void init_runs(
    struct contest *contest, const struct ph_backend *backend, ph_real *x, ph_real *weights, ph_real *y)
{
    const struct ph_sampling all = {0};
    aggregation_run_init(&contest->weighted, backend, contest->graph, DIM, x, weights, y, &all);
    aggregation_run_init(&contest->full, backend, contest->graph, DIM, x, NULL, y, &all);
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        if (is_of(contest, i))
            aggregation_run_init(
                &contest->sampled[i], backend, contest->graph, DIM, x, NULL, y, &samples[i].sampling);
    aggregation_run_whole(&contest->full); /* y: what peers' products are compared with */
}

static void fini_runs(struct contest *contest)
{
    aggregation_run_fini(&contest->weighted);
    aggregation_run_fini(&contest->full);
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        if (is_of(contest, i))
            aggregation_run_fini(&contest->sampled[i]);
}

static void measure(struct ph__json *figures, const struct options *options, const struct graph_case *graph,
    size_t num_threads)
{
    static struct contest contest;
    struct ph_backend *backend;
    const size_t bytes = graph->num_nodes * DIM * sizeof(ph_real);
    ph_real *x = random_reals(graph->num_nodes * DIM), *y = random_reals(graph->num_nodes * DIM);
    ph_real *weights = mean_weights(graph);
    struct bench_slots sets[NUM_SETS] = {random_slots(graph, 3), random_slots(graph, 4)};
    bench_check(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = num_threads},
        &backend));
    contest = (struct contest){.graph = graph,
        .num_threads = num_threads,
        .rounds = options->run.rounds,
        .limits = bench_limits_create(backend->team),
        .rows = {x, DIM, NUM_SETS, sets}};
    init_runs(&contest, backend, x, weights, y);
    if (options->run.peers != NULL)
        graph_case_write(graph, DIM, x, case_folder);
    for (size_t i = 0; i < NUM_PEERS; i++)
        prepare_peer(&contest, i, options->run.peers, y);
    for (size_t round = 0; round < contest.rounds; round++)
        take_round(&contest, round);
    report(figures, &contest);
    for (size_t i = 0; i < NUM_PEERS; i++)
        peer_stop(&contest.peers[i]);
    fini_runs(&contest);
    bench_limits_destroy(contest.limits);
    ph_backend_destroy(backend);
    for (size_t i = 0; i < NUM_SETS; i++)
        ph__memory_free((void *)(uintptr_t)sets[i].slots, graph->num_items * sizeof(uint32_t));
    ph__memory_free(weights, graph->num_items * sizeof *weights);
    ph__memory_free(x, bytes);
    ph__memory_free(y, bytes);
}

static void measure_graph(
    struct ph__json *figures, const struct options *options, const struct graph_case *graph)
{
    for (size_t threads = 1; threads <= MAX_TEAMS; threads++)
        if (options->threads == 0 || options->threads == threads)
            measure(figures, options, graph, threads);
}

static bool is_meant(const struct options *options, const char *name)
{
    return options->of == NULL || strcmp(options->of, name) == 0;
}

/* Prints the processor's name: MKL takes other paths on an AMD processor. */
static void print_processor(void)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "model name", strlen("model name")) == 0) {
            printf("processor%s", strchr(line, ':'));
            break;
        }
    if (file != NULL)
        fclose(file);
}

int main(int argc, char **argv)
{
    enum { NUM_NODES = 8000, QUICK_NODES = 500 };
    struct options options = {.run = {.rounds = 15}};
    struct graph_case graph;
    const struct bench_flag flags[] = {{.name = "--threads", .number = &options.threads},
        {.name = "--case", .word = &options.of, .words = "facebook|csbm"}};
    bench_read_flags(argc, argv, &options.run, flags, sizeof flags / sizeof *flags);
    struct ph__json *figures = ph__json_array();
    print_processor();
    if (is_meant(&options, "facebook") && graph_case_facebook(&graph)) {
        measure_graph(figures, &options, &graph);
        graph_case_fini(&graph);
    }
    if (is_meant(&options, "csbm")) {
        graph_case_csbm(&graph, options.run.is_quick ? QUICK_NODES : NUM_NODES);
        measure_graph(figures, &options, &graph);
        graph_case_shuffle(&graph, "shuffled");
        options.run.peers = NULL; /* the order of neighbours is nothing to them */
        measure_graph(figures, &options, &graph);
        graph_case_fini(&graph);
    }
    bench_finish(figures, options.run.json);
    return 0;
}
