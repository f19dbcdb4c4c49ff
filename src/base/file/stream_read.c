/* Reading: lines out of one large buffer of decompressed text. A line is found with memchr, ended with a NUL
 * in place and handed out where it lies; only a line that the buffer's end cuts in two is moved. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/compress.h"
#include "base/file/stream.h"
#include "base/memory/memory.h"

#ifndef PH_READ_BUFFER_BYTES /* the fuzzing build makes it small */
#define PH_READ_BUFFER_BYTES ((size_t)1 << 20)
#endif
#define LINE_MAX_BYTES ((size_t)64 << 20)
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* of UTF-8 */
#define BYTE_ORDER_MARK_BYTES 3

struct ph__reader {
    char *path;
    int descriptor;
    struct ph__decompressor *decompressor;
    bool is_over;         /* the decompressor has given its last byte */
    uint64_t line_number; /* of the line last returned */
    char *buffer;         /* one byte more than capacity, for the NUL after a last line */
    size_t capacity;
    size_t start, end;   /* range of the text that has not been returned yet */
    uint64_t start_byte; /* offset of `start` in the text */
};

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

static ph_status open_descriptor(const char *path, int *descriptor_out)
{
    int descriptor = is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return ph_fail(PH_ERROR_DATA, "%s: cannot open: %s", path, strerror(errno));
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
        if (!is_standard(path))
            close(descriptor);
        return ph_fail(PH_ERROR_DATA, "%s: must be a file, not a folder", path);
    }
    *descriptor_out = descriptor;
    return PH_OK;
}

ph_status ph__reader_open_with(
    const char *path, const struct ph__read_options *options, struct ph__reader **reader_out)
{
    int descriptor = -1;
    PH_TRY(open_descriptor(path, &descriptor));
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
    ph_status status = PH_OK;
    struct ph__reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        if (!is_standard(path))
            close(descriptor);
        return ph__out_of_memory("cannot read %s", path);
    }
    reader->descriptor = descriptor;
    reader->path = strdup(is_standard(path) ? "standard input" : path);
    reader->capacity = PH_READ_BUFFER_BYTES;
    reader->buffer = malloc(PH_READ_BUFFER_BYTES + 1);
    if (reader->path == NULL || reader->buffer == NULL) {
        status = ph__out_of_memory("cannot read %s", path);
        goto failed;
    }
    status = ph__decompressor_create(descriptor, options, &reader->decompressor);
    if (status != PH_OK) {
        ph_fail(status, "%s: %s", reader->path, ph_error_text());
        goto failed;
    }
    *reader_out = reader;
    return PH_OK;
failed:
    ph__reader_close(reader);
    return status;
}

ph_status ph__reader_open(const char *path, struct ph__reader **reader_out)
{
    return ph__reader_open_with(path, NULL, reader_out);
}

void ph__reader_close(struct ph__reader *reader)
{
    if (reader == NULL)
        return;
    ph__decompressor_destroy(reader->decompressor);
    if (reader->descriptor > STDERR_FILENO)
        close(reader->descriptor);
    free(reader->buffer);
    free(reader->path);
    free(reader);
}

static ph_status fail_in_line(const struct ph__reader *reader, ph_status status, const char *what)
{
    return ph_fail(status, "%s:%" PRIu64 ": %s", reader->path, reader->line_number + 1, what);
}

/* Makes room behind `end`: moves the unread text to the front, and doubles the buffer when it is full. */
static ph_status make_room(struct ph__reader *reader)
{
    size_t left = reader->end - reader->start;
    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, left);
        reader->start = 0;
        reader->end = left;
    }
    if (left < reader->capacity)
        return PH_OK;
    if (left > LINE_MAX_BYTES)
        return fail_in_line(reader, PH_ERROR_DATA, "the line is longer than 64 MiB");
    char *grown = realloc(reader->buffer, 2 * reader->capacity + 1);
    if (grown == NULL)
        return fail_in_line(reader, PH_ERROR_MEMORY, "out of memory: a very long line");
    reader->buffer = grown;
    reader->capacity *= 2;
    return PH_OK;
}

