#include "data/source/array_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/memory.h"

#define BUFFER_BYTES ((size_t)128 << 10) /* at least a row */

/* ---- bytes ----------------------------------------------------------------------------------------------- */

/* Some of the bytes that follow, at least one. */
static ph_status read_some(struct ph__array_file *array, unsigned char *buffer, size_t size, size_t *size_out)
{
    if (array->decompressor == NULL) {
        PH_TRY(
            ph__file_read_at(array->descriptor, array->name, array->first_byte + array->byte, buffer, size));
        *size_out = size;
        return PH_OK;
    }
    if (ph__decompressor_read(array->decompressor, buffer, size, size_out) != PH_OK) {
        char reason[256];
        snprintf(reason, sizeof reason, "%s", ph_error_text());
        return ph_fail(PH_ERROR_DATA, "%s: %s", array->name, reason);
    }
    return *size_out > 0 ? PH_OK : ph_fail(PH_ERROR_DATA, "%s: has fewer bytes than it says", array->name);
}

static ph_status check_crc(const struct ph__array_file *array)
{
    if (array->wanted == NULL || !array->has_crc || array->crc == *array->wanted)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA, "%s: its bytes do not fit its CRC: the file is damaged", array->name);
}

static ph_status read_bytes(struct ph__array_file *array, unsigned char *buffer, size_t size)
{
    while (size > 0) {
        size_t count;
        PH_TRY(read_some(array, buffer, size, &count));
        if (array->checksum != NULL)
            ph__running_checksum_add(array->checksum, array->byte, buffer, count);
        if (array->wanted != NULL && array->has_crc)
            array->crc = ph__crc32(array->crc, buffer, count);
        array->byte += count;
        buffer += count;
        size -= count;
    }
    return array->byte == array->num_bytes ? check_crc(array) : PH_OK;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static ph_status read_header(struct ph__array_file *array)
{
    unsigned char *header = array->buffer;
    if (array->num_bytes < PH_NPY_PREFIX_BYTES)
        return ph_fail(PH_ERROR_DATA, "%s: is no .npy array", array->name);
    PH_TRY(read_bytes(array, header, PH_NPY_PREFIX_BYTES));
    PH_TRY(ph__npy_header_bytes(array->name, header, PH_NPY_PREFIX_BYTES, &array->header_bytes));
    if (array->header_bytes > array->num_bytes)
        return ph_fail(PH_ERROR_DATA, "%s: the file is cut off in the .npy header", array->name);
    PH_TRY(read_bytes(array, header + PH_NPY_PREFIX_BYTES, array->header_bytes - PH_NPY_PREFIX_BYTES));
    PH_TRY(ph__npy_parse(array->name, header, array->header_bytes, &array->npy));
    uint64_t num_bytes = array->num_bytes - array->header_bytes;
    if (array->npy.num_bytes != num_bytes)
        return ph_fail(PH_ERROR_DATA, "%s: holds %llu bytes of rows, its header speaks of %llu (%s)",
            array->name, (unsigned long long)num_bytes, (unsigned long long)array->npy.num_bytes,
            array->npy.num_bytes > num_bytes ? "the file is cut off" : "something follows the array");
    return PH_OK;
}

/* Memory for the header, and then for rows. */
static ph_status make_buffer(struct ph__array_file *array, size_t size)
{
    unsigned char *buffer = realloc(array->buffer, size);
    if (buffer == NULL)
        return ph__out_of_memory("%s: cannot read it", array->name);
    array->buffer = buffer;
    array->buffer_bytes = size;
    return PH_OK;
}

static ph_status open_array(struct ph__array_file *array)
{
    array->has_crc = true;
    PH_TRY(make_buffer(array, PH_NPY_MAX_HEADER_BYTES));
    PH_TRY(read_header(array));
    size_t row_bytes = array->npy.row_bytes;
    return make_buffer(array, row_bytes > BUFFER_BYTES ? row_bytes : BUFFER_BYTES / row_bytes * row_bytes);
}

ph_status ph__array_file_open(struct ph__array_file *array, const char *path)
{
    *array = (struct ph__array_file){.name = path};
    PH_TRY(ph__file_open(path, &array->descriptor, &array->num_bytes));
    array->is_open = true;
    return open_array(array);
}

ph_status ph__array_file_open_member(
    struct ph__array_file *array, const char *path, const char *name, const struct ph__npz_member *member)
{
    uint64_t file_bytes;
    *array = (struct ph__array_file){.name = name, .first_byte = member->data_byte, .wanted = &member->crc};
    PH_TRY(ph__file_open(path, &array->descriptor, &file_bytes));
    array->is_open = true;
    array->num_bytes = member->num_bytes;
    if (member->is_deflated) {
        if (lseek(array->descriptor, (off_t)member->data_byte, SEEK_SET) < 0)
            return ph_fail(PH_ERROR_DATA, "%s: cannot be gone to", name);
        PH_TRY(ph__decompressor_create_deflate(array->descriptor, &array->decompressor));
    }
    return open_array(array);
}

void ph__array_file_close(struct ph__array_file *array)
{
    ph__decompressor_destroy(array->decompressor);
    if (array->is_open)
        close(array->descriptor);
    free(array->buffer);
    *array = (struct ph__array_file){0};
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

/* Reads on to the byte. */
static ph_status skip_to(struct ph__array_file *array, uint64_t byte)
{
    while (array->byte < byte) {
        uint64_t rest = byte - array->byte;
        PH_TRY(read_bytes(
            array, array->buffer, rest < array->buffer_bytes ? (size_t)rest : array->buffer_bytes));
    }
    return PH_OK;
}

ph_status ph__array_file_sum(struct ph__array_file *array, struct ph__running_checksum *checksum)
{
    unsigned char *header = malloc(array->header_bytes);
    if (header == NULL)
        return ph__out_of_memory("%s: its header", array->name);
    const ph_status status = ph__file_read_at(array->descriptor, array->name, 0, header, array->header_bytes);
    if (status == PH_OK)
        ph__running_checksum_add(checksum, 0, header, array->header_bytes);
    free(header);
    array->checksum = checksum;
    return status;
}

ph_status ph__array_file_seek(struct ph__array_file *array, uint64_t row)
{
    uint64_t byte = array->header_bytes + row * array->npy.row_bytes;
    if (array->decompressor != NULL)
        return skip_to(array, byte);
    array->has_crc &= byte == array->byte;
    array->byte = byte;
    return PH_OK;
}

static ph_status fill(struct ph__array_file *array)
{
    uint64_t rest = array->num_bytes - array->byte;
    size_t size = rest < array->buffer_bytes ? (size_t)rest : array->buffer_bytes;
    array->start = array->end = 0;
    PH_TRY(read_bytes(array, array->buffer, size));
    array->end = size;
    return PH_OK;
}

ph_status ph__array_file_next(struct ph__array_file *array, const unsigned char **row_out)
{
    if (array->start == array->end)
        PH_TRY(fill(array));
    *row_out = array->buffer + array->start;
    array->start += array->npy.row_bytes;
    return PH_OK;
}
