/* Cut batches, against their samples taken one by one. */
#include "train/loop/micro_batch.h"

#include <stdlib.h>

#include "base/sizes.h"
#include "support/test_support.h"

enum { DENSE = 2, SPARSE = 3, TASKS = 2, MOST_SAMPLES = 23, MOST_IDS = 3 * SPARSE * MOST_SAMPLES };

/* A rank's samples of a global batch; every number says of which sample it is. */
struct samples {
    struct ph_batch batch;
    ph_real dense[DENSE * MOST_SAMPLES], labels[TASKS * MOST_SAMPLES], mask[TASKS * MOST_SAMPLES],
        weights[MOST_SAMPLES], id_weights[MOST_IDS];
    int64_t groups[MOST_SAMPLES], ids[MOST_IDS];
    int32_t lengths[SPARSE * MOST_SAMPLES];
    uint32_t offsets[SPARSE * MOST_SAMPLES + 1];
};

static size_t length_of(size_t sample, size_t feature)
{
    return (sample + 2 * feature) % 4;
}

static int64_t id_of(size_t sample, size_t feature, size_t i)
{
    return (int64_t)(1000 * sample + 10 * feature + i);
}

static void make_bags(struct samples *samples, size_t first, size_t count)
{
    size_t num_ids = 0;
    for (size_t f = 0; f < SPARSE; f++)
        for (size_t b = 0; b < count; b++) {
            samples->lengths[f * count + b] = (int32_t)length_of(first + b, f);
            samples->offsets[f * count + b] = (uint32_t)num_ids;
            for (size_t i = 0; i < length_of(first + b, f); i++, num_ids++) {
                samples->ids[num_ids] = id_of(first + b, f, i);
                samples->id_weights[num_ids] = (ph_real)id_of(first + b, f, i) / 2;
            }
        }
    samples->offsets[SPARSE * count] = (uint32_t)num_ids;
    samples->batch.num_ids = num_ids;
}

static void make_samples(struct samples *samples, size_t first, size_t last, size_t num_global)
{
    const size_t count = last - first;
    samples->batch = (struct ph_batch){.num_samples = count,
        .num_dense = DENSE,
        .num_sparse = SPARSE,
        .num_tasks = TASKS,
        .first_sample = 100 + first,
        .num_global_samples = num_global,
        .dense = samples->dense,
        .labels = samples->labels,
        .label_mask = samples->mask,
        .weights = samples->weights,
        .lengths = samples->lengths,
        .offsets = samples->offsets,
        .ids = samples->ids,
        .id_weights = samples->id_weights,
        .groups = samples->groups};
    for (size_t b = 0; b < count; b++) {
        samples->weights[b] = (ph_real)(first + b) + (ph_real).5;
        samples->groups[b] = (int64_t)(first + b);
        for (size_t k = 0; k < DENSE; k++)
            samples->dense[b * DENSE + k] = (ph_real)(10 * (first + b) + k);
        for (size_t t = 0; t < TASKS; t++) {
            samples->labels[b * TASKS + t] = (ph_real)((first + b + t) % 2);
            samples->mask[b * TASKS + t] = (first + b + t) % 3 != 0;
        }
    }
    make_bags(samples, first, count);
}

static void check_sample(const struct ph_batch *batch, size_t b, size_t sample)
{
    assert_int_equal(batch->first_sample + b, 100 + sample);
    assert_int_equal(batch->groups[b], sample);
    assert_true(batch->weights[b] == (ph_real)sample + (ph_real).5);
    for (size_t k = 0; k < DENSE; k++)
        assert_true(batch->dense[b * DENSE + k] == (ph_real)(10 * sample + k));
    for (size_t t = 0; t < TASKS; t++) {
        assert_true(batch->labels[b * TASKS + t] == (ph_real)((sample + t) % 2));
        assert_true(batch->label_mask[b * TASKS + t] == ((sample + t) % 3 != 0));
    }
    for (size_t f = 0; f < SPARSE; f++) {
        const uint32_t *offsets = batch->offsets + f * batch->num_samples + b;
        assert_int_equal(offsets[1] - offsets[0], length_of(sample, f));
        assert_int_equal(batch->lengths[f * batch->num_samples + b], length_of(sample, f));
        for (size_t i = 0; i < length_of(sample, f); i++) {
            assert_int_equal(batch->ids[offsets[0] + i], id_of(sample, f, i));
            assert_true(batch->id_weights[offsets[0] + i] == (ph_real)id_of(sample, f, i) / 2);
        }
    }
}

