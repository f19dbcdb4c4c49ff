#include "data/source/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

ph_status ph_dataset_create(struct ph_dataset **dataset_out)
{
    struct ph_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return ph__out_of_memory("dataset");
    *dataset_out = dataset;
    return PH_OK;
}

void ph_dataset_destroy(struct ph_dataset *dataset)
{
    if (dataset == NULL)
        return;
    for (size_t i = 0; i < dataset->num_batches; i++)
        dataset->batches[i].array.release(&dataset->batches[i].array);
    free(dataset->batches);
    ph__arena_fini(&dataset->arena);
    free(dataset);
}

static ph_status check_batch(const struct ArrowArray *batch, const struct ArrowSchema *schema)
{
    int64_t end;
    if (batch->release == NULL || schema->release == NULL)
        return ph_fail(PH_ERROR_USAGE, "dataset: the batch or its schema has been released");
    if (schema->format == NULL || strcmp(schema->format, "+s") != 0)
        return ph_fail(PH_ERROR_DATA, "dataset: an array of format '%s' is not a record batch ('+s')",
            schema->format != NULL ? schema->format : "");
    if (batch->length < 0 || batch->offset < 0 || __builtin_add_overflow(batch->length, batch->offset, &end))
        return ph_fail(PH_ERROR_DATA, "dataset: the batch has an invalid length or offset");
    if (batch->n_children != schema->n_children || batch->n_children < 0 ||
        (batch->n_children > 0 && (batch->children == NULL || schema->children == NULL)))
        return ph_fail(PH_ERROR_DATA, "dataset: the batch has %lld columns, but its schema has %lld",
            (long long)batch->n_children, (long long)schema->n_children);
    return PH_OK;
}

static ph_status init_batch(struct ph_dataset *dataset, const struct ArrowArray *array,
    const struct ArrowSchema *schema, struct ph__dataset_batch *batch)
{
    *batch = (struct ph__dataset_batch){
        .num_columns = (size_t)array->n_children,
        .num_rows = (uint64_t)array->length,
        .offset = array->offset,
    };
    if (array->n_buffers > 0 && array->buffers != NULL)
        batch->validity = array->buffers[0];
    batch->columns = ph__arena_alloc_array(&dataset->arena, batch->num_columns, sizeof *batch->columns);
    if (batch->columns == NULL)
        return PH_ERROR_MEMORY;
    ph_status status = PH_OK;
    for (size_t i = 0; i < batch->num_columns && status == PH_OK; i++)
        status = ph__arrow_column_init(&dataset->arena, schema, array, (int64_t)i, &batch->columns[i]);
    if (status == PH_OK)
        return PH_OK;
    return ph_fail(status, PH_DATASET_NAME ": batch %zu: %s", dataset->num_batches, ph_error_text());
}

ph_status ph_dataset_append_arrow(
    struct ph_dataset *dataset, struct ArrowArray *batch, struct ArrowSchema *schema)
{
    struct ph__dataset_batch taken;
    PH_TRY(check_batch(batch, schema));
    PH_TRY(init_batch(dataset, batch, schema, &taken));
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
