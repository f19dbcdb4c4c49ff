/* Elementwise kernels, dropout, norms with hard swish, and the loss on a block of 128 samples x 400, which L2
 * holds. */
#include "cases.h"

enum { ROWS = 128, WIDTH = 400, N = ROWS * WIDTH };

struct block {
    float *x, *dy, *y, *row[6];
    double *sums;
    uint8_t *mask;
};

#define RUN(kernel, call)                                                          \
    static void run_##kernel(const struct ph__kernels *kernels, const void *state) \
    {                                                                              \
        const struct block *b = state;                                             \
        kernels->call;                                                             \
    }

static const struct ph__rng_key key = {.seed = 1};

RUN(relu, relu(N, b->x, b->y))
RUN(relu_backward, relu_backward(N, b->x, b->dy, b->y))
RUN(sigmoid, sigmoid(N, b->x, b->y))
RUN(sigmoid_backward, sigmoid_backward(N, b->x, b->dy, b->y))
RUN(hard_swish, hard_swish(N, b->x, b->y))
RUN(hard_swish_backward, hard_swish_backward(N, b->x, b->dy, b->y))
RUN(block_norm, block_norm(ROWS, WIDTH, true, b->x, b->y))
RUN(block_norm_backward, block_norm_backward(ROWS, WIDTH, true, b->x, b->dy, b->y))
RUN(add, add(N, b->x, b->dy, b->y))
RUN(multiply, multiply(N, b->x, b->dy, b->y))
RUN(scale, scale(N, 0.5f, b->x, b->y))
RUN(add_rows, add_rows(ROWS, WIDTH, b->x, b->row[0]))
RUN(dropout, dropout(&key, 0, ROWS, WIDTH, 0.3, b->x, b->y, b->mask))
RUN(dropout_backward, dropout_backward(N, 0.3, b->mask, b->dy, b->y))
RUN(batch_norm_sums, batch_norm_sums(ROWS, WIDTH, b->x, b->sums + 2 * WIDTH, b->sums, b->sums + WIDTH))
RUN(batch_norm_apply, batch_norm_apply(ROWS, WIDTH, b->x, b->row[1], b->row[2], b->row[3], b->row[4], b->y))
RUN(batch_norm_gradient_sums,
    batch_norm_gradient_sums(ROWS, WIDTH, b->x, b->dy, b->row[1], b->row[2], b->sums, b->sums + WIDTH))
RUN(batch_norm_backward, batch_norm_backward(ROWS, WIDTH, b->x, b->dy, b->row[1], b->row[2], b->row[3],
                             b->row[4], b->row[5], b->y))
RUN(bce_backward, bce_backward(N, b->x, b->dy, NULL, 0.1f, b->y))

static void run_bce(const struct ph__kernels *kernels, const void *state)
{
    const struct block *b = state;
    volatile double sum = kernels->bce(N, b->x, b->dy, NULL);
    (void)sum;
}

void bench_elementwise(struct bench *bench)
{
    struct block block = {
        .x = bench_floats(N),
        .dy = bench_floats(N),
        .y = bench_floats(N),
        .sums = bench_memory(3 * WIDTH, sizeof(double)),
        .mask = bench_memory(N, 1),
    };
    for (size_t i = 0; i < 6; i++)
        block.row[i] = bench_floats(WIDTH);
    for (size_t i = 0; i < N; i++)
        block.mask[i] = i % 3 != 0;

#define MEASURE_WITH(kernel, streams, of)                                 \
    bench_measure(bench, &(struct bench_case){.name = #kernel ".128x400", \
                             .bytes = (streams)*4.0 * N,                  \
                             .limit = of,                                 \
                             .run = run_##kernel,                         \
                             .state = &block})
#define MEASURE(kernel, streams) MEASURE_WITH(kernel, streams, LIMIT_NONE)
    MEASURE(relu, 2);
    MEASURE(relu_backward, 3);
    MEASURE(sigmoid, 2);
    MEASURE(sigmoid_backward, 3);
    MEASURE_WITH(hard_swish, 2, LIMIT_FLOOR);
    MEASURE_WITH(hard_swish_backward, 3, LIMIT_FLOOR);
    MEASURE_WITH(block_norm, 2, LIMIT_FLOOR);
    MEASURE_WITH(block_norm_backward, 3, LIMIT_FLOOR);
    MEASURE(add, 3);
    MEASURE(multiply, 3);
    MEASURE(scale, 2);
    MEASURE(add_rows, 1);
    MEASURE(dropout, 2.25);
    MEASURE(dropout_backward, 2.25);
    MEASURE(batch_norm_sums, 1);
    MEASURE(batch_norm_apply, 2);
    MEASURE(batch_norm_gradient_sums, 2);
    MEASURE(batch_norm_backward, 3);
    MEASURE(bce, 2);
    MEASURE(bce_backward, 3);
}
