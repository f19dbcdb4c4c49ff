/* Encodes a stream of 32-bit values – one column of a block of encoded rows – as bytes, and decodes it.
 *
 * Two codings; the smaller is taken:
 *   packed      value = base + the value's bits; 0 bits is a constant stream, 32 bits any stream at all
 *   dictionary  the distinct values in order of their first occurrence, then for each value its place among
 *               them
 * The dictionary serves hashed ids of few kinds, labels, and floats of small counts, whose bits are far
 * apart. Bits are laid one value after another without gaps, the lowest first, so that any run of values is
 * decoded without the values before it. No allocation; any thread. */
#ifndef PH_DATA_STREAM_CODEC_H
#define PH_DATA_STREAM_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH_STREAM_MAX_ENTRIES 4096 /* entries of a dictionary */
#define PH_STREAM_TABLE_SIZE (2 * PH_STREAM_MAX_ENTRIES)
#define PH_STREAM_OVERREAD_BYTES 8 /* bytes after a stream's that decoding may read (not use) */

enum ph__stream_coding { PH_STREAM_PACKED, PH_STREAM_DICTIONARY };

/* Directory entry of a stream in a file: 16 bytes, little-endian. */
struct ph__stream {
    uint8_t coding;       /* ph__stream_coding */
    uint8_t bits;         /* bits of a value, 0 to 32; of a place in the dictionary, 0 to 12 */
    uint16_t num_entries; /* entries of the dictionary, else 0 */
    uint32_t base;        /* base of packed values, else 0 */
    uint32_t num_values;
    uint32_t offset; /* offset of the bytes within the block, a multiple of 4; set by the encoder's caller */
};
_Static_assert(sizeof(struct ph__stream) == 16, "a stream's entry has the size that the file gives it");

/* A dictionary in the making: 32 KiB, with any initial content. */
struct ph__stream_encoder {
    uint32_t entries[PH_STREAM_MAX_ENTRIES];
    uint16_t table[PH_STREAM_TABLE_SIZE]; /* place in entries + 1; 0: free */
    size_t num_entries;
};

/* Returns the most bytes that a stream of num_values values (less than 2^30) can take. */
static inline size_t ph__stream_max_bytes(size_t num_values)
{
    return num_values * sizeof(uint32_t);
}

/* Writes the stream's bytes to `bytes` (aligned to 4, room for ph__stream_max_bytes). Returns their number, a
 * multiple of 4. */
size_t ph__stream_encode(struct ph__stream_encoder *encoder, const uint32_t *values, size_t num_values,
    struct ph__stream *stream_out, unsigned char *bytes);

/* Gives the number of bytes of a stream; returns false when no encoder can have written the entry. */
bool ph__stream_num_bytes(const struct ph__stream *stream, uint64_t *num_bytes_out);

/* Decodes values first to first + count - 1, which must be values of the stream. `bytes` holds as many bytes
 * as ph__stream_num_bytes gives, and PH_STREAM_OVERREAD_BYTES more. Returns false when a place is not in the
 * dictionary: no encoder wrote these bytes. */
bool ph__stream_decode(const struct ph__stream *stream, const unsigned char *bytes, size_t first,
    size_t count, uint32_t *values_out);

#endif
