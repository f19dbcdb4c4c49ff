/* Decompression, pulled. Compressed bytes wait in `input`. Each format is one function that turns some of
 * them into output; the function stops when it has made some output, when the stream is over, or when it
 * needs more input. */
#include "base/file/compress.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "base/memory/memory.h"
#include "base/thread/stop.h"

#ifndef PH_COMPRESSED_BUFFER_BYTES /* the fuzzing build makes it small */
#define PH_COMPRESSED_BUFFER_BYTES ((size_t)256 << 10)
#endif
#define MAGIC_BYTES 4
#define WAIT_MS 100 /* between looks at the signal: one that comes just before poll does not wake it */

struct ph__decompressor {
    int descriptor;
    struct ph__read_options options;
    uint64_t next_byte; /* offset in the file of the first byte that has not been read */
    bool is_input_over; /* read(2) has returned 0 */
    bool is_inside;     /* a member or frame has begun and not ended */
    ph_status (*read)(
        struct ph__decompressor *decompressor, unsigned char *buffer, size_t size, size_t *size_out);
    z_stream *gzip;
    ZSTD_DStream *zstd;
    size_t start, end; /* range of the waiting bytes in input */
    unsigned char input[PH_COMPRESSED_BUFFER_BYTES];
};

/* Waits until input is readable or a signal stops the reading: a pipe may never deliver. */
static ph_status wait_input(const struct ph__decompressor *decompressor)
{
    struct pollfd input = {.fd = decompressor->descriptor, .events = POLLIN};
    if (decompressor->options.stop_signal == NULL)
        return PH_OK;
    int outcome = 0;
    while (!ph__is_stopped(decompressor->options.stop_signal) &&
           (outcome == 0 || (outcome < 0 && errno == EINTR)))
        outcome = poll(&input, 1, WAIT_MS);
    return ph__is_stopped(decompressor->options.stop_signal)
               ? ph_fail(PH_ERROR_INTERRUPTED, "stopped by a signal while reading")
               : PH_OK;
}

/* Reads behind the waiting bytes, after moving them to the front of the buffer. */
static ph_status fill(struct ph__decompressor *decompressor)
{
    if (decompressor->start > 0) {
        memmove(decompressor->input, decompressor->input + decompressor->start,
            decompressor->end - decompressor->start);
        decompressor->end -= decompressor->start;
        decompressor->start = 0;
    }
    ssize_t count = 0;
    PH_TRY(wait_input(decompressor));
    do
        count = read(decompressor->descriptor, decompressor->input + decompressor->end,
            PH_COMPRESSED_BUFFER_BYTES - decompressor->end);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return ph_fail(PH_ERROR_DATA, "cannot read: %s", strerror(errno));
    if (decompressor->options.checksum != NULL)
        ph__running_checksum_add(decompressor->options.checksum, decompressor->next_byte,
            decompressor->input + decompressor->end, (size_t)count);
    decompressor->is_input_over = count == 0;
    decompressor->end += (size_t)count;
    decompressor->next_byte += (uint64_t)count;
    return PH_OK;
}

static ph_status read_plain(
    struct ph__decompressor *decompressor, unsigned char *buffer, size_t size, size_t *size_out)
{
    size_t waiting = decompressor->end - decompressor->start;
    size_t count = waiting < size ? waiting : size;
    memcpy(buffer, decompressor->input + decompressor->start, count);
    decompressor->start += count;
    *size_out = count;
    return PH_OK;
}

/* Begins the next gzip member. Zeros between members are padding (tapes, block devices); any other byte that
 * begins no member is an error. */
static ph_status begin_member(struct ph__decompressor *decompressor)
{
    while (decompressor->start < decompressor->end && decompressor->input[decompressor->start] == 0)
        decompressor->start++;
    if (decompressor->start == decompressor->end)
        return PH_OK;
    if (decompressor->input[decompressor->start] != 0x1f)
        return ph_fail(PH_ERROR_DATA, "bytes that are not gzip follow the gzip data");
    if (inflateReset(decompressor->gzip) != Z_OK)
        return ph_fail(PH_ERROR_BUG, "zlib cannot begin another member");
    decompressor->is_inside = true;
    return PH_OK;
}

