/* Inference of the DLRM that the field compares by (bench/dlrm_case.h), from batch to probabilities: the
 * latency of calls of 1, 16 and 64 samples by one thread on one core, and the throughput of whole batches
 * with one and two threads.
 *
 * Each round measures the machine's rates, then some of our calls, then as many calls of each peer, which run
 * the same model and samples in PyTorch (bench/peers/torch.py), eager and compiled. The floor is that of
 * bench/floor.h by the rates of the same round. Calls go through eight batches in turn, so that rows of
 * small batches stay in a cache on all sides.
 *
 * bench_inference [--rounds N] [--case NAME] [--precision fp32|bf16] [--batch N] [--threads N]
 *     [--peers FOLDER] [--json FILE]
 *
 * bf16 is the precision of linear layers on our side, and of the whole model on the peers' side. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/clock.h"
#include "bench_inference/forward.h"
#include "dlrm_case.h"
#include "figures.h"
#include "flags.h"
#include "floor.h"
#include "peer.h"

enum { MAX_ROUNDS = 25, MIN_CALLS = 4, MAX_CALLS = 400, NUM_PEERS = 2, MAX_THREADS = 2, MAX_NODES = 64 };
static const double sample_seconds = 0.2; /* measured time of a round, roughly */
static const size_t small_batches[] = {1, 16, 64};

static const struct contender_peer {
    const char *mode, *suffix; /* suffix of the figure's name */
} peer_modes[NUM_PEERS] = {{"eager", ""}, {"compile", ".compile"}};

struct options {
    size_t rounds, batch, threads; /* batch, threads 0: all */
    const char *of, *precision, *peers, *json;
};

/* Microseconds of the calls in each round. */
struct figures {
    double p50[MAX_ROUNDS], p99[MAX_ROUNDS], mean[MAX_ROUNDS];
};

/* One measured configuration. */
struct run {
    char name[96];
    const struct dlrm_case *of;
    enum ph_precision precision;
    size_t threads, rounds, calls;
    bool is_latency; /* false: throughput */
    struct figures ours, theirs[NUM_PEERS];
    double floor[MAX_ROUNDS]; /* microseconds */
    double operator_seconds[MAX_NODES][MAX_ROUNDS], operator_of_floor[MAX_NODES][MAX_ROUNDS];
    const char *placement;
};

/* ---- calls ---- */

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Adds the figures of a round; sorts its microseconds. */
static void take_calls(struct figures *figures, size_t round, double *microseconds, size_t calls)
{
    double sum = 0;
    for (size_t i = 0; i < calls; i++)
        sum += microseconds[i];
    qsort(microseconds, calls, sizeof *microseconds, ascending);
    figures->mean[round] = sum / (double)calls;
    figures->p50[round] = microseconds[calls / 2];
    figures->p99[round] = microseconds[(size_t)ceil(0.99 * (double)calls) - 1];
}

static void run_ours(struct run *run, size_t round, struct forward *forward)
{
    double microseconds[MAX_CALLS];
    for (size_t i = 0; i < run->calls; i++) {
        const uint64_t begin = ph__clock_ns();
        forward_call(forward);
        microseconds[i] = (double)(ph__clock_ns() - begin) * 1e-3;
    }
    take_calls(&run->ours, round, microseconds, run->calls);
}

static bool peer_prepare(struct peer *peer, const struct run *run, const char *folder, const char *mode)
{
    return peer_accepts(peer, "case %s threads=%zu mode=%s precision=%s batch=%zu for=infer", folder,
        run->threads, mode, dlrm_precisions[run->precision], run->of->batch);
}

/* Asks the peer for the microseconds of each call, one after the other; NAN without the peer. */
static void run_peer(struct run *run, size_t round, struct peer *peer, bool is_ready, struct figures *figures)
{
    double microseconds[MAX_CALLS];
    const char *answer = is_ready ? peer_ask(peer, "latency %zu", run->calls) : NULL;
    for (size_t i = 0; i < run->calls; i++)
        microseconds[i] = peer_number(&answer);
    take_calls(figures, round, microseconds, run->calls);
}

