/* What several ranks read of one pass, compared with what one rank reads of it. */
#ifndef PH_TEST_RANKS_FIXTURE_H
#define PH_TEST_RANKS_FIXTURE_H

#include "data/batch/batches.h"
#include "unit/data/data_fixture.h"

#define MAX_RANKS 9

/* Rows that can be opened as often as one likes. */
struct rank_data {
    const struct ph_encoder *encoder;
    const char *path;
    const struct ph_dataset *dataset; /* NULL, or in the place of the path */
};

static inline struct ph_batches *ranks_open_one(
    const struct rank_data *data, const struct ph_batches_options *options, size_t rank, size_t world_size)
{
    struct ph_batches *batches = NULL;
    struct ph_batches_options own = *options;
    own.rank = rank;
    own.world_size = world_size;
    own.reading.num_prefetched = rank % 3;
    if (data->dataset != NULL)
        assert_ok(ph_dataset_batches_open(data->dataset, data->encoder, &own, &batches));
    else
        assert_ok(ph_batches_open(data->encoder, data->path, &own, &batches));
    return batches;
}

static inline void assert_same_bag(
    const struct ph_batch *part, size_t b, const struct ph_batch *whole, size_t at, size_t feature)
{
    size_t bag = feature * part->num_samples + b, wanted = feature * whole->num_samples + at;
    size_t length = (size_t)whole->lengths[wanted];
    const uint32_t ours = part->offsets[bag], theirs = whole->offsets[wanted];
    assert_int_equal(part->lengths[bag], length);
    assert_int_equal(part->offsets[bag + 1] - ours, length);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(part->ids[ours + i], whole->ids[theirs + i]);
        if (whole->id_weights != NULL)
            assert_true(part->id_weights[ours + i] == whole->id_weights[theirs + i]);
    }
}

/* Sample b of the part is sample `at` of the whole batch. */
static inline void assert_same_sample(
    const struct ph_batch *part, size_t b, const struct ph_batch *whole, size_t at)
{
    const size_t num_tasks = whole->num_tasks, num_dense = whole->num_dense;
    for (size_t t = 0; t < num_tasks; t++) {
        const size_t ours = b * num_tasks + t, theirs = at * num_tasks + t;
        assert_true(part->labels[ours] == whole->labels[theirs]);
        assert_true((part->label_mask == NULL || part->label_mask[ours] == 1) ==
                    (whole->label_mask == NULL || whole->label_mask[theirs] == 1));
    }
    for (size_t i = 0; i < num_dense; i++)
        assert_true(part->dense[b * num_dense + i] == whole->dense[at * num_dense + i]);
    assert_true(whole->weights == NULL || part->weights[b] == whole->weights[at]);
    assert_true(whole->groups == NULL || part->groups[b] == whole->groups[at]);
    for (size_t feature = 0; feature < whole->num_sparse; feature++)
        assert_same_bag(part, b, whole, at, feature);
}

static inline void assert_part_of(
    const struct ph_batch *part, size_t rank, size_t world_size, const struct ph_batch *whole)
{
    const size_t n = whole->num_samples, first = n * rank / world_size, end = n * (rank + 1) / world_size;
    assert_int_equal(part->num_samples, end - first);
    assert_int_equal(part->num_global_samples, n);
    assert_int_equal(part->first_sample, whole->first_sample + first);
    assert_int_equal(part->num_tasks, whole->num_tasks);
    assert_int_equal(part->num_dense, whole->num_dense);
    assert_int_equal(part->num_sparse, whole->num_sparse);
    assert_int_equal(part->num_ids, part->offsets[part->num_samples * part->num_sparse]);
    assert_true(part->dense != NULL && part->labels != NULL && part->offsets != NULL && part->ids != NULL);
    assert_int_equal(part->lengths == NULL, whole->lengths == NULL);
    assert_int_equal(part->id_weights == NULL, whole->id_weights == NULL);
    assert_int_equal(part->weights == NULL, whole->weights == NULL);
    assert_int_equal(part->groups == NULL, whole->groups == NULL);
    for (size_t b = 0; b < part->num_samples; b++)
        assert_same_sample(part, b, whole, first + b);
}

static inline void assert_same_place(const struct ph_batches *part, const struct ph_batches *whole)
{
    struct ph_position ours, theirs;
    ph_batches_position(part, &ours);
    ph_batches_position(whole, &theirs);
    assert_memory_equal(&ours, &theirs, sizeof ours);
    assert_int_equal(ph_batches_num_bad_rows(part), ph_batches_num_bad_rows(whole));
}

/* The batches of so many ranks are the parts of one rank's, to the end; returns how many there were. */
static inline size_t assert_ranks_share(
    const struct rank_data *data, const struct ph_batches_options *options, size_t world_size)
{
    struct ph_batches *whole = ranks_open_one(data, options, 0, 0), *parts[MAX_RANKS];
    const struct ph_batch *batch;
    size_t num_batches = 0;
    for (size_t rank = 0; rank < world_size; rank++)
        parts[rank] = ranks_open_one(data, options, rank, world_size);
    do {
        batch = fixture_next(whole);
        for (size_t rank = 0; rank < world_size; rank++) {
            const struct ph_batch *part = fixture_next(parts[rank]);
            assert_int_equal(part == NULL, batch == NULL);
            if (batch != NULL)
                assert_part_of(part, rank, world_size, batch);
            assert_same_place(parts[rank], whole);
            assert_string_equal(ph_batches_first_bad_row(parts[rank]), ph_batches_first_bad_row(whole));
        }
        num_batches += batch != NULL;
    } while (batch != NULL);
    for (size_t rank = 0; rank < world_size; rank++)
        ph_batches_close(parts[rank]);
    ph_batches_close(whole);
    return num_batches;
}

/* A pass of one rank, left behind each batch, goes on at so many ranks, and what they leave at one. */
static inline void assert_ranks_go_on(
    const struct rank_data *data, const struct ph_batches_options *options, size_t world_size)
{
    struct ph_batches *whole = ranks_open_one(data, options, 0, 0);
    struct ph_position position = {{0}};
    struct ph_batches_options resumed = *options;
    const struct ph_batch *batch;
    resumed.start = &position;
    do {
        batch = fixture_next(whole);
        for (size_t rank = 0; rank < world_size; rank++) {
            struct ph_batches *batches = ranks_open_one(data, &resumed, rank, world_size);
            const struct ph_batch *part = fixture_next(batches);
            assert_int_equal(part == NULL, batch == NULL);
            if (batch != NULL)
                assert_part_of(part, rank, world_size, batch);
            assert_same_place(batches, whole);
            ph_batches_close(batches);
        }
        ph_batches_position(whole, &position);
    } while (batch != NULL);
    ph_batches_close(whole);
}

#endif
