/* A writer of the protobuf wire format (protobuf.dev, "Encoding"): just what it takes to write messages whose
 * field numbers are known. A message is a growing buffer; a message inside a message is written into a buffer
 * of its own first. Running out of memory is sticky: later calls do nothing, and has_failed tells. One
 * thread. */
#ifndef PH_BASE_PROTOBUF_H
#define PH_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ph__protobuf { /* zero-initialised is an empty message */
    unsigned char *bytes;
    size_t size, capacity;
    bool has_failed;
};

void ph__protobuf_fini(struct ph__protobuf *message);

/* One field each, with its tag. */
void ph__protobuf_integer(
    struct ph__protobuf *message, uint32_t field, uint64_t value); /* int64, uint64, enum */
void ph__protobuf_float(struct ph__protobuf *message, uint32_t field, float value);
void ph__protobuf_double(struct ph__protobuf *message, uint32_t field, double value);
/* Tag and length only: `size` bytes of content must follow from elsewhere. */
void ph__protobuf_prefix(struct ph__protobuf *message, uint32_t field, uint64_t size);
void ph__protobuf_text(struct ph__protobuf *message, uint32_t field, const char *text); /* UTF-8 */
/* The inner message is emptied, so that its memory serves for the next one; its failure becomes the outer
 * one's. */
void ph__protobuf_message(struct ph__protobuf *message, uint32_t field, struct ph__protobuf *inner);
/* The fields of `fields` as they are. */
void ph__protobuf_encoded(struct ph__protobuf *message, const struct ph__protobuf *fields);

#endif
