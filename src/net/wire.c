#include "net/wire.h"

#include <assert.h>
#include <string.h>

#include "base/text/utf8.h"

#define BITS_A_BYTE 8

static const char no_plain_text[] = "a text that is not UTF-8, or has control characters,";
static const char long_text[] = "a text that is too long";

/* ---- writing ---- */

void ph__wire_writer_init(struct ph__wire_writer *writer, void *buffer, size_t capacity)
{
    *writer = (struct ph__wire_writer){.bytes = buffer, .capacity = capacity};
}

void ph__wire_put_bytes(struct ph__wire_writer *writer, const void *bytes, size_t size)
{
    if (writer->fault != NULL || size == 0)
        return;
    if (size > writer->capacity - writer->used) {
        writer->fault = "no room left";
        return;
    }
    memcpy(writer->bytes + writer->used, bytes, size);
    writer->used += size;
}

static void put_number(struct ph__wire_writer *writer, uint64_t number, size_t size)
{
    unsigned char bytes[sizeof number];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(number >> (BITS_A_BYTE * i));
    ph__wire_put_bytes(writer, bytes, size);
}

void ph__wire_put_u8(struct ph__wire_writer *writer, uint8_t number)
{
    put_number(writer, number, sizeof number);
}

void ph__wire_put_u16(struct ph__wire_writer *writer, uint16_t number)
{
    put_number(writer, number, sizeof number);
}

void ph__wire_put_u32(struct ph__wire_writer *writer, uint32_t number)
{
    put_number(writer, number, sizeof number);
}

void ph__wire_put_u64(struct ph__wire_writer *writer, uint64_t number)
{
    put_number(writer, number, sizeof number);
}

void ph__wire_put_f32(struct ph__wire_writer *writer, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    ph__wire_put_u32(writer, bits);
}

void ph__wire_put_text(struct ph__wire_writer *writer, const char *text, size_t max_bytes)
{
    assert(max_bytes <= UINT16_MAX);
    const size_t length = strnlen(text, max_bytes + 1);
    if (writer->fault != NULL)
        return;
    if (length > max_bytes)
        writer->fault = long_text;
    else if (!ph__utf8_is_plain(text, length))
        writer->fault = no_plain_text;
    ph__wire_put_u16(writer, (uint16_t)length);
    ph__wire_put_bytes(writer, text, length);
}

ph_status ph__wire_writer_finish(const struct ph__wire_writer *writer, const char *what, size_t *size_out)
{
    if (writer->fault != NULL)
        return ph_fail(
            PH_ERROR_USAGE, "%s: %s at byte %zu of %zu", what, writer->fault, writer->used, writer->capacity);
    *size_out = writer->used;
    return PH_OK;
}

/* ---- reading ---- */

void ph__wire_reader_init(struct ph__wire_reader *reader, const void *bytes, size_t size)
{
    *reader = (struct ph__wire_reader){.bytes = bytes, .size = size};
}

/* Returns the next bytes, size > 0; NULL when there are fewer, or after a fault. */
static const unsigned char *take(struct ph__wire_reader *reader, size_t size)
{
    if (reader->fault != NULL)
        return NULL;
    if (size > reader->size - reader->at) {
        reader->fault = "cut off";
        return NULL;
    }
    const unsigned char *bytes = reader->bytes + reader->at;
    reader->at += size;
    return bytes;
}

static uint64_t get_number(struct ph__wire_reader *reader, size_t size)
{
    const unsigned char *bytes = take(reader, size);
    uint64_t number = 0;
    for (size_t i = 0; bytes != NULL && i < size; i++)
        number |= (uint64_t)bytes[i] << (BITS_A_BYTE * i);
    return number;
}

uint8_t ph__wire_get_u8(struct ph__wire_reader *reader)
{
    return (uint8_t)get_number(reader, sizeof(uint8_t));
}

uint16_t ph__wire_get_u16(struct ph__wire_reader *reader)
{
    return (uint16_t)get_number(reader, sizeof(uint16_t));
}

uint32_t ph__wire_get_u32(struct ph__wire_reader *reader)
{
    return (uint32_t)get_number(reader, sizeof(uint32_t));
}

uint64_t ph__wire_get_u64(struct ph__wire_reader *reader)
{
    return get_number(reader, sizeof(uint64_t));
}

float ph__wire_get_f32(struct ph__wire_reader *reader)
{
    const uint32_t bits = ph__wire_get_u32(reader);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

void ph__wire_get_bytes(struct ph__wire_reader *reader, size_t size, void *bytes_out)
{
    if (size == 0)
        return;
    const unsigned char *bytes = take(reader, size);
    if (bytes != NULL)
        memcpy(bytes_out, bytes, size);
    else
        memset(bytes_out, 0, size);
}

void ph__wire_get_text(struct ph__wire_reader *reader, size_t max_bytes, char *text_out)
{
    assert(max_bytes <= UINT16_MAX);
    const size_t start = reader->at, length = ph__wire_get_u16(reader);
    text_out[0] = '\0';
    const char *text = length > 0 && length <= max_bytes ? (const char *)take(reader, length) : NULL;
    if (length > max_bytes)
        reader->fault = long_text;
    else if (text != NULL && !ph__utf8_is_plain(text, length))
        reader->fault = no_plain_text;
    if (reader->fault != NULL) {
        reader->at = start;
        return;
    }
    if (text != NULL)
        memcpy(text_out, text, length);
    text_out[length] = '\0';
}

ph_status ph__wire_reader_finish(const struct ph__wire_reader *reader, const char *what)
{
    if (reader->fault != NULL)
        return ph_fail(
            PH_ERROR_DATA, "%s: %s at byte %zu of %zu", what, reader->fault, reader->at, reader->size);
    if (reader->at < reader->size)
        return ph_fail(PH_ERROR_DATA, "%s: %zu bytes too many after the first %zu", what,
            reader->size - reader->at, reader->at);
    return PH_OK;
}
