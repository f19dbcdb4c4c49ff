/* Loads tensors and shards of them from a checkpoint's folder, however it is cut into pieces, and sums
 * them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/sum/checksum.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_layout.h"
#include "store/tensor_list.h"

/* Block size for pieces of which some columns are wanted. Whole rows are read, up to BLOCK_BYTES at once,
 * unless they are longer than a page: leaving out less saves nothing. */
enum { BLOCK_BYTES = 1 << 16, PAGE_BYTES = 4096 };

/* Bytes of whole rows that are read between two calls of the folder's meanwhile. */
#define STRETCH_BYTES ((size_t)1 << 20)

/* ---- reading ---- */

/* A read of a piece, and its destination. */
struct piece_read {
    const struct ph__safetensors *file;
    const struct ph__layout_piece *piece;
    struct ph__area common; /* area of the logical tensor */
    size_t element;         /* bytes */
    char *out;              /* place of the common area's first element */
    size_t out_row_bytes;   /* from row to row */
};

static uint64_t place_in_piece(const struct piece_read *read, size_t row, size_t column)
{
    const struct ph__area *area = &read->piece->area;
    const size_t element = (row - area->first_row) * area->num_columns + column - area->first_column;
    return (uint64_t)element * read->element;
}

/* Reads whole rows of the piece, some at a time, and copies their wanted columns. */
static ph_status read_through(const struct piece_read *read)
{
    char block[BLOCK_BYTES];
    const struct ph__area *area = &read->piece->area, *common = &read->common;
    const size_t row_bytes = area->num_columns * read->element, wanted = common->num_columns * read->element;
    const size_t before = (common->first_column - area->first_column) * read->element;
    for (size_t row = 0, count; row < common->num_rows; row += count) {
        count = ph__min(BLOCK_BYTES / row_bytes, common->num_rows - row);
        PH_TRY(ph__safetensors_read_range(read->file, read->piece->index,
            place_in_piece(read, common->first_row + row, area->first_column), count * row_bytes, block));
        for (size_t i = 0; i < count; i++)
            memcpy(read->out + (row + i) * read->out_row_bytes, block + i * row_bytes + before, wanted);
    }
    return PH_OK;
}

/* Reads the wanted columns row by row. */
static ph_status read_rows(const struct piece_read *read)
{
    const struct ph__area *common = &read->common;
    for (size_t row = 0; row < common->num_rows; row++)
        PH_TRY(ph__safetensors_read_range(read->file, read->piece->index,
            place_in_piece(read, common->first_row + row, common->first_column),
            common->num_columns * read->element, read->out + row * read->out_row_bytes));
    return PH_OK;
}

static ph_status read_piece(const struct piece_read *read)
{
    const size_t row_bytes = read->piece->area.num_columns * read->element;
    const bool has_whole_rows = read->common.num_columns == read->piece->area.num_columns;
    if (has_whole_rows && read->out_row_bytes == row_bytes)
        return ph__safetensors_read_range(read->file, read->piece->index,
            place_in_piece(read, read->common.first_row, read->common.first_column),
            read->common.num_rows * row_bytes, read->out);
    return row_bytes <= PAGE_BYTES ? read_through(read) : read_rows(read);
}

ph_status ph__folder_read_area(
    const struct ph__folder *folder, size_t index, const struct ph__area *area, void *bytes)
{
    const struct ph__layout_tensor *tensor = &folder->layout.tensors[index];
    const size_t element = ph_dtype_size(tensor->pieces[0].dtype);
    for (size_t i = 0; i < tensor->num_pieces; i++) {
        struct piece_read read = {.file = folder->files[tensor->pieces[i].file].tensors,
            .piece = &tensor->pieces[i],
            .common = ph__area_common(&tensor->pieces[i].area, area),
            .element = element,
            .out_row_bytes = area->num_columns * element};
        const size_t row = read.common.first_row - area->first_row;
        const size_t column = read.common.first_column - area->first_column;
        if (read.common.num_rows == 0)
            continue;
        read.out = (char *)bytes + row * read.out_row_bytes + column * element;
        PH_TRY(read_piece(&read));
    }
    return PH_OK;
}

