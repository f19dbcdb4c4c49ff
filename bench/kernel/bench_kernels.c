/* Measures the speed of the kernels, serial, on the shapes of interest: ns, GB/s and GFLOP/s for every ISA
 * that this machine runs, and how many times faster than the next lower ISA. The ISAs take turns in each
 * round and medians are printed, so a variant that does not beat its neighbour shows as a ratio below one.
 * Times are the thread's processor time: kernels never wait, so that is their cost, whatever else runs on the
 * machine.
 *
 * bench_kernels [--rounds N] [--only WORD] [--json FILE]      WORD: part of the names of the cases to run */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "bench_kernels/cases.h"
#include "figures.h"
#include "flags.h"
#include "limits.h"

enum { MAX_ROUNDS = BENCH_MAX_ROUNDS, DEFAULT_ROUNDS = 11, MAX_NAME = 128 };
static const double sample_ns = 1e6; /* one sample repeats its call until about this long */

struct bench {
    size_t rounds;
    const char *only; /* part of a name, or NULL */
    struct ph__json *results;
    enum ph__isa best;
    double memory_bandwidth, fma_peak;
};

/* The floor of a case and its parts, round by round. */
struct floor_rounds {
    double ns[MAX_ROUNDS], copy_ns[MAX_ROUNDS], product_rate[MAX_ROUNDS];
};

void *bench_memory(size_t count, size_t size)
{
    void *memory;
    bench_check(ph__memory_alloc(count * size, "a benchmark's data", &memory));
    return memory;
}

