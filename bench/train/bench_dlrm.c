/* Measures the training step of the DLRM that the field compares by (bench/dlrm_case.h), with SGD and
 * Adagrad, on one and two threads.
 *
 * Each round measures the machine's rates, then some steps of ours, then some of each peer, the same model
 * and batches in PyTorch (bench/peers/torch.py), eager and compiled. Batches are made beforehand on all
 * sides: this is the speed of the step. A step in bf16 takes turns with the one in fp32 on the same
 * parameters. The floor of the step and of each operator is that of bench/floor.h by the rates of the same
 * round.
 *
 * bench_dlrm [--rounds N] [--case NAME] [--optimizer sgd|adagrad|rowwise_adagrad] [--precision fp32|bf16]
 *            [--threads N] [--peers FOLDER] [--json FILE]
 *
 * Without --precision all cases are measured in fp32, and those that is_default accepts in bf16, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/clock.h"
#include "dlrm_case.h"
#include "figures.h"
#include "flags.h"
#include "floor.h"
#include "peer.h"
#include "training_step.h"

enum { MAX_ROUNDS = 25, MAX_STEPS = 20, NUM_PEERS = 2, MAX_THREADS = 2, TOLD_OPERATORS = 12 };
static const double sample_seconds = 0.4; /* about so long in a round */

static const struct contender_peer {
    const char *mode, *suffix; /* of the figure's name */
} peer_modes[NUM_PEERS] = {{"eager", ""}, {"compile", ".compile"}};

