/* Compression, pushed: each format is one function that takes all of its input and writes the output that it
 * makes. */
#include "base/file/compress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "base/file/file.h"
#include "base/memory/memory.h"

#define OUTPUT_BYTES ((size_t)256 << 10)

struct ph__compressor {
    int descriptor;
    ph_status (*write)(struct ph__compressor *compressor, const void *bytes, size_t size, bool is_last);
    z_stream *gzip;
    ZSTD_CStream *zstd;
    unsigned char output[OUTPUT_BYTES];
};

static ph_status write_plain(struct ph__compressor *compressor, const void *bytes, size_t size, bool is_last)
{
    (void)is_last;
    return ph__write_all(compressor->descriptor, bytes, size);
}

/* Compresses one part of the input: deflate takes 32-bit sizes. */
static ph_status deflate_part(
    struct ph__compressor *compressor, const unsigned char *bytes, uInt size, int flush)
{
    z_stream *gzip = compressor->gzip;
    union {
        const unsigned char *constant;
        unsigned char *written; /* zlib's field lacks the const that its contract gives */
    } input = {.constant = bytes};
    gzip->next_in = input.written;
    gzip->avail_in = size;
    do {
        gzip->next_out = compressor->output;
        gzip->avail_out = (uInt)OUTPUT_BYTES;
        if (deflate(gzip, flush) == Z_STREAM_ERROR)
            return ph_fail(PH_ERROR_BUG, "zlib cannot compress");
        PH_TRY(ph__write_all(compressor->descriptor, compressor->output, OUTPUT_BYTES - gzip->avail_out));
    } while (gzip->avail_out == 0);
    return PH_OK;
}

static ph_status write_gzip(struct ph__compressor *compressor, const void *bytes, size_t size, bool is_last)
{
    const unsigned char *at = bytes;
    while (size > (1u << 30)) {
        PH_TRY(deflate_part(compressor, at, 1u << 30, Z_NO_FLUSH));
        at += 1u << 30;
        size -= 1u << 30;
    }
    return deflate_part(compressor, at, (uInt)size, is_last ? Z_FINISH : Z_NO_FLUSH);
}

static ph_status write_zstd(struct ph__compressor *compressor, const void *bytes, size_t size, bool is_last)
{
    ZSTD_inBuffer in = {bytes, size, 0};
    bool is_done = false;
    while (!is_done) {
        ZSTD_outBuffer out = {compressor->output, OUTPUT_BYTES, 0};
        size_t left =
            ZSTD_compressStream2(compressor->zstd, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return ph_fail(PH_ERROR_BUG, "zstd cannot compress: %s", ZSTD_getErrorName(left));
        PH_TRY(ph__write_all(compressor->descriptor, compressor->output, out.pos));
        is_done = is_last ? left == 0 : in.pos == in.size;
    }
    return PH_OK;
}

static bool choose_format(struct ph__compressor *compressor, const char *path)
{
    compressor->write = write_plain;
    if (ph__path_ends_in(path, ".zst")) {
        compressor->write = write_zstd;
        compressor->zstd = ZSTD_createCStream();
        return compressor->zstd != NULL;
    }
    if (!ph__path_ends_in(path, ".gz"))
        return true;
    compressor->write = write_gzip;
    z_stream *gzip = calloc(1, sizeof *gzip);
    if (gzip == NULL)
        return false;
    int window = 15 + 16; /* 16: gzip, not zlib */
    if (deflateInit2(gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return false;
    }
    compressor->gzip = gzip;
    return true;
}

ph_status ph__compressor_create(int descriptor, const char *path, struct ph__compressor **compressor_out)
{
    struct ph__compressor *compressor = malloc(sizeof *compressor);
    if (compressor == NULL)
        return ph__out_of_memory("cannot begin to write");
    memset(compressor, 0, offsetof(struct ph__compressor, output));
    compressor->descriptor = descriptor;
    if (!choose_format(compressor, path)) {
        ph__compressor_destroy(compressor);
        return ph__out_of_memory("cannot begin to compress");
    }
    *compressor_out = compressor;
    return PH_OK;
}

void ph__compressor_destroy(struct ph__compressor *compressor)
{
    if (compressor == NULL)
        return;
    if (compressor->gzip != NULL)
        deflateEnd(compressor->gzip);
    free(compressor->gzip);
    ZSTD_freeCStream(compressor->zstd);
    free(compressor);
}

ph_status ph__compressor_write(
    struct ph__compressor *compressor, const void *bytes, size_t size, bool is_last)
{
    return compressor->write(compressor, bytes, size, is_last);
}
