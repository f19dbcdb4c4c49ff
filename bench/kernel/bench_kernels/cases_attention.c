/* Attention, sample by sample, and layer norm. FLOPs are those of the products, twice over each pair of query
 * and key: two products forward, five backward. */
#include <math.h>
#include <stdio.h>

#include "cases.h"

struct attention {
    size_t count; /* samples */
    struct ph__attention_args args;
};

static void run_samples(const struct attention *x, void (*kernel)(const struct ph__attention_args *args))
{
    struct ph__attention_args args = x->args;
    const size_t keys = args.num_heads * args.key_dim, values = args.num_heads * args.value_dim;
    for (size_t b = 0; b < x->count; b++) {
        kernel(&args);
        args.q += args.num_queries * keys;
        args.dq += args.num_queries * keys;
        args.k += args.num_keys * keys;
        args.dk += args.num_keys * keys;
        args.v += args.num_keys * values;
        args.dv += args.num_keys * values;
        args.y += args.num_queries * values;
        args.dy += args.num_queries * values;
        args.log_sum += args.num_queries * args.num_heads;
    }
}

static void run_attention_forward(const struct ph__kernels *kernels, const void *state)
{
    run_samples(state, kernels->attention_forward);
}

static void run_attention_backward(const struct ph__kernels *kernels, const void *state)
{
    run_samples(state, kernels->attention_backward);
}

/* Measures heads of `dim` numbers in q, k and v alike. */
static void measure_attention(
    struct bench *bench, size_t count, size_t queries, size_t keys, size_t num_heads, size_t dim)
{
    const size_t width = num_heads * dim, query_rows = count * queries, key_rows = count * keys;
    const struct attention x = {.count = count,
        .args = {.num_queries = queries,
            .num_keys = keys,
            .num_heads = num_heads,
            .key_dim = dim,
            .value_dim = dim,
            .scale = 1 / sqrtf((float)dim),
            .q = bench_floats(query_rows * width),
            .k = bench_floats(key_rows * width),
            .v = bench_floats(key_rows * width),
            .log_sum = bench_floats(query_rows * num_heads),
            .y = bench_floats(query_rows * width),
            .dy = bench_floats(query_rows * width),
            .dq = bench_floats(query_rows * width),
            .dk = bench_floats(key_rows * width),
            .dv = bench_floats(key_rows * width)}};
    char name[80];
    const double query_bytes = 4 * (double)(query_rows * width), key_bytes = 4 * (double)(key_rows * width);
    const double product = 2 * (double)(query_rows * keys * width);
    run_attention_forward(ph__kernels_for(PH_ISA_REF), &x); /* backward reads its sums */
    snprintf(
        name, sizeof name, "attention_forward.%zux%zux%zux%zux%zu", count, queries, keys, num_heads, dim);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = 2 * query_bytes + 2 * key_bytes,
                             .flops = 2 * product,
                             .limit = LIMIT_FLOOR,
                             .run = run_attention_forward,
                             .state = &x});
    snprintf(
        name, sizeof name, "attention_backward.%zux%zux%zux%zux%zu", count, queries, keys, num_heads, dim);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = 3 * query_bytes + 4 * key_bytes,
                             .flops = 5 * product,
                             .limit = LIMIT_FLOOR,
                             .run = run_attention_backward,
                             .state = &x});
}

struct norm {
    size_t rows, columns;
    float *x, *dy, *y, *statistics, *row[4];
};

static void run_layer_norm(const struct ph__kernels *kernels, const void *state)
{
    const struct norm *x = state;
    kernels->layer_norm(x->rows, x->columns, x->x, x->row[0], x->row[1], 1e-5, x->y, x->statistics);
}

static void run_layer_norm_backward(const struct ph__kernels *kernels, const void *state)
{
    const struct norm *x = state;
    kernels->layer_norm_backward(
        x->rows, x->columns, x->x, x->dy, x->statistics, x->row[0], x->y, x->row[2], x->row[3]);
}

static void measure_norm(struct bench *bench, size_t rows, size_t columns)
{
    struct norm x = {.rows = rows,
        .columns = columns,
        .x = bench_floats(rows * columns),
        .dy = bench_floats(rows * columns),
        .y = bench_floats(rows * columns),
        .statistics = bench_floats(rows * 2)};
    for (size_t i = 0; i < 4; i++)
        x.row[i] = bench_floats(columns);
    char name[64];
    const double bytes = 4 * (double)(rows * columns);
    snprintf(name, sizeof name, "layer_norm.%zux%zu", rows, columns);
    bench_measure(bench,
        &(struct bench_case){
            .name = name, .bytes = 2 * bytes, .limit = LIMIT_FLOOR, .run = run_layer_norm, .state = &x});
    snprintf(name, sizeof name, "layer_norm_backward.%zux%zu", rows, columns);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = 3 * bytes,
                             .limit = LIMIT_FLOOR,
                             .run = run_layer_norm_backward,
                             .state = &x});
}

void bench_attention(struct bench *bench)
{
    measure_attention(bench, 1024, 10, 10, 4, 32); /* from memory: fields, then histories, then a target's */
    measure_attention(bench, 16, 10, 10, 4, 32);
    measure_attention(bench, 16, 39, 39, 2, 16);
    measure_attention(bench, 16, 50, 50, 2, 32);
    measure_attention(bench, 16, 1, 50, 2, 32);
    measure_norm(bench, 128, 128);
    measure_norm(bench, 128, 400);
}