static size_t stretch_rows(size_t row_bytes)
{
    return ph__max(STRETCH_BYTES / ph__max(row_bytes, 1), 1);
}

/* ---- checking ---- */

/* Writes "F32 (20,16)". */
static void describe(enum ph_dtype dtype, const struct ph_shape *shape, char text[128])
{
    int length = snprintf(text, 128, "%s (", ph_dtype_name(dtype));
    for (size_t i = 0; i < shape->num_dims; i++)
        length += snprintf(text + length, 128 - (size_t)length, "%s%zu", i > 0 ? "," : "", shape->dims[i]);
    snprintf(text + length, 128 - (size_t)length, ")");
}

static ph_status check_tensor(const struct ph__folder *folder, const struct ph_tensor *wanted)
{
    const size_t index = ph__folder_find(folder, wanted->name);
    if (index == ph__folder_num_tensors(folder))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: the model's tensor '%s' is missing", folder->path, wanted->name);
    const struct ph_tensor found = ph__folder_tensor(folder, index);
    const struct ph_shape whole = ph__tensor_whole(wanted);
    if (ph__dtype_converts(found.dtype, wanted->dtype) && ph__shape_equal(&found.shape, &whole))
        return PH_OK;
    char found_text[128], wanted_text[128];
    describe(found.dtype, &found.shape, found_text);
    describe(wanted->dtype, &whole, wanted_text);
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' is %s, but the model's is %s", folder->path,
        wanted->name, found_text, wanted_text);
}

ph_status ph__folder_check_tensors(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors)
{
    for (size_t i = 0; i < num_tensors; i++)
        PH_TRY(check_tensor(folder, &tensors[i]));
    return PH_OK;
}

ph_status ph__folder_check_no_others(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors)
{
    const size_t num_here = ph__folder_num_tensors(folder);
    bool *is_known = calloc(num_here + 1, sizeof *is_known);
    if (is_known == NULL)
        return ph__out_of_memory("cannot load %s", folder->path);
    for (size_t i = 0; i < num_tensors; i++)
        is_known[ph__folder_find(folder, tensors[i].name)] = true;
    size_t other = 0;
    while (other < num_here && is_known[other])
        other++;
    free(is_known);
    if (other == num_here)
        return PH_OK;
    return ph_fail(PH_ERROR_CHECKPOINT, "%s: the model has no tensor '%s'", folder->path,
        ph__folder_tensor(folder, other).name);
}

/* ---- loading ---- */

/* A tensor to be filled: it has `area` of the folder's tensor `index`. */
struct source {
    const struct ph__folder *folder;
    size_t index;
    struct ph__area area;
    struct ph__running_checksum *sum; /* of what is read, from the first byte on */
};

/* Finds the source of a tensor that the folder has. */
static struct source find_source(const struct ph__folder *folder, const struct ph_tensor *tensor)
{
    const struct source source = {
        .folder = folder, .index = ph__folder_find(folder, tensor->name), .area = ph__tensor_area(tensor)};
    const struct ph_tensor found = ph__folder_tensor(folder, source.index);
    const struct ph__area whole = ph__shape_area(&found.shape);
    assert(ph__area_is_within(&source.area, &whole));
    (void)whole;
    return source;
}

static ph_status read_source_rows(const void *context, size_t first_row, size_t num_rows, void *bytes)
{
    const struct source *source = context;
    const struct ph__folder *folder = source->folder;
    struct ph__area area = source->area;
    const size_t row_bytes = area.num_columns * ph_dtype_size(ph__folder_tensor(folder, source->index).dtype);
    for (size_t row = 0; row < num_rows; row += area.num_rows) {
        area.first_row = source->area.first_row + first_row + row;
        area.num_rows = ph__min(num_rows - row, stretch_rows(row_bytes));
        char *to = (char *)bytes + row * row_bytes;
        PH_TRY(ph__folder_read_area(folder, source->index, &area, to));
        ph__running_checksum_add(
            source->sum, (first_row + row) * (uint64_t)row_bytes, to, area.num_rows * row_bytes);
        PH_TRY(ph__meanwhile(&folder->meanwhile));
    }
    return PH_OK;
}

