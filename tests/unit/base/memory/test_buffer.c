#include "base/memory/buffer.h"

#include <string.h>

#include "support/test_support.h"

static void what_is_appended_is_there(void **state)
{
    (void)state;
    struct ph__buffer buffer = {0};
    assert_null(ph__buffer_bytes(&buffer).bytes);
    ph__buffer_append_text(&buffer, "scores");
    ph__buffer_append(&buffer, "", 0);
    ph__buffer_append(&buffer, "!\0", 2);
    assert_int_equal(ph__buffer_bytes(&buffer).size, 8);
    assert_memory_equal(ph__buffer_bytes(&buffer).bytes, "scores!\0", 8);
    ph__buffer_fini(&buffer);
}

static void a_recycled_buffer_keeps_little_memory(void **state)
{
    (void)state;
    struct ph__buffer buffer = {0};
    assert_non_null(ph__buffer_extend(&buffer, 1000));
    buffer.has_failed = true;
    ph__buffer_recycle(&buffer);
    assert_true(buffer.capacity >= 1000 && buffer.size == 0 && !buffer.has_failed);
    assert_non_null(ph__buffer_extend(&buffer, (1 << 20) + 1));
    ph__buffer_recycle(&buffer);
    assert_true(buffer.bytes == NULL && buffer.capacity == 0 && buffer.size == 0);
}

/* Found by fuzzing: the comparison ended at a zero byte in both, and then looked behind the text's end. */
static void bytes_with_a_zero_among_them_are_no_text(void **state)
{
    (void)state;
    static const char text[8] = "id"; /* zeros behind it */
    assert_true(ph__bytes_are((struct ph__bytes){"id", 2}, text));
    assert_false(ph__bytes_are((struct ph__bytes){"id\0+d", 5}, text));
    assert_false(ph__bytes_are((struct ph__bytes){"id\0\0", 4}, text));
    assert_false(ph__bytes_are((struct ph__bytes){"i", 1}, text));
    assert_false(ph__bytes_are((struct ph__bytes){"", 0}, text));
    assert_true(ph__bytes_are((struct ph__bytes){NULL, 0}, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_appended_is_there),
        cmocka_unit_test(a_recycled_buffer_keeps_little_memory),
        cmocka_unit_test(bytes_with_a_zero_among_them_are_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
