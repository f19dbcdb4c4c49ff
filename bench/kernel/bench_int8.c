/* The product of bytes, the narrowing of its rows included, beside oneDNN's and beside our product of floats,
 * on one thread.
 *
 * oneDNN 2.6 and 3.2 multiply rows that have a scale each only by plain loops, so the library is measured in
 * two ways:
 * - `bare`, in its favour: the product of rows that are bytes already, u8 or s8, to sums or to floats with a
 *   scale a column;
 * - `whole`, the same work as ours: rows narrowed by our kernel, the product of s8, and the scales, applied
 *   by our loop to sums, or by our kernel to floats that have the columns' scales.
 * Of each the fastest way is taken, tried before the rounds. All ways are first compared with our results.
 *
 * Contestants take turns in each round, beside the limit: four products of bytes an instruction (VNNI), and
 * multiply-adds of fp32, in registers. Medians over the rounds are printed, those of ratios too; a ratio
 * above 1 means that ours is faster. Times are the thread's processor time, with operands as warm as a loop
 * over one layer leaves them. A processor without VNNI runs what both sides do instead.
 *
 * bench_int8 [--rounds N] [--quick] [--json FILE] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "bench_int8/onednn_int8.h"
#include "figures.h"
#include "flags.h"
#include "kernel/gemm.h"
#include "kernel/kernel.h"
#include "limits.h"

static const double sample_seconds = 1e-3; /* a sample repeats its call until about this long */
enum { TRIALS = 5 };

/* ---- operands ---- */

struct shape {
    size_t rows, inner, columns; /* x (rows, inner), W (columns, inner) */
};

struct operands {
    struct shape shape;
    const struct ph__kernels *kernels;
    struct ph__row_product_args floats;
    struct ph__int8_product_args bytes;
    int8_t *levels;            /* (rows, inner) */
    uint8_t *shifted;          /* (rows, inner): levels plus 128 */
    float *scales;             /* (rows) */
    int8_t *weight_levels;     /* (inner, columns) */
    struct ph__int8_weight of; /* parts of the packed weight */
    void *their_y;             /* (rows, columns), s32 or f32 */
};

/* Returns memory that the end of the process frees. */
static void *memory(size_t bytes)
{
    void *pointer;
    bench_check(ph__memory_alloc(bytes, "operands", &pointer));
    return pointer;
}

