/* The hub's sums with a momentum step, over one chunk of 32 KiB of fp32 numbers: in the second cache, where
 * the arithmetic shows. The hub's bench_aggregate measures them from memory. */
#include <stdio.h>

#include "cases.h"

enum { NUMBERS = 8192, MAX_COPIES = 8 };

struct aggregation {
    struct ph__aggregate_args args;
    struct ph__optimizer_step step;
    const void *copies[MAX_COPIES];
    void *results[1];
};

static void run_aggregate(const struct ph__kernels *kernels, const void *state)
{
    const struct aggregation *aggregation = state;
    kernels->aggregate(&aggregation->args);
}

static void measure(struct bench *bench, const char *word, enum ph_dtype dtype, size_t num_copies)
{
    float *weight = bench_floats(NUMBERS);
    struct aggregation aggregation = {
        .step = {.kind = PH_MOMENTUM, .learning_rate = 1e-6F, .gradient_scale = 1, .momentum = 0.9F},
        .results = {bench_memory(NUMBERS, ph_dtype_size(dtype))}};
    for (size_t i = 0; i < num_copies; i++) /* zeros are valid numbers of every type */
        aggregation.copies[i] = bench_memory(NUMBERS, ph_dtype_size(dtype));
    aggregation.args = (struct ph__aggregate_args){.n = NUMBERS,
        .num_copies = num_copies,
        .copies = aggregation.copies,
        .dtype = dtype,
        .step = &aggregation.step,
        .sum_scale = 1,
        .weight = weight,
        .new_weight = weight,
        .m = bench_floats(NUMBERS),
        .num_results = 1,
        .results = aggregation.results};
    char name[64];
    snprintf(name, sizeof name, "aggregate.%s.%zu_copies", word, num_copies);
    const double bytes = (double)((num_copies + 1) * ph_dtype_size(dtype) + 4 * sizeof *weight);
    bench_measure(
        bench, &(struct bench_case){
                   .name = name, .bytes = bytes * NUMBERS, .run = run_aggregate, .state = &aggregation});
}

void bench_aggregation(struct bench *bench)
{
    measure(bench, "fp32", PH_F32, 2);
    measure(bench, "fp32", PH_F32, MAX_COPIES);
    measure(bench, "fp16", PH_F16, 2);
    measure(bench, "fp16", PH_F16, MAX_COPIES);
    measure(bench, "bf16", PH_BF16, 2);
    measure(bench, "bf16", PH_BF16, MAX_COPIES);
}
