/* Speed of the kernels, serial, on the shapes of interest: ns, GB/s and GFLOP/s for every ISA that this machine runs,
 * and how many times faster than the next lower ISA. The ISAs take turns in each round and medians are printed, so a
 * variant that does not beat its neighbour shows as a ratio below one. Times are the thread's processor time: kernels
 * never wait, so that is what they cost, whatever else runs on the machine.
 *
 * bench_kernels [--rounds N] [--only WORD] [--json FILE]      WORD: part of the names of the cases to run */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/rng.h"
#include "bench_kernels/cases.h"
#include "figures.h"
#include "limits.h"

enum { MAX_ROUNDS = BENCH_MAX_ROUNDS, DEFAULT_ROUNDS = 11, MAX_NAME = 128 };
static const double sample_ns = 1e6; /* one sample repeats its call until about this long */

struct bench {
    size_t rounds;
    const char *only; /* part of a name, or NULL */
    struct ph_json *results;
    enum ph_isa best;
    double memory_bandwidth, fma_peak;
};

void *bench_memory(size_t count, size_t size)
{
    void *memory;
    bench_check(ph__memory_alloc(count * size, "a benchmark's data", &memory));
    return memory;
}

float *bench_floats(size_t count)
{
    struct ph_rng_sequence rng = {.key = {.seed = count}};
    float *x = bench_memory(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(2 * ph__rng_next_uniform(&rng) - 1);
    return x;
}

uint32_t *bench_words(size_t count, uint32_t bound)
{
    struct ph_rng_sequence rng = {.key = {.seed = count, .step = 1}};
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

typedef void run_function(const struct ph_kernels *kernels, const void *state);

static double time_calls(run_function *run, const struct ph_kernels *kernels, const void *state, size_t calls)
{
    const double start = bench_clock_ns();
    for (size_t i = 0; i < calls; i++)
        run(kernels, state);
    return (bench_clock_ns() - start) / (double)calls;
}

static size_t calls_of_a_sample(run_function *run, const struct ph_kernels *kernels, const void *state)
{
    const double once = time_calls(run, kernels, state, 1);
    const double warm = time_calls(run, kernels, state, once > sample_ns ? 1 : 4);
    return warm < sample_ns ? (size_t)(sample_ns / warm) + 1 : 1;
}

/* The contender is one ISA's table, or the peer of the case. */
struct contender {
    const char *name;
    run_function *run;
    const struct ph_kernels *kernels;
    size_t calls;
    double ns[MAX_ROUNDS], median_ns;
};

static double limit_of(const struct bench *bench, const struct bench_case *c, char text[MAX_NAME])
{
    if (c->limit == LIMIT_MEMORY) {
        snprintf(text, MAX_NAME, "%.0f bytes at %.1f GB/s of memory", c->bytes, bench->memory_bandwidth);
        return c->bytes / bench->memory_bandwidth;
    }
    if (c->limit == LIMIT_FMA && bench->fma_peak > 0) {
        snprintf(text, MAX_NAME, "%.0f FLOP at %.1f GFLOP/s of FMA", c->flops, bench->fma_peak);
        return c->flops / bench->fma_peak;
    }
    return 0;
}

static void record(struct bench *bench, const struct bench_case *c, const struct contender *ours,
    const struct contender *peer, int is_last)
{
    char name[MAX_NAME], limit[MAX_NAME];
    snprintf(name, sizeof name, "kernel.%s.%s", c->name, ours->name);
    const double limit_ns = limit_of(bench, c, limit);
    const double ratio = peer != NULL ? peer->median_ns / ours->median_ns : NAN;
    printf("%-34s %-7s %12.0f ns %7.2f GB/s %7.2f GFLOP/s", c->name, ours->name, ours->median_ns,
        c->bytes / ours->median_ns, c->flops / ours->median_ns);
    if (peer != NULL)
        printf("  %5.2fx %s", ratio, peer->name);
    if (limit_ns > 0)
        printf("  %3.0f%% of limit", 100 * limit_ns / ours->median_ns);
    printf(is_last ? "\n\n" : "\n");
    fflush(stdout);

    bench_record(bench->results, &(struct bench_figure){.name = name,
                                     .unit = "ns",
                                     .value = ours->median_ns,
                                     .spread = bench_spread(ours->ns, bench->rounds),
                                     .peer = peer != NULL ? peer->name : NULL,
                                     .peer_value = peer != NULL ? peer->median_ns : 0,
                                     .ratio = ratio,
                                     .limit = limit_ns > 0 ? limit : NULL,
                                     .of_limit = limit_ns / ours->median_ns,
                                     .flops = c->flops,
                                     .bytes = c->bytes,
                                     .seconds = ours->median_ns * 1e-9});
}

void bench_measure(struct bench *bench, const struct bench_case *c)
{
    struct contender contenders[PH_ISA_COUNT + 1];
    size_t count = 0;
    if (bench->only != NULL && strstr(c->name, bench->only) == NULL)
        return;
    if (c->peer != NULL)
        contenders[count++] = (struct contender){.name = c->peer_name, .run = c->peer};
    const int last_isa = c->peer != NULL ? 0 : (int)bench->best;
    for (int isa = 0; isa <= last_isa; isa++)
        contenders[count++] =
            (struct contender){.name = c->peer != NULL ? "ours" : ph__isa_name((enum ph_isa)isa),
                .run = c->run,
                .kernels = ph__kernels_for((enum ph_isa)isa)};

    for (size_t i = 0; i < count; i++)
        contenders[i].calls = calls_of_a_sample(contenders[i].run, contenders[i].kernels, c->state);
    for (size_t round = 0; round < bench->rounds; round++)
        for (size_t i = 0; i < count; i++)
            contenders[i].ns[round] =
                time_calls(contenders[i].run, contenders[i].kernels, c->state, contenders[i].calls);
    for (size_t i = 0; i < count; i++) {
        contenders[i].median_ns = bench_median(contenders[i].ns, bench->rounds);
        record(bench, c, &contenders[i], i > 0 ? &contenders[i - 1] : NULL, i + 1 == count);
    }
}

/* Of one thread, in GB/s and GFLOP/s. */
static void measure_limits(struct bench *bench)
{
    struct ph_team *team;
    bench_check(ph__team_create(1, &team));
    struct bench_limits *limits = bench_limits_create(team);
    bench->memory_bandwidth = bench_copy(limits) * 1e-9;
    bench->fma_peak = bench_peak_fp32(limits) * 1e-9;
    bench_limits_destroy(limits);
    ph__team_destroy(team);
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_kernels [--rounds 1..%d] [--only WORD] [--json FILE]\n", MAX_ROUNDS);
    return 2;
}

int main(int argc, char **argv)
{
    struct bench bench = {.rounds = DEFAULT_ROUNDS};
    const char *json = NULL;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return usage();
        if (strcmp(argv[i], "--rounds") == 0)
            bench.rounds = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            bench.only = argv[i + 1];
        else if (strcmp(argv[i], "--json") == 0)
            json = argv[i + 1];
        else if (strcmp(argv[i], "--peers") != 0) /* has none of those */
            return usage();
    }
    if (bench.rounds < 1 || bench.rounds > MAX_ROUNDS)
        return usage();

    bench_check(ph__cpu_isa(&bench.best));
    fenv_t former; /* not gone back to */
    ph__cpu_float_enter(true, &former);
    bench.results = ph__json_array();
    measure_limits(&bench);
    printf("limits of one thread here: memory %.1f GB/s, multiply-add %.1f GFLOP/s\n\n",
        bench.memory_bandwidth, bench.fma_peak);
    bench_embedding(&bench);
    bench_optimizer(&bench);
    bench_interaction(&bench);
    bench_product(&bench);
    bench_elementwise(&bench);
    bench_finish(bench.results, json);
    return 0;
}
