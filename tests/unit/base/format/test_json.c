#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "support/test_support.h"

static struct ph__json *make_document(void)
{
    struct ph__json *json = ph__json_object(), *list = ph__json_array();
    ph__json_set_text(json, "name", "a \"quoted\"\n\x01 text");
    ph__json_set_number(json, "tenth", .1);
    ph__json_set_number(json, "one", 1);
    ph__json_set_number(json, "nan", NAN);
    ph__json_set_integer(json, "big", INT64_MAX);
    ph__json_set_bool(json, "yes", true);
    ph__json_set_null(json, "nothing");
    ph__json_set_text(json, "absent", NULL);
    ph__json_append_integer(list, 1);
    ph__json_append_number(list, 2.5);
    ph__json_append(list, ph__json_object());
    ph__json_set(json, "list", list);
    ph__json_set(json, "empty", ph__json_array());
    return json;
}

#define DOCUMENT_TEXT                                                                       \
    "{\"name\":\"a \\\"quoted\\\"\\n\\u0001 text\",\"tenth\":0.1,\"one\":1.0,\"nan\":null," \
    "\"big\":9223372036854775807,\"yes\":true,\"nothing\":null,\"absent\":null,"            \
    "\"list\":[1,2.5,{}],\"empty\":[]}"

static void a_document_is_written_in_the_order_it_was_built(void **state)
{
    (void)state;
    struct ph__json *json = make_document();
    char *text = NULL;
    assert_ok(ph__json_text(json, 0, &text));
    assert_string_equal(text, DOCUMENT_TEXT);
    free(text);
    ph__json_destroy(json);
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, test_folder(), "document.json");
    struct ph__json *json = make_document();
    assert_ok(ph__json_write(json, path));
    ph__json_destroy(json);
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__file_read(&arena, path, 10000, &text, &size));
    assert_int_equal(text[size - 1], '\n');
    assert_non_null(strstr(text, "  \"tenth\": 0.1,\n"));
    assert_ok(ph__json_parse(text, size, path, PH_ERROR_DATA, &json));
    assert_ok(ph__json_text(json, 0, &text));
    assert_string_equal(text, DOCUMENT_TEXT);
    free(text);
    ph__json_destroy(json);
    ph__arena_fini(&arena);
}

static void values_are_looked_up_by_type(void **state)
{
    (void)state;
    struct ph__json *json = make_document();
    const struct ph__json *list = ph__json_get(json, "list");
    assert_true(ph__json_is_object(json));
    assert_true(ph__json_is_array(list));
    assert_int_equal(ph__json_size(json), 10);
    assert_int_equal(ph__json_size(list), 3);
    assert_int_equal(ph__json_size(ph__json_get(json, "tenth")), 0);
    struct ph__json_member member = {0};
    size_t num_members = 0;
    for (; ph__json_next_member(json, &member); num_members++) {
        if (num_members == 1)
            assert_string_equal(member.key, "tenth");
        assert_ptr_equal(member.value, ph__json_get(json, member.key));
    }
    assert_int_equal(num_members, 10);
    assert_false(ph__json_next_member(list, &(struct ph__json_member){0}));
    assert_false(ph__json_next_member(NULL, &(struct ph__json_member){0}));
    assert_int_equal(ph__json_as_integer(ph__json_at(list, 0), -1), 1);
    assert_int_equal(ph__json_as_integer(ph__json_at(list, 1), -1), -1);
    assert_true(ph__json_as_number(ph__json_at(list, 0), -1) == 1);
    assert_true(ph__json_as_number(ph__json_get(json, "name"), -1) == -1);
    assert_true(ph__json_is_object(ph__json_at(list, 2)));
    assert_string_equal(ph__json_as_text(ph__json_at(list, 4), "no"), "no");
    assert_true(ph__json_is_integer(ph__json_at(list, 0)));
    assert_false(ph__json_is_integer(ph__json_get(json, "one")));
    assert_null(ph__json_get(json, "missing"));
    assert_null(ph__json_get(NULL, "missing"));
    assert_null(ph__json_at(json, 0));
    ph__json_destroy(json);
    ph__json_destroy(NULL);
}

static void malformed_text_is_refused_with_its_line(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "{\"a\": 1,\n \"a\": 2}", "{\"a\": 1} x", "[1,]", "\"text\"",
        "{\"a\": 1e999}", "{\"a\": 99999999999999999999}", "{\"\\u0000\": 1}", "{\"a\": \"b\\u0000\"}",
        "{\"a\": \"\xff\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ph__json *json = NULL;
        assert_fails(ph__json_parse(texts[i], strlen(texts[i]), "a.json", PH_ERROR_CHECKPOINT, &json),
            PH_ERROR_CHECKPOINT, "a.json:");
        assert_null(json);
    }
}

static void a_document_is_read_whatever_stands_behind_it(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"a\": \"}\xc3\xa9\"}", "{\"a\": \"}\xc3\xa9\"},\"b\":{", "{\"a\":\"}\\u00e9\"} x"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ph__json *json;
        assert_ok(ph__json_parse_start(texts[i], strlen(texts[i]), "a.json", PH_ERROR_CHECKPOINT, &json));
        assert_string_equal(ph__json_as_text(ph__json_get(json, "a"), NULL), "}\xc3\xa9");
        ph__json_destroy(json);
    }
    struct ph__json *json = NULL;
    assert_fails(ph__json_parse_start("{\"a\": 1", 7, "a.json", PH_ERROR_CHECKPOINT, &json),
        PH_ERROR_CHECKPOINT, "a.json:1");
    assert_null(json);
}

static void text_that_is_not_utf8_is_made_readable(void **state)
{
    (void)state;
    struct ph__json *json = ph__json_object();
    char *text = NULL;
    ph__json_set_text(json, "path", "caf\xe9");
    ph__json_set_text(json, "fine", "caf\xc3\xa9");
    assert_ok(ph__json_text(json, 0, &text));
    assert_string_equal(text, "{\"path\":\"caf?\",\"fine\":\"caf\xc3\xa9\"}");
    free(text);
    ph__json_destroy(json);
}

static void a_document_that_could_not_be_built_is_reported(void **state)
{
    (void)state;
    struct ph__json *json = ph__json_object();
    char *text = NULL;
    ph__json_set(json, "child", NULL); /* as a builder gives it that is out of memory */
    assert_fails(ph__json_text(json, 0, &text), PH_ERROR_MEMORY, "out of memory");
    assert_null(text);
    assert_fails(ph__json_text(NULL, 0, &text), PH_ERROR_MEMORY, "out of memory");
    ph__json_destroy(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_written_in_the_order_it_was_built),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(values_are_looked_up_by_type),
        cmocka_unit_test(malformed_text_is_refused_with_its_line),
        cmocka_unit_test(a_document_is_read_whatever_stands_behind_it),
        cmocka_unit_test(text_that_is_not_utf8_is_made_readable),
        cmocka_unit_test(a_document_that_could_not_be_built_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
