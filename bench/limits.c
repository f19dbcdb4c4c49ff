#include "limits.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "figures.h"
#include "kernel/gemm.h"
#include "kernel/kernel.h"

enum { SMALL_ROWS = 6, SMALL_COLUMNS = 64, SMALL_INNER = 96, SMALL_REPEATS = 200 };
enum { LARGE_ROWS = 1024 /* LARGE_ROWS: rows of each thread */, LARGE_COLUMNS = 512, LARGE_INNER = 512 };
static const double copy_seconds = 1e-3; /* least time of a sample */

struct bench_limits {
    struct ph__team *team;
    const struct ph__kernels *kernels;
    struct ph__gemm *gemm;
    float *x, *weight, *y; /* operands of the small product, a set for each worker */
    float *large_x, *large_y;
    void *packed;
    size_t packed_bytes;
    char *from, *to; /* of copies */
};

static void *memory(size_t bytes)
{
    void *pointer = NULL;
    bench_check(ph__memory_alloc(bytes, "the bench's measure", &pointer));
    return pointer;
}

static const struct ph__gemm_weight_shape large_shape = {
    .out_features = LARGE_COLUMNS, .in_features = LARGE_INNER};

static void make_products(struct bench_limits *limits, size_t threads)
{
    const size_t rows = LARGE_ROWS * threads, weight_bytes = LARGE_COLUMNS * LARGE_INNER * sizeof(float);
    limits->x = memory(threads * SMALL_ROWS * SMALL_INNER * sizeof(float));
    limits->weight = memory(threads * SMALL_COLUMNS * SMALL_INNER * sizeof(float));
    limits->y = memory(threads * SMALL_ROWS * SMALL_COLUMNS * sizeof(float));
    limits->large_x = memory(rows * LARGE_INNER * sizeof(float));
    limits->large_y = memory(rows * LARGE_COLUMNS * sizeof(float));
    bench_check(ph__gemm_create(limits->team, false, &limits->gemm));
    bench_check(ph__gemm_packed_bytes(limits->gemm, &large_shape, &limits->packed_bytes));
    limits->packed = memory(limits->packed_bytes);
    float *weight = memory(weight_bytes);
    bench_check(ph__gemm_pack(limits->gemm, &large_shape, weight, limits->packed));
    ph__memory_free(weight, weight_bytes);
}

struct bench_limits *bench_limits_create(struct ph__team *team)
{
    const size_t threads = ph__team_num_threads(team);
    enum ph__isa isa;
    bench_check(ph__cpu_isa(&isa));
    struct bench_limits *limits = memory(sizeof *limits);
    *limits = (struct bench_limits){.team = team, .kernels = ph__kernels_for(isa)};
    make_products(limits, threads);
    limits->from = memory(BENCH_MAX_COPIED / 2);
    limits->to = memory(BENCH_MAX_COPIED / 2);
    memset(limits->from, 0, BENCH_MAX_COPIED / 2);
    memset(limits->to, 0, BENCH_MAX_COPIED / 2);
    return limits;
}

void bench_limits_destroy(struct bench_limits *limits)
{
    const size_t threads = ph__team_num_threads(limits->team), rows = LARGE_ROWS * threads;
    ph__memory_free(limits->x, threads * SMALL_ROWS * SMALL_INNER * sizeof(float));
    ph__memory_free(limits->weight, threads * SMALL_COLUMNS * SMALL_INNER * sizeof(float));
    ph__memory_free(limits->y, threads * SMALL_ROWS * SMALL_COLUMNS * sizeof(float));
    ph__memory_free(limits->large_x, rows * LARGE_INNER * sizeof(float));
    ph__memory_free(limits->large_y, rows * LARGE_COLUMNS * sizeof(float));
    ph__memory_free(limits->packed, limits->packed_bytes);
    ph__memory_free(limits->from, BENCH_MAX_COPIED / 2);
    ph__memory_free(limits->to, BENCH_MAX_COPIED / 2);
    ph__gemm_destroy(limits->gemm);
    ph__memory_free(limits, sizeof *limits);
}

struct ph__team *bench_limits_team(const struct bench_limits *limits)
{
    return limits->team;
}

/* Returns the FLOP/s or bytes/s of tasks of `amount` each. A thread has four tasks, so that one that is held
 * up does not hold up all. */
static double rate(struct ph__team *team, ph__task task, void *argument, double amount)
{
    const size_t num_tasks = 4 * ph__team_num_threads(team);
    const double start = ph__clock_seconds();
    ph__parallel_for(team, num_tasks, task, argument);
    return amount * (double)num_tasks / (ph__clock_seconds() - start);
}

/* ---- arithmetic ---- */

enum { CHAINS = 12 /* CHAINS: more than latency times units */, STEPS = 200000 };

/* Unrolls a loop of constant length completely, so that its sums live in registers. */
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

static volatile float sink; /* keeps the loops from being optimised away */

