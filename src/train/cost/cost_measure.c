#include "train/cost/cost_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/statistics.h"
#include "base/thread/clock.h"
#include "plan/search/plan_price.h"

enum { NUM_REFERENCE = 6, REFERENCE_DIM = 64, REFERENCE_RUNS = 100 };
#define REFERENCE_POWER .85 /* of the reference's time that sets follow: it reads much memory. Fitted */

struct set {                             /* a set that is being measured */
    const struct ph__cost_table *tables; /* ascending dims */
    size_t count;
    struct ph__arena arena;
    struct ph_batch batch;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

struct ph__cost_measure {
    struct ph__cost_measure_options options;
    struct ph_backend *backend;
    struct ph_store *store;
    struct ph_state *state;
    struct ph__cost_table reference_tables[NUM_REFERENCE];
    struct set reference;   /* run in turn with each set: it has the same neighbours */
    double reference_ms;    /* of a run of it, behind another set, that little has disturbed */
    double lookup_s, all_s; /* of all sets so far, without the reference */
};

/* Returns the bytes of a row's slots. */
static uint64_t slot_bytes(const struct ph__cost_measure *measure, size_t dim)
{
    static const uint64_t numbers[PH_OPTIMIZER_COUNT] = {
        [PH_MOMENTUM] = 1, [PH_ADAGRAD] = 1, [PH_ADAM] = 2, [PH_ADAMW] = 2};
    const enum ph_optimizer_kind optimizer = measure->options.optimizer;
    return sizeof(ph_real) * (optimizer == PH_ROWWISE_ADAGRAD ? 1 : numbers[optimizer] * dim);
}

static uint64_t arena_rows(const struct ph__cost_measure *measure, size_t dim)
{
    return measure->options.arena_bytes / PH_COST_NUM_DIMS /
           (dim * sizeof(ph_real) + slot_bytes(measure, dim));
}

/* ---- the program of a set ---- */

/* Adds the tables [first, end), all of one dim: the arena's table and the loss of its pooled rows. */
static ph_value add_dim(const struct ph__cost_measure *measure, const struct set *set, size_t first,
    size_t end, struct ph_builder *builder, ph_value *table_out)
{
    const size_t dim = set->tables[first].dim, count = end - first;
    struct ph_table_slice slices[PH_COST_MOST_MEASURED];
    size_t features[PH_COST_MOST_MEASURED];
    char names[2][32];
    snprintf(names[0], sizeof names[0], "arena.%zu", dim);
    snprintf(names[1], sizeof names[1], "weight.%zu", dim);
    for (size_t i = 0; i < count; i++) {
        slices[i] = (struct ph_table_slice){names[0], (size_t)arena_rows(measure, dim)};
        features[i] = first + i;
    }
    const struct ph_init init = {PH_INIT_CONSTANT, .01};
    ph_value ids = ph_input_ids(builder, set->count);
    if (count < set->count)
        ids = ph_select_features(builder, ids, count, features);
    *table_out = ph_table(builder, names[0], count, slices, dim, init);
    const ph_value weight = ph_parameter(builder, names[1], 2, (size_t[]){1, dim}, init);
    const ph_value pooled = ph_embedding_bag(builder, ids, *table_out, PH_POOL_SUM, 0);
    const ph_value logits = ph_linear(builder, ph_sum_features(builder, pooled), weight, 0, PH_IDENTITY);
    return ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
}

static void add_step(
    const struct ph__cost_measure *measure, const struct set *set, struct ph_builder *builder)
{
    const struct ph_optimizer optimizer = {.rule = {.kind = measure->options.optimizer,
                                               .epsilon = 1e-8,
                                               .beta1 = .9,
                                               .beta2 = .999,
                                               .momentum = .9},
        .learning_rate_factor = 1};
    ph_value tables[PH_COST_NUM_DIMS], losses[PH_COST_NUM_DIMS], gradients[PH_COST_NUM_DIMS];
    double factors[PH_COST_NUM_DIMS];
    size_t count = 0;
    for (size_t first = 0, end; first < set->count; first = end) {
        for (end = first + 1; end < set->count && set->tables[end].dim == set->tables[first].dim;)
            end++;
        losses[count] = add_dim(measure, set, first, end, builder, &tables[count]);
        factors[count++] = 1;
    }
    const ph_value loss = ph_weighted_sum(builder, count, losses, factors);
    ph_output(builder, "loss", loss);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, count, tables, gradients);
    ph_builder_begin_entry(builder, "update");
    for (size_t i = 0; i < count; i++)
        ph_update(builder, tables[i], gradients[i], &optimizer, ph_input_scalar(builder, "learning_rate"),
            ph_input_scalar(builder, "step"), 0);
}

