/* Writes safetensors: order, checksums, header, seal, bytes, through an atomic file.
 *
 * Checksums and seal lie before the bytes that they cover, and the seal covers the checksums, so the tensors
 * are read three times: for each of the two, and to be written. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "base/sum/digest.h"
#include "store/safetensors.h"
#include "store/tensor_list.h"

enum { HEADER_ALIGNMENT = 8, PREFIX_BYTES = 8 };

static uint64_t tensor_bytes(const struct ph_tensor *tensor)
{
    return (uint64_t)ph_shape_elements(&tensor->shape) * ph_dtype_size(tensor->dtype);
}

static int compare_names(const void *a, const void *b)
{
    const struct ph_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* Orders larger elements first, so that every tensor is aligned to its element; then by name. */
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

static ph_status add_to_checksum(void *checksum, const void *bytes, size_t size)
{
    struct ph__running_checksum *running = checksum;
    ph__running_checksum_add(running, running->num_bytes, bytes, size);
    return PH_OK;
}

static ph_status write_checksum(const struct ph_tensor *tensor, char *digits)
{
    char text[PH_CHECKSUM_DIGITS + 1];
    struct ph__running_checksum checksum;
    PH_TRY(ph__running_checksum_init(&checksum));
    const ph_status status = ph__tensor_visit_bytes(tensor, add_to_checksum, &checksum);
    ph__checksum_text(ph__running_checksum_value(&checksum), text);
    ph__running_checksum_fini(&checksum);
    memcpy(digits, text, PH_CHECKSUM_DIGITS);
    return status;
}

/* Makes the text of all checksums; malloc'ed. */
static ph_status make_checksums(size_t num_tensors, const struct ph_tensor *const *tensors, char **text_out)
{
    char *text = calloc(num_tensors + 1, PH_CHECKSUM_DIGITS);
    ph_status status = text != NULL ? PH_OK : ph__out_of_memory("the checksums of %zu tensors", num_tensors);
    for (size_t i = 0; i < num_tensors && status == PH_OK; i++)
        status = write_checksum(tensors[i], text + i * PH_CHECKSUM_DIGITS);
    if (status == PH_OK)
        *text_out = text;
    else
        free(text);
    return status;
}

/* Makes the JSON object of the metadata, with a blank seal. */
static ph_status make_metadata(const char *const *metadata, const char *checksums, char **text_out)
{
    struct ph__json *texts = ph__json_object();
    ph__json_set_text(texts, PH_SEAL_KEY, PH_SEAL_BLANK);
    for (size_t i = 0; metadata != NULL && metadata[i] != NULL; i += 2) {
        assert(strcmp(metadata[i], PH_SEAL_KEY) != 0 && strcmp(metadata[i], PH_SAFETENSORS_CHECKSUMS) != 0);
        ph__json_set_text(texts, metadata[i], metadata[i + 1]);
    }
    ph__json_set_text(texts, PH_SAFETENSORS_CHECKSUMS, checksums);
    const ph_status status = ph__json_text(texts, 0, text_out);
    ph__json_destroy(texts);
    return status;
}

static void print_tensor(FILE *file, const struct ph_tensor *tensor, uint64_t begin)
{
    putc_unlocked(',', file);
    ph__json_print_text(file, tensor->name, strlen(tensor->name));
    fprintf(file, ":{\"dtype\":\"%s\",\"shape\":[", ph_dtype_name(tensor->dtype));
    for (size_t i = 0; i < tensor->shape.num_dims; i++)
        fprintf(file, i == 0 ? "%zu" : ",%zu", tensor->shape.dims[i]);
    fprintf(file, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + tensor_bytes(tensor));
}

/* Bytes before the tensors: length, JSON text, padding. */
struct header {
    char *bytes; /* malloc'ed */
    size_t size;
};

/* Prints the header tensor by tensor, not through a ph__json: a model of 100,000 tables has 300,000 tensors,
 * whose objects take seconds to make and to free. The length is filled in later. */
