/* Compression from memory to memory, for bodies of requests. */
#include "base/file/compress.h"

#include <limits.h>

#include <zlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

#define PIECE_BYTES ((size_t)64 << 10) /* of output at a time */
#define ANY_FORMAT 32                  /* of zlib: added to the window's bits, gzip and zlib are told apart */
#define GZIP 16

/* Runs `step` over the input until it says that the stream is over; appends its output. */
static ph_status run(z_stream *stream, int (*step)(z_stream *stream, int flush), int flush,
    uint64_t max_bytes, struct ph__buffer *to)
{
    int outcome = Z_OK;
    const size_t start = to->size;
    while (outcome == Z_OK) {
        unsigned char *room = ph__buffer_extend(to, PIECE_BYTES);
        if (room == NULL)
            return ph__out_of_memory("a body");
        stream->next_out = room;
        stream->avail_out = PIECE_BYTES;
        outcome = step(stream, flush);
        to->size -= stream->avail_out;
        if (to->size - start > max_bytes)
            return ph_fail(
                PH_ERROR_DATA, "the body holds more than %llu bytes", (unsigned long long)max_bytes);
    }
    if (outcome == Z_MEM_ERROR)
        return ph__out_of_memory("a body");
    if (outcome != Z_STREAM_END || stream->avail_in > 0)
        return ph_fail(PH_ERROR_DATA, "the body is not compressed as it says, or it is damaged or cut off");
    return PH_OK;
}

ph_status ph__inflate(const void *bytes, size_t size, uint64_t max_bytes, struct ph__buffer *to)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (unsigned)size};
    if (size > UINT_MAX)
        return ph_fail(PH_ERROR_DATA, "a compressed body of %zu bytes is too large", size);
    if (inflateInit2(&stream, MAX_WBITS + ANY_FORMAT) != Z_OK)
        return ph__out_of_memory("a body");
    const ph_status status = run(&stream, inflate, Z_NO_FLUSH, max_bytes, to);
    inflateEnd(&stream);
    return status;
}

ph_status ph__deflate(const void *bytes, size_t size, bool is_gzip, struct ph__buffer *to)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (unsigned)size};
    if (size > UINT_MAX)
        return ph_fail(PH_ERROR_DATA, "a body of %zu bytes is too large", size);
    if (deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + (is_gzip ? GZIP : 0), 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return ph__out_of_memory("a body");
    const ph_status status = run(&stream, deflate, Z_FINISH, UINT64_MAX, to);
    deflateEnd(&stream);
    return status;
}