float *bench_floats(size_t count)
{
    struct ph__rng_sequence rng = {.key = {.seed = count}};
    float *x = bench_memory(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(2 * ph__rng_next_uniform(&rng) - 1);
    return x;
}

uint32_t *bench_words(size_t count, uint32_t bound)
{
    struct ph__rng_sequence rng = {.key = {.seed = count, .step = 1}};
    uint32_t *x = bench_memory(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (uint32_t)ph__rng_below(&rng, bound);
    return x;
}

double bench_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

typedef void run_function(const struct ph__kernels *kernels, const void *state);

static double time_calls(
    run_function *run, const struct ph__kernels *kernels, const void *state, size_t calls)
{
    const double start = bench_clock_ns();
    for (size_t i = 0; i < calls; i++)
        run(kernels, state);
    return (bench_clock_ns() - start) / (double)calls;
}

static size_t calls_of_a_sample(run_function *run, const struct ph__kernels *kernels, const void *state)
{
    const double once = time_calls(run, kernels, state, 1);
    const double warm = time_calls(run, kernels, state, once > sample_ns ? 1 : 4);
    return warm < sample_ns ? (size_t)(sample_ns / warm) + 1 : 1;
}

/* One ISA's table, or the peer of the case. */
struct contender {
    const char *name;
    run_function *run;
    const struct ph__kernels *kernels;
    size_t calls;
    double ns[MAX_ROUNDS], median_ns;
};

/* Returns the contender's share of the case's limit, and describes the limit in text; NAN without a limit. */
static double share_of_limit(const struct bench *bench, const struct bench_case *c,
    const struct contender *contender, const struct floor_rounds *floor, char text[MAX_NAME])
{
    if (c->limit == LIMIT_MEMORY) {
        snprintf(text, MAX_NAME, "%.0f bytes at %.1f GB/s of memory", c->bytes, bench->memory_bandwidth);
        return c->bytes / bench->memory_bandwidth / contender->median_ns;
    }
    if (c->limit == LIMIT_FMA && bench->fma_peak > 0) {
        snprintf(text, MAX_NAME, "%.0f FLOP at %.1f GFLOP/s of FMA", c->flops, bench->fma_peak);
        return c->flops / bench->fma_peak / contender->median_ns;
    }
    if (c->limit == LIMIT_FLOOR) {
        double share[MAX_ROUNDS];
        for (size_t round = 0; round < bench->rounds; round++)
            share[round] = floor->ns[round] / contender->ns[round];
        snprintf(text, MAX_NAME,
            "max(%.0f FLOP at %.1f GFLOP/s of product, %.0f bytes at %.1f GB/s of copying)", c->flops,
            bench_median(floor->product_rate, bench->rounds), c->bytes,
            c->bytes / bench_median(floor->copy_ns, bench->rounds));
        return bench_median(share, bench->rounds);
    }
    return NAN;
}

static void record(struct bench *bench, const struct bench_case *c, const struct contender *ours,
    const struct contender *peer, const struct floor_rounds *floor, int is_last)
{
    char name[MAX_NAME], limit[MAX_NAME];
    snprintf(name, sizeof name, "kernel.%s.%s", c->name, ours->name);
    const double of_limit = share_of_limit(bench, c, ours, floor, limit);
    const double ratio = peer != NULL ? peer->median_ns / ours->median_ns : NAN;
    printf("%-34s %-7s %12.0f ns %7.2f GB/s %7.2f GFLOP/s", c->name, ours->name, ours->median_ns,
        c->bytes / ours->median_ns, c->flops / ours->median_ns);
    if (peer != NULL)
        printf("  %5.2fx %s", ratio, peer->name);
    if (of_limit > 0)
        printf("  %3.0f%% of limit", 100 * of_limit);
    printf(is_last ? "\n\n" : "\n");
    fflush(stdout);

    bench_record(bench->results, &(struct bench_figure){.name = name,
                                     .unit = "ns",
                                     .value = ours->median_ns,
                                     .spread = bench_spread(ours->ns, bench->rounds),
                                     .peer = peer != NULL ? peer->name : NULL,
                                     .peer_value = peer != NULL ? peer->median_ns : 0,
                                     .ratio = ratio,
                                     .limit = of_limit > 0 ? limit : NULL,
                                     .of_limit = of_limit,
                                     .flops = c->flops,
                                     .bytes = c->bytes,
                                     .seconds = ours->median_ns * 1e-9});
}

static size_t choose_contenders(
    const struct bench *bench, const struct bench_case *c, struct contender contenders[PH_ISA_COUNT + 1])
{
    const struct ph__kernels *best = ph__kernels_for(bench->best);
    size_t count = 0;
    if (c->peer != NULL) {
        contenders[count++] = (struct contender){.name = c->peer_name, .run = c->peer, .kernels = best};
        contenders[count++] = (struct contender){.name = "ours", .run = c->run, .kernels = best};
    } else {
        for (int isa = 0; isa <= (int)bench->best; isa++)
            contenders[count++] = (struct contender){.name = ph__isa_name((enum ph__isa)isa),
                .run = c->run,
                .kernels = ph__kernels_for((enum ph__isa)isa)};
    }
    for (size_t i = 0; i < count; i++)
        contenders[i].calls = calls_of_a_sample(contenders[i].run, contenders[i].kernels, c->state);
    return count;
}

static void measure_floor(
    const struct case_floor *floor, const struct bench_case *c, struct floor_rounds *rounds, size_t round)
{
    rounds->copy_ns[round] = case_floor_copy_ns(floor);
    rounds->product_rate[round] = case_floor_product_rate(floor);
    rounds->ns[round] = fmax(rounds->copy_ns[round], c->flops / rounds->product_rate[round]);
}

void bench_measure(struct bench *bench, const struct bench_case *c)
{
    if (bench->only != NULL && strstr(c->name, bench->only) == NULL)
        return;
    struct contender contenders[PH_ISA_COUNT + 1];
    struct floor_rounds floor_rounds;
    struct case_floor floor = {0};
    const size_t count = choose_contenders(bench, c, contenders);
    if (c->limit == LIMIT_FLOOR)
        floor = case_floor_make(ph__kernels_for(bench->best), c->bytes);

    for (size_t round = 0; round < bench->rounds; round++) {
        if (c->limit == LIMIT_FLOOR)
            measure_floor(&floor, c, &floor_rounds, round);
        for (size_t i = 0; i < count; i++)
            contenders[i].ns[round] =
                time_calls(contenders[i].run, contenders[i].kernels, c->state, contenders[i].calls);
    }
    for (size_t i = 0; i < count; i++) {
        contenders[i].median_ns = bench_median(contenders[i].ns, bench->rounds);
        record(bench, c, &contenders[i], i > 0 ? &contenders[i - 1] : NULL, &floor_rounds, i + 1 == count);
    }
}

/* Measures the limits of one thread, in GB/s and GFLOP/s. */
static void measure_limits(struct bench *bench)
{
    struct ph__team *team;
    bench_check(ph__team_create(1, &team));
    struct bench_limits *limits = bench_limits_create(team);
    bench->memory_bandwidth = bench_copy(limits, BENCH_MAX_COPIED) * 1e-9;
    bench->fma_peak = bench_peak_fp32(limits) * 1e-9;
    bench_limits_destroy(limits);
    ph__team_destroy(team);
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    const struct bench_flag flags[] = {{.name = "--only", .word = &bench.only}};
    struct bench_run run = {.rounds = DEFAULT_ROUNDS, .most_rounds = MAX_ROUNDS};
    bench_read_flags(argc, argv, &run, flags, 1);
    bench.rounds = run.rounds;
    bench_check(ph__cpu_isa(&bench.best));
    fenv_t former; /* never restored */
    ph__cpu_float_enter(true, &former);
    bench.results = ph__json_array();
    measure_limits(&bench);
    printf("limits of one thread here: memory %.1f GB/s, multiply-add %.1f GFLOP/s\n\n",
        bench.memory_bandwidth, bench.fma_peak);
    bench_embedding(&bench);
    bench_update_formats(&bench);
    bench_optimizer(&bench);
    bench_aggregation(&bench);
    bench_interaction(&bench);
    bench_attention(&bench);
    bench_product(&bench);
    bench_small_product(&bench);
    bench_elementwise(&bench);
    bench_finish(bench.results, run.json);
    return 0;
}