static float *random_floats(size_t count)
{
    struct ph__rng_sequence rng = {.key = {.seed = count}};
    float *x = memory(count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(2 * ph__rng_next_uniform(&rng) - 1);
    return x;
}

static int8_t *unpack_levels(const struct shape *shape, const struct ph__int8_weight *weight)
{
    int8_t *levels = memory(shape->inner * shape->columns);
    for (size_t n = 0; n < shape->columns; n++) {
        const int8_t *packed = weight->levels + ph__int8_place(shape->inner, n);
        for (size_t k = 0; k < shape->inner; k++)
            levels[k * shape->columns + n] =
                packed[k / PH_INT8_TOGETHER * PH_INT8_GROUP + k % PH_INT8_TOGETHER];
    }
    return levels;
}

static void narrow_rows(const struct operands *o)
{
    for (size_t r = 0; r < o->shape.rows; r++)
        o->scales[r] = o->kernels->int8_narrow(
            o->shape.inner, o->floats.x + r * o->shape.inner, o->levels + r * o->shape.inner);
}

/* inner is a multiple of PH_INT8_TOGETHER: our rows of bytes have no gaps then, as oneDNN's. */
static void make_operands(const struct shape *shape, const struct ph__kernels *kernels, struct operands *out)
{
    const size_t rows = shape->rows, inner = shape->inner, columns = shape->columns;
    const float *weight = random_floats(columns * inner), *x = random_floats(rows * inner);
    void *bytes = memory(ph__int8_packed_bytes(columns, inner));
    void *floats = memory(ph__row_product_packed_bytes(columns, inner, false));
    float *y = memory(rows * columns * sizeof *y);
    kernels->int8_pack(&(struct ph__int8_pack_args){columns, inner, weight, false, bytes});
    ph__row_product_pack(columns, inner, false, false, weight, floats);
    *out = (struct operands){.shape = *shape,
        .kernels = kernels,
        .floats = {rows, inner, columns, .x = x, .packed = floats, .y = y},
        .levels = memory(rows * inner),
        .shifted = memory(rows * inner),
        .scales = memory(rows * sizeof(float)),
        .of = ph__int8_weight(columns, inner, bytes),
        .their_y = memory(rows * columns * sizeof(float))};
    out->bytes = (struct ph__int8_product_args){rows, inner, columns, .x = out->levels,
        .x_scales = out->scales, .packed = bytes, .y = y, .has_dot = ph__cpu_has_int8_dot()};
    out->weight_levels = unpack_levels(shape, &out->of);
    narrow_rows(out);
    for (size_t i = 0; i < rows * inner; i++)
        out->shifted[i] = (uint8_t)(out->levels[i] + 128);
}

/* ---- contestants ---- */

struct contestant;
typedef void run_function(const struct contestant *contestant);

struct contestant {
    const char *name;
    run_function *run;
    const struct operands *operands;
    struct onednn_int8 *theirs; /* NULL: ours */
    bool is_scaled;             /* theirs gives floats with the columns' scales */
    size_t calls;               /* of a sample */
    double gflops[BENCH_MAX_ROUNDS];
};

static void run_ours(const struct contestant *contestant)
{
    narrow_rows(contestant->operands);
    contestant->operands->kernels->int8_product(&contestant->operands->bytes);
}

static void run_floats(const struct contestant *contestant)
{
    contestant->operands->kernels->row_product(&contestant->operands->floats);
}

static void run_bare(const struct contestant *contestant)
{
    onednn_int8_run(contestant->theirs);
}

#define LANES 16 /* every number of columns is a multiple */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));
typedef int32_t words __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(4)));

/* Scales sums in place. */
static inline __attribute__((always_inline)) void scale_sums_by(const struct operands *o)
{
    for (size_t r = 0; r < o->shape.rows; r++) {
        char *y = (char *)o->their_y + r * o->shape.columns * sizeof(float);
        for (size_t n = 0; n < o->shape.columns; n += LANES) {
            const lanes scales = o->scales[r] * *(const lanes *)(const void *)(o->of.scales + n);
            void *place = y + n * sizeof(float);
            *(lanes *)place = scales * __builtin_convertvector(*(const words *)place, lanes);
        }
    }
}

static void scale_sums_plainly(const struct operands *o)
{
    scale_sums_by(o);
}

#ifdef __x86_64__
__attribute__((target("avx512f"))) static void scale_sums_avx512(const struct operands *o)
{
    scale_sums_by(o);
}

static void scale_sums(const struct operands *o)
{
    if (__builtin_cpu_supports("avx512f"))
        scale_sums_avx512(o);
    else
        scale_sums_plainly(o);
}
#else
static void scale_sums(const struct operands *o)
{
    scale_sums_plainly(o);
}
#endif

static void scale_rows(const struct operands *o)
{
    const size_t columns = o->shape.columns;
    for (size_t r = 0; r < o->shape.rows; r++) {
        float *y = (float *)o->their_y + r * columns;
        o->kernels->scale(columns, o->scales[r], y, y);
    }
}

static void run_whole(const struct contestant *contestant)
{
    narrow_rows(contestant->operands);
    onednn_int8_run(contestant->theirs);
    if (contestant->is_scaled)
        scale_rows(contestant->operands);
    else
        scale_sums(contestant->operands);
}

static struct contestant make_theirs(
    const struct operands *o, const char *name, run_function *run, bool is_unsigned, bool is_scaled)
{
    const struct onednn_int8_args args = {.rows = o->shape.rows,
        .in_features = o->shape.inner,
        .out_features = o->shape.columns,
        .x = is_unsigned ? (const void *)o->shifted : o->levels,
        .weight = o->weight_levels,
        .column_scales = o->of.scales,
        .y = o->their_y,
        .is_unsigned = is_unsigned,
        .is_scaled = is_scaled};
    return (struct contestant){
        .name = name, .run = run, .operands = o, .theirs = onednn_int8_create(&args), .is_scaled = is_scaled};
}

