#include "data/source/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"

/* ---- batches ---- */

static ph_status check_batch(const struct ArrowArray *batch, const struct ArrowSchema *schema)
{
    int64_t end;
    if (batch->release == NULL || schema->release == NULL)
        return ph_fail(PH_ERROR_USAGE, "the batch or its schema has been released");
    if (schema->format == NULL || strcmp(schema->format, "+s") != 0)
        return ph_fail(PH_ERROR_DATA, "an array of format '%s' is not a record batch ('+s')",
            schema->format != NULL ? schema->format : "");
    if (batch->length < 0 || batch->offset < 0 || __builtin_add_overflow(batch->length, batch->offset, &end))
        return ph_fail(PH_ERROR_DATA, "the batch has an invalid length or offset");
    if (batch->n_children != schema->n_children || batch->n_children < 0 ||
        (batch->n_children > 0 && (batch->children == NULL || schema->children == NULL)))
        return ph_fail(PH_ERROR_DATA, "the batch has %lld columns, but its schema has %lld",
            (long long)batch->n_children, (long long)schema->n_children);
    return PH_OK;
}

ph_status ph__dataset_batch_init(struct ph__arena *arena, const struct ArrowArray *array,
    const struct ArrowSchema *schema, struct ph__dataset_batch *batch_out)
{
    PH_TRY(check_batch(array, schema));
    struct ph__dataset_batch batch = {
        .num_columns = (size_t)array->n_children,
        .num_rows = (uint64_t)array->length,
        .offset = array->offset,
    };
    if (array->n_buffers > 0 && array->buffers != NULL)
        batch.validity = array->buffers[0];
    batch.columns = ph__arena_alloc_array(arena, batch.num_columns, sizeof *batch.columns);
    if (batch.columns == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < batch.num_columns; i++)
        PH_TRY(ph__arrow_column_init(arena, schema, array, (int64_t)i, &batch.columns[i]));
    *batch_out = batch;
    return PH_OK;
}

static ph_status name_batch(const struct ph_dataset *dataset, size_t number, ph_status status)
{
    return status == PH_OK ? PH_OK
                           : ph_fail(status, "%s: batch %zu: %s", dataset->name, number, ph_error_text());
}

/* ---- datasets ---- */

ph_status ph_dataset_create(struct ph_dataset **dataset_out)
{
    struct ph_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return ph__out_of_memory("dataset");
    dataset->name = "dataset";
    *dataset_out = dataset;
    return PH_OK;
}

