/* Writing: gathers small pieces in a buffer, so that a compressor or memory gets large ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/compress.h"
#include "base/file/file.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"

#ifndef PH_WRITE_BUFFER_BYTES /* the fuzzing build makes it small */
#define PH_WRITE_BUFFER_BYTES ((size_t)256 << 10)
#endif

struct ph__writer {
    char *path;
    int descriptor;                    /* -1 once closed */
    struct ph__atomic_file atomic;     /* owns the descriptor when it is open */
    struct ph__compressor *compressor; /* NULL: into memory */
    char *bytes;                       /* (num_bytes): the stream's bytes in memory */
    size_t num_bytes, capacity, max_bytes;
    size_t used; /* bytes waiting in the buffer */
    char buffer[PH_WRITE_BUFFER_BYTES];
};

static ph_status fail_at_path(const struct ph__writer *writer, ph_status status)
{
    return ph_fail(status, "%s: %s", writer->path, ph_error_text());
}

static ph_status open_descriptor(struct ph__writer *writer, const char *path, bool is_atomic)
{
    if (is_atomic) {
        PH_TRY(ph__atomic_file_open(path, &writer->atomic));
        writer->descriptor = writer->atomic.descriptor;
        return PH_OK;
    }
    bool is_standard = strcmp(path, "-") == 0;
    if (is_standard)
        fflush(stdout); /* the writer bypasses the stream */
    writer->descriptor =
        is_standard ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (writer->descriptor < 0)
        return ph__file_cannot_write(path);
    return PH_OK;
}

static ph_status open_writer(struct ph__writer *writer, const char *path, bool is_atomic)
{
    writer->path = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
    if (writer->path == NULL)
        return ph__out_of_memory("cannot write %s", path);
    PH_TRY(open_descriptor(writer, path, is_atomic));
    ph_status status = ph__compressor_create(writer->descriptor, path, &writer->compressor);
    return status == PH_OK ? PH_OK : fail_at_path(writer, status);
}

/* Allocates a writer that is not open. Returns NULL when out of memory. */
static struct ph__writer *allocate_writer(void)
{
    struct ph__writer *writer = malloc(sizeof *writer);
    if (writer == NULL)
        return NULL;
    memset(writer, 0, offsetof(struct ph__writer, buffer));
    writer->descriptor = writer->atomic.descriptor = -1;
    return writer;
}

static ph_status create_writer(const char *path, bool is_atomic, struct ph__writer **writer_out)
{
    struct ph__writer *writer = allocate_writer();
    if (writer == NULL)
        return ph__out_of_memory("cannot write %s", path);
    ph_status status = open_writer(writer, path, is_atomic);
    if (status == PH_OK)
        *writer_out = writer;
    else
        ph__writer_close(writer);
    return status;
}

ph_status ph__writer_open(const char *path, struct ph__writer **writer_out)
{
    return create_writer(path, false, writer_out);
}

ph_status ph__writer_open_atomic(const char *path, struct ph__writer **writer_out)
{
    return create_writer(path, strcmp(path, "-") != 0, writer_out);
}

ph_status ph__writer_open_memory(const char *name, size_t max_bytes, struct ph__writer **writer_out)
{
    struct ph__writer *writer = allocate_writer();
    if (writer == NULL || (writer->path = strdup(name)) == NULL) {
        free(writer);
        return ph__out_of_memory("cannot write %s", name);
    }
    writer->max_bytes = max_bytes;
    *writer_out = writer;
    return PH_OK;
}

static ph_status append(struct ph__writer *writer, const void *bytes, size_t size)
{
    if (size > writer->max_bytes - writer->num_bytes)
        return ph_fail(PH_ERROR_MEMORY, "more than %zu bytes", writer->max_bytes);
    if (size == 0)
        return PH_OK;
    void *grown = writer->bytes;
    const ph_status status = ph__array_reserve(&grown, &writer->capacity, writer->num_bytes + size, 1);
    writer->bytes = grown;
    PH_TRY(status);
    memcpy(writer->bytes + writer->num_bytes, bytes, size);
    writer->num_bytes += size;
    return PH_OK;
}

static ph_status push(struct ph__writer *writer, const void *bytes, size_t size, bool is_last)
{
    if (writer->compressor == NULL)
        return append(writer, bytes, size);
    return ph__compressor_write(writer->compressor, bytes, size, is_last);
}

/* Pushes the bytes that wait in the buffer, then `bytes`. */
static ph_status flush_with(struct ph__writer *writer, const void *bytes, size_t size, bool is_last)
{
    ph_status status = PH_OK;
    if (writer->used > 0)
        status = push(writer, writer->buffer, writer->used, false);
    writer->used = 0;
    if (status == PH_OK && (size > 0 || is_last))
        status = push(writer, bytes, size, is_last);
    return status == PH_OK ? PH_OK : fail_at_path(writer, status);
}

ph_status ph__writer_write(struct ph__writer *writer, const void *bytes, size_t size)
{
    if (size > PH_WRITE_BUFFER_BYTES - writer->used)
        return flush_with(writer, bytes, size, false);
    if (size > 0)
        memcpy(writer->buffer + writer->used, bytes, size);
    writer->used += size;
    return PH_OK;
}

/* Formats into the buffer; text that does not fit there is formatted in memory of its own. */
ph_status ph__writer_printf(struct ph__writer *writer, const char *format, ...)
{
    size_t room = PH_WRITE_BUFFER_BYTES - writer->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(writer->buffer + writer->used, room, format, arguments);
    va_end(arguments);
    if (length < 0)
        return ph_fail(PH_ERROR_BUG, "%s: cannot format \"%s\"", writer->path, format);
    if ((size_t)length < room) {
        writer->used += (size_t)length;
        return PH_OK;
    }
    char *text = NULL;
    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return ph__out_of_memory("%s: a long line", writer->path);
    ph_status status = ph__writer_write(writer, text, (size_t)length);
    free(text);
    return status;
}

static ph_status close_descriptor(struct ph__writer *writer)
{
    int descriptor = writer->descriptor;
    writer->descriptor = -1;
    if (writer->atomic.descriptor >= 0)
        return ph__atomic_file_commit(&writer->atomic);
    if (descriptor > STDERR_FILENO && close(descriptor) != 0)
        return ph_fail(PH_ERROR_DISK, "%s: cannot write: %s", writer->path, strerror(errno));
    return PH_OK;
}

ph_status ph__writer_finish(struct ph__writer *writer)
{
    ph_status status = flush_with(writer, "", 0, true);
    if (status != PH_OK)
        return status;
    return close_descriptor(writer);
}

char *ph__writer_take(struct ph__writer *writer, size_t *size_out)
{
    char *bytes = writer->bytes;
    *size_out = writer->num_bytes;
    writer->bytes = NULL;
    writer->num_bytes = writer->capacity = 0;
    return bytes;
}

void ph__writer_close(struct ph__writer *writer)
{
    if (writer == NULL)
        return;
    ph__compressor_destroy(writer->compressor);
    if (writer->atomic.descriptor >= 0)
        ph__atomic_file_abandon(&writer->atomic);
    else if (writer->descriptor > STDERR_FILENO)
        close(writer->descriptor);
    free(writer->bytes);
    free(writer->path);
    free(writer);
}

ph_status ph__writer_end(struct ph__writer *writer, ph_status status)
{
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}
