#include "support/fuzz_rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/option/option.h"

#define MAX_SAMPLES 4096 /* that are looked at: a few deflated bytes may stand for very many */

/* ---- what a batch promises ---- */

static void check_numbers(const float *numbers, size_t count, double min, double max)
{
    for (size_t i = 0; i < count; i++)
        fuzz_require((double)numbers[i] >= min && (double)numbers[i] <= max);
}

static void check_labels(const struct ph_batch *batch)
{
    for (size_t i = 0; i < batch->num_samples * batch->num_tasks; i++)
        fuzz_require(isnan(batch->labels[i]) || (batch->labels[i] >= 0 && batch->labels[i] <= 1));
}

/* The ids lie feature by feature, each feature's samples in order. */
void fuzz_check_ids(const struct ph_encoder *encoder, const struct ph_batch *batch)
{
    size_t next = 0;
    for (size_t f = 0; f < batch->num_sparse; f++) {
        const size_t num_rows = ph_encoder_sparse(encoder, f)->num_rows;
        for (size_t i = 0; i < batch->num_samples; i++) {
            const size_t bag = f * batch->num_samples + i;
            fuzz_require(batch->lengths[bag] >= 0 && batch->offsets[bag] == next);
            const size_t end = next + (size_t)batch->lengths[bag];
            fuzz_require(end <= batch->num_ids);
            for (; next < end; next++)
                fuzz_require((uint64_t)batch->ids[next] < num_rows);
        }
    }
    fuzz_require(next == batch->num_ids);
}

static void check_batch(
    const struct ph_encoder *encoder, const struct ph_batch *batch, const struct ph_batches_options *options)
{
    fuzz_require(batch->num_samples > 0 && batch->num_samples <= options->batch_size);
    fuzz_require(batch->num_dense == ph_encoder_num_dense(encoder));
    fuzz_require(batch->num_sparse == ph_encoder_num_sparse(encoder));
    check_numbers(batch->dense, batch->num_samples * batch->num_dense, -(double)FLT_MAX, (double)FLT_MAX);
    if (batch->weights != NULL)
        check_numbers(batch->weights, batch->num_samples, 0, (double)FLT_MAX);
    check_labels(batch);
    fuzz_check_ids(encoder, batch);
    const size_t num_weights = batch->id_weights != NULL ? batch->num_ids : 0;
    check_numbers(batch->id_weights, num_weights, -(double)FLT_MAX, (double)FLT_MAX);
}

void fuzz_check_batches(
    const struct ph_encoder *encoder, struct ph_batches *batches, const struct ph_batches_options *options)
{
    const struct ph_batch *batch = NULL;
    for (size_t num_samples = 0; num_samples < MAX_SAMPLES; num_samples += batch->num_samples) {
        if (ph_batches_next(batches, &batch) != PH_OK || batch == NULL)
            break;
        check_batch(encoder, batch, options);
    }
}

void fuzz_read_batches(
    const struct ph_encoder *encoder, const char *path, const struct ph_batches_options *options)
{
    struct ph_batches *batches = NULL;
    if (ph_batches_open(encoder, path, options, &batches) == PH_OK)
        fuzz_check_batches(encoder, batches, options);
    ph_batches_close(batches);
}

/* ---- schemas ---- */

const struct ph_data_settings *fuzz_settings(struct fuzz_schema *schema, const char *path)
{
    const struct ph__section section = {&ph__data_options, &schema->settings};
    if (schema->arena.blocks == NULL) {
        const char *config = fuzz_file(FUZZ_NUM_SLOTS - 1, schema->yaml, strlen(schema->yaml));
        fuzz_require(ph__config_read(config, NULL, 0, &section, 1, &schema->arena) == PH_OK);
    }
    schema->settings.paths.train = path;
    return &schema->settings;
}

static const struct ph_encoder *shared_encoder(struct fuzz_schema *schema)
{
    if (schema->encoder == NULL) {
        const char *path = fuzz_file(1, schema->train, strlen(schema->train));
        fuzz_require(ph_encoder_create(fuzz_settings(schema, path), &schema->encoder) == PH_OK);
    }
    return schema->encoder;
}

void fuzz_rows_of(struct fuzz_schema *schemas, size_t num_schemas, unsigned choice, const char *path)
{
    struct fuzz_schema *schema = &schemas[(choice & 7) % num_schemas];
    const unsigned flags = choice >> 3;
    const struct ph_batches_options options = {
        .size = sizeof options,
        .batch_size = (flags & 1) != 0 ? 2 : 100,
        .reading.is_shuffled = (flags & 2) != 0,
        .reading.shuffle_bytes = 256,
        .needs_no_labels = (flags & 4) != 0,
        .reading.max_bad_rows = (flags & 8) != 0 ? 0 : 3,
    };
    struct ph_encoder *encoder = NULL;
    if (schema->train != NULL) {
        fuzz_read_batches(shared_encoder(schema), path, &options);
    } else if (ph_encoder_create(fuzz_settings(schema, path), &encoder) == PH_OK) {
        fuzz_read_batches(encoder, path, &options);
        ph_encoder_destroy(encoder);
    }
}

void fuzz_rows(struct fuzz_schema *schemas, size_t num_schemas, const uint8_t *data, size_t size)
{
    if (size > 0)
        fuzz_rows_of(schemas, num_schemas, data[0], fuzz_file(0, data + 1, size - 1));
}