static ph_status add_streams(struct ph_dataset *dataset, const struct ph_stream_opener *opener)
{
    dataset->streams = calloc(1, sizeof *dataset->streams);
    if (dataset->streams == NULL)
        return ph__out_of_memory("dataset");
    dataset->streams->opener = *opener;
    pthread_mutex_init(&dataset->streams->lock, NULL);
    if (opener->name != NULL)
        dataset->name = ph__arena_strdup(&dataset->arena, opener->name);
    return dataset->name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph_dataset_create_from_streams(
    const struct ph_stream_opener *opener, struct ph_dataset **dataset_out)
{
    struct ph_stream_opener own;
    struct ph_dataset *dataset;
    PH_TRY(ph__options_copy(&own, sizeof own, opener, "ph_stream_opener"));
    if (own.open == NULL)
        return ph_fail(PH_ERROR_USAGE, "dataset: ph_stream_opener.open is missing");
    PH_TRY(ph_dataset_create(&dataset));
    ph_status status = add_streams(dataset, &own);
    if (status == PH_OK)
        *dataset_out = dataset;
    else
        ph_dataset_destroy(dataset);
    return status;
}

void ph_dataset_destroy(struct ph_dataset *dataset)
{
    if (dataset == NULL)
        return;
    for (size_t i = 0; i < dataset->num_batches; i++)
        dataset->batches[i].array.release(&dataset->batches[i].array);
    free(dataset->batches);
    if (dataset->streams != NULL)
        pthread_mutex_destroy(&dataset->streams->lock);
    free(dataset->streams);
    ph__arena_fini(&dataset->arena);
    free(dataset);
}

ph_status ph_dataset_append_arrow(
    struct ph_dataset *dataset, struct ArrowArray *batch, struct ArrowSchema *schema)
{
    struct ph__dataset_batch taken;
    if (dataset->streams != NULL)
        return ph_fail(PH_ERROR_USAGE,
            "%s: takes its batches from streams; append to a dataset of "
            "ph_dataset_create",
            dataset->name);
    PH_TRY(name_batch(
        dataset, dataset->num_batches, ph__dataset_batch_init(&dataset->arena, batch, schema, &taken)));
    PH_TRY(ph__array_reserve((void **)&dataset->batches, &dataset->batches_capacity, dataset->num_batches + 1,
        sizeof *dataset->batches));
    taken.array = *batch;
    batch->release = NULL;
    schema->release(schema);
    dataset->batches[dataset->num_batches++] = taken;
    dataset->num_rows += taken.num_rows;
    return PH_OK;
}

uint64_t ph_dataset_num_rows(const struct ph_dataset *dataset)
{
    return dataset->num_rows;
}

/* ---- passes over a stream ---- */

/* Records an error of the stream with the text that the stream gives for it. */
static ph_status fail_stream(struct ph__dataset_reader *reader, int code)
{
    const char *text = reader->stream.get_last_error(&reader->stream);
    return ph_fail(code == ENOMEM ? PH_ERROR_MEMORY : PH_ERROR_DATA, "%s: batch %zu: the stream failed: %s",
        reader->dataset->name, reader->num_read, text != NULL && text[0] != '\0' ? text : strerror(code));
}

static ph_status call_opener(struct ph__dataset_reader *reader)
{
    struct ph__dataset_streams *streams = reader->dataset->streams;
    PH_IGNORE(ph_fail(PH_OK, "%s", "")); /* no failure: an opener that records nothing leaves no old text */
    pthread_mutex_lock(&streams->lock);
    const ph_status status = streams->opener.open(streams->opener.context, &reader->stream);
    pthread_mutex_unlock(&streams->lock);
    if (status == PH_OK && reader->stream.release != NULL)
        return PH_OK;
    reader->stream.release = NULL; /* left no stream */
    if (status == PH_OK)
        return ph_fail(PH_ERROR_USAGE, "%s: the opener gave a released stream", reader->dataset->name);
    return ph_fail(status, "%s: the stream cannot be opened%s%s", reader->dataset->name,
        ph_error_text()[0] != '\0' ? ": " : "", ph_error_text());
}

static ph_status open_stream(struct ph__dataset_reader *reader)
{
    PH_TRY(call_opener(reader));
    const int code = reader->stream.get_schema(&reader->stream, &reader->schema);
    if (code == 0)
        return PH_OK;
    reader->schema.release = NULL;
    return fail_stream(reader, code);
}

static void release_batch(struct ph__dataset_reader *reader)
{
    if (reader->batch.array.release != NULL)
        reader->batch.array.release(&reader->batch.array);
    ph__arena_fini(&reader->arena);
    reader->batch = (struct ph__dataset_batch){0};
}

static void close_stream(struct ph__dataset_reader *reader)
{
    release_batch(reader);
    if (reader->schema.release != NULL)
        reader->schema.release(&reader->schema);
    if (reader->stream.release != NULL)
        reader->stream.release(&reader->stream);
}

/* Checks that the pass has had as many rows as the first one. */
static ph_status check_end(struct ph__dataset_reader *reader)
{
    struct ph__dataset_streams *streams = reader->dataset->streams;
    pthread_mutex_lock(&streams->lock);
    if (streams->num_rows == 0)
        streams->num_rows = reader->num_rows;
    const uint64_t num_rows = streams->num_rows;
    pthread_mutex_unlock(&streams->lock);
    if (num_rows == reader->num_rows)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA,
        "%s: a pass had %" PRIu64 " rows, but an earlier one %" PRIu64
        ": the opener must give the same rows each time",
        reader->dataset->name, reader->num_rows, num_rows);
}

static ph_status next_of_stream(struct ph__dataset_reader *reader, const struct ph__dataset_batch **batch_out)
{
    struct ArrowArray array = {.release = NULL};
    *batch_out = NULL;
    release_batch(reader);
    if (reader->stream.release == NULL)
        return PH_OK;
    const int code = reader->stream.get_next(&reader->stream, &array);
    if (code != 0)
        return fail_stream(reader, code);
    if (array.release == NULL) {
        close_stream(reader);
        return check_end(reader);
    }
    const ph_status status = ph__dataset_batch_init(&reader->arena, &array, &reader->schema, &reader->batch);
    reader->batch.array = array;
    PH_TRY(name_batch(reader->dataset, reader->num_read, status));
    reader->num_rows += reader->batch.num_rows;
    reader->num_read++;
    *batch_out = &reader->batch;
    return PH_OK;
}

/* ---- passes ---- */

ph_status ph__dataset_reader_open(struct ph__dataset_reader *reader, const struct ph_dataset *dataset)
{
    *reader = (struct ph__dataset_reader){.dataset = dataset};
    return dataset->streams != NULL ? open_stream(reader) : PH_OK;
}

ph_status ph__dataset_reader_next(
    struct ph__dataset_reader *reader, const struct ph__dataset_batch **batch_out)
{
    const struct ph_dataset *dataset = reader->dataset;
    if (dataset->streams != NULL)
        return next_of_stream(reader, batch_out);
    *batch_out = reader->num_read < dataset->num_batches ? &dataset->batches[reader->num_read++] : NULL;
    return PH_OK;
}

void ph__dataset_reader_close(struct ph__dataset_reader *reader)
{
    close_stream(reader);
    *reader = (struct ph__dataset_reader){0};
}

ph_status ph__dataset_reader_first(struct ph__dataset_reader *reader, const struct ph_dataset *dataset,
    const struct ph__dataset_batch **batch_out)
{
    const struct ph__dataset_batch *batch;
    PH_TRY(ph__dataset_reader_open(reader, dataset));
    PH_TRY(ph__dataset_reader_next(reader, &batch));
    if (batch == NULL)
        return ph_fail(PH_ERROR_DATA, "%s: has no batches, so its columns are unknown", dataset->name);
    *batch_out = batch;
    return PH_OK;
}