static ph_status build_program(struct ph__cost_measure *measure, struct set *set)
{
    struct ph_builder *builder;
    PH_TRY(ph_builder_create(PH_TRAINING, &builder));
    add_step(measure, set, builder);
    const ph_status status = ph_builder_finish(builder, &set->program);
    ph_builder_destroy(builder);
    PH_TRY(status);
    PH_TRY(
        ph_executor_create(set->program, measure->store, measure->state, measure->backend, &set->executor));
    PH_TRY(ph_workspace_create(set->executor, set->batch.num_samples, set->batch.num_ids, &set->workspace));
    PH_TRY(ph_workspace_set_scalar(set->workspace, "learning_rate", .01));
    return ph_workspace_bind(set->workspace, &set->batch, 1, 0);
}

/* ---- the batch of a set ---- */

/* Fills a table's ids: rows of a run of the arena that begins behind those of the table before. */
static void fill_ids(const struct ph__cost_measure *measure, const struct ph__cost_table *table,
    struct ph__rng_sequence *rng, uint32_t *scratch, uint64_t *base, int64_t *ids_out)
{
    const uint64_t rows = arena_rows(measure, table->dim);
    const uint64_t range = table->num_rows < rows ? table->num_rows : rows;
    uint32_t *ids = scratch + table->num_read;
    ph__cost_ids_draw(table, range, rng, scratch, ids);
    for (size_t i = 0; i < table->num_ids; i++)
        ids_out[i] = (int64_t)((*base + ids[i]) % rows);
    *base = (*base + range) % rows;
}

/* Spreads a table's ids over the samples as evenly as they go. */
static void fill_lengths(size_t num_ids, size_t num_samples, int32_t *lengths_out, uint32_t *offsets_out)
{
    for (size_t b = 0; b < num_samples; b++) {
        lengths_out[b] = (int32_t)(ph__range_start(num_ids, b + 1, num_samples) -
                                   ph__range_start(num_ids, b, num_samples));
        offsets_out[b + 1] = offsets_out[b] + (uint32_t)lengths_out[b];
    }
}

static ph_status fill_batch(const struct ph__cost_measure *measure, uint64_t seed, struct set *set)
{
    const size_t samples = measure->options.batch_size;
    struct ph__rng_sequence rng = {.key = {seed, 0, ph__hash_name("cost.ids")}};
    size_t num_ids = 0, most = 0;
    for (size_t t = 0; t < set->count; t++) {
        num_ids += set->tables[t].num_ids;
        most = ph__max(most, set->tables[t].num_ids + set->tables[t].num_read);
    }
    int64_t *ids = ph__arena_alloc_array(&set->arena, num_ids, sizeof *ids);
    int32_t *lengths = ph__arena_alloc_array(&set->arena, set->count * samples, sizeof *lengths);
    uint32_t *offsets = ph__arena_alloc_array(&set->arena, set->count * samples + 1, sizeof *offsets);
    ph_real *labels = ph__arena_alloc_array(&set->arena, samples, sizeof *labels);
    uint32_t *scratch = ph__arena_alloc_array(&set->arena, most, sizeof *scratch);
    if (ids == NULL || lengths == NULL || offsets == NULL || labels == NULL || scratch == NULL)
        return PH_ERROR_MEMORY;
    memset(labels, 0, samples * sizeof *labels);
    offsets[0] = 0;
    uint64_t base = 0;
    for (size_t t = 0; t < set->count; t++) {
        if (t > 0 && set->tables[t].dim != set->tables[t - 1].dim)
            base = 0;
        fill_ids(measure, &set->tables[t], &rng, scratch, &base, ids + offsets[t * samples]);
        fill_lengths((size_t)set->tables[t].num_ids, samples, lengths + t * samples, offsets + t * samples);
    }
    set->batch = (struct ph_batch){.num_samples = samples,
        .num_sparse = set->count,
        .num_tasks = 1,
        .num_ids = num_ids,
        .labels = labels,
        .lengths = lengths,
        .offsets = offsets,
        .ids = ids};
    return PH_OK;
}

