/* Embedding lookups, merging of ids, gradient rows and the fused update, on tables larger than the caches. */
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "tensor/row_format.h"

enum { BATCH = 2048 };

static void run_bag(const struct ph__kernels *kernels, const void *state)
{
    kernels->embedding_bag(state);
}

/* Measures bags of `pooling` ids each, uniform over the rows. */
static void measure_bag(struct bench *bench, const char *name, size_t rows, size_t dim, size_t pooling)
{
    const size_t num_ids = BATCH * pooling;
    uint32_t *offsets = bench_memory(BATCH + 1, sizeof *offsets);
    for (size_t bag = 0; bag <= BATCH; bag++)
        offsets[bag] = (uint32_t)(bag * pooling);
    const struct ph__embedding_bag_args args = {
        .table = bench_floats(rows * dim),
        .dim = dim,
        .slots = bench_words(num_ids, (uint32_t)rows),
        .offsets = offsets,
        .num_samples = BATCH,
        .num_features = 1,
        .out_stride = dim,
        .out = bench_memory(BATCH * dim, sizeof(float)),
    };
    const double row_bytes = (double)(dim * sizeof(float));
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = (double)num_ids * (row_bytes + 4) + BATCH * row_bytes,
                             .flops = (double)(num_ids * dim),
                             .limit = rows * dim > 4000000 ? LIMIT_MEMORY : LIMIT_NONE,
                             .run = run_bag,
                             .state = &args});
}

/* The same bags over rows of another format and over rows of fp32; best kernels of this machine. */
struct formats {
    const struct ph__kernels *kernels;
    struct ph__embedding_bag_args other, fp32;
};

static void run_other_format(const struct ph__kernels *kernels, const void *state)
{
    const struct formats *formats = state;
    (void)kernels;
    formats->kernels->embedding_bag(&formats->other);
}

static void run_fp32(const struct ph__kernels *kernels, const void *state)
{
    const struct formats *formats = state;
    (void)kernels;
    formats->kernels->embedding_bag(&formats->fp32);
}

static void measure_format(struct bench *bench, struct formats *formats, enum ph_row_format format,
    size_t rows, size_t pooling, void *encoded)
{
    char name[64];
    const size_t dim = formats->fp32.dim;
    const double row_bytes = (double)ph__row_bytes(format, dim);
    ph__rows_encode(format, rows, dim, formats->fp32.table, encoded, NULL);
    formats->other = formats->fp32;
    formats->other.table = encoded;
    formats->other.format = format;
    snprintf(name, sizeof name, "embedding_bag.%s.%zukx%zu.pool%zu", ph_row_format_name(format), rows / 1000,
        dim, pooling);
    bench_measure(bench,
        &(struct bench_case){.name = name,
            .bytes = (double)(BATCH * pooling) * (row_bytes + 4) + (double)(BATCH * dim * sizeof(float)),
            .flops = (double)(BATCH * pooling * dim),
            .limit = rows > 100000 ? LIMIT_MEMORY : LIMIT_NONE,
            .run = run_other_format,
            .state = formats,
            .peer = run_fp32,
            .peer_name = "fp32"});
}

static void measure_formats(struct bench *bench, size_t rows, size_t dim, size_t pooling)
{
    uint32_t *offsets = bench_memory(BATCH + 1, sizeof *offsets);
    for (size_t bag = 0; bag <= BATCH; bag++)
        offsets[bag] = (uint32_t)(bag * pooling);
    enum ph__isa isa = PH_ISA_REF;
    if (ph__cpu_isa(&isa) != PH_OK)
        return;
    struct formats formats = {
        .kernels = ph__kernels_for(isa),
        .fp32 = {.table = bench_floats(rows * dim),
            .dim = dim,
            .slots = bench_words(BATCH * pooling, (uint32_t)rows),
            .offsets = offsets,
            .num_samples = BATCH,
            .num_features = 1,
            .out_stride = dim,
            .out = bench_memory(BATCH * dim, sizeof(float))},
    };
    void *encoded = bench_memory(rows * dim, sizeof(float)); /* the largest format is smaller */
    for (int format = PH_ROWS_FP16; format < PH_ROW_FORMAT_COUNT; format++)
        measure_format(bench, &formats, (enum ph_row_format)format, rows, pooling, encoded);
}

struct merge {
    uint32_t *slots, *order, *unique,
        *starts;    /* each run of the sort writes all but slots, to the same values */
    uint32_t *bags; /* (count), the bag of each sorted slot */
    size_t count, rows, num_unique;
    void *scratch;
    uint64_t *items; /* for the peer */
    struct ph__embedding_gradient_source source;
    struct ph__table_rows table;
    struct ph__embedding_update_args update;
    float *row, *blocks;
};

static void run_sort(const struct ph__kernels *kernels, const void *state)
{
    const struct merge *merge = state;
    ph__slot_sort(kernels, merge->slots, merge->count, 0, (uint32_t)merge->rows, 0, merge->order,
        merge->unique, merge->starts, merge->scratch);
}

