/* Second-order FM and pairwise dot products, on blocks of samples and on a batch. FLOPs of the dot products
 * count the triangle of the result, twice over D: a full square would be twice as many. */
#include <stdio.h>

#include "cases.h"

struct interaction {
    size_t count, num_fields, dim, num_pairs;
    float *first, *rest, *out, *d_first, *d_rest;
};

static void run_dot_forward(const struct ph__kernels *kernels, const void *state)
{
    const struct interaction *x = state;
    kernels->dot_forward(x->count, x->num_fields, x->dim, x->first, x->rest, x->out, x->num_pairs);
}

static void run_dot_backward(const struct ph__kernels *kernels, const void *state)
{
    const struct interaction *x = state;
    kernels->dot_backward(
        x->count, x->num_fields, x->dim, x->first, x->rest, x->out, x->num_pairs, 0, x->d_first, x->d_rest);
}

static void run_fm_forward(const struct ph__kernels *kernels, const void *state)
{
    const struct interaction *x = state;
    kernels->fm_forward(x->count, x->num_fields, x->dim, x->rest, x->out);
}

static void run_fm_backward(const struct ph__kernels *kernels, const void *state)
{
    const struct interaction *x = state;
    kernels->fm_backward(x->count, x->num_fields, x->dim, x->rest, x->out, x->d_rest);
}

static struct interaction make_interaction(size_t count, size_t num_fields, size_t dim)
{
    const size_t num_pairs = num_fields * (num_fields - 1) / 2;
    return (struct interaction){
        .count = count,
        .num_fields = num_fields,
        .dim = dim,
        .num_pairs = num_pairs,
        .first = bench_floats(count * dim),
        .rest = bench_floats(count * num_fields * dim),
        .out = bench_floats(count * num_pairs),
        .d_first = bench_floats(count * dim),
        .d_rest = bench_floats(count * num_fields * dim),
    };
}

static void measure_dot(struct bench *bench, size_t count, size_t num_fields, size_t dim)
{
    const struct interaction x = make_interaction(count, num_fields, dim);
    char name[64];
    const double vectors = 4 * (double)(count * num_fields * dim);
    const double pairs = (double)(count * x.num_pairs);
    snprintf(name, sizeof name, "dot_forward.%zux%zux%zu", count, num_fields, dim);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = vectors + 4 * pairs,
                             .flops = 2 * pairs * (double)dim,
                             .limit = LIMIT_FLOOR,
                             .run = run_dot_forward,
                             .state = &x});
    snprintf(name, sizeof name, "dot_backward.%zux%zux%zu", count, num_fields, dim);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = 2 * vectors + 4 * pairs,
                             .flops = 4 * pairs * (double)dim,
                             .limit = LIMIT_FLOOR,
                             .run = run_dot_backward,
                             .state = &x});
}

static void measure_fm(struct bench *bench, size_t count, size_t num_fields, size_t dim)
{
    const struct interaction x = make_interaction(count, num_fields, dim);
    char name[64];
    const double vectors = 4 * (double)(count * num_fields * dim);
    snprintf(name, sizeof name, "fm_forward.%zux%zux%zu", count, num_fields, dim);
    bench_measure(
        bench, &(struct bench_case){
                   .name = name, .bytes = vectors, .limit = LIMIT_FLOOR, .run = run_fm_forward, .state = &x});
    snprintf(name, sizeof name, "fm_backward.%zux%zux%zu", count, num_fields, dim);
    bench_measure(bench,
        &(struct bench_case){
            .name = name, .bytes = 2 * vectors, .limit = LIMIT_FLOOR, .run = run_fm_backward, .state = &x});
}

void bench_interaction(struct bench *bench)
{
    measure_dot(bench, 2048, 27, 64); /* a batch from memory, then blocks in the second cache */
    measure_dot(bench, 64, 27, 64);
    measure_dot(bench, 64, 27, 16);
    measure_dot(bench, 32, 27, 128);
    measure_dot(bench, 64, 10, 10);
    measure_dot(bench, 4, 128, 128);
    measure_fm(bench, 256, 10, 10);
    measure_fm(bench, 256, 26, 16);
    measure_fm(bench, 64, 26, 64);
    measure_fm(bench, 2048, 26, 64);
}
