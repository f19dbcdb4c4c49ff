#include "base/format/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

void ph__protobuf_fini(struct ph__protobuf *message)
{
    free(message->bytes);
    *message = (struct ph__protobuf){0};
}

static void append(struct ph__protobuf *message, const void *bytes, size_t size)
{
    size_t total;
    if (message->has_failed || size == 0)
        return;
    if (!ph__size_add(message->size, size, &total) ||
        ph__array_reserve((void **)&message->bytes, &message->capacity, total, 1) != PH_OK) {
        message->has_failed = true;
        return;
    }
    memcpy(message->bytes + message->size, bytes, size);
    message->size = total;
}

/* Appends seven bits a byte, the lowest first; the top bit says that more bytes follow. */
static void append_varint(struct ph__protobuf *message, uint64_t value)
{
    unsigned char bytes[10];
    size_t size = 0;
    do {
        bytes[size] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        size++;
    } while (value > 0);
    append(message, bytes, size);
}

static void append_tag(struct ph__protobuf *message, uint32_t field, enum wire_type type)
{
    append_varint(message, (uint64_t)field << 3 | (uint64_t)type);
}

void ph__protobuf_integer(struct ph__protobuf *message, uint32_t field, uint64_t value)
{
    append_tag(message, field, WIRE_VARINT);
    append_varint(message, value);
}

void ph__protobuf_float(struct ph__protobuf *message, uint32_t field, float value)
{
    append_tag(message, field, WIRE_FIXED32);
    append(message, &value, sizeof value);
}

void ph__protobuf_double(struct ph__protobuf *message, uint32_t field, double value)
{
    append_tag(message, field, WIRE_FIXED64);
    append(message, &value, sizeof value);
}

void ph__protobuf_prefix(struct ph__protobuf *message, uint32_t field, uint64_t size)
{
    append_tag(message, field, WIRE_LENGTH);
    append_varint(message, size);
}

static void append_bytes(struct ph__protobuf *message, uint32_t field, const void *bytes, size_t size)
{
    ph__protobuf_prefix(message, field, size);
    append(message, bytes, size);
}

void ph__protobuf_text(struct ph__protobuf *message, uint32_t field, const char *text)
{
    append_bytes(message, field, text, strlen(text));
}

void ph__protobuf_message(struct ph__protobuf *message, uint32_t field, struct ph__protobuf *inner)
{
    append_bytes(message, field, inner->bytes, inner->size);
    message->has_failed |= inner->has_failed;
    inner->size = 0;
}

void ph__protobuf_encoded(struct ph__protobuf *message, const struct ph__protobuf *fields)
{
    append(message, fields->bytes, fields->size);
    message->has_failed |= fields->has_failed;
}