/* ---- timing ---- */

/* Returns seconds of a clock for sets: of the thread where it works alone, so that time in which other work
 * has its processor does not count. */
static double work_seconds(const struct ph__cost_measure *measure)
{
    struct timespec now;
    if (measure->options.num_threads > 1)
        return ph__clock_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static ph_status time_step(struct ph__cost_measure *measure, struct set *set, size_t number, double *ms_out)
{
    const double begin = work_seconds(measure);
    PH_TRY(ph_workspace_set_scalar(set->workspace, "step", (double)number));
    PH_TRY(ph_workspace_run(set->workspace, "forward"));
    const double between = work_seconds(measure);
    PH_TRY(ph_workspace_run(set->workspace, "backward"));
    PH_TRY(ph_workspace_run(set->workspace, "update"));
    const double end = work_seconds(measure);
    *ms_out = 1e3 * (end - begin);
    if (set != &measure->reference) {
        measure->lookup_s += between - begin;
        measure->all_s += end - begin;
    }
    return PH_OK;
}

/* Runs the set and the reference in turn. The set's time is what it would be at an undisturbed reference. */
static ph_status time_set(
    struct ph__cost_measure *measure, struct set *set, double *ms_out, double *disturbance_out)
{
    const size_t num_runs = measure->options.num_runs;
    double *times = ph__arena_alloc_array(&set->arena, 2 * num_runs, sizeof *times), own, median;
    double *references = times + num_runs;
    if (times == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(time_step(measure, set, 1, &own)); /* the next run finds its memory written */
    for (size_t i = 0; i < num_runs; i++) {
        PH_TRY(time_step(measure, set, i + 2, &own));
        PH_TRY(time_step(measure, &measure->reference, i + 2, &references[i]));
        times[i] = own / pow(references[i] / measure->reference_ms, REFERENCE_POWER);
    }
    PH_TRY(ph__median(references, num_runs, &median));
    *disturbance_out = median / measure->reference_ms - 1;
    return ph__median(times, num_runs, ms_out);
}

static int compare_dims(const void *a, const void *b)
{
    const struct ph__cost_table *first = a, *second = b;
    return (first->dim > second->dim) - (first->dim < second->dim);
}

/* Makes a set of sorted tables ready to run. */
static ph_status open_set(struct ph__cost_measure *measure, uint64_t seed, struct set *set)
{
    PH_TRY(fill_batch(measure, seed, set));
    return build_program(measure, set);
}

static void set_fini(struct set *set)
{
    ph_workspace_destroy(set->workspace);
    ph_executor_destroy(set->executor);
    ph_program_destroy(set->program);
    ph__arena_fini(&set->arena);
}

ph_status ph__cost_measure_set(struct ph__cost_measure *measure, const struct ph__cost_table *tables,
    size_t count, uint64_t seed, double *ms_out, double *disturbance_out)
{
    struct ph__cost_table sorted[PH_COST_MOST_MEASURED];
    struct set set = {.tables = sorted, .count = count};
    memcpy(sorted, tables, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_dims);
    ph_status status = open_set(measure, seed, &set);
    if (status == PH_OK)
        status = time_set(measure, &set, ms_out, disturbance_out);
    set_fini(&set);
    return status;
}

/* ---- opening ---- */

static ph_status check_options(const struct ph__cost_measure *measure)
{
    const uint64_t rows = arena_rows(measure, ph__cost_dims[PH_COST_NUM_DIMS - 1]);
    if (rows == 0 || arena_rows(measure, ph__cost_dims[0]) > UINT32_MAX)
        return ph_fail(PH_ERROR_CONFIG, "an arena of %llu bytes does not suit the tables to measure",
            (unsigned long long)measure->options.arena_bytes);
    return PH_OK;
}

static ph_status open_reference_set(
    struct ph__cost_measure *measure, uint64_t seed, struct ph__cost_table *tables, struct set *set)
{
    struct ph__locality locality;
    ph__locality_default(&locality);
    PH_TRY(ph__cost_tables_make(&locality, measure->options.batch_size, NUM_REFERENCE, seed, tables));
    for (size_t i = 0; i < NUM_REFERENCE; i++)
        tables[i].dim = REFERENCE_DIM;
    *set = (struct set){.tables = tables, .count = NUM_REFERENCE};
    return open_set(measure, seed, set);
}

/* Runs the reference in turn with another set, which leaves none of it in caches, and takes a low quartile.
 */
static ph_status time_reference(struct ph__cost_measure *measure, struct set *other)
{
    double ms[REFERENCE_RUNS];
    for (size_t i = 0; i < REFERENCE_RUNS; i++) {
        PH_TRY(time_step(measure, other, i + 1, &ms[i]));
        PH_TRY(time_step(measure, &measure->reference, i + 1, &ms[i]));
    }
    ph__sort_numbers(ms, REFERENCE_RUNS);
    measure->reference_ms = ms[REFERENCE_RUNS / 4];
    return PH_OK;
}

static ph_status open_reference(struct ph__cost_measure *measure)
{
    struct ph__cost_table tables[NUM_REFERENCE];
    struct set other = {0};
    PH_TRY(open_reference_set(measure, 1, measure->reference_tables, &measure->reference));
    ph_status status = open_reference_set(measure, 2, tables, &other);
    if (status == PH_OK)
        status = time_reference(measure, &other);
    set_fini(&other);
    return status;
}

static ph_status open_parts(struct ph__cost_measure *measure)
{
    const struct ph_backend_options options = {
        .size = sizeof options, .num_threads = measure->options.num_threads};
    PH_TRY(check_options(measure));
    PH_TRY(ph_backend_create(&options, &measure->backend));
    PH_TRY(ph_store_create(1, &measure->store));
    PH_TRY(ph_state_create(&measure->state));
    return open_reference(measure);
}

ph_status ph__cost_measure_open(
    const struct ph__cost_measure_options *options, struct ph__cost_measure **measure_out)
{
    struct ph__cost_measure *measure = calloc(1, sizeof *measure);
    if (measure == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: measuring costs");
    measure->options = *options;
    const ph_status status = open_parts(measure);
    if (status == PH_OK)
        *measure_out = measure;
    else
        ph__cost_measure_close(measure);
    return status;
}

void ph__cost_measure_close(struct ph__cost_measure *measure)
{
    if (measure == NULL)
        return;
    set_fini(&measure->reference);
    ph_state_destroy(measure->state);
    ph_store_destroy(measure->store);
    ph_backend_destroy(measure->backend);
    free(measure);
}

const struct ph_store *ph__cost_measure_store(const struct ph__cost_measure *measure)
{
    return measure->store;
}

/* ---- sets as planners see them ---- */

struct ph__cost_part ph__cost_measure_part(
    const struct ph__cost_measure *measure, const struct ph__cost_table *table, const double *accesses)
{
    const struct ph__table_facts facts = {.num_features = 1,
        .num_rows = table->num_rows,
        .dim = table->dim,
        .weight_bytes = table->dim * sizeof(ph_real),
        .slot_bytes = slot_bytes(measure, table->dim),
        .ids_per_sample = table->ids_per_sample,
        .accesses = accesses};
    const struct ph__plan_step step = {.batch_size = measure->options.batch_size};
    const struct ph__pricing pricing = {.step = &step, .tables = &facts, .num_tables = 1};
    return ph__cost_part(&pricing, 0, (double)table->num_rows, table->dim, 1);
}

double ph__cost_measure_lookup_share(const struct ph__cost_measure *measure)
{
    return measure->all_s > 0 ? measure->lookup_s / measure->all_s : 0;
}