#ifdef __x86_64__
#include <immintrin.h>

/* A task of multiply-adds: CHAINS chains of `vector` sums; each step is step(sum, factor, summand). */
#define MULTIPLY_ADD(name, isa, vector, number, factor_vector, set1, add, first, step)          \
    __attribute__((target(isa))) static void name(void *argument, size_t task, size_t worker)   \
    {                                                                                           \
        const factor_vector factor = number(0.999f), summand = number(0.001f);                  \
        vector sums[CHAINS];                                                                    \
        (void)argument, (void)task, (void)worker;                                               \
        for (int i = 0; i < CHAINS; i++)                                                        \
            sums[i] = set1((float)i);                                                           \
        for (int n = 0; n < STEPS; n++) {                                                       \
            UNROLLED for (int i = 0; i < CHAINS; i++) sums[i] = step(sums[i], factor, summand); \
        }                                                                                       \
        for (int i = 1; i < CHAINS; i++)                                                        \
            sums[0] = add(sums[0], sums[i]);                                                    \
        sink = first(sums[0]);                                                                  \
    }

#define SAME_PAIRS(x) _mm512_cvtne2ps_pbh(_mm512_set1_ps(x), _mm512_set1_ps(x))
MULTIPLY_ADD(multiply_add_avx512, "avx512f", __m512, _mm512_set1_ps, __m512, _mm512_set1_ps, _mm512_add_ps,
    _mm512_cvtss_f32, _mm512_fmadd_ps)
MULTIPLY_ADD(multiply_add_avx2, "avx2,fma", __m256, _mm256_set1_ps, __m256, _mm256_set1_ps, _mm256_add_ps,
    _mm256_cvtss_f32, _mm256_fmadd_ps)
MULTIPLY_ADD(multiply_add_bf16, "avx512f,avx512bf16", __m512, SAME_PAIRS, __m512bh, _mm512_set1_ps,
    _mm512_add_ps, _mm512_cvtss_f32, _mm512_dpbf16_ps)

/* Steps of four products of bytes: the numbers are cast, since only their time matters. */
#define SAME_BYTES(x) _mm512_set1_epi8((char)(100 * (x)))
#define SAME_WORDS(x) _mm512_set1_epi32((int)(x))
MULTIPLY_ADD(multiply_add_int8, "avx512f,avx512vnni", __m512i, SAME_BYTES, __m512i, SAME_WORDS,
    _mm512_add_epi32, (float)_mm512_cvtsi512_si32, _mm512_dpbusd_epi32)

double bench_peak_int8(struct bench_limits *limits)
{
    if (!__builtin_cpu_supports("avx512vnni"))
        return 0;
    return rate(limits->team, multiply_add_int8, NULL, 2.0 * 64 * CHAINS * STEPS);
}

double bench_peak_bf16(struct bench_limits *limits)
{
    if (!__builtin_cpu_supports("avx512bf16"))
        return 0;
    return rate(limits->team, multiply_add_bf16, NULL, 2.0 * 32 * CHAINS * STEPS);
}

double bench_peak_fp32(struct bench_limits *limits)
{
    if (__builtin_cpu_supports("avx512f"))
        return rate(limits->team, multiply_add_avx512, NULL, 2.0 * 16 * CHAINS * STEPS);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return rate(limits->team, multiply_add_avx2, NULL, 2.0 * 8 * CHAINS * STEPS);
    return 0;
}
#else
double bench_peak_int8(struct bench_limits *limits)
{
    (void)limits;
    return 0;
}

double bench_peak_bf16(struct bench_limits *limits)
{
    (void)limits;
    return 0;
}

double bench_peak_fp32(struct bench_limits *limits)
{
    (void)limits;
    return 0;
}
#endif

/* ---- products ---- */

static void small_product(void *argument, size_t task, size_t worker)
{
    const struct bench_limits *limits = argument;
    (void)task;
    const struct ph__row_product_args args = {.rows = SMALL_ROWS,
        .in_features = SMALL_INNER,
        .out_features = SMALL_COLUMNS,
        .x = limits->x + worker * SMALL_ROWS * SMALL_INNER,
        .packed = limits->weight + worker * SMALL_COLUMNS * SMALL_INNER,
        .y = limits->y + worker * SMALL_ROWS * SMALL_COLUMNS};
    for (int i = 0; i < SMALL_REPEATS; i++)
        limits->kernels->row_product(&args);
}

static double large_product(struct bench_limits *limits)
{
    const size_t rows = LARGE_ROWS * ph__team_num_threads(limits->team);
    const struct ph__gemm_args args = {
        .rows = rows, .x = limits->large_x, .packed = limits->packed, .y = limits->large_y};
    const double start = ph__clock_seconds();
    bench_check(ph__gemm_forward(limits->gemm, &large_shape, &args));
    return 2.0 * (double)rows * LARGE_COLUMNS * LARGE_INNER / (ph__clock_seconds() - start);
}

