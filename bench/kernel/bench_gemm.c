/* Measures the cost of determinism in matrix products: GFLOP/s of forward, backward-data and backward-weight
 * for the layers of DLRM (batch 2048) and of Frappe's DNN (batch 4096), cut into serial tasks (the default)
 * against the same product threaded by the library itself (the fast mode), on one and two threads.
 *
 * Each round runs, one after the other, a burst of multiply-adds in registers (the limit: peak fp32 GFLOP/s
 * of the same threads at that moment), the deterministic product and the fast one. Medians over the rounds
 * are printed, the ratio's too. Operands are as warm as a loop over one layer leaves them. Packing is not
 * timed.
 *
 * bench_gemm [--rounds N] [--json FILE] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/clock.h"
#include "figures.h"
#include "flags.h"
#include "kernel/gemm.h"
#include "limits.h"

#define MAX_ROUNDS BENCH_MAX_ROUNDS
#define MAX_THREADS 2

static const struct layer {
    const char *model;
    size_t rows, in_features, out_features;
    size_t count; /* how often the model has it */
} layers[] = {
    {"dlrm", 2048, 13, 512, 1},
    {"dlrm", 2048, 512, 256, 2},
    {"dlrm", 2048, 256, 64, 1},
    {"dlrm", 2048, 415, 512, 1},
    {"dlrm", 2048, 256, 1, 1},
    {"frappe", 4096, 100, 400, 1},
    {"frappe", 4096, 400, 400, 2},
    {"frappe", 4096, 400, 1, 1},
};
#define NUM_LAYERS (sizeof layers / sizeof *layers)

enum product { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT, NUM_PRODUCTS };
static const char *const product_names[NUM_PRODUCTS] = {"forward", "backward_data", "backward_weight"};

/* ---- one layer in one mode ---- */

struct operands {
    ph_real *x, *weight, *bias, *dy, *y, *dx, *dw, *db;
};

struct mode {
    struct ph__gemm *gemm;
    void *packed[2]; /* not transposed, transposed */
    void *scratch;   /* of the weight gradient */
};

static void *allocate(size_t bytes)
{
    void *memory;
    bench_check(ph__memory_alloc(bytes > 0 ? bytes : 1, "operands", &memory));
    return memory;
}

static ph_real *random_reals(size_t count, struct ph__rng_sequence *rng)
{
    ph_real *reals = allocate(count * sizeof *reals);
    for (size_t i = 0; i < count; i++)
        reals[i] = (ph_real)(ph__rng_next_uniform(rng) - 0.5);
    return reals;
}

/* Makes a layer's operands; they are freed by the end of the process, which makes them for a few layers. */
static struct operands make_operands(const struct layer *layer)
{
    struct ph__rng_sequence rng = {.key = {.seed = 1}};
    const size_t m = layer->rows, n = layer->out_features, k = layer->in_features;
    return (struct operands){
        .x = random_reals(m * k, &rng),
        .weight = random_reals(n * k, &rng),
        .bias = random_reals(n, &rng),
        .dy = random_reals(m * n, &rng),
        .y = random_reals(m * n, &rng),
        .dx = random_reals(m * k, &rng),
        .dw = random_reals(n * k, &rng),
        .db = random_reals(n, &rng),
    };
}

static struct mode make_mode(
    struct ph__team *team, bool is_fast, const struct layer *layer, const struct operands *operands)
{
    struct mode mode;
    bench_check(ph__gemm_create(team, is_fast, &mode.gemm));
    const struct ph__gemm_weight_shape gradient = {
        .out_features = layer->out_features, .in_features = layer->in_features};
    mode.scratch = allocate(ph__gemm_weight_scratch_bytes(mode.gemm, &gradient));
    for (int i = 0; i < 2; i++) {
        const struct ph__gemm_weight_shape shape = {
            .out_features = layer->out_features, .in_features = layer->in_features, .is_transposed = i == 1};
        size_t bytes;
        bench_check(ph__gemm_packed_bytes(mode.gemm, &shape, &bytes));
        mode.packed[i] = allocate(bytes);
        bench_check(ph__gemm_pack(mode.gemm, &shape, operands->weight, mode.packed[i]));
    }
    return mode;
}

