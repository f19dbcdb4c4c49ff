#include "plan/plan_machine.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "kernel/kernel.h"

#define TABLE_BYTES ((size_t)128 << 20) /* beyond the caches of most processors */
#define TABLE_SHARE 8                   /* of what is free, all ranks together have one part of so many */
#define MEASURED_SECONDS .05
enum { NUM_TASKS = 64, BAGS = 128 /* of a task */, IDS = 16 /* of a bag */ };

struct measurement {
    const struct ph_kernels *kernels;
    size_t dim, num_rows;
    ph_real *table;    /* (num_rows, dim) */
    uint32_t *slots;   /* (NUM_TASKS, BAGS, IDS) */
    uint32_t *offsets; /* (NUM_TASKS, BAGS + 1) */
    ph_real *pooled;   /* (NUM_TASKS, BAGS, dim) */
};

/* Memory that nobody has written has no pages of its own yet. */
static void write_rows(void *argument, size_t task, size_t worker)
{
    const struct measurement *measurement = argument;
    const size_t first = measurement->num_rows * task / NUM_TASKS,
                 last = measurement->num_rows * (task + 1) / NUM_TASKS;
    (void)worker;
    for (size_t i = first * measurement->dim; i < last * measurement->dim; i++)
        measurement->table[i] = 1;
}

static void draw_slots(const struct measurement *measurement, struct ph_rng_sequence *rng)
{
    for (size_t i = 0; i < (size_t)NUM_TASKS * BAGS * IDS; i++)
        measurement->slots[i] = (uint32_t)ph__rng_below(rng, measurement->num_rows);
    for (uint32_t task = 0; task < NUM_TASKS; task++)
        for (uint32_t bag = 0; bag <= BAGS; bag++)
            measurement->offsets[task * (BAGS + 1) + bag] = (task * BAGS + bag) * IDS;
}

static void look_up(void *argument, size_t task, size_t worker)
{
    const struct measurement *measurement = argument;
    const struct ph_embedding_bag_args args = {.table = measurement->table,
        .format = PH_ROWS_FP32,
        .dim = measurement->dim,
        .slots = measurement->slots,
        .offsets = measurement->offsets + task * (BAGS + 1),
        .num_samples = BAGS,
        .num_features = 1,
        .feature_stride = BAGS,
        .out_stride = measurement->dim,
        .out = measurement->pooled + task * BAGS * measurement->dim};
    (void)worker;
    measurement->kernels->embedding_bag(&args);
}

/* Bytes of rows a second; other rows in each round, so that no cache has them. */
static double measure(struct measurement *measurement, struct ph_team *team)
{
    struct ph_rng_sequence rng = {{1, 0, ph__hash_name("plan_machine")}, 0};
    double seconds = 0, bytes = 0;
    ph__parallel_for(team, NUM_TASKS, write_rows, measurement);
    while (seconds < MEASURED_SECONDS) {
        draw_slots(measurement, &rng);
        const double begin = ph__clock_seconds();
        ph__parallel_for(team, NUM_TASKS, look_up, measurement);
        seconds += ph__clock_seconds() - begin;
        bytes += (double)NUM_TASKS * BAGS * IDS * (double)(measurement->dim * sizeof(ph_real));
    }
    return bytes / seconds;
}

/* The table and what is looked up stand in one piece of memory; the table comes first. */
struct layout {
    size_t slots, offsets, pooled, all; /* where each begins, in bytes */
};

static struct layout lay_out(const struct measurement *measurement)
{
    struct layout layout = {
        .slots = ph__size_align(measurement->num_rows * measurement->dim * sizeof(ph_real))};
    layout.offsets = layout.slots + ph__size_align((size_t)NUM_TASKS * BAGS * IDS * sizeof(uint32_t));
    layout.pooled = layout.offsets + ph__size_align((size_t)NUM_TASKS * (BAGS + 1) * sizeof(uint32_t));
    layout.all = layout.pooled + (size_t)NUM_TASKS * BAGS * measurement->dim * sizeof(ph_real);
    return layout;
}

size_t ph__plan_machine_bytes(uint64_t free_bytes, size_t num_ranks)
{
    return (size_t)ph__min(free_bytes / TABLE_SHARE / num_ranks, TABLE_BYTES);
}

ph_status ph__plan_machine_measure(
    size_t dim, size_t num_ranks, struct ph_team *team, struct ph_plan_machine *machine_out)
{
    enum ph_isa isa;
    uint64_t free_bytes;
    void *memory;
    PH_TRY(ph__cpu_isa(&isa));
    PH_TRY(ph__memory_available_bytes(&free_bytes));
    const size_t table_bytes = ph__plan_machine_bytes(free_bytes, num_ranks);
    const size_t row_bytes = dim * sizeof(ph_real);
    struct measurement measurement = {.kernels = ph__kernels_for(isa),
        .dim = dim,
        .num_rows = table_bytes > row_bytes ? table_bytes / row_bytes : 1};
    const struct layout layout = lay_out(&measurement);
    PH_TRY(ph__memory_alloc(layout.all, "rows to measure memory by", &memory));
    measurement.table = memory;
    measurement.slots = (uint32_t *)((char *)memory + layout.slots);
    measurement.offsets = (uint32_t *)((char *)memory + layout.offsets);
    measurement.pooled = (ph_real *)((char *)memory + layout.pooled);
    *machine_out = (struct ph_plan_machine){
        measure(&measurement, team), PH_PLAN_HOST_BYTES_PER_S, PH_PLAN_NETWORK_BYTES_PER_S, 0};
    ph__memory_free(memory, layout.all);
    return PH_OK;
}
