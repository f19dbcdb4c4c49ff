/* Measures the savings of Wukong's optimised factorisation machine: the products X (X^T Y) of n vectors with
 * k learnt ones, O(n k d), beside all pairs of vectors, X X^T, O(n^2 d). FLOPs by the operators' cost rules,
 * and the time of the same operators.
 *
 * Both are small programs of public operators, forward and with the backward pass to X and Y. The loss is
 * there for its gradient alone and counts neither in FLOPs nor in time: the figures are sums over the
 * products' operators. All batches hold the same number of vectors, so time in proportion to n k d is the
 * same time at every n. In each round the product peak is measured and the programs take turns, on one
 * thread; medians are printed, the ratios' too.
 *
 * bench_fm_products [--rounds N] [--json FILE] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "figures.h"
#include "flags.h"
#include "graph/executor.h"
#include "limits.h"
#include "phloem/op.h"

enum { DIM = 64, BATCH_VECTORS = 25600, MAX_ROUNDS = BENCH_MAX_ROUNDS, DEFAULT_ROUNDS = 11 };
static const double sample_seconds = 0.02; /* of a program in a round, about */

static const size_t vectors[] = {100, 400, 1600}; /* n, per sample */
static const size_t ranks[] = {8, 24, 0};         /* k; the last one: X X^T */
enum { NUM_SIZES = sizeof vectors / sizeof *vectors, NUM_RANKS = sizeof ranks / sizeof *ranks };
enum { ALL_PAIRS = NUM_RANKS - 1 };

enum pass { FORWARD, FORWARD_BACKWARD, NUM_PASSES };
static const char *const pass_names[NUM_PASSES] = {"forward", "forward_backward"};

/* ---- one program ---- */

/* Figures of a pass over a batch; FLOPs and bytes by the cost rules. */
struct passage {
    double flops, bytes;
    double seconds[MAX_ROUNDS], share[MAX_ROUNDS]; /* by round; share: of the product peak */
};

struct contender {
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    size_t calls; /* timed per round */
    struct passage passes[NUM_PASSES];
};

static ph_value build_products(struct ph_builder *builder, ph_value x, size_t n, size_t rank)
{
    if (rank == 0)
        return ph_batch_product(builder, x, x, false, true); /* (B,n,n) */
    const struct ph_init init = {PH_INIT_UNIFORM, 0.1};
    const ph_value y = ph_parameter(builder, "projection", 2, (size_t[]){rank, n}, init);
    return ph_batch_product(builder, x, ph_mix_fields(builder, x, y, 0), false, true); /* (B,n,k) */
}

static struct ph_program *build(size_t n, size_t rank)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    ph_value gradients[2] = {0, 0};
    bench_check(ph_builder_create(PH_TRAINING, &builder));
    const ph_value x = ph_reshape(builder, ph_input_dense(builder, n * DIM), 2, (size_t[]){n, DIM});
    const ph_value products = build_products(builder, x, n, rank);
    const size_t row[] = {1, n * (rank > 0 ? rank : n)};
    const ph_value logits = ph_sum_last(builder, ph_reshape(builder, products, 2, row));
    ph_builder_begin_entry(builder, "backward");
    const ph_value wrt[] = {x, rank > 0 ? ph_builder_parameter(builder, 0) : 0};
    ph_backward(builder, ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0),
        rank > 0 ? 2 : 1, wrt, gradients);
    ph_output(builder, "dx", gradients[0]);
    if (rank > 0)
        ph_output(builder, "dy", gradients[1]);
    bench_check(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static void run_passes(const struct contender *contender, size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        bench_check(ph_workspace_run(contender->workspace, "forward"));
        bench_check(ph_workspace_run(contender->workspace, "backward"));
    }
}

/* Returns true for the products and for the sum of X's two gradients, which every such machine needs. */
static bool is_of_products(const struct ph__node *node)
{
    static const char *const names[] = {"batch_product", "mix_fields", "mix_fields_backward_data",
        "mix_fields_backward_weight", "accumulate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(node->op->name, names[i]) == 0)
            return true;
    return false;
}

/* Reads the figures of one call from the profile of `calls` calls. */
static void read_profile(const struct contender *contender, size_t calls, struct passage passes[NUM_PASSES],
    double seconds[NUM_PASSES])
{
    const struct ph__graph *graph = &contender->program->graph;
    for (size_t pass = 0; pass < NUM_PASSES; pass++)
        passes[pass].flops = passes[pass].bytes = seconds[pass] = 0;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node_profile *profile = &contender->executor->profile[i];
        const bool is_forward = strcmp(graph->entries[graph->nodes[i].entry], "forward") == 0;
        for (size_t pass = is_forward ? FORWARD : FORWARD_BACKWARD;
             pass < NUM_PASSES && is_of_products(&graph->nodes[i]); pass++) {
            passes[pass].flops += profile->cost.flops / (double)calls;
            passes[pass].bytes += profile->cost.bytes / (double)calls;
            seconds[pass] += (double)profile->time_ns * 1e-9 / (double)calls;
        }
    }
}