static void run_product(
    const struct mode *mode, enum product product, const struct layer *layer, const struct operands *o)
{
    const size_t n = layer->out_features, k = layer->in_features;
    const struct ph__gemm_weight_shape shape = {
        .out_features = n, .in_features = k, .is_transposed = product == BACKWARD_DATA};
    struct ph__gemm_args args = {.rows = layer->rows};
    switch (product) {
    case FORWARD:
        args.x = o->x;
        args.packed = mode->packed[0];
        args.bias = o->bias;
        args.activation = n == 1 ? PH_IDENTITY : PH_RELU;
        args.y = o->y;
        bench_check(ph__gemm_forward(mode->gemm, &shape, &args));
        return;
    case BACKWARD_DATA:
        args.x = o->dy;
        args.packed = mode->packed[1];
        args.y = o->dx;
        bench_check(ph__gemm_backward_data(mode->gemm, &shape, &args));
        return;
    default:
        bench_check(ph__gemm_backward_weight(
            mode->gemm, &shape, layer->rows, o->x, o->dy, o->dw, o->db, mode->scratch));
    }
}

static double product_gflops(
    const struct mode *mode, enum product product, const struct layer *layer, const struct operands *operands)
{
    const double flops = 2.0 * (double)layer->rows * (double)layer->in_features * (double)layer->out_features;
    const size_t repeats = flops > 1e8 ? 1 : 1 + (size_t)(1e7 / flops);
    const double start = ph__clock_seconds();
    for (size_t i = 0; i < repeats; i++)
        run_product(mode, product, layer, operands);
    return flops * (double)repeats / (ph__clock_seconds() - start) * 1e-9;
}

/* ---- rounds and results ---- */

struct result {
    double deterministic, fast, ratio, peak;
};

static struct result measure(const struct layer *layer, enum product product, struct bench_limits *limits,
    const struct mode modes[2], const struct operands *operands, size_t rounds)
{
    double numbers[4][MAX_ROUNDS];
    for (size_t warm_up = 0; warm_up < 2; warm_up++)
        for (size_t i = 0; i < 2; i++)
            run_product(&modes[i], product, layer, operands);
    for (size_t round = 0; round < rounds; round++) {
        numbers[3][round] = bench_peak_fp32(limits) * 1e-9;
        for (size_t i = 0; i < 2; i++) { /* the order alternates */
            const size_t mode = (round + i) % 2;
            numbers[mode][round] = product_gflops(&modes[mode], product, layer, operands);
        }
        numbers[2][round] = numbers[0][round] / numbers[1][round];
    }
    return (struct result){.deterministic = bench_median(numbers[0], rounds),
        .fast = bench_median(numbers[1], rounds),
        .ratio = bench_median(numbers[2], rounds),
        .peak = bench_median(numbers[3], rounds)};
}

static void append(struct ph__json *results, const char *name, double value, double peer_value, double ratio,
    double of_limit)
{
    bench_record(results, &(struct bench_figure){.name = name,
                              .unit = "GFLOP/s",
                              .value = value,
                              .peer = "the library's own threads, bits not kept",
                              .peer_value = peer_value,
                              .ratio = ratio,
                              .limit = "2 FLOP a multiply-add in registers, same threads, same round",
                              .of_limit = of_limit});
}

static void report(struct ph__json *results, const struct layer *layer, enum product product, size_t threads,
    const struct result *r)
{
    printf("  %-7s %4zu x %3zu -> %3zu  %-16s %7.1f %7.1f %7.2f %6.0f%%\n", layer->model, layer->rows,
        layer->in_features, layer->out_features, product_names[product], r->deterministic, r->fast, r->ratio,
        100 * r->deterministic / r->peak);
    char name[128];
    snprintf(name, sizeof name, "kernel.gemm.%s.%zux%zux%zu.%zuthreads", product_names[product], layer->rows,
        layer->in_features, layer->out_features, threads);
    append(results, name, r->deterministic, r->fast, r->ratio, r->deterministic / r->peak);
}

