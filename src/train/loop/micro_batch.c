#include "train/loop/micro_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

void ph__micro_batch_fini(struct ph__micro_batch *micro)
{
    free(micro->lengths);
    free(micro->offsets);
    free(micro->ids);
    free(micro->id_weights);
    *micro = (struct ph__micro_batch){0};
}

/* ---- sizes ---- */

static size_t global_samples(const struct ph_batch *batch)
{
    return batch->num_global_samples > 0 ? batch->num_global_samples : batch->num_samples;
}

size_t ph__micro_batch_count(const struct ph_batch *whole, size_t world_size, size_t wanted)
{
    return ph__max(1, ph__min(wanted, global_samples(whole) / world_size));
}

size_t ph__micro_batch_most_samples(size_t num_samples, size_t world_size, size_t wanted)
{
    const size_t most = (num_samples + wanted - 1) / wanted + (world_size > 1 && wanted > 1);
    return ph__min(most, num_samples);
}

/* ---- cutting ---- */

static ph_status reserve(
    struct ph__micro_batch *micro, const struct ph_batch *whole, size_t num_bags, size_t num_ids)
{
    PH_TRY(ph__array_reserve(
        (void **)&micro->lengths, &micro->lengths_capacity, num_bags + 1, sizeof *micro->lengths));
    PH_TRY(ph__array_reserve(
        (void **)&micro->offsets, &micro->offsets_capacity, num_bags + 1, sizeof *micro->offsets));
    PH_TRY(ph__array_reserve((void **)&micro->ids, &micro->ids_capacity, num_ids + 1, sizeof *micro->ids));
    return whole->id_weights != NULL ? ph__array_reserve((void **)&micro->id_weights,
                                           &micro->weights_capacity, num_ids + 1, sizeof *micro->id_weights)
                                     : PH_OK;
}

static size_t count_ids(const struct ph_batch *whole, size_t first, size_t last)
{
    size_t num_ids = 0;
    for (size_t f = 0; f < whole->num_sparse; f++) {
        const uint32_t *offsets = whole->offsets + f * whole->num_samples;
        num_ids += offsets[last] - offsets[first];
    }
    return num_ids;
}

/* Copies the bags of a feature behind the num_ids ids so far; returns the ids after them. */
static size_t cut_feature(struct ph__micro_batch *micro, const struct ph_batch *whole, size_t feature,
    size_t first, size_t last, size_t num_ids)
{
    const uint32_t *from = whole->offsets + feature * whole->num_samples + first;
    uint32_t *offsets = micro->offsets + feature * (last - first);
    int32_t *lengths = micro->lengths + feature * (last - first);
    const size_t count = from[last - first] - from[0];
    for (size_t b = 0; b < last - first; b++) {
        offsets[b] = (uint32_t)(num_ids + from[b] - from[0]);
        lengths[b] = (int32_t)(from[b + 1] - from[b]);
    }
    memcpy(micro->ids + num_ids, whole->ids + from[0], count * sizeof *micro->ids);
    if (whole->id_weights != NULL)
        memcpy(micro->id_weights + num_ids, whole->id_weights + from[0], count * sizeof *micro->id_weights);
    return num_ids + count;
}

static ph_status cut_ids(
    struct ph__micro_batch *micro, const struct ph_batch *whole, size_t first, size_t last)
{
    const size_t num_bags = whole->num_sparse * (last - first);
    PH_TRY(reserve(micro, whole, num_bags, count_ids(whole, first, last)));
    size_t num_ids = 0;
    for (size_t f = 0; f < whole->num_sparse; f++)
        num_ids = cut_feature(micro, whole, f, first, last, num_ids);
    micro->offsets[num_bags] = (uint32_t)num_ids;
    micro->batch.num_ids = num_ids;
    micro->batch.lengths = micro->lengths;
    micro->batch.offsets = micro->offsets;
    micro->batch.ids = micro->ids;
    micro->batch.id_weights = whole->id_weights != NULL ? micro->id_weights : NULL;
    return PH_OK;
}

static const ph_real *rows_from(const ph_real *rows, size_t first, size_t columns)
{
    return rows != NULL ? rows + first * columns : NULL;
}

ph_status ph__micro_batch_cut(struct ph__micro_batch *micro, const struct ph_batch *whole, size_t world_size,
    size_t number, size_t count)
{
    const size_t num_global = global_samples(whole), each = num_global / world_size;
    const bool is_last = number + 1 == count;
    const size_t first = ph__range_start(each, number, count), end = ph__range_start(each, number + 1, count);
    const size_t last = is_last ? whole->num_samples : end;
    micro->batch = *whole;
    if (count == 1)
        return PH_OK;
    micro->batch.num_samples = last - first;
    micro->batch.first_sample = whole->first_sample + first;
    if (whole->num_global_samples > 0)
        micro->batch.num_global_samples =
            world_size * (end - first) + (is_last ? num_global % world_size : 0);
    micro->batch.dense = rows_from(whole->dense, first, whole->num_dense);
    micro->batch.labels = rows_from(whole->labels, first, whole->num_tasks);
    micro->batch.label_mask = rows_from(whole->label_mask, first, whole->num_tasks);
    micro->batch.teacher = rows_from(whole->teacher, first, whole->num_tasks);
    micro->batch.teacher_mask = rows_from(whole->teacher_mask, first, whole->num_tasks);
    micro->batch.weights = rows_from(whole->weights, first, 1);
    micro->batch.groups = whole->groups != NULL ? whole->groups + first : NULL;
    return cut_ids(micro, whole, first, last);
}

double ph__batch_weight(const struct ph_batch *batch, enum ph__known known)
{
    const ph_real *labels = known != PH_KNOWN_TEACHER ? batch->label_mask : NULL;
    const ph_real *teachers = known != PH_KNOWN_LABEL ? batch->teacher_mask : NULL;
    double sum = 0;
    for (size_t b = 0; b < batch->num_samples; b++)
        for (size_t t = 0; t < batch->num_tasks; t++) {
            const size_t i = b * batch->num_tasks + t;
            const ph_real mask = (labels != NULL ? labels[i] : 1) * (teachers != NULL ? teachers[i] : 1);
            sum += (double)(batch->weights != NULL ? mask * batch->weights[b] : mask);
        }
    return sum;
}
