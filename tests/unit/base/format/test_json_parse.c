/* Reading JSON without memory: each allocation of a parse fails once. */
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "support/count_allocations.h"
#include "support/test_support.h"

/* Values of every type, and strings with each kind of escape. */
static const char *const documents[] = {
    "{\"words\": \"0123456789abcde\\nfghijklmnopqrstu\\nvwxyz0123456789abcdefghijklmnopqrst\\nuvwxyz\"}",
    ("{\"words\": \"0123456789abcd\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\uD83d\\ude00 "
     "\xc3\xa9\xe2\x82\xac\"}"),
    "{\"a_key_that_is_longer_than_the_buffer\" : [true, false, null, {}, []], \"b\": {\"c\": \"\"}}",
    "[ -1234567890123456, 1.2345678901234567e-10, 9223372036854775807,0.1 ,1E5, -0.0, 0]"};

static char *text_of(const char *document)
{
    struct ph__json *json = NULL;
    char *text = NULL;
    assert_ok(ph__json_parse(document, strlen(document), "document", PH_ERROR_DATA, &json));
    assert_ok(ph__json_text(json, 0, &text));
    ph__json_destroy(json);
    return text;
}

/* True when no allocation has failed. */
static bool parse_with_failure(const char *document, int number, const char *wanted)
{
    struct ph__json *json = NULL;
    fail_allocation(number);
    const ph_status status = ph__json_parse(document, strlen(document), "document", PH_ERROR_DATA, &json);
    const bool has_failed = allocation_has_failed();
    fail_allocation(0);
    if (status != PH_OK) {
        assert_true(has_failed);
        assert_int_equal(status, PH_ERROR_MEMORY);
        assert_null(json);
        return false;
    }
    char *text = NULL;
    assert_ok(ph__json_text(json, 0, &text));
    assert_string_equal(text, wanted);
    free(text);
    ph__json_destroy(json);
    return !has_failed;
}

static void a_document_without_memory_is_not_another_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        char *wanted = text_of(documents[i]);
        int number = 1;
        while (allocations_are_counted() && !parse_with_failure(documents[i], number, wanted))
            number++;
        print_message("%d allocations: %s\n", number - 1, documents[i]);
        assert_true(number > 4 || !allocations_are_counted());
        free(wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_without_memory_is_not_another_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
