#include "net/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

#define MAX_TEXT 8 /* bytes */

/* One of each kind; the texts have two characters, none and as many bytes as they may. */
static size_t put_all(void *buffer, size_t capacity, ph_status *status_out)
{
    struct ph__wire_writer writer;
    size_t size = 0;
    ph__wire_writer_init(&writer, buffer, capacity);
    ph__wire_put_u8(&writer, 0xfe);
    ph__wire_put_u16(&writer, 0x1234);
    ph__wire_put_u32(&writer, 0x89abcdef);
    ph__wire_put_u64(&writer, 0x0123456789abcdef);
    ph__wire_put_f32(&writer, -1.5f);
    ph__wire_put_text(&writer, "a\xc3\xa9", MAX_TEXT);
    ph__wire_put_text(&writer, "", MAX_TEXT);
    ph__wire_put_text(&writer, "12345678", MAX_TEXT);
    ph__wire_put_bytes(&writer, "\x00\xff", 2);
    ph__wire_put_bytes(&writer, NULL, 0);
    *status_out = ph__wire_writer_finish(&writer, "greeting", &size);
    return size;
}

/* -1.5 = 1.5 * 2^0: sign, exponent 127, fraction .5. */
static const unsigned char all_bytes[] = {0xfe, 0x34, 0x12, 0xef, 0xcd, 0xab, 0x89, 0xef, 0xcd, 0xab, 0x89,
    0x67, 0x45, 0x23, 0x01, 0x00, 0x00, 0xc0, 0xbf, 3, 0, 'a', 0xc3, 0xa9, 0, 0, 8, 0, '1', '2', '3', '4',
    '5', '6', '7', '8', 0x00, 0xff};

/* What was read, from wherever. */
struct all {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    char texts[3][MAX_TEXT + 1];
    unsigned char bytes[2];
};

static ph_status get_all(const void *bytes, size_t size, struct all *all)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, bytes, size);
    all->u8 = ph__wire_get_u8(&reader);
    all->u16 = ph__wire_get_u16(&reader);
    all->u32 = ph__wire_get_u32(&reader);
    all->u64 = ph__wire_get_u64(&reader);
    all->f32 = ph__wire_get_f32(&reader);
    for (size_t i = 0; i < 3; i++)
        ph__wire_get_text(&reader, MAX_TEXT, all->texts[i]);
    ph__wire_get_bytes(&reader, 2, all->bytes);
    ph__wire_get_bytes(&reader, 0, NULL);
    return ph__wire_reader_finish(&reader, "greeting");
}

static void numbers_are_little_endian_and_texts_have_their_length_before_them(void **state)
{
    (void)state;
    unsigned char buffer[100];
    ph_status status = PH_ERROR_BUG;
    const size_t size = put_all(buffer, sizeof buffer, &status);
    assert_ok(status);
    assert_int_equal(size, sizeof all_bytes);
    assert_memory_equal(buffer, all_bytes, size);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    struct all all;
    assert_ok(get_all(all_bytes, sizeof all_bytes, &all));
    assert_int_equal(all.u8, 0xfe);
    assert_int_equal(all.u16, 0x1234);
    assert_int_equal(all.u32, 0x89abcdef);
    assert_true(all.u64 == 0x0123456789abcdef);
    assert_true(all.f32 == -1.5f);
    assert_string_equal(all.texts[0], "a\xc3\xa9");
    assert_string_equal(all.texts[1], "");
    assert_string_equal(all.texts[2], "12345678");
    assert_memory_equal(all.bytes, "\x00\xff", 2);
}

static void bits_of_numbers_that_are_none_come_through(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0x01, 0x00, 0xc0, 0x7f, 0, 0, 0x80, 0xff};
    unsigned char back[sizeof bytes];
    struct ph__wire_reader reader;
    struct ph__wire_writer writer;
    size_t size = 0;
    ph__wire_reader_init(&reader, bytes, sizeof bytes);
    ph__wire_writer_init(&writer, back, sizeof back);
    const float not_a_number = ph__wire_get_f32(&reader);
    const float infinite = ph__wire_get_f32(&reader);
    assert_ok(ph__wire_reader_finish(&reader, "numbers"));
    assert_true(isnan(not_a_number) && isinf(infinite) && infinite < 0);
    ph__wire_put_f32(&writer, not_a_number);
    ph__wire_put_f32(&writer, infinite);
    assert_ok(ph__wire_writer_finish(&writer, "numbers", &size));
    assert_memory_equal(back, bytes, sizeof bytes);
}

