#include "floor.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "figures.h"
#include "kernel/kernel.h"

enum { MIN_SLOTS = 1 << 16 /* least slots of a list, which has whole features until then, or all */ };

static size_t copied_bytes(size_t index)
{
    return (size_t)1 << (18 + 2 * index);
}

static double copy_rate(const struct bench_rates *rates, double bytes)
{
    size_t index = 0; /* boundaries halfway, in the logarithm */
    while (index + 1 < BENCH_COPY_SIZES && bytes > 2 * (double)copied_bytes(index))
        index++;
    return rates->copy[index];
}

double bench_floor(const struct ph__cost *cost, const struct bench_rates *rates)
{
    const double streamed = cost->bytes - cost->gathered_bytes - cost->revisited_bytes - cost->updated_bytes;
    const double memory = streamed / copy_rate(rates, streamed) + cost->gathered_bytes / rates->gather +
                          cost->revisited_bytes / rates->revisit + cost->updated_bytes / rates->update;
    return fmax(cost->flops / rates->product, memory);
}

struct ph__cost bench_cost_of_call(const struct ph__cost *total, size_t calls)
{
    const double part = 1 / (double)calls;
    return (struct ph__cost){.flops = total->flops * part,
        .bytes = total->bytes * part,
        .gathered_bytes = total->gathered_bytes * part,
        .revisited_bytes = total->revisited_bytes * part,
        .updated_bytes = total->updated_bytes * part};
}

/* Rows of a case: three lists for each batch. */
struct floor_rows {
    size_t dim;
    float *own; /* (B * F, dim): stands for the gradient that is revisited */
    size_t own_bytes;
    struct bench_slots looked_up[DLRM_NUM_BATCHES], revisited[DLRM_NUM_BATCHES], updated[DLRM_NUM_BATCHES];
};

static uint32_t *allocate(size_t count)
{
    uint32_t *words = malloc(count * sizeof *words);
    if (words == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu slots", count));
    return words;
}

/* Lists the slots (F,B,pooling) of some features, the merged order of their positions, and the distinct
 * slots. Each batch uses other features, so that no list finds rows cached by the one before. */
static void list_slots(struct floor_rows *rows, const struct dlrm_data *data, size_t batch)
{
    const struct dlrm_case *of = &data->of;
    const size_t ids_a_table = of->batch * of->pooling;
    size_t features = (MIN_SLOTS + ids_a_table - 1) / ids_a_table;
    features = features < of->tables ? features : of->tables;
    const size_t count = features * ids_a_table;
    uint32_t *slots = allocate(count), *order = allocate(count), *unique = allocate(count),
             *starts = allocate(count);
    for (size_t i = 0; i < count; i++) {
        const size_t feature = (batch * features + i / ids_a_table) % of->tables;
        const int64_t id = data->batches[batch].ids[feature * ids_a_table + i % ids_a_table];
        slots[i] = (uint32_t)(feature * of->rows + (size_t)id);
    }
    void *scratch = malloc(ph__slot_sort_scratch_bytes(count));
    if (scratch == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: cannot sort %zu slots", count));
    const size_t num_unique = ph__slot_sort(ph__kernels_for(PH_ISA_REF), slots, count, 0,
        (uint32_t)(of->tables * of->rows), 0, order, unique, starts, scratch);
    for (size_t i = 0; i < count; i++) {
        const size_t bag = order[i] / of->pooling; /* (F,B); its row is at (B,F) */
        const size_t feature = (batch * features + bag / of->batch) % of->tables;
        order[i] = (uint32_t)(bag % of->batch * of->tables + feature);
    }
    free(scratch);
    free(starts);
    rows->looked_up[batch] = (struct bench_slots){slots, count};
    rows->revisited[batch] = (struct bench_slots){order, count};
    rows->updated[batch] = (struct bench_slots){unique, num_unique};
}

struct floor_rows *floor_rows_create(const struct dlrm_data *data)
{
    struct floor_rows *rows = malloc(sizeof *rows);
    if (rows == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: the floor's rows"));
    *rows = (struct floor_rows){.dim = data->of.dim};
    rows->own_bytes = data->of.batch * data->of.tables * data->of.dim * sizeof *rows->own;
    void *own = NULL;
    bench_check(ph__memory_alloc(rows->own_bytes, "the batch's own rows", &own));
    rows->own = own;
    for (size_t i = 0; i < DLRM_NUM_BATCHES; i++)
        list_slots(rows, data, i);
    return rows;
}

void floor_rows_destroy(struct floor_rows *rows)
{
    for (size_t i = 0; i < DLRM_NUM_BATCHES; i++) {
        free((void *)(uintptr_t)rows->looked_up[i].slots);
        free((void *)(uintptr_t)rows->revisited[i].slots);
        free((void *)(uintptr_t)rows->updated[i].slots);
    }
    ph__memory_free(rows->own, rows->own_bytes);
    free(rows);
}

struct bench_rates bench_measure_rates(
    struct bench_limits *limits, const struct floor_rows *rows, ph_real *table)
{
    const struct bench_rows looked_up = {table, rows->dim, DLRM_NUM_BATCHES, rows->looked_up};
    const struct bench_rows revisited = {rows->own, rows->dim, DLRM_NUM_BATCHES, rows->revisited};
    const struct bench_rows updated = {table, rows->dim, DLRM_NUM_BATCHES, rows->updated};
    struct bench_rates rates = {.product = bench_peak_product(limits),
        .gather = bench_gather(limits, &looked_up),
        .revisit = bench_gather(limits, &revisited),
        .update = bench_update(limits, &updated)};
    for (size_t i = 0; i < BENCH_COPY_SIZES; i++)
        rates.copy[i] = bench_copy(limits, copied_bytes(i));
    return rates;
}

void bench_raise_rates(
    struct bench_rates *rates, struct bench_limits *limits, const struct floor_rows *rows, ph_real *table)
{
    const struct bench_rates again = bench_measure_rates(limits, rows, table);
    rates->product = fmax(rates->product, again.product);
    rates->gather = fmax(rates->gather, again.gather);
    rates->revisit = fmax(rates->revisit, again.revisit);
    rates->update = fmax(rates->update, again.update);
    for (size_t i = 0; i < BENCH_COPY_SIZES; i++)
        rates->copy[i] = fmax(rates->copy[i], again.copy[i]);
}