static const struct optimizer {
    enum ph_optimizer_kind kind;
    const char *name;
} optimizers[] = {{PH_SGD, "sgd"}, {PH_ADAGRAD, "adagrad"}, {PH_ROWWISE_ADAGRAD, "rowwise_adagrad"}};
enum { NUM_OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

struct options {
    size_t rounds, threads;
    const char *of, *optimizer, *precision, *peers, *json;
};

/* One measured configuration. */
struct run {
    char name[96];
    const struct dlrm_case *of;
    const struct optimizer *optimizer;
    enum ph_precision precision;
    size_t threads, rounds;
    double seconds[MAX_ROUNDS];              /* a step */
    double seconds_fp32[MAX_ROUNDS];         /* of bf16: a step in fp32 */
    double of_floor[MAX_ROUNDS];             /* floor / seconds */
    double theirs[NUM_PEERS][MAX_ROUNDS];    /* seconds a step; NAN without the peer */
    double (*operator_of_floor)[MAX_ROUNDS]; /* by node */
    double (*operator_seconds)[MAX_ROUNDS];
    struct bench_rates rates; /* of the last round */
    const char *placement;
};

/* ---- the peers ---- */

static bool peer_prepare(struct peer *peer, const struct run *run, const char *folder, const char *mode)
{
    return peer_accepts(peer, "case %s threads=%zu optimizer=%s mode=%s precision=%s", folder, run->threads,
        run->optimizer->name, mode, dlrm_precisions[run->precision]);
}

static double run_peer(struct peer *peer, bool is_ready, size_t steps)
{
    const char *answer = is_ready ? peer_ask(peer, "train %zu", steps) : NULL;
    return answer != NULL ? strtod(answer, NULL) / (double)steps : (double)NAN;
}

/* ---- figures ---- */

static void record_step(struct ph__json *figures, const struct run *run, struct peer peers[NUM_PEERS])
{
    const double samples = (double)run->of->batch;
    const double seconds = bench_median(run->seconds, run->rounds);
    for (size_t p = 0; p < NUM_PEERS; p++) {
        double ratios[MAX_ROUNDS];
        char name[128];
        for (size_t i = 0; i < run->rounds; i++)
            ratios[i] = run->theirs[p][i] / run->seconds[i];
        const double ratio = bench_median(ratios, run->rounds);
        if (p > 0 && isnan(ratio))
            continue;
        snprintf(name, sizeof name, "%s%s", run->name, peer_modes[p].suffix);
        bench_record(figures, &(struct bench_figure){.name = name,
                                  .unit = "samples/s",
                                  .value = samples / seconds,
                                  .spread = bench_spread(run->seconds, run->rounds),
                                  .peer = isnan(ratio) ? NULL : peers[p].version,
                                  .peer_value = samples / bench_median(run->theirs[p], run->rounds),
                                  .ratio = ratio,
                                  .limit = BENCH_FLOOR_FORMULA,
                                  .of_limit = bench_median(run->of_floor, run->rounds),
                                  .placement = run->placement});
        if (!isnan(ratio))
            printf("   PyTorch %-7s %8.0f samples/s, ratio %.2f\n", peer_modes[p].mode,
                samples / bench_median(run->theirs[p], run->rounds), ratio);
    }
}

static void record_fp32(struct ph__json *figures, const struct run *run)
{
    const double samples = (double)run->of->batch, fp32 = bench_median(run->seconds_fp32, run->rounds);
    double ratios[MAX_ROUNDS];
    char name[128];
    for (size_t i = 0; i < run->rounds; i++)
        ratios[i] = run->seconds_fp32[i] / run->seconds[i];
    snprintf(name, sizeof name, "%s.fp32", run->name);
    bench_record(figures, &(struct bench_figure){.name = name,
                              .unit = "samples/s",
                              .value = samples / bench_median(run->seconds, run->rounds),
                              .spread = bench_spread(run->seconds, run->rounds),
                              .peer = "the same step in fp32",
                              .peer_value = samples / fp32,
                              .ratio = bench_median(ratios, run->rounds),
                              .placement = run->placement});
    printf("   in fp32 %12.0f samples/s, ratio %.2f\n", samples / fp32, bench_median(ratios, run->rounds));
}

static void record_operator(struct ph__json *figures, const struct run *run, const struct step *step,
    size_t node, double step_seconds, bool is_printed)
{
    const double seconds = bench_median(run->operator_seconds[node], run->rounds);
    const double of_floor = bench_median(run->operator_of_floor[node], run->rounds);
    const struct ph__cost *cost = step_cost(step, node);
    char name[192];
    snprintf(name, sizeof name, "%s.op.%s", run->name, step_node_name(step, node));
    bench_record(figures, &(struct bench_figure){.name = name,
                              .unit = "ms",
                              .value = 1e3 * seconds,
                              .spread = bench_spread(run->operator_seconds[node], run->rounds),
                              .limit = BENCH_FLOOR_FORMULA,
                              .of_limit = of_floor,
                              .flops = cost->flops,
                              .bytes = cost->bytes,
                              .seconds = seconds,
                              .of_step = run->name,
                              .share = seconds / step_seconds});
    if (is_printed)
        printf("   %-30s %8.3f ms %5.1f%%   %5.2f x its floor\n", step_node_name(step, node), 1e3 * seconds,
            100 * seconds / step_seconds, 1 / of_floor);
}

/* Records the operators, the slowest first. */
static void record_operators(struct ph__json *figures, const struct run *run, const struct step *step)
{
    const size_t num_nodes = step_num_nodes(step);
    double step_seconds = 0, *seconds = calloc(num_nodes + 1, sizeof *seconds);
    if (seconds == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: the operators' figures"));
    for (size_t node = 0; node < num_nodes; node++) {
        seconds[node] = bench_median(run->operator_seconds[node], run->rounds);
        step_seconds += seconds[node];
    }
    for (size_t told = 0; told < num_nodes; told++) {
        size_t dearest = 0;
        for (size_t node = 1; node < num_nodes; node++)
            if (seconds[node] > seconds[dearest])
                dearest = node;
        if (seconds[dearest] > 0)
            record_operator(figures, run, step, dearest, step_seconds, told < TOLD_OPERATORS);
        seconds[dearest] = -1;
    }
    free(seconds);
}

static void report(
    struct ph__json *figures, const struct run *run, const struct step *step, struct peer peers[NUM_PEERS])
{
    const double seconds = bench_median(run->seconds, run->rounds);
    printf("%-40s %8.0f samples/s, step %.1f ms = %.2f x its floor (+- %.0f%%), %s\n", run->name,
        (double)run->of->batch / seconds, 1e3 * seconds, 1 / bench_median(run->of_floor, run->rounds),
        50 * bench_spread(run->seconds, run->rounds), run->placement);
    printf("   product %.0f GFLOP/s; copy", run->rates.product * 1e-9);
    for (size_t i = 0; i < BENCH_COPY_SIZES; i++)
        printf(" %.0f", run->rates.copy[i] * 1e-9);
    printf(", gather %.1f, revisit %.1f, update %.1f GB/s in the last round\n", run->rates.gather * 1e-9,
        run->rates.revisit * 1e-9, run->rates.update * 1e-9);
    if (run->precision == PH_PRECISION_BF16)
        record_fp32(figures, run);
    record_step(figures, run, peers);
    record_operators(figures, run, step);
    fflush(stdout);
}

/* ---- rounds ---- */

static size_t steps_of_a_sample(struct step *step)
{
    step_run(step, DLRM_NUM_BATCHES); /* the first touches of the rows' pages are no part of a step */
    const double once = step_run(step, 1);
    const size_t steps = (size_t)(sample_seconds / once) + 1;
    return steps < MAX_STEPS ? steps : MAX_STEPS;
}

static void measure_operators(struct run *run, const struct step *step, size_t round)
{
    double floor = 0;
    for (size_t node = 0; node < step_num_nodes(step); node++) {
        const double least = bench_floor(step_cost(step, node), &run->rates);
        run->operator_seconds[node][round] = step_seconds(step, node);
        run->operator_of_floor[node][round] = least / run->operator_seconds[node][round];
        floor += least;
    }
    run->of_floor[round] = floor / run->seconds[round];
}

static const char *add_placement(const char *former, const char *latest)
{
    return former == NULL || strcmp(former, latest) == 0 ? latest : "moved";
}

/* Raises the rate to that of bf16 products, which processors with instructions for them have. */
static void raise_product_rate(struct run *run, struct bench_limits *limits)
{
    if (run->precision == PH_PRECISION_BF16)
        run->rates.product = fmax(run->rates.product, bench_peak_bf16(limits));
}

static void run_rounds(struct run *run, struct step *step, struct step *fp32, const struct floor_rows *rows,
    struct peer peers[NUM_PEERS], const bool are_ready[NUM_PEERS])
{
    struct bench_limits *limits = bench_limits_create(step_team(step));
    const size_t steps = steps_of_a_sample(step);
    for (size_t p = 0; p < NUM_PEERS; p++)
        run_peer(&peers[p], are_ready[p], 3);
    if (fp32 != NULL)
        step_run(fp32, DLRM_NUM_BATCHES);
    for (size_t round = 0; round < run->rounds; round++) {
        const double before = bench_core_latency();
        run->rates = bench_measure_rates(limits, rows, step_table(step));
        run->seconds[round] = step_run(step, steps) / (double)steps;
        bench_raise_rates(&run->rates, limits, rows, step_table(step));
        raise_product_rate(run, limits);
        measure_operators(run, step, round);
        if (fp32 != NULL)
            run->seconds_fp32[round] = step_run(fp32, steps) / (double)steps;
        for (size_t p = 0; p < NUM_PEERS; p++)
            run->theirs[p][round] = run_peer(&peers[p], are_ready[p], steps);
        run->placement =
            add_placement(run->placement, bench_placement(run->threads, before, bench_core_latency()));
    }
    bench_limits_destroy(limits);
}

static struct step *make_step(const struct run *run, const struct dlrm_data *data,
    enum ph_precision precision, const struct step *beside)
{
    return step_create(&(struct step_options){
        .program = dlrm_training_program(&data->of, run->optimizer->kind, precision, NULL),
        .batches = data->batches,
        .num_batches = DLRM_NUM_BATCHES,
        .threads = run->threads,
        .beside = beside});
}

static void measure(struct run *run, const struct dlrm_data *data, const struct floor_rows *rows,
    const char *folder, struct peer peers[NUM_PEERS], struct ph__json *figures)
{
    bool are_ready[NUM_PEERS];
    const bool is_bf16 = run->precision == PH_PRECISION_BF16;
    struct step *step = make_step(run, data, run->precision, NULL);
    struct step *fp32 = is_bf16 ? make_step(run, data, PH_PRECISION_FP32, step) : NULL;
    const size_t num_nodes = step_num_nodes(step);
    snprintf(run->name, sizeof run->name, "train.dlrm.%s.%s%s.threads%zu", run->of->name,
        run->optimizer->name, is_bf16 ? ".bf16" : "", run->threads);
    for (size_t p = 0; p < NUM_PEERS; p++)
        are_ready[p] = peer_prepare(&peers[p], run, folder, peer_modes[p].mode);
    run->operator_seconds = calloc(num_nodes + 1, sizeof *run->operator_seconds);
    run->operator_of_floor = calloc(num_nodes + 1, sizeof *run->operator_of_floor);
    if (run->operator_seconds == NULL || run->operator_of_floor == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: the operators' figures"));
    run_rounds(run, step, fp32, rows, peers, are_ready);
    report(figures, run, step, peers);
    free(run->operator_seconds);
    free(run->operator_of_floor);
    if (fp32 != NULL)
        step_destroy(fp32);
    step_destroy(step);
}

static bool is_default(const struct run *run)
{
    return run->precision == PH_PRECISION_FP32 ||
           (strcmp(run->of->name, "pool1") == 0 && run->optimizer->kind == PH_ADAGRAD);
}

static bool is_wanted(const struct run *run, const struct options *options)
{
    return (options->optimizer == NULL || strcmp(options->optimizer, run->optimizer->name) == 0) &&
           (options->threads == 0 || options->threads == run->threads) &&
           (options->precision != NULL ? strcmp(options->precision, dlrm_precisions[run->precision]) == 0
                                       : is_default(run));
}

static void measure_case(const struct dlrm_case *of, const struct options *options,
    struct peer peers[NUM_PEERS], struct ph__json *figures)
{
    static struct dlrm_data data;
    const char *folder = "build/bench/case";
    dlrm_data_init(&data, of);
    struct floor_rows *rows = floor_rows_create(&data);
    if (options->peers != NULL)
        dlrm_data_write(&data, folder);
    for (size_t i = 0; i < NUM_OPTIMIZERS * DLRM_NUM_PRECISIONS * MAX_THREADS; i++) {
        struct run run = {.of = of,
            .optimizer = &optimizers[i / MAX_THREADS / DLRM_NUM_PRECISIONS],
            .precision = (enum ph_precision)(i / MAX_THREADS % DLRM_NUM_PRECISIONS),
            .threads = i % MAX_THREADS + 1,
            .rounds = options->rounds};
        if (is_wanted(&run, options))
            measure(&run, &data, rows, folder, peers, figures);
    }
    floor_rows_destroy(rows);
    dlrm_data_fini(&data);
}

static struct options parse(int argc, char **argv)
{
    struct options options = {0};
    const struct bench_flag flags[] = {{.name = "--threads", .number = &options.threads},
        {.name = "--case", .word = &options.of},
        {.name = "--optimizer", .word = &options.optimizer, .words = "sgd|adagrad|rowwise_adagrad"},
        {.name = "--precision", .word = &options.precision, .words = "fp32|bf16"}};
    struct bench_run run = {.rounds = 5, .most_rounds = MAX_ROUNDS};
    bench_read_flags(argc, argv, &run, flags, sizeof flags / sizeof *flags);
    options.rounds = run.rounds;
    options.peers = run.peers;
    options.json = run.json;
    return options;
}

int main(int argc, char **argv)
{
    const struct options options = parse(argc, argv);
    struct peer peers[NUM_PEERS] = {{0}};
    struct ph__json *figures = ph__json_array();
    printf("floor: %s\n", BENCH_FLOOR_FORMULA);
    for (size_t p = 0; p < NUM_PEERS; p++)
        peer_start(&peers[p], options.peers, "torch");
    for (size_t i = 0; i < dlrm_num_cases; i++)
        if (options.of == NULL || strcmp(options.of, dlrm_cases[i].name) == 0)
            measure_case(&dlrm_cases[i], &options, peers, figures);
    for (size_t p = 0; p < NUM_PEERS; p++)
        peer_stop(&peers[p]);
    bench_finish(figures, options.json);
    return 0;
}
