/* The row-wise product of inference, on layers of DLRM: one row, bound by reading the packed weights once,
 * and many rows, bound by arithmetic. The weights of a case stay in the second cache. */
#include <stdio.h>

#include "cases.h"

static void run_row_product(const struct ph__kernels *kernels, const void *state)
{
    kernels->row_product(state);
}

static void measure(struct bench *bench, size_t rows, size_t in_features, size_t out_features, bool is_bf16)
{
    const size_t weight_bytes = ph__row_product_packed_bytes(out_features, in_features, is_bf16);
    const struct ph__row_product_args args = {.rows = rows,
        .in_features = in_features,
        .out_features = out_features,
        .x = bench_floats(rows * in_features),
        .packed = bench_floats(weight_bytes / sizeof(float)),
        .bias = bench_floats(out_features),
        .y = bench_floats(rows * out_features),
        .is_bf16 = is_bf16};
    char name[64];
    snprintf(name, sizeof name, "row_product%s.%zux%zux%zu", is_bf16 ? "_bf16" : "", rows, in_features,
        out_features);
    bench_measure(
        bench, &(struct bench_case){.name = name,
                   .bytes = (double)weight_bytes + 4 * (double)(rows * (in_features + out_features)),
                   .flops = 2 * (double)(rows * in_features * out_features),
                   .limit = rows > 1 ? LIMIT_FMA : LIMIT_NONE,
                   .run = run_row_product,
                   .state = &args});
}

void bench_product(struct bench *bench)
{
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        measure(bench, 1, 415, 512, is_bf16);
        measure(bench, 16, 415, 512, is_bf16);
        measure(bench, 64, 415, 512, is_bf16);
        measure(bench, 256, 512, 256, is_bf16);
    }
}