/* ---- figures ---- */

/* Records one of our figures beside each peer's; throughput is in samples a second. */
static void record_times(struct ph__json *figures, const struct run *run, const char *part,
    const double *ours, const double *const theirs[NUM_PEERS], struct peer peers[NUM_PEERS])
{
    const double samples = run->is_latency ? 0 : (double)run->of->batch * 1e6,
                 time = bench_median(ours, run->rounds);
    double ratios[MAX_ROUNDS], of_floor[MAX_ROUNDS];
    for (size_t i = 0; i < run->rounds; i++)
        of_floor[i] = run->floor[i] / ours[i];
    const double share = bench_median(of_floor, run->rounds), value = samples > 0 ? samples / time : time;
    const char *unit = samples > 0 ? "samples/s" : "us";
    printf("%-44s %10.1f %-9s %4.0f%% of its floor's speed (+- %.0f%%), %s\n", run->name, value, part,
        100 * share, 50 * bench_spread(ours, run->rounds), run->placement);
    for (size_t p = 0; p < NUM_PEERS; p++) {
        char name[128];
        for (size_t i = 0; i < run->rounds; i++)
            ratios[i] = theirs[p][i] / ours[i];
        const double ratio = bench_median(ratios, run->rounds),
                     their_time = bench_median(theirs[p], run->rounds);
        const double their_value = samples > 0 ? samples / their_time : their_time;
        if (p > 0 && isnan(ratio))
            continue;
        snprintf(name, sizeof name, "%s%s%s%s", run->name, samples > 0 ? "" : ".", samples > 0 ? "" : part,
            peer_modes[p].suffix);
        bench_record(figures, &(struct bench_figure){.name = name,
                                  .unit = unit,
                                  .value = value,
                                  .spread = bench_spread(ours, run->rounds),
                                  .peer = isnan(ratio) ? NULL : peers[p].version,
                                  .peer_value = their_value,
                                  .ratio = ratio,
                                  .limit = BENCH_FLOOR_FORMULA,
                                  .of_limit = share,
                                  .placement = run->placement});
        if (!isnan(ratio))
            printf("   PyTorch %-7s %32.1f %-9s ratio %.2f\n", peer_modes[p].mode, their_value, part, ratio);
    }
}

static void record_operators(struct ph__json *figures, const struct run *run, const struct forward *forward)
{
    double call_seconds = 0, seconds[MAX_NODES];
    for (size_t node = 0; node < forward_num_nodes(forward); node++)
        call_seconds += seconds[node] = bench_median(run->operator_seconds[node], run->rounds);
    for (size_t node = 0; node < forward_num_nodes(forward); node++) {
        const struct ph__cost *cost = forward_cost(forward, node);
        char name[192];
        if (seconds[node] <= 0)
            continue;
        const double of_floor = bench_median(run->operator_of_floor[node], run->rounds);
        snprintf(name, sizeof name, "%s.op.%s", run->name, forward_node_name(forward, node));
        bench_record(figures, &(struct bench_figure){.name = name,
                                  .unit = "us",
                                  .value = 1e6 * seconds[node],
                                  .spread = bench_spread(run->operator_seconds[node], run->rounds),
                                  .limit = BENCH_FLOOR_FORMULA,
                                  .of_limit = of_floor,
                                  .flops = cost->flops,
                                  .bytes = cost->bytes,
                                  .seconds = seconds[node],
                                  .of_step = run->name,
                                  .share = seconds[node] / call_seconds});
        printf("   %-30s %9.1f us %5.1f%%   %5.2f x its floor\n", forward_node_name(forward, node),
            1e6 * seconds[node], 100 * seconds[node] / call_seconds, 1 / of_floor);
    }
}

