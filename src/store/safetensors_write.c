/* Writing safetensors: order, header, bytes, through an atomic file. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "store/safetensors.h"

enum { HEADER_ALIGNMENT = 8 };

static uint64_t tensor_bytes(const struct ph_tensor *tensor)
{
    return (uint64_t)ph_shape_elements(&tensor->shape) * ph_dtype_size(tensor->dtype);
}

static int compare_names(const void *a, const void *b)
{
    const struct ph_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* Larger elements first, so that every tensor is aligned to its element; then by name. */
static int compare_for_file(const void *a, const void *b)
{
    const struct ph_tensor *const *left = a, *const *right = b;
    const size_t left_size = ph_dtype_size((*left)->dtype), right_size = ph_dtype_size((*right)->dtype);
    if (left_size != right_size)
        return left_size < right_size ? 1 : -1;
    return compare_names(a, b);
}

static ph_status order_tensors(const char *path, size_t num_tensors, const struct ph_tensor **tensors)
{
    qsort(tensors, num_tensors, sizeof *tensors, compare_names);
    for (size_t i = 1; i < num_tensors; i++)
        if (strcmp(tensors[i - 1]->name, tensors[i]->name) == 0)
            return ph_fail(PH_ERROR_BUG, "%s: two tensors are named '%s'", path, tensors[i]->name);
    qsort(tensors, num_tensors, sizeof *tensors, compare_for_file);
    return PH_OK;
}

static struct ph_json *describe_tensor(const struct ph_tensor *tensor, uint64_t begin)
{
    struct ph_json *object = ph__json_object();
    struct ph_json *shape = ph__json_array();
    struct ph_json *offsets = ph__json_array();
    for (size_t i = 0; i < tensor->shape.rank; i++)
        ph__json_append_integer(shape, (int64_t)tensor->shape.dims[i]);
    ph__json_append_integer(offsets, (int64_t)begin);
    ph__json_append_integer(offsets, (int64_t)(begin + tensor_bytes(tensor)));
    ph__json_set_text(object, "dtype", ph_dtype_name(tensor->dtype));
    ph__json_set(object, "shape", shape);
    ph__json_set(object, "data_offsets", offsets);
    return object;
}

static ph_status make_header(
    size_t num_tensors, const struct ph_tensor *const *tensors, const char *const *metadata, char **text_out)
{
    struct ph_json *header = ph__json_object();
    if (metadata != NULL && metadata[0] != NULL) {
        struct ph_json *texts = ph__json_object();
        for (size_t i = 0; metadata[i] != NULL; i += 2)
            ph__json_set_text(texts, metadata[i], metadata[i + 1]);
        ph__json_set(header, "__metadata__", texts);
    }
    uint64_t begin = 0;
    for (size_t i = 0; i < num_tensors; i++) {
        ph__json_set(header, tensors[i]->name, describe_tensor(tensors[i], begin));
        begin += tensor_bytes(tensors[i]);
    }
    const ph_status status = ph__json_text(header, 0, text_out);
    ph__json_destroy(header);
    return status;
}

static ph_status write_header(struct ph_atomic_file *file, const char *text)
{
    static const char spaces[HEADER_ALIGNMENT + 1] = "        ";
    const size_t length = strlen(text);
    const size_t padding = (HEADER_ALIGNMENT - length % HEADER_ALIGNMENT) % HEADER_ALIGNMENT;
    unsigned char prefix[8];
    for (size_t i = 0; i < sizeof prefix; i++)
        prefix[i] = (unsigned char)((uint64_t)(length + padding) >> (8 * i));
    PH_TRY(ph__atomic_file_write(file, prefix, sizeof prefix));
    PH_TRY(ph__atomic_file_write(file, text, length));
    return ph__atomic_file_write(file, spaces, padding);
}

static ph_status write_contents(struct ph_atomic_file *file, const char *header, size_t num_tensors,
    const struct ph_tensor *const *tensors)
{
    PH_TRY(write_header(file, header));
    for (size_t i = 0; i < num_tensors; i++)
        PH_TRY(ph__atomic_file_write(file, tensors[i]->data, (size_t)tensor_bytes(tensors[i])));
    return PH_OK;
}

static ph_status write_file(
    const char *path, const char *header, size_t num_tensors, const struct ph_tensor *const *tensors)
{
    struct ph_atomic_file file;
    PH_TRY(ph__atomic_file_open(path, &file));
    const ph_status status = write_contents(&file, header, num_tensors, tensors);
    if (status != PH_OK) {
        ph__atomic_file_abandon(&file);
        return status;
    }
    return ph__atomic_file_commit(&file);
}

ph_status ph__safetensors_write(
    const char *path, size_t num_tensors, const struct ph_tensor *tensors, const char *const *metadata)
{
    const struct ph_tensor **ordered = calloc(num_tensors + 1, sizeof *ordered);
    if (ordered == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the header of %s", path);
    for (size_t i = 0; i < num_tensors; i++)
        ordered[i] = &tensors[i];

    char *header = NULL;
    ph_status status = order_tensors(path, num_tensors, ordered);
    if (status == PH_OK)
        status = make_header(num_tensors, ordered, metadata, &header);
    if (status == PH_OK)
        status = write_file(path, header, num_tensors, ordered);
    free(header);
    free(ordered);
    return status;
}
