#include "data/batch/batch_buffer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

#define ROWS_AT_ONCE 16
#define CACHE_LINE_WORDS 16

static ph_status reserve(
    struct ph__batch_buffer *buffer, const struct ph_encoder *encoder, size_t num_samples)
{
    size_t num_reals =
        num_samples * (encoder->num_dense + 2 * (encoder->num_tasks + encoder->num_teachers) + 1);
    size_t num_bags = num_samples * encoder->num_sparse;
    PH_TRY(ph__array_reserve(
        (void **)&buffer->reals, &buffer->reals_capacity, num_reals, sizeof *buffer->reals));
    PH_TRY(ph__array_reserve(
        (void **)&buffer->lengths, &buffer->lengths_capacity, num_bags, sizeof *buffer->lengths));
    PH_TRY(ph__array_reserve(
        (void **)&buffer->offsets, &buffer->offsets_capacity, num_bags + 1, sizeof *buffer->offsets));
    if (encoder->has_group)
        PH_TRY(ph__array_reserve(
            (void **)&buffer->groups, &buffer->groups_capacity, num_samples, sizeof *buffer->groups));
    return PH_OK;
}

/* A range of rows of one batch. */
struct run {
    const uint32_t *const *rows; /* (num_samples) all rows of the batch */
    size_t num_samples;
    size_t first, end;
};

/* Copies a row's labels, or its teachers, and marks those that are not blank. Returns true when one is. */
static bool fill_targets(const uint32_t *words, size_t count, ph_real *targets, ph_real *mask)
{
    bool has_blank = false;
    for (size_t t = 0; t < count; t++) {
        const float target = ph__word_as_float(words[t]);
        const bool is_known = !isnan(target);
        has_blank |= !is_known;
        targets[t] = is_known ? (ph_real)target : 0;
        mask[t] = is_known ? 1 : 0;
    }
    return has_blank;
}

/* The arrays of a buffer's reals, of B rows each. */
struct fixed {
    ph_real *dense, *labels, *label_mask, *teacher, *teacher_mask, *weights;
};

static struct fixed fixed_of(
    const struct ph__batch_buffer *buffer, const struct ph_encoder *encoder, size_t num_samples)
{
    struct fixed fixed = {.dense = buffer->reals};
    fixed.labels = fixed.dense + num_samples * encoder->num_dense;
    fixed.label_mask = fixed.labels + num_samples * encoder->num_tasks;
    fixed.teacher = fixed.label_mask + num_samples * encoder->num_tasks;
    fixed.teacher_mask = fixed.teacher + num_samples * encoder->num_teachers;
    fixed.weights = fixed.teacher_mask + num_samples * encoder->num_teachers;
    return fixed;
}

/* Blanks that rows have. */
struct blanks {
    bool has_label, has_teacher;
};

/* Fills labels, teachers, their masks, dense features, weights and groups. */
static void fill_fixed(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder,
    const struct run *run, struct blanks *blanks)
{
    const size_t num_tasks = encoder->num_tasks, num_dense = encoder->num_dense;
    const struct fixed fixed = fixed_of(buffer, encoder, run->num_samples);
    for (size_t b = run->first; b < run->end; b++) {
        const uint32_t *row = run->rows[b];
        blanks->has_label |=
            fill_targets(row, num_tasks, fixed.labels + b * num_tasks, fixed.label_mask + b * num_tasks);
        if (encoder->num_teachers > 0)
            blanks->has_teacher |= fill_targets(row + num_tasks, num_tasks, fixed.teacher + b * num_tasks,
                fixed.teacher_mask + b * num_tasks);
        for (size_t i = 0; i < num_dense; i++)
            fixed.dense[b * num_dense + i] = (ph_real)ph__word_as_float(row[encoder->dense_word + i]);
        if (encoder->has_weight)
            fixed.weights[b] = (ph_real)ph__word_as_float(row[encoder->weight_word]);
        if (encoder->has_group)
            buffer->groups[b] =
                (int64_t)((uint64_t)row[encoder->group_word + 1] << 32 | row[encoder->group_word]);
    }
}