static void report(struct ph__json *figures, const struct run *run, const struct forward *forward,
    struct peer peers[NUM_PEERS])
{
    const double *const p50[NUM_PEERS] = {run->theirs[0].p50, run->theirs[1].p50};
    const double *const p99[NUM_PEERS] = {run->theirs[0].p99, run->theirs[1].p99};
    const double *const mean[NUM_PEERS] = {run->theirs[0].mean, run->theirs[1].mean};
    if (run->is_latency) {
        record_times(figures, run, "p50", run->ours.p50, p50, peers);
        record_times(figures, run, "p99", run->ours.p99, p99, peers);
    } else {
        record_times(figures, run, "samples/s", run->ours.mean, mean, peers);
    }
    record_operators(figures, run, forward);
    fflush(stdout);
}

/* ---- rounds ---- */

static size_t calls_of_a_sample(struct forward *forward)
{
    forward_call(forward); /* packs the weights */
    const double start = ph__clock_seconds();
    forward_call(forward);
    const size_t calls = (size_t)(sample_seconds / (ph__clock_seconds() - start));
    return calls < MIN_CALLS ? MIN_CALLS : calls < MAX_CALLS ? calls : MAX_CALLS;
}

static void measure_operators(
    struct run *run, struct forward *forward, size_t round, const struct bench_rates *rates)
{
    double floor = 0;
    forward_profile(forward, run->calls / 2);
    for (size_t node = 0; node < forward_num_nodes(forward); node++) {
        const double least = bench_floor(forward_cost(forward, node), rates);
        run->operator_seconds[node][round] = forward_seconds(forward, node);
        run->operator_of_floor[node][round] = least / run->operator_seconds[node][round];
        floor += least;
    }
    run->floor[round] = 1e6 * floor;
}

static const char *add_placement(const char *former, const char *latest)
{
    return former == NULL || strcmp(former, latest) == 0 ? latest : "moved";
}

static void run_rounds(struct run *run, struct forward *forward, const struct floor_rows *rows,
    struct peer peers[NUM_PEERS], const bool are_ready[NUM_PEERS])
{
    struct bench_limits *limits = bench_limits_create(forward_team(forward));
    run->calls = calls_of_a_sample(forward);
    run_ours(run, 0, forward); /* not counted, like the peers' first calls: caches settle */
    for (size_t p = 0; p < NUM_PEERS; p++)
        run_peer(run, 0, &peers[p], are_ready[p], &run->theirs[p]);
    for (size_t round = 0; round < run->rounds; round++) {
        const double before = run->threads > 1 ? bench_core_latency() : 0;
        struct bench_rates rates = bench_measure_rates(limits, rows, forward_table(forward));
        run_ours(run, round, forward);
        bench_raise_rates(&rates, limits, rows, forward_table(forward));
        measure_operators(run, forward, round, &rates);
        for (size_t p = 0; p < NUM_PEERS; p++)
            run_peer(run, round, &peers[p], are_ready[p], &run->theirs[p]);
        const double after = run->threads > 1 ? bench_core_latency() : 0;
        run->placement = add_placement(run->placement, bench_placement(run->threads, before, after));
    }
    bench_limits_destroy(limits);
}

/* State that all configurations of a case share. */
struct setting {
    const struct options *options;
    struct dlrm_data data;
    struct ph_store *store;
    struct ph_state *state;
    const char *folder; /* folder of the peers' batches */
    struct peer peers[NUM_PEERS];
    struct ph__json *figures;
};

static void measure_precision(
    struct setting *setting, enum ph_precision precision, size_t batch, size_t threads)
{
    static struct run run;
    static struct dlrm_data data;
    bool are_ready[NUM_PEERS];
    dlrm_data_first(&setting->data, batch, &data);
    run = (struct run){.of = &data.of,
        .precision = precision,
        .threads = threads,
        .rounds = setting->options->rounds,
        .is_latency = batch < setting->data.of.batch};
    snprintf(run.name, sizeof run.name, "serve.inference.dlrm.%s%s.batch%zu.threads%zu", data.of.name,
        precision == PH_PRECISION_BF16 ? ".bf16" : "", batch, threads);
    struct floor_rows *rows = floor_rows_create(&data);
    struct forward *forward = forward_create(&data, precision, setting->store, setting->state, threads);
    if (forward_num_nodes(forward) > MAX_NODES)
        bench_check(ph_fail(PH_ERROR_BUG, "the program has more than %d nodes", MAX_NODES));
    for (size_t p = 0; p < NUM_PEERS; p++)
        are_ready[p] = peer_prepare(&setting->peers[p], &run, setting->folder, peer_modes[p].mode);
    run_rounds(&run, forward, rows, setting->peers, are_ready);
    report(setting->figures, &run, forward, setting->peers);
    forward_destroy(forward);
    floor_rows_destroy(rows);
    dlrm_data_fini(&data);
}