/* Adds decompressed text behind `end`. */
static ph_status fill(struct ph__reader *reader)
{
    PH_TRY(make_room(reader));
    size_t count = 0;
    ph_status status = ph__decompressor_read(
        reader->decompressor, reader->buffer + reader->end, reader->capacity - reader->end, &count);
    if (status != PH_OK)
        return fail_in_line(reader, status, ph_error_text());
    reader->is_over = count == 0;
    reader->end += count;
    return PH_OK;
}

/* Finds the size of the next line with its LF, or without one at the end of the text; 0 when there is no
 * line. */
static ph_status find_line(struct ph__reader *reader, size_t *bytes_out)
{
    size_t searched = 0;
    for (;;) {
        const char *text = reader->buffer + reader->start;
        size_t waiting = reader->end - reader->start;
        const char *newline = memchr(text + searched, '\n', waiting - searched);
        if (newline != NULL || reader->is_over) {
            *bytes_out = newline != NULL ? (size_t)(newline - text) + 1 : waiting;
            return PH_OK;
        }
        searched = waiting;
        PH_TRY(fill(reader));
    }
}

ph_status ph__reader_line(struct ph__reader *reader, char **line_out, size_t *length_out)
{
    size_t bytes = 0;
    PH_TRY(find_line(reader, &bytes));
    if (bytes == 0) {
        *line_out = NULL;
        *length_out = 0;
        return PH_OK;
    }
    char *line = reader->buffer + reader->start;
    size_t length = bytes;
    if (line[length - 1] == '\n') {
        length--;
        if (length > 0 && line[length - 1] == '\r')
            length--;
    }
    if (reader->start_byte == 0 && length >= BYTE_ORDER_MARK_BYTES &&
        memcmp(line, BYTE_ORDER_MARK, BYTE_ORDER_MARK_BYTES) == 0) {
        line += BYTE_ORDER_MARK_BYTES;
        length -= BYTE_ORDER_MARK_BYTES;
    }
    if (length > LINE_MAX_BYTES)
        return fail_in_line(reader, PH_ERROR_DATA, "the line is longer than 64 MiB");
    if (memchr(line, '\0', length) != NULL)
        return fail_in_line(reader, PH_ERROR_DATA, "the line holds a NUL byte: the file is not text");
    line[length] = '\0';
    reader->start += bytes;
    reader->start_byte += bytes;
    reader->line_number++;
    *line_out = line;
    *length_out = length;
    return PH_OK;
}

const char *ph__reader_path(const struct ph__reader *reader)
{
    return reader->path;
}

uint64_t ph__reader_line_number(const struct ph__reader *reader)
{
    return reader->line_number;
}

uint64_t ph__reader_byte(const struct ph__reader *reader)
{
    return reader->start_byte;
}

bool ph__reader_is_plain(const struct ph__reader *reader)
{
    return ph__decompressor_is_plain_file(reader->decompressor);
}

/* Skips to the byte; *is_there is false when the text ends before it. */
static ph_status skip_to(struct ph__reader *reader, uint64_t byte, bool *is_there)
{
    while (reader->start_byte < byte) {
        if (reader->start == reader->end && reader->is_over)
            break;
        if (reader->start == reader->end)
            PH_TRY(fill(reader));
        uint64_t wanted = byte - reader->start_byte;
        size_t waiting = reader->end - reader->start;
        size_t count = wanted < waiting ? (size_t)wanted : waiting;
        reader->start += count;
        reader->start_byte += count;
    }
    *is_there = reader->start_byte == byte;
    return PH_OK;
}

ph_status ph__reader_seek(struct ph__reader *reader, uint64_t byte, uint64_t line_number)
{
    bool is_there = false;
    uint64_t before = byte > 0 ? byte - 1 : 0; /* is read, to see that the file still reaches that far */
    if (ph__decompressor_seek(reader->decompressor, before)) {
        reader->start = reader->end = 0;
        reader->start_byte = before;
        reader->is_over = false;
    }
    PH_TRY(skip_to(reader, byte, &is_there));
    if (!is_there)
        return ph_fail(PH_ERROR_DATA, "%s: the file ends before byte %" PRIu64, reader->path, byte);
    reader->line_number = line_number;
    return PH_OK;
}
