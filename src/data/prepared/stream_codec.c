#include "data/prepared/stream_codec.h"

#include <string.h>

#define MAX_ENTRY_BITS 12 /* 2^12 = PH_STREAM_MAX_ENTRIES */

/* Returns the least number of bits that hold `number`. */
static unsigned num_bits(uint32_t number)
{
    return number == 0 ? 0 : 32u - (unsigned)__builtin_clz(number);
}

static uint64_t packed_bytes(uint64_t num_values, unsigned bits)
{
    return (num_values * bits + 31) / 32 * 4;
}

/* ---- encoding ---- */

struct packer {
    unsigned char *at;
    uint64_t waiting; /* bits not written yet, the oldest lowest */
    unsigned num_waiting;
};

/* Appends a value of `bits` bits, at most 32. */
static inline void pack(struct packer *packer, uint32_t value, unsigned bits)
{
    packer->waiting |= (uint64_t)value << packer->num_waiting;
    packer->num_waiting += bits;
    if (packer->num_waiting >= 32) {
        uint32_t word = (uint32_t)packer->waiting;
        memcpy(packer->at, &word, sizeof word);
        packer->at += sizeof word;
        packer->waiting >>= 32;
        packer->num_waiting -= 32;
    }
}

static void pack_end(struct packer *packer)
{
    if (packer->num_waiting > 0)
        pack(packer, 0, 32 - packer->num_waiting);
}

/* Returns the most entries that a dictionary may have and still be smaller than `bits` bits a value:
 *     32 entries + num_values ceil(log2(entries)) < num_values bits
 * Less than two entries: a dictionary does not pay. */
static size_t most_entries(uint64_t num_values, unsigned bits)
{
    uint64_t most = 0;
    for (unsigned width = 1; width <= MAX_ENTRY_BITS && width < bits; width++) {
        uint64_t entries = num_values * (bits - width) / 32;
        entries -= entries > 0 && entries * 32 == num_values * (bits - width);
        entries = entries < (uint64_t)1 << width ? entries : (uint64_t)1 << width;
        most = entries > most ? entries : most;
    }
    return (size_t)most;
}

/* Returns the value's slot in the table, or the free slot where it belongs. */
static inline uint16_t *find(struct ph__stream_encoder *encoder, uint32_t value)
{
    size_t slot = (value * 0x9E3779B1u) >> (32 - MAX_ENTRY_BITS - 1);
    while (encoder->table[slot] != 0 && encoder->entries[encoder->table[slot] - 1] != value)
        slot = (slot + 1) % PH_STREAM_TABLE_SIZE;
    return &encoder->table[slot];
}

/* Gathers the distinct values; returns false once there are more than `most`. */
static bool gather(struct ph__stream_encoder *encoder, const uint32_t *values, size_t num_values, size_t most)
{
    memset(encoder->table, 0, sizeof encoder->table);
    encoder->num_entries = 0;
    for (size_t i = 0; i < num_values; i++) {
        uint16_t *place = find(encoder, values[i]);
        if (*place != 0)
            continue;
        if (encoder->num_entries == most)
            return false;
        encoder->entries[encoder->num_entries++] = values[i];
        *place = (uint16_t)encoder->num_entries;
    }
    return true;
}

static size_t encode_packed(
    const uint32_t *values, size_t num_values, const struct ph__stream *stream, unsigned char *bytes)
{
    struct packer packer = {.at = bytes};
    for (size_t i = 0; i < num_values && stream->bits > 0; i++)
        pack(&packer, values[i] - stream->base, stream->bits);
    pack_end(&packer);
    return (size_t)(packer.at - bytes);
}

static size_t encode_dictionary(struct ph__stream_encoder *encoder, const uint32_t *values, size_t num_values,
    struct ph__stream *stream, unsigned char *bytes)
{
    size_t dictionary_bytes = encoder->num_entries * sizeof *encoder->entries;
    *stream = (struct ph__stream){.coding = PH_STREAM_DICTIONARY,
        .bits = (uint8_t)num_bits((uint32_t)encoder->num_entries - 1),
        .num_entries = (uint16_t)encoder->num_entries,
        .num_values = (uint32_t)num_values};
    memcpy(bytes, encoder->entries, dictionary_bytes);
    struct packer packer = {.at = bytes + dictionary_bytes};
    for (size_t i = 0; i < num_values; i++)
        pack(&packer, *find(encoder, values[i]) - 1u, stream->bits);
    pack_end(&packer);
    return (size_t)(packer.at - bytes);
}

size_t ph__stream_encode(struct ph__stream_encoder *encoder, const uint32_t *values, size_t num_values,
    struct ph__stream *stream_out, unsigned char *bytes)
{
    uint32_t least = num_values > 0 ? values[0] : 0, greatest = least;
    for (size_t i = 1; i < num_values; i++) {
        least = values[i] < least ? values[i] : least;
        greatest = values[i] > greatest ? values[i] : greatest;
    }
    *stream_out = (struct ph__stream){.coding = PH_STREAM_PACKED,
        .bits = (uint8_t)num_bits(greatest - least),
        .base = least,
        .num_values = (uint32_t)num_values};
    size_t most = most_entries(num_values, stream_out->bits);
    if (most >= 2 && gather(encoder, values, num_values, most))
        return encode_dictionary(encoder, values, num_values, stream_out, bytes);
    return encode_packed(values, num_values, stream_out, bytes);
}

/* ---- decoding ---- */

bool ph__stream_num_bytes(const struct ph__stream *stream, uint64_t *num_bytes_out)
{
    uint64_t dictionary_bytes = 0;
    if (stream->coding == PH_STREAM_DICTIONARY) {
        if (stream->num_entries == 0 || stream->num_entries > PH_STREAM_MAX_ENTRIES || stream->base != 0 ||
            stream->bits != num_bits(stream->num_entries - 1u))
            return false;
        dictionary_bytes = stream->num_entries * sizeof(uint32_t);
    } else if (stream->coding != PH_STREAM_PACKED || stream->num_entries != 0 || stream->bits > 32) {
        return false;
    }
    *num_bytes_out = dictionary_bytes + packed_bytes(stream->num_values, stream->bits);
    return true;
}

/* Reads values of `bits` bits each and adds base. */
static void unpack(const unsigned char *bytes, unsigned bits, uint32_t base, size_t first, size_t count,
    uint32_t *values_out)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t bit = (uint64_t)first * bits;
    for (size_t i = 0; i < count; i++, bit += bits) {
        uint64_t word;
        memcpy(&word, bytes + bit / 8, sizeof word);
        values_out[i] = base + (uint32_t)(word >> bit % 8 & mask);
    }
}

static bool look_up(const unsigned char *dictionary, uint32_t num_entries, size_t count, uint32_t *values)
{
    uint32_t greatest = 0;
    for (size_t i = 0; i < count; i++)
        greatest = values[i] > greatest ? values[i] : greatest;
    if (greatest >= num_entries)
        return false;
    for (size_t i = 0; i < count; i++)
        memcpy(&values[i], dictionary + values[i] * sizeof *values, sizeof *values);
    return true;
}

bool ph__stream_decode(const struct ph__stream *stream, const unsigned char *bytes, size_t first,
    size_t count, uint32_t *values_out)
{
    size_t dictionary_bytes = stream->num_entries * sizeof(uint32_t);
    if (stream->bits > 0)
        unpack(bytes + dictionary_bytes, stream->bits, stream->base, first, count, values_out);
    else
        for (size_t i = 0; i < count; i++)
            values_out[i] = stream->base;
    return stream->coding == PH_STREAM_PACKED || look_up(bytes, stream->num_entries, count, values_out);
}
