#include "base/memory/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

#define KEPT_BYTES ((size_t)1 << 20)

struct ph__bytes ph__bytes_of(const char *text)
{
    return (struct ph__bytes){text, text != NULL ? strlen(text) : 0};
}

bool ph__bytes_are(struct ph__bytes bytes, const char *text)
{
    if (bytes.size == 0)
        return text[0] == '\0';
    return text[0] == bytes.bytes[0] && strnlen(text, bytes.size + 1) == bytes.size &&
           memcmp(text, bytes.bytes, bytes.size) == 0;
}

void ph__buffer_fini(struct ph__buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct ph__buffer){0};
}

void ph__buffer_clear(struct ph__buffer *buffer)
{
    buffer->size = 0;
    buffer->has_failed = false;
}

void ph__buffer_recycle(struct ph__buffer *buffer)
{
    if (buffer->capacity > KEPT_BYTES)
        ph__buffer_fini(buffer);
    ph__buffer_clear(buffer);
}

struct ph__bytes ph__buffer_bytes(const struct ph__buffer *buffer)
{
    return (struct ph__bytes){(const char *)buffer->bytes, buffer->size};
}

void *ph__buffer_extend(struct ph__buffer *buffer, size_t size)
{
    size_t total;
    if (buffer->has_failed || !ph__size_add(buffer->size, size, &total) ||
        ph__array_reserve((void **)&buffer->bytes, &buffer->capacity, total, 1) != PH_OK) {
        buffer->has_failed = true;
        return NULL;
    }
    void *room = buffer->bytes + buffer->size;
    buffer->size = total;
    return room;
}

void ph__buffer_append(struct ph__buffer *buffer, const void *bytes, size_t size)
{
    void *room = size > 0 ? ph__buffer_extend(buffer, size) : NULL;
    if (room != NULL)
        memcpy(room, bytes, size);
}

void ph__buffer_append_text(struct ph__buffer *buffer, const char *text)
{
    ph__buffer_append(buffer, text, strlen(text));
}
