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

/* ---- products of bytes, the rows' levels included, beside those of floats ---- */

struct int8_case {
    struct ph__row_product_args floats;
    struct ph__int8_product_args bytes;
    int8_t *levels;
    float *scales;
};

static void run_int8_product(const struct ph__kernels *kernels, const void *state)
{
    const struct int8_case *product = state;
    const size_t inner = product->bytes.in_features, stride = ph__int8_stride(inner);
    for (size_t r = 0; r < product->bytes.rows; r++)
        product->scales[r] =
            kernels->int8_narrow(inner, product->floats.x + r * inner, product->levels + r * stride);
    kernels->int8_product(&product->bytes);
}

static void run_floats(const struct ph__kernels *kernels, const void *state)
{
    kernels->row_product(&((const struct int8_case *)state)->floats);
}

static void measure_int8(struct bench *bench, size_t rows, size_t in_features, size_t out_features)
{
    const size_t packed_bytes = ph__int8_packed_bytes(out_features, in_features);
    const size_t weight_bytes = ph__row_product_packed_bytes(out_features, in_features, false);
    struct int8_case product = {
        .levels = bench_memory(rows * ph__int8_stride(in_features), 1), .scales = bench_floats(rows)};
    void *packed = bench_memory(packed_bytes, 1);
    ph__kernels_for(PH_ISA_REF)
        ->int8_pack(&(struct ph__int8_pack_args){
            out_features, in_features, bench_floats(out_features * in_features), false, packed});
    product.floats = (struct ph__row_product_args){.rows = rows,
        .in_features = in_features,
        .out_features = out_features,
        .x = bench_floats(rows * in_features),
        .packed = bench_floats(weight_bytes / sizeof(float)),
        .bias = bench_floats(out_features),
        .y = bench_floats(rows * out_features)};
    product.bytes = (struct ph__int8_product_args){.rows = rows,
        .in_features = in_features,
        .out_features = out_features,
        .x = product.levels,
        .x_scales = product.scales,
        .packed = packed,
        .bias = product.floats.bias,
        .y = product.floats.y,
        .has_dot = ph__cpu_has_int8_dot()};
    char name[64];
    snprintf(name, sizeof name, "int8_product.%zux%zux%zu", rows, in_features, out_features);
    bench_measure(
        bench, &(struct bench_case){.name = name,
                   .bytes = (double)packed_bytes + 4 * (double)(rows * (in_features + out_features)),
                   .flops = 2 * (double)(rows * in_features * out_features),
                   .run = run_int8_product,
                   .state = &product,
                   .peer = run_floats,
                   .peer_name = "row_product"});
}

void bench_product(struct bench *bench)
{
    static const size_t rows[] = {1, 64, 256, 2048};
    static const size_t shapes[][2] = {{256, 256}, {512, 256}, {415, 512}, {1024, 1024}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            measure_int8(bench, rows[r], shapes[i][0], shapes[i][1]);
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        measure(bench, 1, 415, 512, is_bf16);
        measure(bench, 16, 415, 512, is_bf16);
        measure(bench, 64, 415, 512, is_bf16);
        measure(bench, 256, 512, 256, is_bf16);
    }
}