static void print_header(
    FILE *file, const char *metadata, size_t num_tensors, const struct ph_tensor *const *tensors)
{
    uint64_t begin = 0;
    fprintf(file, "%*s" PH_SAFETENSORS_METADATA_START "%s", PREFIX_BYTES, "", metadata);
    for (size_t i = 0; i < num_tensors; i++) {
        print_tensor(file, tensors[i], begin);
        begin += tensor_bytes(tensors[i]);
    }
    putc_unlocked('}', file);
    for (long size = ftell(file); size % HEADER_ALIGNMENT != 0; size++)
        putc_unlocked(' ', file);
}

static ph_status make_header(const char *path, size_t num_tensors, const struct ph_tensor *const *tensors,
    const char *const *metadata, struct header *header_out)
{
    char *texts = NULL, *checksums = NULL;
    PH_TRY(make_checksums(num_tensors, tensors, &checksums));
    const ph_status status = make_metadata(metadata, checksums, &texts);
    free(checksums);
    PH_TRY(status);
    FILE *file = open_memstream(&header_out->bytes, &header_out->size);
    if (file != NULL)
        print_header(file, texts, num_tensors, tensors);
    free(texts);
    const bool is_printed = file != NULL && ferror(file) == 0;
    if (file == NULL || fclose(file) != 0 || !is_printed)
        return ph__out_of_memory("the header of %s", path);
    const uint64_t length = header_out->size - PREFIX_BYTES;
    for (size_t i = 0; i < PREFIX_BYTES; i++)
        header_out->bytes[i] = (char)(length >> (8 * i) & 255);
    return PH_OK;
}

static ph_status sum_bytes(void *digest, const void *bytes, size_t size)
{
    return ph__digest_update(digest, bytes, size);
}

static ph_status sum_contents(struct ph__digest *digest, const struct header *header, size_t num_tensors,
    const struct ph_tensor *const *tensors, char digits_out[PH_SEAL_DIGITS + 1])
{
    PH_TRY(ph__digest_update(digest, header->bytes, header->size));
    for (size_t i = 0; i < num_tensors; i++)
        PH_TRY(ph__tensor_visit_bytes(tensors[i], sum_bytes, digest));
    return ph__digest_finish(digest, digits_out);
}

/* Computes the seal and writes it into the header. */
static ph_status seal_header(
    const struct header *header, size_t num_tensors, const struct ph_tensor *const *tensors)
{
    struct ph__digest *digest;
    char digits[PH_SEAL_DIGITS + 1];
    PH_TRY(ph__digest_create(&digest));
    const ph_status status = sum_contents(digest, header, num_tensors, tensors, digits);
    ph__digest_destroy(digest);
    PH_TRY(status);
    memcpy(header->bytes + PREFIX_BYTES + strlen(PH_SAFETENSORS_SEAL_START), digits, PH_SEAL_DIGITS);
    return PH_OK;
}

static ph_status write_bytes(void *file, const void *bytes, size_t size)
{
    return ph__atomic_file_write(file, bytes, size);
}

static ph_status write_contents(struct ph__atomic_file *file, const struct header *header, size_t num_tensors,
    const struct ph_tensor *const *tensors)
{
    PH_TRY(ph__atomic_file_write(file, header->bytes, header->size));
    for (size_t i = 0; i < num_tensors; i++)
        PH_TRY(ph__tensor_visit_bytes(tensors[i], write_bytes, file));
    return PH_OK;
}

static ph_status write_file(
    const char *path, const struct header *header, size_t num_tensors, const struct ph_tensor *const *tensors)
{
    struct ph__atomic_file file;
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
        return ph__out_of_memory("the header of %s", path);
    for (size_t i = 0; i < num_tensors; i++)
        ordered[i] = &tensors[i];

    struct header header = {0};
    ph_status status = order_tensors(path, num_tensors, ordered);
    if (status == PH_OK)
        status = make_header(path, num_tensors, ordered, metadata, &header);
    if (status == PH_OK)
        status = seal_header(&header, num_tensors, ordered);
    if (status == PH_OK)
        status = write_file(path, &header, num_tensors, ordered);
    free(header.bytes);
    free(ordered);
    return status;
}
