/* Byte streams over plain, .gz and .zst files alike; "-" is standard input or output.
 * Compression is recognised by the first bytes when reading and by the file name when writing.
 * One thread at a time per stream; after an error a stream is only good for closing. */
#ifndef PH_BASE_STREAM_H
#define PH_BASE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

struct ph__read_options;
struct ph__reader;
struct ph__writer;

/* Opens a file for reading. PH_ERROR_DATA naming the path when it is missing, unreadable or a folder. */
ph_status ph__reader_open(const char *path, struct ph__reader **reader_out);
/* Opens a file for reading with options (base/file/compress.h). */
ph_status ph__reader_open_with(
    const char *path, const struct ph__read_options *options, struct ph__reader **reader_out);
void ph__reader_close(struct ph__reader *reader);

/* Reads the next line without its LF or CR-LF; skips a byte order mark before the first line. The text is
 * NUL-terminated, writable, borrowed until the next call. At the end *line_out is NULL. A NUL in the text,
 * corrupt or truncated compression, and lines over 64 MiB: PH_ERROR_DATA with path and line. */
ph_status ph__reader_line(struct ph__reader *reader, char **line_out, size_t *length_out);

const char *ph__reader_path(const struct ph__reader *reader);
uint64_t ph__reader_line_number(const struct ph__reader *reader); /* of the line last returned, from 1 */
uint64_t ph__reader_byte(const struct ph__reader *reader); /* offset of the next line, after decompression */

/* Moves to an offset that ph__reader_byte has given, behind `line_number` lines: at once in a plain file,
 * otherwise by reading up to there, and forward only. PH_ERROR_DATA when the text ends before. */
ph_status ph__reader_seek(struct ph__reader *reader, uint64_t byte, uint64_t line_number);
/* Tells whether the file is plain, so that a reader can seek to any of its bytes. */
bool ph__reader_is_plain(const struct ph__reader *reader);

/* Opens a file for writing. Errors are PH_ERROR_DISK naming the path. Finish flushes, and reports a full
 * disk. A stream that is closed without ph__writer_finish is discarded as incomplete (the file stays
 * truncated). Text that stdout holds at the opening comes before the stream's. */
ph_status ph__writer_open(const char *path, struct ph__writer **writer_out);
/* Opens a file for atomic replacement: the path keeps its former file until finish, which replaces it
 * durably; "-" is as above. */
ph_status ph__writer_open_atomic(const char *path, struct ph__writer **writer_out);
/* Opens a stream into memory, never compressed; `name` stands for the path in errors. More than max_bytes is
 * PH_ERROR_MEMORY. */
ph_status ph__writer_open_memory(const char *name, size_t max_bytes, struct ph__writer **writer_out);
ph_status ph__writer_write(struct ph__writer *writer, const void *bytes, size_t size);
ph_status ph__writer_printf(struct ph__writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
ph_status ph__writer_finish(struct ph__writer *writer);
/* Gives the bytes of a memory stream after finish: malloc'ed, owned by the caller. */
char *ph__writer_take(struct ph__writer *writer, size_t *size_out);
void ph__writer_close(struct ph__writer *writer);
/* Ends a stream that was written with this status: finishes it after PH_OK, and closes it in any case.
 * Returns the first failure. */
ph_status ph__writer_end(struct ph__writer *writer, ph_status status);

#endif
