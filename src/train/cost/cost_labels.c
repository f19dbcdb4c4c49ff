#include "train/cost/cost_labels.h"

#include <math.h>
#include <string.h>

#include "base/statistics.h"

/* ---- drawing ---- */

enum { NUM_PARTS = 3, MOST_VISITS = 3 };
#define MOST_DISTURBANCE .5
#define MOST_DIFFERENCE .15 /* of two visits of a set, as a share, that need no third one */

/* Sets that are drawn, and their times. */
struct sets {
    struct ph__cost_measure *measure;
    const struct ph__cost_table *tables[NUM_PARTS]; /* to train on, to validate by, to test by */
    size_t num_tables[NUM_PARTS], count;
    uint64_t seed;
    double (*ms)[MOST_VISITS]; /* (count); NaN: not measured, or disturbed too much */
};

/* Takes parts in turn, so that all of them meet the same disturbances. */
static size_t part_of_set(size_t index)
{
    const size_t turn = index % 10;
    return turn < 8 ? 0 : turn - 7;
}

static size_t draw_set(const struct sets *sets, size_t index, struct ph__cost_table set_out[])
{
    struct ph__rng_sequence rng = {.key = {sets->seed, index, ph__hash_name("cost.set")}};
    const size_t part = part_of_set(index), count = 1 + (size_t)ph__rng_below(&rng, PH_COST_MOST_TABLES);
    for (size_t i = 0; i < count; i++) {
        set_out[i] = sets->tables[part][ph__rng_below(&rng, sets->num_tables[part])];
        set_out[i].dim = ph__cost_dims[ph__rng_below(&rng, PH_COST_NUM_DIMS)];
    }
    return count;
}

/* ---- visits ---- */

static double difference(const double ms[MOST_VISITS])
{
    return fabs(ms[0] - ms[1]) / (.5 * (ms[0] + ms[1]));
}

static ph_status visit_set(struct sets *sets, size_t index, size_t visit)
{
    struct ph__cost_table set[PH_COST_MOST_TABLES];
    double ms, disturbance;
    const size_t count = draw_set(sets, index, set);
    PH_TRY(ph__cost_measure_set(sets->measure, set, count, sets->seed + index, &ms, &disturbance));
    sets->ms[index][visit] = disturbance <= MOST_DISTURBANCE ? ms : NAN;
    return PH_OK;
}

/* Measures all sets, then all of them again, then those that differed. */
static ph_status visit_all(
    struct sets *sets, ph__cost_progress progress, void *context, struct ph__cost_labels *labels)
{
    for (size_t visit = 0; visit < 2; visit++)
        for (size_t i = 0; i < sets->count; i++) {
            PH_TRY(visit_set(sets, i, visit));
            if (progress != NULL)
                progress(context, (visit * sets->count + i + 1) / 2, sets->count);
        }
    for (size_t i = 0; i < sets->count; i++) {
        sets->ms[i][2] = NAN;
        if (difference(sets->ms[i]) <= MOST_DIFFERENCE)
            continue;
        PH_TRY(visit_set(sets, i, 2));
        labels->num_again++;
    }
    return PH_OK;
}

/* ---- labels ---- */

/* Gives the median of a set's visits; NaN where fewer than two were calm. */
static ph_status settle(const double ms[MOST_VISITS], double *ms_out)
{
    double calm[MOST_VISITS];
    size_t count = 0;
    for (size_t visit = 0; visit < MOST_VISITS; visit++)
        if (!isnan(ms[visit]))
            calm[count++] = ms[visit];
    *ms_out = NAN;
    return count < 2 ? PH_OK : ph__median(calm, count, ms_out);
}

static ph_status add_label(const struct sets *sets, size_t index, struct ph__cost_labels *labels)
{
    struct ph__cost_table set[PH_COST_MOST_TABLES];
    const size_t count = draw_set(sets, index, set);
    struct ph__cost_part *parts = ph__arena_alloc_array(&labels->arena, count, sizeof *parts);
    double *accesses = ph__arena_alloc_array(&labels->arena, count * PH_ACCESS_BINS, sizeof *accesses);
    double ms;
    if (parts == NULL || accesses == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(settle(sets->ms[index], &ms));
    if (isnan(ms)) {
        labels->num_dropped++;
        return PH_OK;
    }
    for (size_t i = 0; i < count; i++) {
        double *own = memcpy(accesses + i * PH_ACCESS_BINS, set[i].accesses, sizeof set[i].accesses);
        parts[i] = ph__cost_measure_part(sets->measure, &set[i], own);
    }
    labels->labels[labels->num_labels++] = (struct ph__cost_label){parts, count, ms};
    return PH_OK;
}

static ph_status add_labels(const struct sets *sets, struct ph__cost_labels *labels)
{
    size_t *counts[NUM_PARTS] = {
        &labels->counts.num_train, &labels->counts.num_valid, &labels->counts.num_test};
    labels->labels = ph__arena_alloc_array(&labels->arena, sets->count, sizeof *labels->labels);
    if (labels->labels == NULL)
        return PH_ERROR_MEMORY;
    for (size_t part = 0; part < NUM_PARTS; part++) {
        const size_t before = labels->num_labels;
        for (size_t i = 0; i < sets->count; i++)
            if (part_of_set(i) == part)
                PH_TRY(add_label(sets, i, labels));
        *counts[part] = labels->num_labels - before;
    }
    return PH_OK;
}

/* Returns how much two means of two visits differ: visits differ by root two times as much. */
static double repeat_error(const struct sets *sets)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < sets->count; i++)
        if (!isnan(sets->ms[i][0]) && !isnan(sets->ms[i][1])) {
            sum += difference(sets->ms[i]);
            count++;
        }
    return count > 0 ? sum / (double)count / sqrt(2) : 0;
}

ph_status ph__cost_labels_measure(struct ph__cost_measure *measure, const struct ph__cost_table *tables,
    const struct ph__cost_split *split, size_t num_sets, uint64_t seed, ph__cost_progress progress,
    void *context, struct ph__cost_labels *labels_out)
{
    const struct ph__cost_table *valid = tables + split->num_train, *test = valid + split->num_valid;
    struct sets sets = {measure, {tables, valid, test}, {split->num_train, split->num_valid, split->num_test},
        num_sets, seed, NULL};
    *labels_out = (struct ph__cost_labels){0};
    sets.ms = ph__arena_alloc_array(&labels_out->arena, num_sets, sizeof *sets.ms);
    if (sets.ms == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(visit_all(&sets, progress, context, labels_out));
    labels_out->repeat_error = repeat_error(&sets);
    return add_labels(&sets, labels_out);
}

void ph__cost_labels_fini(struct ph__cost_labels *labels)
{
    ph__arena_fini(&labels->arena);
    *labels = (struct ph__cost_labels){0};
}