/* Times and FLOPs of a step; fast_s by the ratios of the rounds. */
struct total {
    double flops, deterministic_s, fast_s, peak_s;
};

static void add_to_total(struct total *total, double flops, const struct result *result)
{
    const double seconds = flops / result->deterministic * 1e-9;
    total->flops += flops;
    total->deterministic_s += seconds;
    total->fast_s += seconds * result->ratio;
    total->peak_s += flops / result->peak * 1e-9;
}

/* Prints and records the total of products of one kind, or of all kinds: product NUM_PRODUCTS. */
static void report_total(
    struct ph__json *results, const char *model, int product, size_t threads, const struct total *total)
{
    const char *of = product == NUM_PRODUCTS ? "all products" : product_names[product];
    printf("  %s, %s of a step: deterministic %.2f ms at %.0f%% of the fast mode's speed\n", model, of,
        1e3 * total->deterministic_s, 100 * total->fast_s / total->deterministic_s);
    char name[64];
    snprintf(name, sizeof name, "kernel.gemm.%s.%s%s%zuthreads", model,
        product == NUM_PRODUCTS ? "" : product_names[product], product == NUM_PRODUCTS ? "" : ".", threads);
    append(results, name, total->flops / total->deterministic_s * 1e-9, total->flops / total->fast_s * 1e-9,
        total->fast_s / total->deterministic_s, total->peak_s / total->deterministic_s);
}

static void measure_layer(const struct layer *layer, struct ph__team *team, struct bench_limits *limits,
    size_t rounds, struct ph__json *results, struct total totals[NUM_PRODUCTS + 1])
{
    const struct operands operands = make_operands(layer);
    const struct mode modes[2] = {
        make_mode(team, false, layer, &operands), make_mode(team, true, layer, &operands)};
    const double flops = 2.0 * (double)layer->count * (double)layer->rows * (double)layer->in_features *
                         (double)layer->out_features;
    for (int product = 0; product < NUM_PRODUCTS; product++) {
        const struct result result = measure(layer, (enum product)product, limits, modes, &operands, rounds);
        report(results, layer, (enum product)product, ph__team_num_threads(team), &result);
        add_to_total(&totals[product], flops, &result);
        add_to_total(&totals[NUM_PRODUCTS], flops, &result);
    }
}

static void measure_threads(size_t threads, size_t rounds, struct ph__json *results)
{
    struct ph__team *team;
    bench_check(
        ph__team_create_kind(PH_TEAM_OPENMP, threads, &team)); /* the fast mode's kind, used for both modes */
    struct bench_limits *limits = bench_limits_create(team);
    printf("%s, %zu thread%s, GFLOP/s: deterministic, fast, ratio, share of %.0f (peak)\n",
        ph__gemm_library(), threads, threads == 1 ? "" : "s", bench_peak_fp32(limits) * 1e-9);
    struct total totals[NUM_PRODUCTS + 1] = {{0}};
    for (size_t i = 0; i < NUM_LAYERS; i++) {
        measure_layer(&layers[i], team, limits, rounds, results, totals);
        if (i + 1 < NUM_LAYERS && strcmp(layers[i + 1].model, layers[i].model) == 0)
            continue;
        for (int product = 0; product <= NUM_PRODUCTS; product++)
            report_total(results, layers[i].model, product, threads, &totals[product]);
        memset(totals, 0, sizeof totals);
    }
    bench_limits_destroy(limits);
    ph__team_destroy(team);
}

int main(int argc, char **argv)
{
    struct bench_run run = {.rounds = 21, .most_rounds = MAX_ROUNDS};
    bench_read_flags(argc, argv, &run, NULL, 0);
    struct ph__json *results = ph__json_array();
    for (size_t threads = 1; threads <= MAX_THREADS; threads++)
        measure_threads(threads, run.rounds, results);
    bench_finish(results, run.json);
    return 0;
}
