/* Optimizers over a parameter larger than the caches, the 5k x 10 table of a small data set, and one row. */
#include <stdio.h>

#include "cases.h"

struct update {
    struct ph__optimizer_step step;
    size_t n;
    float *grad, *weight, *m, *s;
};

static void run_update(const struct ph__kernels *kernels, const void *state)
{
    const struct update *u = state;
    kernels->optimizer_update(&u->step, u->n, u->grad, u->weight, u->m, u->s);
}

static void run_rowwise(const struct ph__kernels *kernels, const void *state)
{
    const struct update *u = state;
    kernels->rowwise_adagrad_update(&u->step, u->n, u->grad, u->weight, u->s);
}

static void run_sum_of_squares(const struct ph__kernels *kernels, const void *state)
{
    const struct update *u = state;
    volatile double sum = kernels->sum_of_squares(u->n, u->grad, NULL, 0);
    (void)sum;
}

static struct update make_update(enum ph_optimizer_kind kind, size_t n)
{
    struct update update = {
        .step = {.kind = kind,
            .learning_rate = 1e-6f,
            .gradient_scale = 1,
            .momentum = 0.9f,
            .beta1 = 0.9f,
            .beta2 = 0.999f,
            .epsilon = 1e-8f,
            .bias_correction1 = 1,
            .bias_correction2 = 1},
        .n = n,
        .grad = bench_floats(n),
        .weight = bench_floats(n),
        .m = bench_floats(n),
        .s = bench_floats(n),
    };
    for (size_t i = 0; i < n; i++)
        update.s[i] += 2;
    return update;
}

static void measure(
    struct bench *bench, const char *word, enum ph_optimizer_kind kind, size_t n, double streams)
{
    const struct update update = make_update(kind, n);
    char name[64];
    snprintf(name, sizeof name, "optimizer_update.%s.%zu", word, n);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = streams * (double)(n * sizeof(float)),
                             .limit = n > 4000000 ? LIMIT_MEMORY : LIMIT_NONE,
                             .run = run_update,
                             .state = &update});
}

void bench_optimizer(struct bench *bench)
{
    const size_t large = 5000000;
    measure(bench, "sgd", PH_SGD, large, 3);
    measure(bench, "momentum", PH_MOMENTUM, large, 5);
    measure(bench, "adagrad", PH_ADAGRAD, large, 5);
    measure(bench, "adam", PH_ADAM, large, 7);
    measure(bench, "adam", PH_ADAM, 50000, 7);
    measure(bench, "adam", PH_ADAM, 10, 7);
    measure(bench, "adagrad", PH_ADAGRAD, 64, 5);

    struct update row = make_update(PH_ROWWISE_ADAGRAD, 64);
    bench_measure(
        bench, &(struct bench_case){
                   .name = "rowwise_adagrad_update.64", .bytes = 3 * 256, .run = run_rowwise, .state = &row});
    const struct update squares = make_update(PH_SGD, large);
    bench_measure(bench, &(struct bench_case){.name = "sum_of_squares.5000000",
                             .bytes = 4.0 * (double)large,
                             .flops = 2.0 * (double)large,
                             .limit = LIMIT_MEMORY,
                             .run = run_sum_of_squares,
                             .state = &squares});
    const struct update few = make_update(PH_SGD, 10000);
    bench_measure(bench, &(struct bench_case){.name = "sum_of_squares.10000",
                             .bytes = 4e4,
                             .flops = 2e4,
                             .run = run_sum_of_squares,
                             .state = &few});
}
