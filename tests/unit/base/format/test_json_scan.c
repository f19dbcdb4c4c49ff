/* Values read one by one, and which texts are JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/format/json_scan.h"
#include "support/test_support.h"

static struct ph__json_scan scan_of(const char *text, struct ph__arena *arena)
{
    struct ph__json_scan scan;
    ph__json_scan_init(&scan, text, strlen(text), arena);
    return scan;
}

static void values_are_read_one_by_one(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__bytes key;
    struct ph__json_scan scan = scan_of(
        " {\"a\" : [1, -2.5e1, true], \"b\":{}, \"c\\n\":null,\"d\":\"x\", \"skipped\":[[],{\"z\":[1]}]} ",
        &arena);
    assert_int_equal(ph__json_scan_type(&scan), PH_JSON_TYPE_OBJECT);
    ph__json_scan_begin(&scan);
    assert_true(ph__json_scan_next(&scan, &key) && ph__bytes_are(key, "a"));
    ph__json_scan_begin(&scan);
    assert_true(ph__json_scan_next(&scan, &key) && key.size == 0);
    assert_int_equal(ph__json_scan_type(&scan), PH_JSON_TYPE_INTEGER);
    assert_int_equal(ph__json_scan_integer(&scan), 1);
    assert_true(ph__json_scan_next(&scan, &key));
    assert_int_equal(ph__json_scan_type(&scan), PH_JSON_TYPE_REAL);
    assert_true(ph__json_scan_number(&scan) == -25);
    assert_true(ph__json_scan_next(&scan, &key) && ph__json_scan_bool(&scan));
    assert_false(ph__json_scan_next(&scan, &key));
    assert_true(ph__json_scan_next(&scan, &key) && ph__bytes_are(key, "b"));
    ph__json_scan_begin(&scan);
    assert_false(ph__json_scan_next(&scan, &key));
    assert_true(ph__json_scan_next(&scan, &key) && ph__bytes_are(key, "c\n"));
    ph__json_scan_null(&scan);
    assert_true(ph__json_scan_next(&scan, &key));
    assert_true(ph__bytes_are(ph__json_scan_string(&scan), "x"));
    assert_true(ph__json_scan_next(&scan, &key) && ph__bytes_are(key, "skipped"));
    assert_true(ph__bytes_are(ph__json_scan_skip(&scan), "[[],{\"z\":[1]}]"));
    assert_false(ph__json_scan_next(&scan, &key));
    assert_ok(ph__json_scan_finish(&scan));
    ph__arena_fini(&arena);
}

static void escapes_become_utf8(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__json_scan scan =
        scan_of("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", &arena);
    assert_true(
        ph__bytes_are(ph__json_scan_string(&scan), "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
    assert_ok(ph__json_scan_finish(&scan));
    ph__arena_fini(&arena);
}

static void strings_are_written_so_that_they_read_back(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__buffer text = {0};
    struct ph__json_scan scan;
    const char *string = "a \"b\"\\\n\x01 \xc3\xa9";
    ph__json_append_string(&text, ph__bytes_of(string));
    ph__json_scan_init(&scan, (const char *)text.bytes, text.size, &arena);
    assert_true(ph__bytes_are(ph__json_scan_string(&scan), string));
    ph__buffer_clear(&text);
    ph__json_append_string(&text, ph__bytes_of("\xff!"));
    assert_memory_equal(text.bytes, "\"\xef\xbf\xbd!\"", 6);
    ph__buffer_fini(&text);
    ph__arena_fini(&arena);
}

static void a_fault_names_its_byte_and_stays(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__bytes key;
    struct ph__json_scan scan = scan_of("[1 2]", &arena);
    ph__json_scan_begin(&scan);
    assert_true(ph__json_scan_next(&scan, &key));
    assert_int_equal(ph__json_scan_integer(&scan), 1);
    assert_false(ph__json_scan_next(&scan, &key));
    assert_false(ph__json_scan_next(&scan, &key));
    assert_int_equal(ph__json_scan_integer(&scan), 0);
    assert_fails(ph__json_scan_finish(&scan), PH_ERROR_DATA, "byte 3: a comma");
    ph__arena_fini(&arena);
}

static void integers_beyond_64_bits_are_refused(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__json_scan scan = scan_of("-9223372036854775808", &arena);
    assert_true(ph__json_scan_integer(&scan) == INT64_MIN);
    scan = scan_of("9223372036854775808", &arena);
    ph__json_scan_integer(&scan);
    assert_fails(ph__json_scan_finish(&scan), PH_ERROR_DATA, "64 bits");
    scan = scan_of("1.0", &arena);
    ph__json_scan_integer(&scan);
    assert_fails(ph__json_scan_finish(&scan), PH_ERROR_DATA, "64 bits");
    ph__arena_fini(&arena);
}

static bool is_json(const char *text)
{
    struct ph__arena arena = {0};
    struct ph__json_scan scan = scan_of(text, &arena);
    struct ph__bytes key;
    if (strncmp(text, "[\"", 2) == 0) { /* skipping does not decode escapes */
        ph__json_scan_begin(&scan);
        while (ph__json_scan_next(&scan, &key))
            ph__json_scan_string(&scan);
    } else {
        ph__json_scan_skip(&scan);
    }
    const bool is_good = ph__json_scan_finish(&scan) == PH_OK;
    ph__arena_fini(&arena);
    return is_good;
}

/* The document's parser takes what the scan takes. */
static bool is_document(const char *text)
{
    struct ph__json *json = NULL;
    const ph_status status = ph__json_parse(text, strlen(text), "text", PH_ERROR_DATA, &json);
    ph__json_destroy(json);
    return status == PH_OK;
}

static void texts_that_are_not_json_are_refused(void **state)
{
    (void)state;
    static const char *const good[] = {"[]", "{}", "[1]", "[1e+2]", "[-0]", "[true]", "[null]", "[[[]]]",
        "[1 ]", "[\t1\r\n]", "[\"\\ud83d\\ude00\"]", "{\"a\": -1.5E-3}"};
    static const char *const bad[] = {"[01]", "[-]", "[1.]", "[.5]", "[1e]", "[1,]", "[,1]", "{\"a\":1,}",
        "{\"a\" 1}", "{a:1}", "[\"a\nb\"]", "[\"\\x\"]", "[\"\\ud800\"]", "[\"\\udc00\"]",
        "[\"\\ud800\\u0041\"]", "[\"\\u12\"]", "[tru]", "[nul]", "[\xff]", "[\"\xff\"]", "[", "]", "[}", "{]",
        "[] []", "", " ", "[\"abc]", "[1\f]", "[1", "[0x10]", "[1.5"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!is_json(good[i]) || !is_document(good[i]))
            fail_msg("'%s' is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (is_json(bad[i]) || is_document(bad[i]))
            fail_msg("'%s' is taken", bad[i]);
}

static void containers_nest_64_deep_at_most(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    char text[200];
    for (size_t depth = 64; depth <= 65; depth++) {
        struct ph__json_scan scan;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        ph__json_scan_init(&scan, text, 2 * depth, &arena);
        ph__json_scan_skip(&scan);
        assert_int_equal(ph__json_scan_finish(&scan) == PH_OK, depth == 64);
    }
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_one_by_one),
        cmocka_unit_test(escapes_become_utf8),
        cmocka_unit_test(strings_are_written_so_that_they_read_back),
        cmocka_unit_test(a_fault_names_its_byte_and_stays),
        cmocka_unit_test(integers_beyond_64_bits_are_refused),
        cmocka_unit_test(texts_that_are_not_json_are_refused),
        cmocka_unit_test(containers_nest_64_deep_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
