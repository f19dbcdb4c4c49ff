/* The machine's limits: memory bandwidth of one thread and the peak of its multiply-adders. */
#include <math.h>
#include <string.h>

#include "cases.h"

enum { NUMBERS = 32 << 20, TRIES = 5 };

double bench_memory_bandwidth(const struct ph_kernels *kernels)
{
    const double bytes = 2.0 * NUMBERS * sizeof(float);
    float *from = bench_floats(NUMBERS);
    float *to = bench_floats(NUMBERS);
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        const double start = bench_clock_ns();
        memcpy(to, from, NUMBERS * sizeof(float));
        const double copied = bench_clock_ns();
        kernels->scale(NUMBERS, 0.5f, to, to);
        best = fmax(best, bytes / (copied - start));
        best = fmax(best, bytes / (bench_clock_ns() - copied));
    }
    return best;
}

#ifdef __x86_64__
#include <immintrin.h>

enum { CHAINS = 10, STEPS = 1 << 20 };

__attribute__((target("avx2,fma"))) static float multiply_add_avx2(void)
{
    __m256 sum[CHAINS], factor = _mm256_set1_ps(0.5f);
    for (int c = 0; c < CHAINS; c++)
        sum[c] = _mm256_set1_ps((float)c);
    for (int step = 0; step < STEPS; step++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = _mm256_fmadd_ps(sum[c], factor, factor);
    for (int c = 1; c < CHAINS; c++)
        sum[0] = _mm256_add_ps(sum[0], sum[c]);
    return _mm256_cvtss_f32(sum[0]);
}

__attribute__((target("avx512f"))) static float multiply_add_avx512(void)
{
    __m512 sum[CHAINS], factor = _mm512_set1_ps(0.5f);
    for (int c = 0; c < CHAINS; c++)
        sum[c] = _mm512_set1_ps((float)c);
    for (int step = 0; step < STEPS; step++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = _mm512_fmadd_ps(sum[c], factor, factor);
    for (int c = 1; c < CHAINS; c++)
        sum[0] = _mm512_add_ps(sum[0], sum[c]);
    return _mm512_cvtss_f32(sum[0]);
}

double bench_fma_peak(enum ph_isa isa)
{
    volatile float sink = 0;
    double best = 0;
    if (isa == PH_ISA_REF)
        return 0;
    const double lanes = isa == PH_ISA_AVX512 ? 16 : 8;
    for (int try = 0; try < TRIES; try++) {
        const double start = bench_clock_ns();
        sink = sink + (isa == PH_ISA_AVX512 ? multiply_add_avx512() : multiply_add_avx2());
        const double rate = 2 * lanes * CHAINS * STEPS / (bench_clock_ns() - start);
        best = rate > best ? rate : best;
    }
    return best;
}
#else
double bench_fma_peak(enum ph_isa isa)
{
    (void)isa;
    return 0;
}
#endif
