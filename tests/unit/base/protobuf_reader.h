/* Reads protobuf messages back, written apart from src/base/format/protobuf.c: fields are looked up by
 * number. */
#ifndef PH_TESTS_PROTOBUF_READER_H
#define PH_TESTS_PROTOBUF_READER_H

#include <string.h>

#include "support/test_support.h"

struct message {
    const unsigned char *bytes, *end;
};

static uint64_t read_varint(struct message *message)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(message->bytes < message->end && shift < 64);
        const unsigned char byte = *message->bytes++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* How many fields `number` there are; of the index-th, if there is one, the integer or the bytes (texts,
 * messages, floats, doubles). */
static size_t read_fields(
    struct message message, uint64_t number, size_t index, uint64_t *value_out, struct message *inner_out)
{
    size_t count = 0;
    while (message.bytes < message.end) {
        const uint64_t tag = read_varint(&message);
        struct message inner = {message.bytes, message.bytes};
        uint64_t value = 0;
        if (tag % 8 == 0) {
            value = read_varint(&message);
        } else {
            const uint64_t size = tag % 8 == 2 ? read_varint(&message) : tag % 8 == 1 ? 8 : 4;
            assert_true(tag % 8 == 1 || tag % 8 == 2 || tag % 8 == 5);
            assert_true(size <= (uint64_t)(message.end - message.bytes));
            inner = (struct message){message.bytes, message.bytes + size};
            message.bytes += size;
        }
        if (tag / 8 != number)
            continue;
        if (count == index) {
            *value_out = value;
            *inner_out = inner;
        }
        count++;
    }
    return count;
}

static size_t num_fields(struct message message, uint64_t number)
{
    uint64_t value;
    struct message inner;
    return read_fields(message, number, SIZE_MAX, &value, &inner);
}

static uint64_t integer_field(struct message message, uint64_t number, size_t index)
{
    uint64_t value = 0;
    struct message inner;
    assert_true(read_fields(message, number, index, &value, &inner) > index);
    return value;
}

static struct message inner_field(struct message message, uint64_t number, size_t index)
{
    uint64_t value;
    struct message inner = {0};
    assert_true(read_fields(message, number, index, &value, &inner) > index);
    return inner;
}

static void assert_text_field(struct message message, uint64_t number, size_t index, const char *text)
{
    const struct message inner = inner_field(message, number, index);
    assert_int_equal(inner.end - inner.bytes, strlen(text));
    assert_memory_equal(inner.bytes, text, strlen(text));
}

#endif