/* Inflates some of the stream that has begun; `format` names the stream in errors. */
static ph_status inflate_some(struct ph__decompressor *decompressor, const char *format,
    unsigned char *buffer, size_t size, size_t *size_out)
{
    z_stream *gzip = decompressor->gzip;
    uInt capacity = size < (1u << 30) ? (uInt)size : 1u << 30;
    gzip->next_in = decompressor->input + decompressor->start;
    gzip->avail_in = (uInt)(decompressor->end - decompressor->start);
    gzip->next_out = buffer;
    gzip->avail_out = capacity;
    int result = inflate(gzip, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return ph_fail(result == Z_MEM_ERROR ? PH_ERROR_MEMORY : PH_ERROR_DATA, "corrupt %s data (%s)",
            format, gzip->msg != NULL ? gzip->msg : "zlib");
    decompressor->start = decompressor->end - gzip->avail_in;
    decompressor->is_inside = result != Z_STREAM_END;
    *size_out = capacity - gzip->avail_out;
    return PH_OK;
}

static ph_status read_gzip(
    struct ph__decompressor *decompressor, unsigned char *buffer, size_t size, size_t *size_out)
{
    if (!decompressor->is_inside)
        PH_TRY(begin_member(decompressor));
    *size_out = 0;
    return decompressor->is_inside ? inflate_some(decompressor, "gzip", buffer, size, size_out) : PH_OK;
}

static ph_status read_zstd(
    struct ph__decompressor *decompressor, unsigned char *buffer, size_t size, size_t *size_out)
{
    ZSTD_inBuffer in = {decompressor->input, decompressor->end, decompressor->start};
    ZSTD_outBuffer out = {buffer, size, 0};
    *size_out = 0;
    if (!decompressor->is_inside && in.pos == in.size)
        return PH_OK;
    size_t result = ZSTD_decompressStream(decompressor->zstd, &out, &in);
    if (ZSTD_isError(result))
        return ph_fail(PH_ERROR_DATA, "corrupt zstd data (%s)", ZSTD_getErrorName(result));
    decompressor->start = in.pos;
    decompressor->is_inside = result != 0;
    *size_out = out.pos;
    return PH_OK;
}

/* Reads one deflate stream; is_inside turns false at its end, and later bytes are ignored. */
static ph_status read_deflate(
    struct ph__decompressor *decompressor, unsigned char *buffer, size_t size, size_t *size_out)
{
    if (decompressor->is_inside)
        return inflate_some(decompressor, "deflate", buffer, size, size_out);
    decompressor->start = decompressor->end = 0;
    decompressor->is_input_over = true;
    *size_out = 0;
    return PH_OK;
}

/* Sets up zlib. window is zlib's: 15, plus 16 for gzip's frame, or negative for no frame. */
static ph_status use_zlib(struct ph__decompressor *decompressor, int window)
{
    decompressor->gzip = calloc(1, sizeof *decompressor->gzip);
    if (decompressor->gzip != NULL && inflateInit2(decompressor->gzip, window) == Z_OK)
        return PH_OK;
    free(decompressor->gzip);
    decompressor->gzip = NULL;
    return ph__out_of_memory("cannot begin to read compressed data");
}

static ph_status use_gzip(struct ph__decompressor *decompressor)
{
    decompressor->read = read_gzip;
    return use_zlib(decompressor, 15 + 16);
}

static ph_status use_deflate(struct ph__decompressor *decompressor)
{
    decompressor->read = read_deflate;
    decompressor->is_inside = true;
    return use_zlib(decompressor, -15);
}

static ph_status use_zstd(struct ph__decompressor *decompressor)
{
    decompressor->read = read_zstd;
    decompressor->zstd = ZSTD_createDStream();
    if (decompressor->zstd != NULL)
        return PH_OK;
    return ph__out_of_memory("cannot begin to read zstd");
}

static bool is_gzip(const unsigned char *magic)
{
    return magic[0] == 0x1f && magic[1] == 0x8b;
}

/* Tells whether a zstd frame begins here: a frame of data or a skippable one. */
static bool is_zstd(const unsigned char *magic)
{
    static const unsigned char frame[MAGIC_BYTES] = {0x28, 0xb5, 0x2f, 0xfd};
    static const unsigned char skippable[MAGIC_BYTES - 1] = {0x2a, 0x4d, 0x18};
    return memcmp(magic, frame, sizeof frame) == 0 ||
           ((magic[0] & 0xf0) == 0x50 && memcmp(magic + 1, skippable, sizeof skippable) == 0);
}

static ph_status choose_format(struct ph__decompressor *decompressor)
{
    while (decompressor->end < MAGIC_BYTES && !decompressor->is_input_over)
        PH_TRY(fill(decompressor));
    decompressor->read = read_plain;
    if (decompressor->end >= 2 && is_gzip(decompressor->input))
        return use_gzip(decompressor);
    if (decompressor->end >= MAGIC_BYTES && is_zstd(decompressor->input))
        return use_zstd(decompressor);
    return PH_OK;
}

/* Creates a decompressor; `use` chooses its format. */
static ph_status create(int descriptor, const struct ph__read_options *options,
    ph_status (*use)(struct ph__decompressor *decompressor), struct ph__decompressor **decompressor_out)
{
    struct ph__decompressor *decompressor = malloc(sizeof *decompressor);
    if (decompressor == NULL)
        return ph__out_of_memory("cannot begin to read");
    memset(decompressor, 0, offsetof(struct ph__decompressor, input));
    decompressor->descriptor = descriptor;
    if (options != NULL)
        decompressor->options = *options;
    ph_status status = use(decompressor);
    if (status != PH_OK) {
        ph__decompressor_destroy(decompressor);
        return status;
    }
    *decompressor_out = decompressor;
    return PH_OK;
}

ph_status ph__decompressor_create(
    int descriptor, const struct ph__read_options *options, struct ph__decompressor **decompressor_out)
{
    return create(descriptor, options, choose_format, decompressor_out);
}

ph_status ph__decompressor_create_deflate(int descriptor, struct ph__decompressor **decompressor_out)
{
    return create(descriptor, NULL, use_deflate, decompressor_out);
}

void ph__decompressor_destroy(struct ph__decompressor *decompressor)
{
    if (decompressor == NULL)
        return;
    if (decompressor->gzip != NULL)
        inflateEnd(decompressor->gzip);
    free(decompressor->gzip);
    ZSTD_freeDStream(decompressor->zstd);
    free(decompressor);
}

ph_status ph__decompressor_read(
    struct ph__decompressor *decompressor, void *buffer, size_t size, size_t *size_out)
{
    size_t made = 0;
    for (;;) {
        size_t former = decompressor->start;
        PH_TRY(decompressor->read(decompressor, buffer, size, &made));
        if (made > 0)
            break;
        if (decompressor->start != former) /* a header, an empty member, a skipped frame */
            continue;
        if (decompressor->start < decompressor->end)
            return ph_fail(PH_ERROR_DATA, "corrupt compressed data");
        if (decompressor->is_input_over && decompressor->is_inside)
            return ph_fail(PH_ERROR_DATA, "the compressed data ends too early: the file is cut off");
        if (decompressor->is_input_over)
            break;
        PH_TRY(fill(decompressor));
    }
    *size_out = made;
    return PH_OK;
}

bool ph__decompressor_is_plain_file(const struct ph__decompressor *decompressor)
{
    return decompressor->read == read_plain && lseek(decompressor->descriptor, 0, SEEK_CUR) >= 0;
}

bool ph__decompressor_seek(struct ph__decompressor *decompressor, uint64_t byte)
{
    if (decompressor->read != read_plain || byte > INT64_MAX ||
        lseek(decompressor->descriptor, (off_t)byte, SEEK_SET) < 0)
        return false;
    decompressor->start = decompressor->end = 0;
    decompressor->is_input_over = false;
    decompressor->next_byte = byte;
    return true;
}

uint32_t ph__crc32(uint32_t crc, const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(crc, bytes, size);
}