static void measure(struct setting *setting, size_t batch, size_t threads)
{
    const char *wanted = setting->options->precision;
    for (size_t i = 0; i < DLRM_NUM_PRECISIONS; i++)
        if (wanted == NULL || strcmp(wanted, dlrm_precisions[i]) == 0)
            measure_precision(setting, (enum ph_precision)i, batch, threads);
}

static bool is_wanted(size_t wanted, size_t value)
{
    return wanted == 0 || wanted == value;
}

static void start_peers(struct setting *setting)
{
    for (size_t p = 0; p < NUM_PEERS; p++)
        peer_start(&setting->peers[p], setting->options->peers, "torch");
}

static void stop_peers(struct setting *setting)
{
    for (size_t p = 0; p < NUM_PEERS; p++)
        peer_stop(&setting->peers[p]);
}

/* Keeps this process, and the peers that it starts meanwhile, on one core. */
static void measure_latencies(struct setting *setting)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || sched_setaffinity(0, sizeof one, &one) != 0)
        bench_check(ph_fail(PH_ERROR_BUG, "cannot pin the thread to one core"));
    start_peers(setting);
    for (size_t i = 0; i < sizeof small_batches / sizeof *small_batches; i++)
        if (is_wanted(setting->options->batch, small_batches[i]))
            measure(setting, small_batches[i], 1);
    stop_peers(setting);
    sched_setaffinity(0, sizeof all, &all);
}

static void measure_throughputs(struct setting *setting)
{
    if (!is_wanted(setting->options->batch, setting->data.of.batch))
        return;
    start_peers(setting);
    for (size_t threads = 1; threads <= MAX_THREADS; threads++)
        if (is_wanted(setting->options->threads, threads))
            measure(setting, setting->data.of.batch, threads);
    stop_peers(setting);
}

static void measure_case(const struct dlrm_case *of, const struct options *options, struct ph__json *figures)
{
    static struct setting setting;
    setting = (struct setting){.options = options, .folder = "build/bench/case", .figures = figures};
    dlrm_data_init(&setting.data, of);
    if (options->peers != NULL)
        dlrm_data_write(&setting.data, setting.folder);
    bench_check(ph_store_create(1, &setting.store));
    bench_check(ph_state_create(&setting.state));
    if (is_wanted(options->threads, 1))
        measure_latencies(&setting);
    measure_throughputs(&setting);
    ph_state_destroy(setting.state);
    ph_store_destroy(setting.store);
    dlrm_data_fini(&setting.data);
}

/* ---- options ---- */

static struct options parse(int argc, char **argv)
{
    struct options options = {0};
    const struct bench_flag flags[] = {{.name = "--batch", .number = &options.batch},
        {.name = "--threads", .number = &options.threads}, {.name = "--case", .word = &options.of},
        {.name = "--precision", .word = &options.precision, .words = "fp32|bf16"}};
    struct bench_run run = {.rounds = 7, .most_rounds = MAX_ROUNDS};
    bench_read_flags(argc, argv, &run, flags, sizeof flags / sizeof *flags);
    options.rounds = run.rounds;
    options.peers = run.peers;
    options.json = run.json;
    return options;
}

int main(int argc, char **argv)
{
    const struct options options = parse(argc, argv);
    struct ph__json *figures = ph__json_array();
    printf("floor: %s\n", BENCH_FLOOR_FORMULA);
    for (size_t i = 0; i < dlrm_num_cases; i++)
        if (options.of == NULL || strcmp(options.of, dlrm_cases[i].name) == 0)
            measure_case(&dlrm_cases[i], &options, figures);
    bench_finish(figures, options.json);
    return 0;
}
