/* Whole passes over data, compared batch by batch. */
#ifndef PH_TEST_PASS_FIXTURE_H
#define PH_TEST_PASS_FIXTURE_H

#include "unit/data/data_fixture.h"

static inline void assert_same_numbers(const void *actual, const void *expected, size_t size)
{
    assert_int_equal(actual == NULL, expected == NULL);
    if (expected != NULL && size > 0)
        assert_memory_equal(actual, expected, size);
}

static inline void assert_same_batch(const struct ph_batch *actual, const struct ph_batch *expected)
{
    size_t num_samples = expected->num_samples;
    assert_int_equal(actual->num_samples, num_samples);
    assert_int_equal(actual->first_sample, expected->first_sample);
    assert_int_equal(actual->num_dense, expected->num_dense);
    assert_int_equal(actual->num_sparse, expected->num_sparse);
    assert_int_equal(actual->num_tasks, expected->num_tasks);
    assert_int_equal(actual->num_ids, expected->num_ids);
    size_t real = sizeof(ph_real), num_labels = num_samples * expected->num_tasks;
    assert_same_numbers(actual->dense, expected->dense, num_samples * expected->num_dense * real);
    assert_same_numbers(actual->labels, expected->labels, num_labels * real);
    assert_same_numbers(actual->label_mask, expected->label_mask, num_labels * real);
    assert_same_numbers(actual->weights, expected->weights, num_samples * real);
    assert_same_numbers(
        actual->lengths, expected->lengths, num_samples * expected->num_sparse * sizeof(int32_t));
    assert_same_numbers(actual->ids, expected->ids, expected->num_ids * sizeof(int64_t));
    assert_same_numbers(actual->id_weights, expected->id_weights, expected->num_ids * real);
    assert_same_numbers(actual->groups, expected->groups, num_samples * sizeof(int64_t));
}

/* Goes through both to their ends, which must be the same, and closes them. Returns the number of samples. */
static inline size_t assert_same_pass(struct ph_batches *actual, struct ph_batches *expected)
{
    size_t num_samples = 0;
    for (;;) {
        const struct ph_batch *batch = fixture_next(actual), *wanted = fixture_next(expected);
        assert_int_equal(batch == NULL, wanted == NULL);
        if (wanted == NULL)
            break;
        assert_same_batch(batch, wanted);
        num_samples += wanted->num_samples;
    }
    ph_batches_close(actual);
    ph_batches_close(expected);
    return num_samples;
}

#endif
