/* What the tests of preparing share: a CSV file with every kind of column, its encoder, and the prepared
 * folder. */
#ifndef PH_TEST_PREPARE_FIXTURE_H
#define PH_TEST_PREPARE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/rng.h"
#include "unit/data/data_fixture.h"

#define PREPARE_ROWS 3000
#define PREPARE_PART_BYTES 8192

/* label, a count, a row number that no other row of PREPARE_ROWS has, ids of two lists (the second weighted),
 * a weight, a user. */
static inline void prepare_write_row(struct ph__writer *writer, struct ph__rng_sequence *rng, size_t row)
{
    assert_ok(ph__writer_printf(writer, "%d,%s,%zu,", (int)ph__rng_below(rng, 2),
        ph__rng_below(rng, 5) == 0 ? "" : "3.25", row % PREPARE_ROWS));
    for (uint64_t i = ph__rng_below(rng, 5); i > 0; i--)
        assert_ok(ph__writer_printf(writer, "w%d%s", (int)ph__rng_below(rng, 90), i > 1 ? "|" : ""));
    assert_ok(ph__writer_printf(writer, ","));
    for (uint64_t i = ph__rng_below(rng, 4); i > 0; i--)
        assert_ok(ph__writer_printf(
            writer, "%d:%d.5%s", (int)ph__rng_below(rng, 20), (int)ph__rng_below(rng, 9), i > 1 ? "|" : ""));
    assert_ok(
        ph__writer_printf(writer, ",%d,u%d\n", (int)ph__rng_below(rng, 3), (int)ph__rng_below(rng, 40)));
}

/* Rows of a file whose name may end in .gz or .zst. */
static inline const char *prepare_file(const char *name, size_t num_rows, uint64_t seed)
{
    const char *path = test_path(name);
    struct ph__writer *writer;
    struct ph__rng_sequence rng = {.key.seed = seed};
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__writer_printf(writer, "label,count,row,words,scores,weight,user\n"));
    for (size_t row = 0; row < num_rows; row++)
        prepare_write_row(writer, &rng, row);
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static inline void prepare_fixture_init(struct fixture *fixture, const char *train)
{
    fixture_init(fixture, train);
    fixture->settings.reading.shuffle_bytes = 1 << 25;
    fixture_field(fixture, "label", PH_FIELD_LABEL);
    fixture_field(fixture, "count", PH_FIELD_DENSE)->transform = PH_TRANSFORM_LOG1P;
    struct ph__field_settings *row = fixture_field(fixture, "row", PH_FIELD_ID);
    row->encoding = PH_ENCODING_RAW;
    row->rows = PREPARE_ROWS;
    fixture_field(fixture, "words", PH_FIELD_ID)->is_list = true;
    struct ph__field_settings *scores = fixture_field(fixture, "scores", PH_FIELD_ID);
    scores->encoding = PH_ENCODING_HASH;
    scores->rows = 50;
    scores->is_list = scores->is_weighted = true;
    fixture_field(fixture, "weight", PH_FIELD_WEIGHT);
    fixture_field(fixture, "user", PH_FIELD_ID)->is_group = true;
}

static char prepare_first_bad_row[512]; /* of the latest preparation by prepare_into */

/* Prepares into a folder of that name, which is missing or may be gone on with. */
static inline ph_status prepare_into(
    const struct fixture *fixture, const char *name, size_t num_threads, struct ph_prepare_summary *summary)
{
    const struct ph_prepare_options options = {.size = sizeof options,
        .num_threads = num_threads,
        .settings.part_bytes = PREPARE_PART_BYTES,
        .may_resume = true,
        .first_bad_row = {prepare_first_bad_row, sizeof prepare_first_bad_row}};
    return ph_prepare(&fixture->settings, test_path(name), &options, summary);
}

static inline struct ph_encoder *prepare_encoder(const char *folder_name)
{
    char path[4096];
    struct ph_encoder *encoder = NULL;
    snprintf(path, sizeof path, "%s/%s/encoder.json", test_folder(), folder_name);
    assert_ok(ph_encoder_load(path, &encoder));
    return encoder;
}

/* Whether two batches hold the same samples. */
static inline void assert_batches_equal(const struct ph_batch *one, const struct ph_batch *other)
{
    assert_int_equal(one->num_samples, other->num_samples);
    assert_int_equal(one->num_ids, other->num_ids);
    assert_int_equal(one->first_sample, other->first_sample);
    size_t num_samples = one->num_samples, num_bags = num_samples * one->num_sparse;
    assert_memory_equal(one->labels, other->labels, num_samples * one->num_tasks * sizeof *one->labels);
    assert_memory_equal(one->dense, other->dense, num_samples * one->num_dense * sizeof *one->dense);
    assert_memory_equal(one->weights, other->weights, num_samples * sizeof *one->weights);
    assert_memory_equal(one->groups, other->groups, num_samples * sizeof *one->groups);
    assert_memory_equal(one->lengths, other->lengths, num_bags * sizeof *one->lengths);
    assert_memory_equal(one->ids, other->ids, one->num_ids * sizeof *one->ids);
    assert_memory_equal(one->id_weights, other->id_weights, one->num_ids * sizeof *one->id_weights);
}

/* Both passes give the same batches, to their ends. */
static inline void assert_passes_equal(struct ph_batches *one, struct ph_batches *other)
{
    const struct ph_batch *batch;
    while ((batch = fixture_next(one)) != NULL) {
        const struct ph_batch *wanted = fixture_next(other);
        assert_non_null(wanted);
        assert_batches_equal(batch, wanted);
    }
    assert_null(fixture_next(other));
    ph_batches_close(one);
    ph_batches_close(other);
}

#endif