/* All parts of a rank's samples are all of them, each as large as that of a batch of the part's size. */
static void check_rank(size_t num_global, size_t world_size, size_t rank, size_t wanted)
{
    struct samples samples;
    struct ph__micro_batch micro = {0};
    const size_t first = ph__range_start(num_global, rank, world_size);
    const size_t last = ph__range_start(num_global, rank + 1, world_size);
    size_t next = first, sum = 0;
    make_samples(&samples, first, last, num_global);
    const size_t count = ph__micro_batch_count(&samples.batch, world_size, wanted);
    assert_true(count >= 1 && count <= wanted);
    for (size_t i = 0; i < count; i++) {
        assert_ok(ph__micro_batch_cut(&micro, &samples.batch, world_size, i, count));
        const size_t global = micro.batch.num_global_samples;
        assert_int_equal(micro.batch.num_samples,
            ph__range_start(global, rank + 1, world_size) - ph__range_start(global, rank, world_size));
        assert_true(
            micro.batch.num_samples <= ph__micro_batch_most_samples(last - first, world_size, wanted));
        assert_true(num_global < world_size || micro.batch.num_samples > 0);
        for (size_t b = 0; b < micro.batch.num_samples; b++)
            check_sample(&micro.batch, b, next++);
        sum += global;
    }
    assert_int_equal(next, last);
    assert_int_equal(sum, num_global);
    ph__micro_batch_fini(&micro);
}

static void parts_are_what_ranks_have_of_smaller_batches(void **state)
{
    (void)state;
    for (size_t num_global = 1; num_global <= MOST_SAMPLES; num_global++)
        for (size_t world_size = 1; world_size <= 4; world_size++)
            for (size_t wanted = 1; wanted <= 9; wanted++)
                for (size_t rank = 0; rank < world_size; rank++)
                    check_rank(num_global, world_size, rank, wanted);
}

static void arrays_that_a_batch_lacks_stay_away(void **state)
{
    (void)state;
    const ph_real labels[] = {0, 1, 1, 0};
    const uint32_t offsets[] = {0};
    const struct ph_batch batch = {.num_samples = 4, .num_tasks = 1, .labels = labels, .offsets = offsets};
    struct ph__micro_batch micro = {0};
    assert_ok(ph__micro_batch_cut(&micro, &batch, 1, 1, 2));
    assert_int_equal(micro.batch.num_samples, 2);
    assert_int_equal(micro.batch.num_global_samples, 0);
    assert_ptr_equal(micro.batch.labels, labels + 2);
    assert_null(micro.batch.dense);
    assert_null(micro.batch.label_mask);
    assert_null(micro.batch.weights);
    assert_null(micro.batch.id_weights);
    assert_null(micro.batch.groups);
    ph__micro_batch_fini(&micro);
}

static void a_batch_weighs_what_is_known_of_it(void **state)
{
    (void)state;
    const ph_real labels[] = {0, 1, 1, 0, 0, 1}, mask[] = {1, 1, 0, 1, 0, 0}, weights[] = {2, .5, 8};
    const ph_real teacher_mask[] = {0, 1, 1, 1, 1, 0};
    struct ph_batch batch = {.num_samples = 3, .num_tasks = 2, .labels = labels};
    assert_true(ph__batch_weight(&batch, PH_KNOWN_LABEL) == 6);
    assert_true(ph__batch_weight(&batch, PH_KNOWN_BOTH) == 6);
    batch.label_mask = mask;
    assert_true(ph__batch_weight(&batch, PH_KNOWN_LABEL) == 3);
    assert_true(ph__batch_weight(&batch, PH_KNOWN_TEACHER) == 6);
    batch.teacher_mask = teacher_mask;
    assert_true(ph__batch_weight(&batch, PH_KNOWN_LABEL) == 3);
    assert_true(ph__batch_weight(&batch, PH_KNOWN_TEACHER) == 4);
    assert_true(ph__batch_weight(&batch, PH_KNOWN_BOTH) == 2);
    batch.weights = weights;
    assert_true(ph__batch_weight(&batch, PH_KNOWN_LABEL) == 4.5);
    assert_true(ph__batch_weight(&batch, PH_KNOWN_TEACHER) == 11);
    assert_true(ph__batch_weight(&batch, PH_KNOWN_BOTH) == 2.5);
    batch.label_mask = NULL;
    assert_true(ph__batch_weight(&batch, PH_KNOWN_LABEL) == 21);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_what_ranks_have_of_smaller_batches),
        cmocka_unit_test(arrays_that_a_batch_lacks_stay_away),
        cmocka_unit_test(a_batch_weighs_what_is_known_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
