/* Writing: small pieces are gathered in a buffer, the compressor behind it sees large ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/stream.h"

#define BUFFER_BYTES ((size_t)256 << 10)

struct ph_writer {
    char *path;
    int descriptor; /* -1 once closed */
    struct ph_compressor *compressor;
    size_t used; /* bytes waiting in the buffer */
    char buffer[BUFFER_BYTES];
};

static ph_status fail_at_path(const struct ph_writer *writer, ph_status status)
{
    return ph_fail(status, "%s: %s", writer->path, ph_error_text());
}

ph_status ph__writer_open(const char *path, struct ph_writer **writer_out)
{
    bool is_standard = strcmp(path, "-") == 0;
    struct ph_writer *writer = malloc(sizeof *writer);
    if (writer == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: cannot write %s", path);
    memset(writer, 0, offsetof(struct ph_writer, buffer));
    writer->descriptor = -1;
    ph_status status = PH_OK;
    writer->path = strdup(is_standard ? "standard output" : path);
    if (writer->path == NULL) {
        status = ph_fail(PH_ERROR_MEMORY, "out of memory: cannot write %s", path);
        goto failed;
    }
    writer->descriptor =
        is_standard ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (writer->descriptor < 0) {
        status = ph_fail(PH_ERROR_DISK, "%s: cannot write: %s", path, strerror(errno));
        goto failed;
    }
    status = ph__compressor_create(writer->descriptor, path, &writer->compressor);
    if (status != PH_OK) {
        fail_at_path(writer, status);
        goto failed;
    }
    *writer_out = writer;
    return PH_OK;
failed:
    ph__writer_close(writer);
    return status;
}

/* What waits in the buffer, then `bytes`. */
static ph_status flush_with(struct ph_writer *writer, const void *bytes, size_t size, bool is_last)
{
    ph_status status = PH_OK;
    if (writer->used > 0)
        status = ph__compressor_write(writer->compressor, writer->buffer, writer->used, false);
    writer->used = 0;
    if (status == PH_OK && (size > 0 || is_last))
        status = ph__compressor_write(writer->compressor, bytes, size, is_last);
    return status == PH_OK ? PH_OK : fail_at_path(writer, status);
}

ph_status ph__writer_write(struct ph_writer *writer, const void *bytes, size_t size)
{
    if (size > BUFFER_BYTES - writer->used)
        return flush_with(writer, bytes, size, false);
    if (size > 0)
        memcpy(writer->buffer + writer->used, bytes, size);
    writer->used += size;
    return PH_OK;
}

/* Formats straight into the buffer; what does not fit there goes through memory of its own. */
ph_status ph__writer_printf(struct ph_writer *writer, const char *format, ...)
{
    size_t room = BUFFER_BYTES - writer->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(writer->buffer + writer->used, room, format, arguments);
    va_end(arguments);
    if (length < 0)
        return ph_fail(PH_ERROR_BUG, "%s: a text that cannot be formatted: \"%s\"", writer->path, format);
    if ((size_t)length < room) {
        writer->used += (size_t)length;
        return PH_OK;
    }
    char *text = NULL;
    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return ph_fail(PH_ERROR_MEMORY, "%s: out of memory: a long line", writer->path);
    ph_status status = ph__writer_write(writer, text, (size_t)length);
    free(text);
    return status;
}

static ph_status close_descriptor(struct ph_writer *writer)
{
    int descriptor = writer->descriptor;
    writer->descriptor = -1;
    if (descriptor > STDERR_FILENO && close(descriptor) != 0)
        return ph_fail(PH_ERROR_DISK, "%s: cannot write: %s", writer->path, strerror(errno));
    return PH_OK;
}

ph_status ph__writer_finish(struct ph_writer *writer)
{
    ph_status status = flush_with(writer, "", 0, true);
    if (status != PH_OK)
        return status;
    return close_descriptor(writer);
}

void ph__writer_close(struct ph_writer *writer)
{
    if (writer == NULL)
        return;
    ph__compressor_destroy(writer->compressor);
    if (writer->descriptor > STDERR_FILENO)
        close(writer->descriptor);
    free(writer->path);
    free(writer);
}
