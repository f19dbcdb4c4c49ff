/* Small products, on the matrices that models make of a sample's vectors: fields among themselves (fields x
 * fields, over the embedding), vectors of a sample mixed by a weight, and a chunk of a compressed interaction
 * network for a block of samples, forward and for the weight's gradient. Also, within the first cache, the
 * kernels that bring vectors into the order that products want. */
#include <stdio.h>

#include "cases.h"

static void run_small_product(const struct ph__kernels *kernels, const void *state)
{
    kernels->small_product(state);
}

/* Measures `count` products (rows, inner) x (inner, columns), with one A for all of them where is_shared. */
static void measure_product(
    struct bench *bench, const char *what, struct ph__small_product_args args, bool is_shared)
{
    const size_t a = args.rows * args.inner, b = args.inner * args.columns, c = args.rows * args.columns;
    const size_t numbers = (is_shared ? a : args.count * a) + args.count * (b + c);
    char name[64];
    args.a_step = is_shared ? 0 : a;
    args.b_step = b;
    args.c_step = c;
    args.b_stride = args.c_stride = args.columns;
    args.a = bench_floats(args.count * a);
    args.b = bench_floats(args.count * b);
    args.c = bench_floats(args.count * c);
    snprintf(name, sizeof name, "small_product.%s.%zux%zux%zux%zu", what, args.count, args.rows, args.inner,
        args.columns);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = 4 * (double)numbers,
                             .flops = 2 * (double)(args.count * args.rows * args.inner * args.columns),
                             .limit = LIMIT_FLOOR,
                             .run = run_small_product,
                             .state = &args});
}

static void measure_rows(struct bench *bench, const char *what, size_t count, size_t rows, size_t inner,
    size_t columns, bool is_shared)
{
    measure_product(bench, what,
        (struct ph__small_product_args){.count = count,
            .rows = rows,
            .inner = inner,
            .columns = columns,
            .a_row_stride = inner,
            .a_inner_stride = 1},
        is_shared);
}

struct order {
    size_t a, b, n;
    const float *x;
    float *y;
};

static void run_transpose(const struct ph__kernels *kernels, const void *state)
{
    const struct order *order = state;
    kernels->transpose(order->a, order->b, order->n, order->x, order->y);
}

static void run_interchange(const struct ph__kernels *kernels, const void *state)
{
    const struct order *order = state;
    kernels->interchange(order->a, order->b, order->n, order->x, order->y);
}

static void measure_order(struct bench *bench, const char *kernel,
    void (*run)(const struct ph__kernels *kernels, const void *state), size_t a, size_t b, size_t n)
{
    const struct order order = {a, b, n, bench_floats(a * b * n), bench_floats(a * b * n)};
    char name[64];
    snprintf(name, sizeof name, "%s.%zux%zux%zu", kernel, a, b, n);
    bench_measure(bench,
        &(struct bench_case){.name = name, .bytes = 8 * (double)(a * b * n), .run = run, .state = &order});
}

static void run_multiply_rows(const struct ph__kernels *kernels, const void *state)
{
    kernels->multiply_rows(state);
}

/* Measures one row times all others, as a network multiplies a vector with the first ones. */
static void measure_multiply_rows(struct bench *bench, size_t rows, size_t n, bool is_added)
{
    const struct ph__multiply_rows_args args = {.rows = rows,
        .n = n,
        .a = bench_floats(n),
        .b = bench_floats(rows * n),
        .b_stride = n,
        .y = bench_floats(rows * n),
        .y_stride = n,
        .is_added = is_added};
    char name[64];
    snprintf(name, sizeof name, "multiply_rows%s.%zux%zu", is_added ? "_added" : "", rows, n);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = (is_added ? 12 : 8) * (double)(rows * n),
                             .run = run_multiply_rows,
                             .state = &args});
}

void bench_small_product(struct bench *bench)
{
    measure_rows(bench, "fields", 64, 10, 10, 10, false);
    measure_rows(bench, "fields", 64, 27, 16, 27, false);
    measure_rows(bench, "fields", 16, 40, 64, 40, false);
    measure_rows(
        bench, "mix", 64, 40, 10, 10, true); /* vectors of 10 by themselves, then of 8 samples side by side */
    measure_rows(bench, "mix", 8, 40, 10, 80, true);
    measure_rows(bench, "mix", 16, 40, 40, 64, true);
    measure_rows(bench, "cin", 1, 100, 60, 80, false);
    measure_rows(bench, "cin_weight", 1, 60, 80, 100, false);
    measure_order(bench, "transpose", run_transpose, 64, 10, 10);
    measure_order(bench, "transpose", run_transpose, 16, 40, 64);
    measure_order(bench, "interchange", run_interchange, 8, 40, 10);
    measure_order(bench, "interchange", run_interchange, 8, 40, 16);
    measure_multiply_rows(bench, 10, 80, false);
    measure_multiply_rows(bench, 10, 80, true);
}
