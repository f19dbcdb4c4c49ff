/* A writer of the protobuf wire format (protobuf.dev, "Encoding"), as far as messages with known field
 * numbers need it. A message is a growing buffer. A message inside a message is first written into a buffer
 * of its own. Lack of memory is sticky: later calls do nothing, and has_failed is set. One thread. */
#ifndef PH_BASE_PROTOBUF_H
#define PH_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ph__protobuf { /* zero-initialised: an empty message */
    unsigned char *bytes;
    size_t size, capacity;
    bool has_failed;
};

void ph__protobuf_fini(struct ph__protobuf *message);

/* Appends one field with its tag. */
void ph__protobuf_integer(
    struct ph__protobuf *message, uint32_t field, uint64_t value); /* int64, uint64, enum */
void ph__protobuf_float(struct ph__protobuf *message, uint32_t field, float value);
void ph__protobuf_double(struct ph__protobuf *message, uint32_t field, double value);
/* Appends tag and length only; the caller supplies `size` bytes of content from elsewhere. */
void ph__protobuf_prefix(struct ph__protobuf *message, uint32_t field, uint64_t size);
void ph__protobuf_text(struct ph__protobuf *message, uint32_t field, const char *text); /* UTF-8 */
/* Appends the inner message and empties it, so that its memory serves for the next one. A failure of the
 * inner message becomes the outer one's. */
void ph__protobuf_message(struct ph__protobuf *message, uint32_t field, struct ph__protobuf *inner);
/* Appends encoded fields as they are. */
void ph__protobuf_encoded(struct ph__protobuf *message, const struct ph__protobuf *fields);

#endif
