/* Batches from the rows of a stream, handed over by the Arrow C stream interface:
 *
 *   arrow CONFIG
 *
 * CONFIG names the columns click, price, user and shop: job.yaml beside this file. The stream and its record
 * batch are built by hand here; any Arrow library exports one in one call. The buffers are read in place, so
 * they stay until the batch is released. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "phloem/phloem.h"

enum { ROWS = 6, COLUMNS = 4 };

/* ---- the record batch: one array of structs, a child a column ---- */

static const float clicks[ROWS] = {1, 0, 0, 1, 0, 1};
static const double prices[ROWS] = {9.5, 3, 12.25, 0.5, 4, 7};
static const char users[] = "annbobanncatbobann";
static const int32_t user_offsets[ROWS + 1] = {0, 3, 6, 9, 12, 15, 18};
static const int64_t shops[ROWS] = {17, 4, 17, 99, 4, 23};

/* Releases an array that allocated nothing. Otherwise memory is freed here, that of the children included. */
static void release_array(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++)
        array->children[i]->release = NULL;
    array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        schema->children[i]->release = NULL;
    schema->release = NULL;
}

/* Exports the arrays as a record batch. An array's first buffer marks null values; here it is NULL: no
 * nulls. */
static void export_batch(struct ArrowArray *array, struct ArrowSchema *schema)
{
    static const void *buffers[COLUMNS][3] = {
        {NULL, clicks}, {NULL, prices}, {NULL, user_offsets, users}, {NULL, shops}};
    static const char *const names[COLUMNS] = {"click", "price", "user", "shop"};
    static const char *const formats[COLUMNS] = {"f", "g", "u", "l"}; /* float, double, utf8, int64 */
    static const void *no_nulls[1];
    static struct ArrowArray arrays[COLUMNS], *array_list[COLUMNS];
    static struct ArrowSchema schemas[COLUMNS], *schema_list[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        arrays[i] = (struct ArrowArray){.length = ROWS,
            .n_buffers = formats[i][0] == 'u' ? 3 : 2,
            .buffers = buffers[i],
            .release = release_array};
        schemas[i] = (struct ArrowSchema){.format = formats[i], .name = names[i], .release = release_schema};
        array_list[i] = &arrays[i];
        schema_list[i] = &schemas[i];
    }
    *array = (struct ArrowArray){.length = ROWS,
        .n_buffers = 1,
        .buffers = no_nulls,
        .n_children = COLUMNS,
        .children = array_list,
        .release = release_array};
    *schema = (struct ArrowSchema){
        .format = "+s", .n_children = COLUMNS, .children = schema_list, .release = release_schema};
}

/* ---- the stream: one record batch, and then the end ---- */

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct ArrowArray array; /* owns nothing */
    (void)stream;
    export_batch(&array, out);
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct ArrowSchema schema;
    bool *has_ended = stream->private_data;
    *out = (struct ArrowArray){.release = NULL}; /* the end */
    if (!*has_ended)
        export_batch(out, &schema);
    *has_ended = true;
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    free(stream->private_data);
    stream->release = NULL;
}

/* Opens the same rows anew for each pass over them. */
static ph_status open_stream(void *context, struct ArrowArrayStream *stream_out)
{
    (void)context;
    bool *has_ended = calloc(1, sizeof *has_ended);
    if (has_ended == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory");
    *stream_out = (struct ArrowArrayStream){.get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = release_stream,
        .private_data = has_ended};
    return PH_OK;
}

/* ---- the batches ---- */

struct rows {
    struct ph_config *config;
    struct ph_dataset *dataset;
    struct ph_encoder *encoder;
};

static ph_status encode(struct rows *rows, const char *path)
{
    const struct ph_stream_opener opener = {.size = sizeof opener, .open = open_stream, .name = "clicks"};
    PH_TRY(ph_config_read(path, NULL, 0, &rows->config));
    PH_TRY(ph_dataset_create_from_streams(&opener, &rows->dataset));
    return ph_encoder_create_from_dataset(ph_config_data(rows->config), rows->dataset, &rows->encoder);
}

static ph_status print_batches(const struct rows *rows)
{
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 4};
    const struct ph_batch *batch = NULL;
    struct ph_batches *batches = NULL;
    PH_TRY(ph_dataset_batches_open(rows->dataset, rows->encoder, &options, &batches));
    ph_status status = ph_batches_next(batches, &batch);
    while (status == PH_OK && batch != NULL) {
        printf("dense (%zu,%zu), labels (%zu,%zu), lengths (%zu,%zu), ids (%zu):", batch->num_samples,
            batch->num_dense, batch->num_samples, batch->num_tasks, batch->num_sparse, batch->num_samples,
            batch->num_ids);
        for (size_t i = 0; i < batch->num_samples; i++) /* ids of the first feature */
            printf(" %" PRId64, batch->ids[i]);
        printf("\n");
        status = ph_batches_next(batches, &batch);
    }
    ph_batches_close(batches);
    return status;
}

int main(int argc, char **argv)
{
    struct rows rows = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: arrow CONFIG\n");
        return 2;
    }
    ph_status status = encode(&rows, argv[1]);
    if (status == PH_OK)
        status = print_batches(&rows);
    ph_encoder_destroy(rows.encoder);
    ph_dataset_destroy(rows.dataset);
    ph_config_destroy(rows.config);
    if (status != PH_OK)
        fprintf(stderr, "arrow: %s\n", ph_error_text());
    return ph_status_exit_code(status);
}