static ph_status fill(struct source *source, const struct ph_tensor *tensor)
{
    struct ph__running_checksum sum = {0};
    const enum ph_dtype dtype = ph__folder_tensor(source->folder, source->index).dtype;
    uint64_t wanted;
    const bool is_checked =
        !ph__tensor_is_shard(tensor) && ph__folder_checksum(source->folder, source->index, &wanted);
    if (is_checked)
        PH_TRY(ph__running_checksum_init(&sum));
    source->sum = &sum;
    ph_status status = ph__tensor_fill(tensor, dtype, read_source_rows, source);
    if (status == PH_OK && is_checked && ph__running_checksum_value(&sum) != wanted)
        status = ph_fail(PH_ERROR_CHECKPOINT, "%s: tensor '%s' is damaged: it differs from its checksum",
            source->folder->path, tensor->name);
    ph__running_checksum_fini(&sum);
    return status;
}

ph_status ph__folder_load(
    const struct ph__folder *folder, size_t num_tensors, const struct ph_tensor *tensors)
{
    PH_TRY(ph__folder_check_tensors(folder, num_tensors, tensors));
    for (size_t i = 0; i < num_tensors; i++) {
        struct source source = find_source(folder, &tensors[i]);
        const ph_status status = fill(&source, &tensors[i]);
        if (status != PH_OK)
            return ph_fail(status, "%s; the model is loaded in part and must not be used", ph_error_text());
    }
    return PH_OK;
}

/* ---- digest ---- */

static ph_status digest_tensor(
    const struct ph__folder *folder, size_t index, struct ph__digest *digest, void *bytes)
{
    const struct ph_tensor tensor = ph__folder_tensor(folder, index);
    const struct ph__area whole = ph__shape_area(&tensor.shape);
    const size_t row_bytes = whole.num_columns * ph_dtype_size(tensor.dtype);
    PH_TRY(ph__digest_tensor_head(digest, &tensor));
    if (row_bytes == 0)
        return PH_OK;
    struct ph__area area = whole;
    for (size_t row = 0; row < whole.num_rows; row += area.num_rows) {
        area.first_row = row;
        area.num_rows = ph__min(whole.num_rows - row, stretch_rows(row_bytes));
        PH_TRY(ph__folder_read_area(folder, index, &area, bytes));
        PH_TRY(ph__digest_update(digest, bytes, area.num_rows * row_bytes));
        PH_TRY(ph__meanwhile(&folder->meanwhile));
    }
    return PH_OK;
}

/* Returns the bytes of the largest block of rows that is read at once. */
static size_t digest_bytes(const struct ph__folder *folder)
{
    size_t bytes = STRETCH_BYTES;
    for (size_t i = 0; i < ph__folder_num_tensors(folder); i++) {
        const struct ph_tensor tensor = ph__folder_tensor(folder, i);
        const struct ph__area whole = ph__shape_area(&tensor.shape);
        if (whole.num_rows > 0)
            bytes = ph__max(bytes, whole.num_columns * ph_dtype_size(tensor.dtype));
    }
    return bytes;
}

static ph_status digest_tensors(const struct ph__folder *folder, bool (*is_counted)(const char *name),
    struct ph__digest *digest, char hex_out[65])
{
    void *bytes = malloc(digest_bytes(folder));
    if (bytes == NULL)
        return ph__out_of_memory("the checksum of %s", folder->path);
    ph_status status = PH_OK;
    for (size_t i = 0; i < ph__folder_num_tensors(folder) && status == PH_OK; i++)
        if (is_counted == NULL || is_counted(ph__folder_tensor(folder, i).name))
            status = digest_tensor(folder, i, digest, bytes);
    free(bytes);
    return status == PH_OK ? ph__digest_finish(digest, hex_out) : status;
}

ph_status ph__folder_digest(
    const struct ph__folder *folder, bool (*is_counted)(const char *name), char hex_out[65])
{
    struct ph__digest *digest;
    PH_TRY(ph__digest_create(&digest));
    const ph_status status = digest_tensors(folder, is_counted, digest, hex_out);
    ph__digest_destroy(digest);
    return status;
}