/* ---- the same results ---- */

static void refuse(const struct operands *o, const char *what, size_t i)
{
    bench_check(ph_fail(PH_ERROR_BUG, "(%zu,%zu)(%zu,%zu): oneDNN's %s differ from ours at output %zu",
        o->shape.rows, o->shape.inner, o->shape.inner, o->shape.columns, what, i));
}

/* Compares oneDNN's sums with ours, which are told from our floats: with rows of scale 1 they are the sums
 * times a column's scale. */
static void check_sums(struct operands *o, bool is_unsigned)
{
    const size_t columns = o->shape.columns;
    const int32_t *sums = o->their_y;
    struct contestant bare = make_theirs(o, "sums", run_bare, is_unsigned, false);
    struct ph__int8_product_args args = o->bytes;
    float *ones = memory(o->shape.rows * sizeof *ones);
    for (size_t r = 0; r < o->shape.rows; r++)
        ones[r] = 1;
    args.x_scales = ones;
    o->kernels->int8_product(&args);
    onednn_int8_run(bare.theirs);
    onednn_int8_destroy(bare.theirs);
    for (size_t i = 0; i < o->shape.rows * columns; i++) {
        const int32_t sum = sums[i] - (is_unsigned ? o->of.offsets[i % columns] : 0);
        if (o->of.scales[i % columns] * (float)sum != o->bytes.y[i])
            refuse(o, is_unsigned ? "sums of u8" : "sums of s8", i);
    }
}

static void check_whole(const struct contestant *whole)
{
    const struct operands *o = whole->operands;
    const float *theirs = o->their_y;
    run_ours(&(struct contestant){.operands = o});
    run_whole(whole);
    for (size_t i = 0; i < o->shape.rows * o->shape.columns; i++)
        if (!(fabsf(theirs[i] - o->bytes.y[i]) <= 1e-6f * (1 + fabsf(o->bytes.y[i]))))
            refuse(o, whole->name, i);
}

/* ---- measuring ---- */

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of_call(const struct contestant *contestant, size_t calls)
{
    const double start = processor_seconds();
    for (size_t i = 0; i < calls; i++)
        contestant->run(contestant);
    return (processor_seconds() - start) / (double)calls;
}

/* Sets the calls of a sample; returns the seconds of a call, the least of some samples. */
static double try_out(struct contestant *contestant)
{
    seconds_of_call(contestant, 2);
    contestant->calls = 1 + (size_t)(sample_seconds / seconds_of_call(contestant, 1));
    double least = INFINITY;
    for (int i = 0; i < TRIALS; i++)
        least = fmin(least, seconds_of_call(contestant, contestant->calls));
    return least;
}

