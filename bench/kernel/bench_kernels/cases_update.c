/* The fused update on rows in fewer bytes beside the update on rows of fp32, in turn, by the best kernels of
 * this machine. */
#include <stdio.h>

#include "cases.h"
#include "tensor/row_format.h"

enum { IDS = 26 * 2048, ROWS = 800000, SLICES = 26 };

/* One id per bag, uniform over the rows, merged. The tables share the optimizer's sums, always fp32. */
struct update {
    const struct ph__kernels *kernels;
    struct ph__embedding_gradient_source source;
    struct ph__optimizer_step step;
    struct ph__row_slice slices[SLICES];
    struct ph__table_rows fp32, other;
    uint32_t *order, *unique, *starts;
    size_t num_unique;
    float *sums, *scratch;
};

static void run_on(const struct update *update, const struct ph__table_rows *table)
{
    const struct ph__embedding_update_args args = {.source = &update->source,
        .step = &update->step,
        .unique = update->unique,
        .starts = update->starts,
        .num_unique = update->num_unique,
        .table = table,
        .s = update->step.kind != PH_SGD ? update->sums : NULL};
    update->kernels->embedding_update(&args, 0, update->num_unique, update->scratch);
}

static void run_other(const struct ph__kernels *kernels, const void *state)
{
    const struct update *update = state;
    (void)kernels;
    run_on(update, &update->other);
}

static void run_fp32(const struct ph__kernels *kernels, const void *state)
{
    const struct update *update = state;
    (void)kernels;
    run_on(update, &update->fp32);
}

static void merge_ids(struct update *update)
{
    uint32_t *slots = bench_words(IDS, ROWS);
    update->order = bench_memory(IDS, sizeof(uint32_t));
    update->unique = bench_memory(IDS, sizeof(uint32_t));
    update->starts = bench_memory(IDS, sizeof(uint32_t));
    update->num_unique = ph__slot_sort(ph__kernels_for(PH_ISA_REF), slots, IDS, 0, ROWS, 0, update->order,
        update->unique, update->starts, bench_memory(ph__slot_sort_scratch_bytes(IDS), 1));
    for (size_t i = 0; i < SLICES; i++)
        update->slices[i] = (struct ph__row_slice){.stream = i, .end_row = ROWS * (i + 1) / SLICES};
}

static void measure_format(struct bench *bench, struct update *update, enum ph_row_format format,
    const char *optimizer, uint16_t *words)
{
    char name[80];
    const size_t dim = update->fp32.dim;
    const double sum_bytes = update->step.kind == PH_ADAGRAD ? (double)(2 * dim * sizeof(float)) : 0;
    const double row_bytes = 2 * (double)ph__table_bytes(format, 1, dim) + sum_bytes;
    update->other = update->fp32;
    update->other.format = format;
    update->other.memory = words;
    update->other.low = words + ROWS * dim;
    ph__rows_encode(format, ROWS, dim, update->fp32.memory, words, update->other.low);
    snprintf(
        name, sizeof name, "embedding_update.%s.%s.800kx%zu", optimizer, ph_row_format_name(format), dim);
    bench_measure(bench,
        &(struct bench_case){.name = name,
            .bytes = (double)IDS * (double)(dim * sizeof(float)) + (double)update->num_unique * row_bytes,
            .limit = LIMIT_MEMORY,
            .run = run_other,
            .state = update,
            .peer = run_fp32,
            .peer_name = "fp32"});
}

static void measure_dim(struct bench *bench, struct update *update, size_t dim, uint16_t *words)
{
    static const struct {
        enum ph_optimizer_kind kind;
        const char *name;
    } optimizers[] = {{PH_SGD, "sgd"}, {PH_ADAGRAD, "adagrad"}, {PH_ROWWISE_ADAGRAD, "rowwise_adagrad"}};
    static const enum ph_row_format formats[] = {PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    update->fp32.dim = update->source.dim = dim;
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        update->step.kind = optimizers[i].kind;
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
            measure_format(bench, update, formats[k], optimizers[i].name, words);
    }
}

void bench_update_formats(struct bench *bench)
{
    enum { MOST_DIM = 64 };
    static struct update update;
    enum ph__isa isa = PH_ISA_REF;
    if (ph__cpu_isa(&isa) != PH_OK)
        return;
    update = (struct update){.kernels = ph__kernels_for(isa),
        .step = {.learning_rate = 1e-6f, .gradient_scale = 1, .epsilon = 1e-8f},
        .sums = bench_floats((size_t)ROWS * MOST_DIM),
        .scratch = bench_memory(2 * MOST_DIM, sizeof(float))};
    merge_ids(&update);
    update.fp32 = (struct ph__table_rows){
        .memory = bench_floats((size_t)ROWS * MOST_DIM), .slices = update.slices, .num_slices = SLICES};
    update.source = (struct ph__embedding_gradient_source){
        .num_entries = IDS, .rows = update.order, .grad = bench_floats((size_t)IDS * MOST_DIM)};
    for (size_t i = 0; i < (size_t)ROWS * MOST_DIM; i++)
        update.sums[i] += 2;
    uint16_t *words = bench_memory((size_t)ROWS * MOST_DIM, sizeof(float));
    measure_dim(bench, &update, 64, words);
    measure_dim(bench, &update, 16, words);
}