double bench_peak_product(struct bench_limits *limits)
{
    const double flops = 2.0 * SMALL_REPEATS * SMALL_ROWS * SMALL_COLUMNS * SMALL_INNER;
    return fmax(rate(limits->team, small_product, limits, flops), large_product(limits));
}

/* ---- copying ---- */

struct copy {
    char *from, *to;
    size_t task_bytes;
    const struct ph__kernels *kernels; /* scales in place; NULL: copies */
};

static void copy_task(void *argument, size_t task, size_t worker)
{
    const struct copy *copy = argument;
    char *from = copy->from + task * copy->task_bytes, *to = copy->to + task * copy->task_bytes;
    (void)worker;
    if (copy->kernels != NULL)
        copy->kernels->scale(
            copy->task_bytes / sizeof(float), 0.5f, (float *)(void *)to, (float *)(void *)to);
    else
        memcpy(to, from, copy->task_bytes);
}

double bench_copy(struct bench_limits *limits, size_t bytes)
{
    const size_t num_tasks = ph__team_num_threads(limits->team);
    double best = 0;
    for (int is_scaled = 0; is_scaled < 2; is_scaled++) {
        struct copy copy = {
            limits->from, limits->to, bytes / 2 / num_tasks, is_scaled ? limits->kernels : NULL};
        const double start = ph__clock_seconds();
        double seconds = 0, passes = 0;
        while (seconds < copy_seconds) {
            ph__parallel_for(limits->team, num_tasks, copy_task, &copy);
            seconds = ph__clock_seconds() - start;
            passes++;
        }
        best = fmax(best, (double)bytes * passes / seconds);
    }
    return best;
}

/* ---- rows ---- */

enum { LINE_NUMBERS = 16, LANES = 4, BLOCK = 256 /* BLOCK: rows of a task */ };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

struct sweep {
    float *table;
    size_t dim;
    const uint32_t *slots;
    size_t count;
    size_t distance; /* rows prefetched ahead */
    int hint;
};

static void prefetch_row(const struct sweep *sweep, size_t i, int hint)
{
    const size_t coming = i + sweep->distance < sweep->count ? i + sweep->distance : sweep->count - 1;
    const float *row = sweep->table + sweep->slots[coming] * sweep->dim;
    for (size_t k = 0; k < sweep->dim; k += LINE_NUMBERS) {
        if (hint == 0)
            __builtin_prefetch(row + k, 0, 3);
        else if (hint == 1)
            __builtin_prefetch(row + k, 0, 2);
        else
            __builtin_prefetch(row + k, 1, 3);
    }
}

static void gather_task(void *argument, size_t task, size_t worker)
{
    const struct sweep *sweep = argument;
    const size_t first = task * BLOCK, last = first + BLOCK < sweep->count ? first + BLOCK : sweep->count;
    lanes sum = {0};
    (void)worker;
    for (size_t i = first; i < last; i++) {
        prefetch_row(sweep, i, sweep->hint);
        const float *row = sweep->table + sweep->slots[i] * sweep->dim;
        for (size_t k = 0; k < sweep->dim; k += LINE_NUMBERS)
            sum += *(const lanes *)(const void *)(row + k);
    }
    sink = sum[0] + sum[1] + sum[2] + sum[3];
}

static void update_task(void *argument, size_t task, size_t worker)
{
    const struct sweep *sweep = argument;
    const size_t first = task * BLOCK, last = first + BLOCK < sweep->count ? first + BLOCK : sweep->count;
    (void)worker;
    for (size_t i = first; i < last; i++) {
        prefetch_row(sweep, i, 2);
        float *row = sweep->table + sweep->slots[i] * sweep->dim;
        for (size_t k = 0; k + LANES <= sweep->dim; k += LANES)
            *(lanes *)(void *)(row + k) += 0.0f;
    }
}

static double best_sweep(struct ph__team *team, const struct bench_rows *rows, ph__task task, int num_hints)
{
    double best = 0;
    size_t turn = 0;
    for (size_t distance = 8; distance <= 64; distance *= 2) {
        for (int hint = 0; hint < num_hints; hint++, turn++) {
            const struct bench_slots *set = &rows->sets[turn % rows->num_sets];
            struct sweep sweep = {rows->table, rows->dim, set->slots, set->count, distance, hint};
            const double start = ph__clock_seconds();
            ph__parallel_for(team, (set->count + BLOCK - 1) / BLOCK, task, &sweep);
            const double seconds = ph__clock_seconds() - start;
            best = fmax(best, (double)set->count * (double)rows->dim * sizeof(float) / seconds);
        }
    }
    return best;
}

double bench_gather(struct bench_limits *limits, const struct bench_rows *rows)
{
    return best_sweep(limits->team, rows, gather_task, 2);
}

double bench_update(struct bench_limits *limits, const struct bench_rows *rows)
{
    return 2 * best_sweep(limits->team, rows, update_task, 1);
}