/* Keeps the fastest, and destroys the others. */
static struct contestant fastest_of(struct contestant *candidates, size_t count)
{
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        const double seconds = try_out(&candidates[i]);
        if (seconds < least) {
            least = seconds;
            best = i;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (i != best)
            onednn_int8_destroy(candidates[i].theirs);
    return candidates[best];
}

static struct contestant fastest_bare(const struct operands *o)
{
    struct contestant candidates[] = {
        make_theirs(o, "s8 to sums", run_bare, false, false),
        make_theirs(o, "u8 to sums", run_bare, true, false),
        make_theirs(o, "s8 to floats", run_bare, false, true),
        make_theirs(o, "u8 to floats", run_bare, true, true),
    };
    return fastest_of(candidates, sizeof candidates / sizeof *candidates);
}

static struct contestant fastest_whole(const struct operands *o)
{
    struct contestant candidates[] = {
        make_theirs(o, "scaled sums", run_whole, false, false),
        make_theirs(o, "scaled rows", run_whole, false, true),
    };
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        check_whole(&candidates[i]);
    return fastest_of(candidates, sizeof candidates / sizeof *candidates);
}

/* ---- rounds and results ---- */

enum { OURS, BARE, WHOLE, FLOATS, NUM_CONTESTANTS };

struct peaks {
    double fp32[BENCH_MAX_ROUNDS], int8[BENCH_MAX_ROUNDS]; /* GFLOP/s; int8 0: none */
};

/* Returns a peak in GFLOP/s of processor time; it is measured in time that others may have had a share of. */
static double peak_of(double (*measure)(struct bench_limits *limits), struct bench_limits *limits)
{
    const double start = ph__clock_seconds(), busy = processor_seconds();
    const double flops = measure(limits);
    return 1e-9 * flops * (ph__clock_seconds() - start) / (processor_seconds() - busy);
}

static void take_rounds(struct contestant contestants[NUM_CONTESTANTS], struct bench_limits *limits,
    size_t rounds, struct peaks *peaks)
{
    const struct shape *shape = &contestants[OURS].operands->shape;
    const double gflop = 2e-9 * (double)shape->rows * (double)shape->inner * (double)shape->columns;
    for (size_t round = 0; round < rounds; round++) {
        peaks->fp32[round] = peak_of(bench_peak_fp32, limits);
        peaks->int8[round] = peak_of(bench_peak_int8, limits);
        for (size_t i = 0; i < NUM_CONTESTANTS; i++) { /* each begins in its turn */
            struct contestant *contestant = &contestants[(round + i) % NUM_CONTESTANTS];
            contestant->gflops[round] = gflop / seconds_of_call(contestant, contestant->calls);
        }
    }
}

static double median_ratio(const double *ours, const double *theirs, size_t rounds)
{
    double ratios[BENCH_MAX_ROUNDS];
    for (size_t round = 0; round < rounds; round++)
        ratios[round] = ours[round] / theirs[round];
    return bench_median(ratios, rounds);
}

static void record(struct ph__json *figures, const struct contestant contestants[NUM_CONTESTANTS],
    const struct peaks *peaks, size_t rounds)
{
    static const char *const beside[NUM_CONTESTANTS] = {
        [BARE] = "onednn_bare", [WHOLE] = "onednn_whole", [FLOATS] = "fp32"};
    const struct contestant *ours = &contestants[OURS];
    const struct shape *shape = &ours->operands->shape;
    const double value = bench_median(ours->gflops, rounds), vnni = bench_median(peaks->int8, rounds);
    char limit[128];
    snprintf(limit, sizeof limit, "%.0f GFLOP/s of VNNI in registers, same round", vnni);
    for (size_t i = OURS + 1; i < NUM_CONTESTANTS; i++) {
        char name[96], peer[64];
        snprintf(name, sizeof name, "kernel.int8.%zux%zux%zu.%s", shape->rows, shape->inner, shape->columns,
            beside[i]);
        snprintf(peer, sizeof peer, "%s%s%s", i == FLOATS ? "" : ph__gemm_library(), i == FLOATS ? "" : ": ",
            contestants[i].name);
        bench_record(
            figures, &(struct bench_figure){.name = name,
                         .unit = "GFLOP/s",
                         .value = value,
                         .spread = bench_spread(ours->gflops, rounds),
                         .peer = peer,
                         .peer_value = bench_median(contestants[i].gflops, rounds),
                         .ratio = median_ratio(ours->gflops, contestants[i].gflops, rounds),
                         .limit = vnni > 0 ? limit : NULL,
                         .of_limit = vnni > 0 ? median_ratio(ours->gflops, peaks->int8, rounds) : 0});
    }
}

static void print_header(struct bench_limits *limits)
{
    char processor[128];
    ph__cpu_name(processor, sizeof processor);
    printf("products of bytes beside %s, one thread, GFLOP/s, on %s\n", ph__gemm_library(), processor);
    if (ph__cpu_has_int8_dot())
        printf("peaks in registers: fp32 %.0f, VNNI %.0f\n", peak_of(bench_peak_fp32, limits),
            peak_of(bench_peak_int8, limits));
    else
        printf(
            "peak in registers: fp32 %.0f; this processor has no AVX-512 VNNI, so both sides widen bytes\n",
            peak_of(bench_peak_fp32, limits));
    printf("%4s %4s %4s %8s %5s %5s %9s %6s  %-13s %9s %6s  %-13s %8s %6s\n", "rows", "K", "N", "ours",
        "VNNI", "fp32", "bare", "ratio", "", "whole", "ratio", "", "fp32", "ratio");
}

static void print_row(
    const struct contestant contestants[NUM_CONTESTANTS], const struct peaks *peaks, size_t rounds)
{
    const double *ours = contestants[OURS].gflops;
    const struct shape *shape = &contestants[OURS].operands->shape;
    printf("%4zu %4zu %4zu %8.1f", shape->rows, shape->inner, shape->columns, bench_median(ours, rounds));
    if (peaks->int8[0] > 0)
        printf(" %4.0f%%", 100 * median_ratio(ours, peaks->int8, rounds));
    else
        printf(" %5s", "-");
    printf(" %4.0f%%", 100 * median_ratio(ours, peaks->fp32, rounds));
    for (size_t i = OURS + 1; i < NUM_CONTESTANTS; i++) {
        printf(" %9.1f %6.2f", bench_median(contestants[i].gflops, rounds),
            median_ratio(ours, contestants[i].gflops, rounds));
        if (i != FLOATS)
            printf("  %-13s", contestants[i].name);
    }
    printf("\n");
    fflush(stdout);
}

static void measure(const struct shape *shape, const struct ph__kernels *kernels, struct bench_limits *limits,
    size_t rounds, struct ph__json *figures)
{
    static struct contestant contestants[NUM_CONTESTANTS];
    static struct peaks peaks;
    struct operands operands;
    make_operands(shape, kernels, &operands);
    check_sums(&operands, false);
    check_sums(&operands, true);
    contestants[OURS] = (struct contestant){.name = "ours", .run = run_ours, .operands = &operands};
    contestants[BARE] = fastest_bare(&operands);
    contestants[WHOLE] = fastest_whole(&operands);
    contestants[FLOATS] =
        (struct contestant){.name = "our product of floats", .run = run_floats, .operands = &operands};
    try_out(&contestants[OURS]);
    try_out(&contestants[FLOATS]);
    take_rounds(contestants, limits, rounds, &peaks);
    print_row(contestants, &peaks, rounds);
    record(figures, contestants, &peaks, rounds);
    onednn_int8_destroy(contestants[BARE].theirs);
    onednn_int8_destroy(contestants[WHOLE].theirs);
}

static void measure_all(const struct ph__kernels *kernels, struct bench_limits *limits,
    const struct bench_run *run, struct ph__json *figures)
{
    static const size_t rows[] = {1, 16, 64, 512, 2048}, widths[] = {256, 512, 1024};
    const size_t num_widths = run->is_quick ? 1 : sizeof widths / sizeof *widths;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t k = 0; k < num_widths; k++)
            for (size_t n = 0; n < num_widths; n++)
                measure(
                    &(struct shape){rows[r], widths[k], widths[n]}, kernels, limits, run->rounds, figures);
}

int main(int argc, char **argv)
{
    struct bench_run run = {.rounds = 11};
    struct ph__json *figures = ph__json_array();
    struct ph__team *team;
    enum ph__isa isa;
    fenv_t former; /* never restored */
    bench_read_flags(argc, argv, &run, NULL, 0);
    bench_check(ph__cpu_isa(&isa));
    bench_check(ph__team_create(1, &team));
    ph__cpu_float_enter(true, &former);
    ph__parallel_set_library_threads(1);
    struct bench_limits *limits = bench_limits_create(team);
    print_header(limits);
    measure_all(ph__kernels_for(isa), limits, &run, figures);
    bench_limits_destroy(limits);
    ph__team_destroy(team);
    bench_finish(figures, run.json);
    return 0;
}
