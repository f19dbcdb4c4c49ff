/* Bytes as the protobuf encoding guide gives them, or worked out from it by hand. */
#include "base/format/protobuf.h"

#include "support/test_support.h"

static void assert_bytes(const struct ph__buffer *message, const void *expected, size_t size)
{
    assert_false(message->has_failed);
    assert_int_equal(message->size, size);
    assert_memory_equal(message->bytes, expected, size);
}

#define ASSERT_BYTES(message, ...) \
    assert_bytes(message, (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__}))

/* The guide's first example: field 1 = 150. */
static void integers_are_varints_lowest_bits_first(void **state)
{
    (void)state;
    struct ph__buffer message = {0};
    ph__protobuf_integer(&message, 1, 150);
    ASSERT_BYTES(&message, 0x08, 0x96, 0x01);
    ph__buffer_fini(&message);
}

static void small_and_largest_integers_take_one_and_ten_bytes(void **state)
{
    (void)state;
    struct ph__buffer message = {0};
    ph__protobuf_integer(&message, 2, 0);
    ph__protobuf_integer(&message, 2, 127);
    ph__protobuf_integer(&message, 2, 128);
    ph__protobuf_integer(&message, 2, (uint64_t)INT64_C(-1));
    ASSERT_BYTES(&message, 0x10, 0x00, 0x10, 0x7f, 0x10, 0x80, 0x01, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0x01);
    ph__buffer_fini(&message);
}

/* Field 20 does not fit into a tag of one byte: 20 * 8 = 160 = 0xa0 0x01. */
static void tags_of_large_fields_take_two_bytes(void **state)
{
    (void)state;
    struct ph__buffer message = {0};
    ph__protobuf_integer(&message, 20, 2);
    ASSERT_BYTES(&message, 0xa0, 0x01, 0x02);
    ph__buffer_fini(&message);
}

/* 1.0f is 0x3f800000. */
static void floats_are_four_bytes_little_endian(void **state)
{
    (void)state;
    struct ph__buffer message = {0};
    ph__protobuf_float(&message, 2, 1.0f);
    ASSERT_BYTES(&message, 0x15, 0x00, 0x00, 0x80, 0x3f);
    ph__buffer_fini(&message);
}

/* 1.0 is 0x3ff0000000000000. */
static void doubles_are_eight_bytes_little_endian(void **state)
{
    (void)state;
    struct ph__buffer message = {0};
    ph__protobuf_double(&message, 1, 1.0);
    ASSERT_BYTES(&message, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf0, 0x3f);
    ph__buffer_fini(&message);
}

/* The guide's string example: field 2 = "testing". */
static void texts_carry_their_length(void **state)
{
    (void)state;
    struct ph__buffer message = {0};
    ph__protobuf_text(&message, 2, "testing");
    ph__protobuf_text(&message, 3, "");
    ASSERT_BYTES(&message, 0x12, 0x07, 't', 'e', 's', 't', 'i', 'n', 'g', 0x1a, 0x00);
    ph__buffer_fini(&message);
}

/* The guide's example of a message in field 3 whose field 1 is 150. */
static void inner_messages_are_emptied_for_the_next(void **state)
{
    (void)state;
    struct ph__buffer message = {0}, inner = {0};
    ph__protobuf_integer(&inner, 1, 150);
    ph__protobuf_message(&message, 3, &inner);
    ph__protobuf_integer(&inner, 1, 1);
    ph__protobuf_message(&message, 3, &inner);
    ASSERT_BYTES(&message, 0x1a, 0x03, 0x08, 0x96, 0x01, 0x1a, 0x02, 0x08, 0x01);
    ph__buffer_fini(&message);
    ph__buffer_fini(&inner);
}

static void a_prefix_announces_bytes_from_elsewhere(void **state)
{
    (void)state;
    struct ph__buffer message = {0}, fields = {0};
    ph__protobuf_integer(&fields, 1, 1);
    ph__protobuf_prefix(&message, 9, 300);
    ph__protobuf_encoded(&message, &fields);
    ASSERT_BYTES(&message, 0x4a, 0xac, 0x02, 0x08, 0x01);
    ph__buffer_fini(&message);
    ph__buffer_fini(&fields);
}

static void a_failure_is_passed_outwards(void **state)
{
    (void)state;
    struct ph__buffer message = {0}, inner = {.has_failed = true};
    ph__protobuf_integer(&inner, 1, 1);
    assert_int_equal(inner.size, 0);
    ph__protobuf_message(&message, 3, &inner);
    assert_true(message.has_failed);
    ph__buffer_fini(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_varints_lowest_bits_first),
        cmocka_unit_test(small_and_largest_integers_take_one_and_ten_bytes),
        cmocka_unit_test(tags_of_large_fields_take_two_bytes),
        cmocka_unit_test(floats_are_four_bytes_little_endian),
        cmocka_unit_test(doubles_are_eight_bytes_little_endian),
        cmocka_unit_test(texts_carry_their_length),
        cmocka_unit_test(inner_messages_are_emptied_for_the_next),
        cmocka_unit_test(a_prefix_announces_bytes_from_elsewhere),
        cmocka_unit_test(a_failure_is_passed_outwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