/* Puts the arrays into the batch; a mask that is all 1 is left out. */
static void place_fixed(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder, size_t num_samples,
    const struct blanks *blanks)
{
    const struct fixed fixed = fixed_of(buffer, encoder, num_samples);
    struct ph_batch *batch = &buffer->batch;
    batch->dense = fixed.dense;
    batch->labels = fixed.labels;
    batch->label_mask = blanks->has_label ? fixed.label_mask : NULL;
    batch->teacher = encoder->num_teachers > 0 ? fixed.teacher : NULL;
    batch->teacher_mask = blanks->has_teacher ? fixed.teacher_mask : NULL;
    batch->weights = encoder->has_weight ? fixed.weights : NULL;
    batch->groups = encoder->has_group ? buffer->groups : NULL;
}

/* Fills lengths (F,B) and offsets (F*B + 1), the running sum of lengths. */
static ph_status fill_lengths(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder,
    const uint32_t *const *rows, size_t num_samples)
{
    size_t num_bags = num_samples * encoder->num_sparse;
    if (encoder->num_lists == 0 && buffer->num_single_bags == num_bags && num_bags > 0)
        return PH_OK; /* still right from the previous batch */
    buffer->num_single_bags = encoder->num_lists == 0 ? num_bags : 0;
    for (size_t i = 0; i < num_bags; i++)
        buffer->lengths[i] = 1;
    for (size_t l = 0; l < encoder->num_lists; l++) {
        size_t f = encoder->lists[l];
        for (size_t b = 0; b < num_samples; b++)
            buffer->lengths[f * num_samples + b] = (int32_t)rows[b][encoder->sparse_word + f];
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < num_bags; i++) {
        buffer->offsets[i] = (uint32_t)sum;
        sum += (uint64_t)buffer->lengths[i];
    }
    if (sum > UINT32_MAX)
        return ph_fail(
            PH_ERROR_DATA, "a batch of %zu rows has %" PRIu64 " ids, more than 2^32", num_samples, sum);
    buffer->offsets[num_bags] = (uint32_t)sum;
    return PH_OK;
}

/* Copies the lists of row b, whose words begin at `list`. */
static void fill_lists(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder, size_t num_samples,
    size_t b, const uint32_t *list)
{
    for (size_t l = 0; l < encoder->num_lists; l++) {
        size_t f = encoder->lists[l], bag = f * num_samples + b;
        size_t count = (size_t)buffer->lengths[bag];
        int64_t *ids = buffer->ids + buffer->offsets[bag];
        for (size_t i = 0; i < count; i++)
            ids[i] = *list++;
        if (!encoder->sparse_columns[f]->is_weighted)
            continue;
        ph_real *weights = buffer->id_weights + buffer->offsets[bag];
        for (size_t i = 0; i < count; i++)
            weights[i] = (ph_real)ph__word_as_float(*list++);
    }
}

/* Copies the ids when every feature has exactly one. */
static void fill_single_ids(
    struct ph__batch_buffer *buffer, const struct ph_encoder *encoder, const struct run *run)
{
    for (size_t f = 0; f < encoder->num_sparse; f++)
        for (size_t b = run->first; b < run->end; b++)
            buffer->ids[f * run->num_samples + b] = run->rows[b][encoder->sparse_word + f];
}

static void fill_ids(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder, const struct run *run)
{
    size_t num_samples = run->num_samples;
    if (encoder->num_lists == 0) {
        fill_single_ids(buffer, encoder, run);
        return;
    }
    for (size_t b = run->first; b < run->end; b++) {
        const uint32_t *sparse = run->rows[b] + encoder->sparse_word;
        /* A list's word is the list's length. fill_lists overwrites it with the first id; an empty list has
         * no place here. */
        for (size_t f = 0; f < encoder->num_sparse; f++)
            if (buffer->lengths[f * num_samples + b] != 0)
                buffer->ids[buffer->offsets[f * num_samples + b]] = sparse[f];
        fill_lists(buffer, encoder, num_samples, b, run->rows[b] + encoder->num_fixed_words);
    }
}