/* The message is copied into memory of just its size, so that a sanitizer sees a byte read behind it. */
static void a_message_cut_anywhere_is_told_and_its_rest_is_zero(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof all_bytes; size++) {
        unsigned char *bytes = malloc(size);
        struct all all;
        memset(&all, 0x55, sizeof all);
        if (size > 0)
            memcpy(bytes, all_bytes, size);
        assert_fails(get_all(bytes, size, &all), PH_ERROR_DATA, "greeting: cut off at byte ");
        assert_memory_equal(all.bytes, "\0\0", 2);
        if (size < 15)
            assert_true(all.f32 == 0 && all.texts[0][0] == '\0' && all.texts[2][0] == '\0');
        free(bytes);
    }
    assert_fails(get_all(NULL, 0, &(struct all){0}), PH_ERROR_DATA, "greeting: cut off at byte 0 of 0");
}

static void bytes_left_over_are_told(void **state)
{
    (void)state;
    unsigned char bytes[sizeof all_bytes + 3] = {0};
    struct all all;
    memcpy(bytes, all_bytes, sizeof all_bytes);
    assert_fails(
        get_all(bytes, sizeof bytes, &all), PH_ERROR_DATA, "greeting: 3 bytes too many after the first 38");
}

static void a_fault_stays_whatever_is_read_after_it(void **state)
{
    (void)state;
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, "\x01\x02\x03", 3);
    assert_int_equal(ph__wire_get_u8(&reader), 1);
    assert_int_equal(ph__wire_get_u32(&reader), 0);
    assert_int_equal(ph__wire_get_u8(&reader), 0); /* which is there */
    assert_fails(
        ph__wire_reader_finish(&reader, "three bytes"), PH_ERROR_DATA, "three bytes: cut off at byte 1 of 3");
}

static void refuse_text(const char *bytes, size_t size, const char *why)
{
    struct ph__wire_reader reader;
    char text[MAX_TEXT + 1] = "before";
    ph__wire_reader_init(&reader, bytes, size);
    ph__wire_get_text(&reader, MAX_TEXT, text);
    assert_string_equal(text, "");
    assert_fails(ph__wire_reader_finish(&reader, "name"), PH_ERROR_DATA, why);
}

static void texts_that_could_do_harm_are_refused(void **state)
{
    (void)state;
    refuse_text("\x09\x00"
                "123456789",
        11, "name: a text that is too long at byte 0 of 11");
    refuse_text("\xff\xff", 2, "too long");
    refuse_text("\x03\x00"
                "ab",
        4, "name: cut off");
    refuse_text("\x01", 1, "name: cut off");
    refuse_text("\x02\x00"
                "a\0",
        4, "not UTF-8, or has control characters");
    refuse_text("\x02\x00"
                "a\n",
        4, "control characters");
    refuse_text("\x03\x00"
                "\x1b[2",
        5, "control characters");
    refuse_text("\x02\x00"
                "\xc2\x9b",
        4, "control characters");
    refuse_text("\x02\x00"
                "a\xc3",
        4, "not UTF-8");
    refuse_text("\x02\x00"
                "\xc0\x80",
        4, "not UTF-8");
}

static void a_writer_tells_what_did_not_fit_and_writes_nothing_behind_its_buffer(void **state)
{
    (void)state;
    unsigned char buffer[sizeof all_bytes + 1];
    for (size_t capacity = 0; capacity < sizeof all_bytes; capacity++) {
        ph_status status = PH_OK;
        memset(buffer, 0x55, sizeof buffer);
        put_all(buffer, capacity, &status);
        assert_fails(status, PH_ERROR_USAGE, "greeting: no room left at byte ");
        for (size_t i = capacity; i < sizeof buffer; i++)
            assert_int_equal(buffer[i], 0x55);
    }
}

static void a_writer_refuses_texts_that_a_reader_would(void **state)
{
    (void)state;
    static const char *const texts[] = {"123456789", "a\nb", "a\xff"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        unsigned char buffer[32];
        struct ph__wire_writer writer;
        size_t size = 77;
        ph__wire_writer_init(&writer, buffer, sizeof buffer);
        ph__wire_put_text(&writer, texts[i], MAX_TEXT);
        ph__wire_put_u8(&writer, 1);
        assert_fails(ph__wire_writer_finish(&writer, "name", &size), PH_ERROR_USAGE,
            i == 0 ? "name: a text that is too long at byte 0 of 32" : "name: a text that is not UTF-8");
        assert_int_equal(size, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian_and_texts_have_their_length_before_them),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(bits_of_numbers_that_are_none_come_through),
        cmocka_unit_test(a_message_cut_anywhere_is_told_and_its_rest_is_zero),
        cmocka_unit_test(bytes_left_over_are_told),
        cmocka_unit_test(a_fault_stays_whatever_is_read_after_it),
        cmocka_unit_test(texts_that_could_do_harm_are_refused),
        cmocka_unit_test(a_writer_tells_what_did_not_fit_and_writes_nothing_behind_its_buffer),
        cmocka_unit_test(a_writer_refuses_texts_that_a_reader_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