static int compare_items(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void run_qsort(const struct ph__kernels *kernels, const void *state)
{
    const struct merge *merge = state;
    (void)kernels;
    for (size_t i = 0; i < merge->count; i++)
        merge->items[i] = (uint64_t)merge->slots[i] << 32 | i;
    qsort(merge->items, merge->count, sizeof *merge->items, compare_items);
}

static void run_gradient_rows(const struct ph__kernels *kernels, const void *state)
{
    const struct merge *merge = state;
    for (size_t r = 0; r < merge->num_unique; r++) {
        const size_t end = r + 1 < merge->num_unique ? merge->starts[r + 1] : merge->count;
        kernels->embedding_gradient_row(&merge->source, merge->starts[r], end, merge->row);
    }
}

static void run_update(const struct ph__kernels *kernels, const void *state)
{
    const struct merge *merge = state;
    kernels->embedding_update(&merge->update, 0, merge->num_unique, merge->row);
}

static void run_squares(const struct ph__kernels *kernels, const void *state)
{
    const struct merge *merge = state;
    kernels->embedding_squares(&merge->update, 0, merge->num_unique, merge->row, merge->blocks);
}

/* Makes BATCH bags of `pooling` uniform ids, merged. */
static void make_merge(
    struct merge *merge, const struct ph__optimizer_step *step, size_t rows, size_t dim, size_t pooling)
{
    const size_t count = BATCH * pooling;
    *merge = (struct merge){
        .slots = bench_words(count, (uint32_t)rows),
        .order = bench_memory(count, sizeof(uint32_t)),
        .unique = bench_memory(count, sizeof(uint32_t)),
        .starts = bench_memory(count, sizeof(uint32_t)),
        .bags = bench_memory(count, sizeof(uint32_t)),
        .count = count,
        .rows = rows,
        .scratch = bench_memory(ph__slot_sort_scratch_bytes(count), 1),
        .items = bench_memory(count, sizeof(uint64_t)),
        .table = {.dim = dim, .memory = bench_floats(rows * dim)},
        .row = bench_memory(2 * dim, sizeof(float)),
        .blocks = bench_memory(count * ph__square_blocks(dim), sizeof(float)),
    };
    merge->num_unique = ph__slot_sort(ph__kernels_for(PH_ISA_REF), merge->slots, count, 0, (uint32_t)rows, 0,
        merge->order, merge->unique, merge->starts, merge->scratch);
    for (size_t i = 0; i < count; i++)
        merge->bags[i] = merge->order[i] / (uint32_t)pooling;
    merge->source = (struct ph__embedding_gradient_source){
        .num_entries = count,
        .rows = merge->bags,
        .grad = bench_floats(BATCH * dim),
        .dim = dim,
    };
    merge->update = (struct ph__embedding_update_args){
        .source = &merge->source,
        .step = step,
        .unique = merge->unique,
        .starts = merge->starts,
        .num_unique = merge->num_unique,
        .table = &merge->table,
        .s = bench_floats(rows * dim),
    };
}

/* Measures the sweeps of row-wise Adagrad: of whole rows, and the first of two over a part of the columns. */
static void measure_rowwise(struct bench *bench, struct merge *merge, size_t pooling)
{
    static const struct ph__optimizer_step step = {
        .kind = PH_ROWWISE_ADAGRAD, .learning_rate = 1e-6f, .gradient_scale = 1, .epsilon = 1e-8f};
    char name[64];
    const double row_bytes = (double)(merge->source.dim * sizeof(float));
    const double gradient_bytes = (double)merge->count * row_bytes;
    merge->update.step = &step;
    snprintf(name, sizeof name, "embedding_update.rowwise_adagrad.pool%zu", pooling);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = gradient_bytes + 2 * (double)merge->num_unique * row_bytes,
                             .limit = LIMIT_MEMORY,
                             .run = run_update,
                             .state = merge});
    snprintf(name, sizeof name, "embedding_squares.pool%zu", pooling);
    bench_measure(
        bench, &(struct bench_case){.name = name,
                   .bytes = gradient_bytes + (double)merge->num_unique * row_bytes / PH_SQUARES_COLUMNS,
                   .limit = LIMIT_MEMORY,
                   .run = run_squares,
                   .state = merge});
}

static void measure_merge(struct bench *bench, size_t pooling)
{
    const struct ph__optimizer_step step = {
        .kind = PH_ADAGRAD, .learning_rate = 1e-6f, .gradient_scale = 1, .epsilon = 1e-8f};
    struct merge merge;
    char name[64];
    const size_t rows = 100000, dim = 64;
    make_merge(&merge, &step, rows, dim, pooling);
    for (size_t i = 0; i < rows * dim; i++)
        merge.update.s[i] += 2;

    const double row_bytes = (double)(dim * sizeof(float));
    snprintf(name, sizeof name, "slot_sort.pool%zu", pooling);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = 4 * (double)merge.count,
                             .run = run_sort,
                             .state = &merge,
                             .peer = run_qsort,
                             .peer_name = "qsort"});
    snprintf(name, sizeof name, "embedding_gradient_row.pool%zu", pooling);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = (double)merge.count * row_bytes,
                             .flops = (double)(merge.count * dim),
                             .run = run_gradient_rows,
                             .state = &merge});
    snprintf(name, sizeof name, "embedding_update.adagrad.pool%zu", pooling);
    bench_measure(bench, &(struct bench_case){.name = name,
                             .bytes = ((double)merge.count + 4 * (double)merge.num_unique) * row_bytes,
                             .limit = LIMIT_MEMORY,
                             .run = run_update,
                             .state = &merge});
    measure_rowwise(bench, &merge, pooling);
}

void bench_embedding(struct bench *bench)
{
    measure_bag(bench, "embedding_bag.800kx64.pool1", 800000, 64, 1);
    measure_bag(bench, "embedding_bag.800kx64.pool20", 800000, 64, 20);
    measure_bag(bench, "embedding_bag.400kx128.pool20", 400000, 128, 20);
    measure_bag(bench, "embedding_bag.800kx16.pool20", 800000, 16, 20);
    measure_bag(bench, "embedding_bag.5kx10.pool1", 5000, 10, 1);
    measure_bag(bench, "embedding_bag.5kx1.pool10", 5000, 1, 10);
    measure_formats(bench, 800000, 64, 20);
    measure_formats(bench, 5000, 64, 20);
    measure_merge(bench, 1);
    measure_merge(bench, 20);
}
