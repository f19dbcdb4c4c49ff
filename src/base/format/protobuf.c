#include "base/format/protobuf.h"

#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

/* Appends seven bits a byte, the lowest first; the top bit says that more bytes follow. */
void ph__protobuf_varint(struct ph__buffer *message, uint64_t value)
{
    unsigned char bytes[10];
    size_t size = 0;
    do {
        bytes[size] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        size++;
    } while (value > 0);
    ph__buffer_append(message, bytes, size);
}

static void append_tag(struct ph__buffer *message, uint32_t field, enum wire_type type)
{
    ph__protobuf_varint(message, (uint64_t)field << 3 | (uint64_t)type);
}

void ph__protobuf_integer(struct ph__buffer *message, uint32_t field, uint64_t value)
{
    append_tag(message, field, WIRE_VARINT);
    ph__protobuf_varint(message, value);
}

void ph__protobuf_float(struct ph__buffer *message, uint32_t field, float value)
{
    append_tag(message, field, WIRE_FIXED32);
    ph__buffer_append(message, &value, sizeof value);
}

void ph__protobuf_double(struct ph__buffer *message, uint32_t field, double value)
{
    append_tag(message, field, WIRE_FIXED64);
    ph__buffer_append(message, &value, sizeof value);
}

void ph__protobuf_prefix(struct ph__buffer *message, uint32_t field, uint64_t size)
{
    append_tag(message, field, WIRE_LENGTH);
    ph__protobuf_varint(message, size);
}

static void append_bytes(struct ph__buffer *message, uint32_t field, const void *bytes, size_t size)
{
    ph__protobuf_prefix(message, field, size);
    ph__buffer_append(message, bytes, size);
}

void ph__protobuf_text(struct ph__buffer *message, uint32_t field, const char *text)
{
    append_bytes(message, field, text, strlen(text));
}

void ph__protobuf_message(struct ph__buffer *message, uint32_t field, struct ph__buffer *inner)
{
    append_bytes(message, field, inner->bytes, inner->size);
    message->has_failed |= inner->has_failed;
    inner->size = 0;
}

void ph__protobuf_encoded(struct ph__buffer *message, const struct ph__buffer *fields)
{
    ph__buffer_append(message, fields->bytes, fields->size);
    message->has_failed |= fields->has_failed;
}