static void contender_init(
    struct contender *contender, struct ph_backend *backend, const struct ph_batch *batch, size_t rank)
{
    double seconds[NUM_PASSES];
    contender->program = build(batch->num_dense / DIM, rank);
    bench_check(ph_store_create(1, &contender->store));
    bench_check(ph_state_create(&contender->state));
    bench_check(ph_executor_create(
        contender->program, contender->store, contender->state, backend, &contender->executor));
    bench_check(ph_workspace_create(contender->executor, batch->num_samples, 0, &contender->workspace));
    bench_check(ph_workspace_bind(contender->workspace, batch, 1, 1));
    bench_check(ph_executor_profile(contender->executor, true, 0));
    run_passes(contender, 1); /* warms up, and makes the allocations of a first run */
    ph__profile_clear(contender->executor);
    run_passes(contender, 1);
    read_profile(contender, 1, contender->passes, seconds);
    contender->calls = 1 + (size_t)(sample_seconds / seconds[FORWARD_BACKWARD]);
}

static void contender_fini(struct contender *contender)
{
    ph_workspace_destroy(contender->workspace);
    ph_executor_destroy(contender->executor);
    ph_state_destroy(contender->state);
    ph_store_destroy(contender->store);
    ph_program_destroy(contender->program);
}

static void measure(struct contender *contender, double peak, size_t round)
{
    double seconds[NUM_PASSES];
    ph__profile_clear(contender->executor);
    run_passes(contender, contender->calls);
    read_profile(contender, contender->calls, contender->passes, seconds);
    for (size_t pass = 0; pass < NUM_PASSES; pass++) {
        contender->passes[pass].seconds[round] = seconds[pass];
        contender->passes[pass].share[round] = contender->passes[pass].flops / seconds[pass] / peak;
    }
}

/* ---- figures ---- */

/* Figures of a sample: medians over the rounds. */
struct told {
    size_t n;
    const char *pass;
    char products[24]; /* "k8", "pairs" */
    double flops, bytes, us, of_peak;
    double flops_ratio, time_ratio; /* of X X^T to this one */
};

struct bench {
    size_t rounds;
    struct ph_backend *backend;
    struct bench_limits *limits;
    double peaks[MAX_ROUNDS]; /* FLOP/s, of the latest size */
    struct told told[NUM_SIZES][NUM_RANKS][NUM_PASSES];
    struct ph__json *figures;
};

static double median_ratio(const double *above, const double *below, size_t rounds)
{
    double ratios[MAX_ROUNDS];
    for (size_t round = 0; round < rounds; round++)
        ratios[round] = above[round] / below[round];
    return bench_median(ratios, rounds);
}

static void tell(const struct bench *bench, size_t size, size_t rank, size_t pass,
    const struct contender *contenders, struct told *told_out)
{
    const struct passage *passage = &contenders[rank].passes[pass],
                         *pairs = &contenders[ALL_PAIRS].passes[pass];
    const double samples = (double)(BATCH_VECTORS / vectors[size]);
    *told_out = (struct told){.n = vectors[size],
        .pass = pass_names[pass],
        .products = "pairs",
        .flops = passage->flops / samples,
        .bytes = passage->bytes / samples,
        .us = bench_median(passage->seconds, bench->rounds) / samples * 1e6,
        .of_peak = bench_median(passage->share, bench->rounds),
        .flops_ratio = pairs->flops / passage->flops,
        .time_ratio = median_ratio(pairs->seconds, passage->seconds, bench->rounds)};
    if (ranks[rank] > 0)
        snprintf(told_out->products, sizeof told_out->products, "k%zu", ranks[rank]);
}

/* Prints and records a figure; pairs: the figure of X X^T, which has no peer itself. */
static void record(
    struct bench *bench, const struct told *told, const struct told *pairs, const double *seconds)
{
    char name[128], limit[96], series[64];
    snprintf(name, sizeof name, "kernel.fm_products.n%zu.%s.%s", told->n, told->products, told->pass);
    snprintf(limit, sizeof limit, "%.0f FLOP at %.1f GFLOP/s of the fastest product", told->flops,
        bench_median(bench->peaks, bench->rounds) * 1e-9);
    snprintf(series, sizeof series, "%s, %s", told->products, told->pass);
    bench_record(bench->figures, &(struct bench_figure){.name = name,
                                     .unit = "us",
                                     .value = told->us,
                                     .spread = bench_spread(seconds, bench->rounds),
                                     .peer = told != pairs ? "X X^T" : NULL,
                                     .peer_value = pairs->us,
                                     .ratio = told->time_ratio,
                                     .limit = limit,
                                     .of_limit = told->of_peak,
                                     .sweep = told != pairs ? "vectors" : NULL,
                                     .series = series,
                                     .at = (double)told->n,
                                     .flops = told->flops,
                                     .bytes = told->bytes,
                                     .seconds = told->us * 1e-6});
}

