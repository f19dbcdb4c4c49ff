#include "base/text/utf8.h"

#include <string.h>

#include "support/test_support.h"

/* The bit layout of the standard's table, written out once more. */
static size_t encode(uint32_t code, char bytes[4])
{
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        bytes[0] = (char)(0xc0 + code / 64);
        bytes[1] = (char)(0x80 + code % 64);
        return 2;
    }
    if (code < 0x10000) {
        bytes[0] = (char)(0xe0 + code / 4096);
        bytes[1] = (char)(0x80 + code / 64 % 64);
        bytes[2] = (char)(0x80 + code % 64);
        return 3;
    }
    bytes[0] = (char)(0xf0 + code / 262144);
    bytes[1] = (char)(0x80 + code / 4096 % 64);
    bytes[2] = (char)(0x80 + code / 64 % 64);
    bytes[3] = (char)(0x80 + code % 64);
    return 4;
}

static void every_character_is_read(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[4];
        uint32_t read = 12345678;
        size_t size = encode(code, bytes);
        bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
        assert_int_equal(ph__utf8_decode(bytes, size, &read), is_surrogate ? 0 : size);
        assert_int_equal(read, is_surrogate ? 12345678 : code);
        assert_int_equal(ph__utf8_is_valid(bytes, size), !is_surrogate);
        if (size > 1)
            assert_false(ph__utf8_is_valid(bytes, size - 1));
    }
}

static void what_is_not_utf8_is_told(void **state)
{
    (void)state;
    static const char *const texts[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe9", "\xc3(", "ok\xe2\x82"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (ph__utf8_is_valid(texts[i], strlen(texts[i])))
            fail_msg("text %zu passes for UTF-8", i);
    assert_true(ph__utf8_is_valid("", 0));
    assert_true(ph__utf8_is_valid("z\xc3\xbcrich \xf0\x9f\x8c\xb1", 12));
}

/* The ranges of the general category Cc. */
static void a_plain_text_has_no_control_character(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[4];
        const size_t size = encode(code, bytes);
        const bool is_control = code <= 0x1f || (code >= 0x7f && code <= 0x9f);
        const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
        assert_int_equal(ph__utf8_is_control(code), is_control);
        assert_int_equal(ph__utf8_is_plain(bytes, size), !is_control && !is_surrogate);
    }
    assert_true(ph__utf8_is_plain("", 0));
    assert_true(ph__utf8_is_plain("z\xc3\xbcrich \xf0\x9f\x8c\xb1", 12));
    assert_false(ph__utf8_is_plain("line\n", 5));
    assert_false(ph__utf8_is_plain("ok\xe2\x82", 4));
}

static void a_cut_leaves_characters_whole(void **state)
{
    (void)state;
    const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb1z"; /* of 1, 2, 3, 4 and 1 bytes */
    const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        assert_int_equal(ph__utf8_cut(text, 11, i), cuts[i]);
    assert_int_equal(ph__utf8_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 8, 6), 6);
    assert_int_equal(ph__utf8_cut("\x80\x80\x80", 3, 2), 2);
}

static void the_last_word_stands_behind_the_last_separator(void **state)
{
    (void)state;
    assert_string_equal(ph__last_word("embedding.user.age", '.'), "age");
    assert_string_equal(ph__last_word("/folder/file", '/'), "file");
    assert_string_equal(ph__last_word("alone", '.'), "alone");
    assert_string_equal(ph__last_word("ends.", '.'), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_read),
        cmocka_unit_test(what_is_not_utf8_is_told),
        cmocka_unit_test(a_plain_text_has_no_control_character),
        cmocka_unit_test(a_cut_leaves_characters_whole),
        cmocka_unit_test(the_last_word_stands_behind_the_last_separator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
