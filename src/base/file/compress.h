/* Compressed byte streams. A compressor writes to a file descriptor and compresses when the file's name ends
 * in .gz or .zst. A decompressor reads from one and decompresses gzip and zstd. One thread at a time per
 * stream. */
#ifndef PH_BASE_COMPRESS_H
#define PH_BASE_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buffer.h"
#include "base/sum/checksum.h"
#include "phloem/status.h"

/* ---- writing ---- */

struct ph__compressor;

/* Creates a compressor; the descriptor is borrowed until destroy. Errors are PH_ERROR_DISK (PH_ERROR_MEMORY)
 * and say only what is wrong, not where: the caller knows the path. */
ph_status ph__compressor_create(int descriptor, const char *path, struct ph__compressor **compressor_out);
void ph__compressor_destroy(struct ph__compressor *compressor); /* writes nothing more */

/* Writes the bytes. is_last ends the member or frame and writes all that is left; nothing may be written
 * afterwards. */
ph_status ph__compressor_write(
    struct ph__compressor *compressor, const void *bytes, size_t size, bool is_last);

/* ---- reading ---- */

/* The first bytes tell how a file is compressed. Consecutive gzip members or zstd frames are one stream. */

struct ph__decompressor;

/* Options of reading a file, borrowed until the file has been read. Zero-initialised: none. */
struct ph__read_options {
    const volatile int *stop_signal;       /* once it is not 0, reading and waiting for input end with
                                              PH_ERROR_INTERRUPTED; NULL: never */
    struct ph__running_checksum *checksum; /* takes in the file's bytes, before decompression; NULL: none */
};

/* Reads a file from its first byte on. The descriptor is borrowed until destroy; options NULL: none. Errors
 * are PH_ERROR_DATA (PH_ERROR_MEMORY) and say what is wrong, not where: the caller knows path and line. */
ph_status ph__decompressor_create(
    int descriptor, const struct ph__read_options *options, struct ph__decompressor **decompressor_out);
/* Does the same for one raw deflate stream, as ZIP archives keep it; ignores the bytes behind its end. */
ph_status ph__decompressor_create_deflate(int descriptor, struct ph__decompressor **decompressor_out);
void ph__decompressor_destroy(struct ph__decompressor *decompressor);

/* Reads at least one byte and up to `size` (> 0); 0 at the end. A stream that ends inside a member or frame
 * is an error. */
ph_status ph__decompressor_read(
    struct ph__decompressor *decompressor, void *buffer, size_t size, size_t *size_out);

/* Tells whether ph__decompressor_seek is possible: the file is neither compressed nor a pipe. */
bool ph__decompressor_is_plain_file(const struct ph__decompressor *decompressor);
/* Moves to a byte of the file. Returns false, without moving, when the stream cannot seek. */
bool ph__decompressor_seek(struct ph__decompressor *decompressor, uint64_t byte);

/* Appends what bytes of gzip or zlib ("deflate" of HTTP) hold to a buffer. PH_ERROR_DATA when they are
 * neither, damaged, cut off or followed by others, or hold more than max_bytes. */
ph_status ph__inflate(const void *bytes, size_t size, uint64_t max_bytes, struct ph__buffer *to);

/* Appends bytes as gzip or zlib, at the fastest level. */
ph_status ph__deflate(const void *bytes, size_t size, bool is_gzip, struct ph__buffer *to);

/* Continues the CRC-32 of ZIP and gzip over `size` more bytes; a CRC starts at 0. */
uint32_t ph__crc32(uint32_t crc, const void *bytes, size_t size);

#endif