static void print_told(const struct told *told)
{
    printf("%6zu  %-6s %-17s %12.0f %11.1f %9.1f %5.0f%% %9.2f %9.2f\n", told->n, told->products, told->pass,
        told->flops, told->us, told->flops / told->us * 1e-3, 100 * told->of_peak, told->flops_ratio,
        told->time_ratio);
}

static void report(struct bench *bench, size_t size, const struct contender *contenders)
{
    for (size_t rank = 0; rank < NUM_RANKS; rank++)
        for (size_t pass = 0; pass < NUM_PASSES; pass++)
            tell(bench, size, rank, pass, contenders, &bench->told[size][rank][pass]);
    for (size_t rank = 0; rank < NUM_RANKS; rank++)
        for (size_t pass = 0; pass < NUM_PASSES; pass++) {
            const struct told *told = &bench->told[size][rank][pass];
            print_told(told);
            record(bench, told, &bench->told[size][ALL_PAIRS][pass], contenders[rank].passes[pass].seconds);
        }
}

/* Prints how FLOPs and time grow from the least n to the largest. */
static void print_growth(const struct bench *bench)
{
    const size_t least = vectors[0], largest = vectors[NUM_SIZES - 1];
    printf(
        "\nfrom n %zu to %zu, %zu times as many vectors, a sample costs so many times the FLOPs and time\n",
        least, largest, largest / least);
    for (size_t rank = 0; rank < NUM_RANKS; rank++)
        for (size_t pass = 0; pass < NUM_PASSES; pass++) {
            const struct told *first = &bench->told[0][rank][pass],
                              *last = &bench->told[NUM_SIZES - 1][rank][pass];
            printf("  %-6s %-17s %8.1f %8.1f\n", first->products, first->pass, last->flops / first->flops,
                last->us / first->us);
        }
}

/* ---- rounds ---- */

static float *random_numbers(size_t count)
{
    struct ph__rng_sequence rng = {.key = {.seed = 1}};
    float *numbers = malloc(count * sizeof *numbers);
    if (numbers == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu numbers", count));
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(ph__rng_next_uniform(&rng) - 0.5);
    return numbers;
}

static void measure_size(struct bench *bench, size_t size, const float *numbers)
{
    static const float labels[BATCH_VECTORS];
    static struct contender contenders[NUM_RANKS];
    const struct ph_batch batch = {.num_samples = BATCH_VECTORS / vectors[size],
        .num_dense = vectors[size] * DIM,
        .dense = numbers,
        .num_tasks = 1,
        .labels = labels};
    for (size_t i = 0; i < NUM_RANKS; i++)
        contender_init(&contenders[i], bench->backend, &batch, ranks[i]);
    for (size_t round = 0; round < bench->rounds; round++) {
        bench->peaks[round] = bench_peak_product(bench->limits);
        for (size_t i = 0; i < NUM_RANKS; i++) /* the order alternates */
            measure(&contenders[(round + i) % NUM_RANKS], bench->peaks[round], round);
    }
    report(bench, size, contenders);
    for (size_t i = 0; i < NUM_RANKS; i++)
        contender_fini(&contenders[i]);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct bench_run run = {.rounds = DEFAULT_ROUNDS, .most_rounds = MAX_ROUNDS};
    bench_read_flags(argc, argv, &run, NULL, 0);
    bench.rounds = run.rounds;
    bench.figures = ph__json_array();
    bench_check(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &bench.backend));
    bench.limits = bench_limits_create(bench.backend->team);
    float *numbers = random_numbers((size_t)BATCH_VECTORS * DIM);
    printf(
        "%s, vectors of %d, per sample\n     n                            FLOP          us   GFLOP/s  peak  "
        "of X X^T: FLOPs, time\n",
        ph_backend_describe(bench.backend), DIM);
    for (size_t size = 0; size < NUM_SIZES; size++)
        measure_size(&bench, size, numbers);
    print_growth(&bench);
    free(numbers);
    bench_limits_destroy(bench.limits);
    ph_backend_destroy(bench.backend);
    bench_finish(bench.figures, run.json);
    return 0;
}
