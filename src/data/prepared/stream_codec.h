/* A stream of 32-bit values – one column of a block of encoded rows – as bytes, and back.
 *
 * Two codings; the smaller is taken:
 *   packed      value = base + the value's bits; 0 bits is a constant stream, 32 bits any stream at all
 *   dictionary  the distinct values in order of their first occurrence, then for each value its place among
 * them The dictionary serves hashed ids of few kinds, labels, and floats of small counts, whose bits are far
 * apart. Bits are laid one value after another without gaps, the lowest first, so that any run of values is
 * decoded without those before it. No allocation; any thread. */
#ifndef PH_DATA_STREAM_CODEC_H
#define PH_DATA_STREAM_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH_STREAM_MAX_ENTRIES 4096 /* of a dictionary */
#define PH_STREAM_TABLE_SIZE (2 * PH_STREAM_MAX_ENTRIES)
#define PH_STREAM_OVERREAD_BYTES 8 /* behind a stream's bytes that decoding may read (not use) */

enum ph__stream_coding { PH_STREAM_PACKED, PH_STREAM_DICTIONARY };

/* What stands in front of a stream's bytes in a file: 16 bytes, little-endian. */
struct ph__stream {
    uint8_t coding;       /* ph__stream_coding */
    uint8_t bits;         /* of a value, 0 to 32; of a place in the dictionary, 0 to 12 */
    uint16_t num_entries; /* of the dictionary, else 0 */
    uint32_t base;        /* of packed values, else 0 */
    uint32_t num_values;
    uint32_t offset; /* of the bytes within the block, a multiple of 4; the encoder leaves it to the caller */
};
_Static_assert(sizeof(struct ph__stream) == 16, "a stream's entry has the size that the file gives it");

/* The dictionary in the making: 32 KiB, of any content before. */
struct ph__stream_encoder {
    uint32_t entries[PH_STREAM_MAX_ENTRIES];
    uint16_t table[PH_STREAM_TABLE_SIZE]; /* place in entries + 1; 0: free */
    size_t num_entries;
};

/* Room for the bytes of any stream of so many values (less than 2^30). */
static inline size_t ph__stream_max_bytes(size_t num_values)
{
    return num_values * sizeof(uint32_t);
}

/* Writes the stream's bytes to `bytes` (aligned to 4, room for ph__stream_max_bytes) and returns how many: a
 * multiple of 4. */
size_t ph__stream_encode(struct ph__stream_encoder *encoder, const uint32_t *values, size_t num_values,
    struct ph__stream *stream_out, unsigned char *bytes);

/* How many bytes a stream that is valid in itself has; false when no encoder wrote it. */
bool ph__stream_num_bytes(const struct ph__stream *stream, uint64_t *num_bytes_out);

/* Values first to first + count - 1 (which must be values of the stream); `bytes` are the stream's, whose
 * number ph__stream_num_bytes told, and PH_STREAM_OVERREAD_BYTES more. False when a place is none of the
 * dictionary's: values that were not encoded here. */
bool ph__stream_decode(const struct ph__stream *stream, const unsigned char *bytes, size_t first,
    size_t count, uint32_t *values_out);

#endif
