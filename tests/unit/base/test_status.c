#include <pthread.h>
#include <string.h>

#include "support/test_support.h"

static void fail_records_the_line_and_returns_the_status(void **state)
{
    (void)state;
    assert_int_equal(ph_fail(PH_ERROR_DATA, "%s:%d: no", "a.csv", 7), PH_ERROR_DATA);
    assert_string_equal(ph_error_text(), "a.csv:7: no");
}

static void the_record_may_be_part_of_the_next_record(void **state)
{
    (void)state;
    ph_fail(PH_ERROR_DATA, "inner");
    ph_fail(PH_ERROR_DATA, "outer: %s", ph_error_text());
    assert_string_equal(ph_error_text(), "outer: inner");
}

static void a_line_that_is_too_long_is_cut(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ph_fail(PH_ERROR_BUG, "%s", text);
    assert_true(strlen(ph_error_text()) > 500);
    assert_true(strlen(ph_error_text()) < sizeof text - 1);
}

static void control_characters_become_escapes(void **state)
{
    (void)state;
    ph_fail(PH_ERROR_DATA, "a\nb\tc\r\x1b[31m\x7f \xc3\xa9 \\");
    assert_string_equal(ph_error_text(), "a\\nb\\tc\\x0d\\x1b[31m\\x7f \xc3\xa9 \\");
    ph_fail(PH_ERROR_DATA, "outer: %s", ph_error_text());
    assert_string_equal(ph_error_text(), "outer: a\\nb\\tc\\x0d\\x1b[31m\\x7f \xc3\xa9 \\");
}

static void a_line_is_not_cut_within_an_escape(void **state)
{
    (void)state;
    for (size_t length = 0; length < 5; length++) {
        char text[1024];
        memset(text, '\x1b', sizeof text - 1);
        memset(text, 'x', length);
        text[sizeof text - 1] = '\0';
        ph_fail(PH_ERROR_DATA, "%s", text);
        const char *record = ph_error_text();
        assert_true(strlen(record) > 1000 && strlen(record) < 1024);
        assert_string_equal(record + strlen(record) - 4, "\\x1b");
    }
}

static void *fail_elsewhere(void *argument)
{
    (void)argument;
    ph_fail(PH_ERROR_PEER, "another thread");
    return NULL;
}

static void the_record_belongs_to_its_thread(void **state)
{
    (void)state;
    pthread_t thread;
    ph_fail(PH_ERROR_DATA, "this thread");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(ph_error_text(), "this thread");
}

static ph_status try_twice(ph_status first, int *calls)
{
    PH_TRY(first);
    ++*calls;
    return PH_OK;
}

static void try_returns_only_on_failure(void **state)
{
    (void)state;
    int calls = 0;
    assert_int_equal(try_twice(PH_OK, &calls), PH_OK);
    assert_int_equal(try_twice(PH_ERROR_DISK, &calls), PH_ERROR_DISK);
    assert_int_equal(calls, 1);
}

static void every_status_has_a_message_and_an_exit_code(void **state)
{
    (void)state;
    assert_string_equal(ph_status_message(PH_OK), "done");
    assert_string_equal(ph_status_message(PH_ERROR_CONFIG), "bad config");
    assert_string_equal(ph_status_message(-1000), "unknown status");
    assert_int_equal(ph_status_exit_code(PH_OK), 0);
    assert_int_equal(ph_status_exit_code(PH_ERROR_BUG), 1);
    assert_int_equal(ph_status_exit_code(PH_ERROR_USAGE), 2);
    assert_int_equal(ph_status_exit_code(PH_ERROR_DATA), 3);
    assert_int_equal(ph_status_exit_code(PH_ERROR_DISK), 5);
    assert_int_equal(ph_status_exit_code(PH_ERROR_TERMINATED), 143);
    assert_int_equal(ph_status_exit_code(-1000), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_records_the_line_and_returns_the_status),
        cmocka_unit_test(the_record_may_be_part_of_the_next_record),
        cmocka_unit_test(a_line_that_is_too_long_is_cut),
        cmocka_unit_test(control_characters_become_escapes),
        cmocka_unit_test(a_line_is_not_cut_within_an_escape),
        cmocka_unit_test(the_record_belongs_to_its_thread),
        cmocka_unit_test(try_returns_only_on_failure),
        cmocka_unit_test(every_status_has_a_message_and_an_exit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
