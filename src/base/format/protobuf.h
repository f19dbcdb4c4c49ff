/* A writer of the protobuf wire format (protobuf.dev, "Encoding"), as far as messages with known field
 * numbers need it. A message is a growing buffer (base/memory/buffer.h). A message inside a message is first
 * written into a buffer of its own. One thread. */
#ifndef PH_BASE_PROTOBUF_H
#define PH_BASE_PROTOBUF_H

#include <stdint.h>

#include "base/memory/buffer.h"

/* Appends a number as a varint, without a tag: the length before a message of a file, or a member of a packed
 * field. */
void ph__protobuf_varint(struct ph__buffer *message, uint64_t value);

/* Appends one field with its tag. */
void ph__protobuf_integer(
    struct ph__buffer *message, uint32_t field, uint64_t value); /* int64, uint64, enum */
void ph__protobuf_float(struct ph__buffer *message, uint32_t field, float value);
void ph__protobuf_double(struct ph__buffer *message, uint32_t field, double value);
/* Appends tag and length only; the caller supplies `size` bytes of content from elsewhere. */
void ph__protobuf_prefix(struct ph__buffer *message, uint32_t field, uint64_t size);
void ph__protobuf_text(struct ph__buffer *message, uint32_t field, const char *text); /* UTF-8 */
/* Appends the inner message and empties it, so that its memory serves for the next one. A failure of the
 * inner message becomes the outer one's. */
void ph__protobuf_message(struct ph__buffer *message, uint32_t field, struct ph__buffer *inner);
/* Appends encoded fields as they are. */
void ph__protobuf_encoded(struct ph__buffer *message, const struct ph__buffer *fields);

#endif