/* Prefetches the rows of the next run while this one is filled: rows of a permuted window lie far apart. */
static void fetch_next(const struct ph_encoder *encoder, const struct run *run)
{
    size_t end = run->end + ROWS_AT_ONCE < run->num_samples ? run->end + ROWS_AT_ONCE : run->num_samples;
    for (size_t b = run->end; b < end; b++)
        for (size_t word = 0; word < encoder->num_fixed_words; word += CACHE_LINE_WORDS)
            __builtin_prefetch(run->rows[b] + word);
}

/* Fills a few rows at a time, so that each row is read once and ids are written by whole cache lines. The
 * columns of a batch usually lie a power of two apart, and would evict each other from the cache. */
static void fill_rows(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder,
    const uint32_t *const *rows, size_t num_samples)
{
    struct blanks blanks = {0};
    for (size_t i = 0; encoder->has_id_weights && i < buffer->batch.num_ids; i++)
        buffer->id_weights[i] = 1;
    for (size_t first = 0; first < num_samples; first += ROWS_AT_ONCE) {
        size_t end = first + ROWS_AT_ONCE < num_samples ? first + ROWS_AT_ONCE : num_samples;
        const struct run run = {.rows = rows, .num_samples = num_samples, .first = first, .end = end};
        fetch_next(encoder, &run);
        fill_fixed(buffer, encoder, &run, &blanks);
        fill_ids(buffer, encoder, &run);
    }
    place_fixed(buffer, encoder, num_samples, &blanks);
}

/* Reserves room for num_ids ids, at least one: a batch without ids has arrays, too. */
static ph_status reserve_ids(
    struct ph__batch_buffer *buffer, const struct ph_encoder *encoder, size_t num_ids)
{
    if (num_ids == 0)
        num_ids = 1;
    PH_TRY(ph__array_reserve((void **)&buffer->ids, &buffer->ids_capacity, num_ids, sizeof *buffer->ids));
    if (!encoder->has_id_weights)
        return PH_OK;
    return ph__array_reserve(
        (void **)&buffer->id_weights, &buffer->id_weights_capacity, num_ids, sizeof *buffer->id_weights);
}

ph_status ph__batch_buffer_fill(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder,
    const uint32_t *const *rows, size_t num_rows, uint64_t first_sample)
{
    PH_TRY(reserve(buffer, encoder, num_rows > 0 ? num_rows : 1));
    PH_TRY(fill_lengths(buffer, encoder, rows, num_rows));
    struct ph_batch *batch = &buffer->batch;
    batch->num_ids = buffer->offsets[num_rows * encoder->num_sparse];
    PH_TRY(reserve_ids(buffer, encoder, batch->num_ids));
    fill_rows(buffer, encoder, rows, num_rows);
    batch->num_samples = batch->num_global_samples = num_rows;
    batch->num_dense = encoder->num_dense;
    batch->num_sparse = encoder->num_sparse;
    batch->num_tasks = encoder->num_tasks;
    batch->first_sample = first_sample;
    batch->lengths = buffer->lengths;
    batch->offsets = buffer->offsets;
    batch->ids = buffer->ids;
    batch->id_weights = encoder->has_id_weights ? buffer->id_weights : NULL;
    return PH_OK;
}

void ph__batch_buffer_fini(struct ph__batch_buffer *buffer)
{
    free(buffer->reals);
    free(buffer->lengths);
    free(buffer->offsets);
    free(buffer->ids);
    free(buffer->id_weights);
    free(buffer->groups);
    memset(buffer, 0, sizeof *buffer);
}
