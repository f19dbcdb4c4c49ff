/* Bytes: borrowed runs of them, and a growing buffer. A buffer that lacks memory writes nothing more and
 * remembers it, so that writers need no checks. One thread at a time. */
#ifndef PH_BASE_BUFFER_H
#define PH_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct ph__bytes {
    const char *bytes; /* (size), borrowed; not NUL-terminated */
    size_t size;
};

/* Returns the bytes of a text without its NUL; NULL is no bytes. */
struct ph__bytes ph__bytes_of(const char *text);
/* Tells whether the bytes are those of the text. */
bool ph__bytes_are(struct ph__bytes bytes, const char *text);

struct ph__buffer { /* zero-initialised is empty */
    unsigned char *bytes;
    size_t size, capacity;
    bool has_failed;
};

void ph__buffer_fini(struct ph__buffer *buffer);
void ph__buffer_clear(struct ph__buffer *buffer); /* keeps the memory */
/* Empties a buffer for its next use, and gives its memory back where that is more than 1 MiB. */
void ph__buffer_recycle(struct ph__buffer *buffer);

/* Returns what the buffer holds, borrowed until it changes. */
struct ph__bytes ph__buffer_bytes(const struct ph__buffer *buffer);

/* Appends bytes. */
void ph__buffer_append(struct ph__buffer *buffer, const void *bytes, size_t size);
void ph__buffer_append_text(struct ph__buffer *buffer, const char *text);
/* Appends room for `size` bytes, which the caller fills. Returns NULL without memory. */
void *ph__buffer_extend(struct ph__buffer *buffer, size_t size);

#endif
