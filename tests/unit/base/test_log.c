#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "support/test_support.h"

/* What is logged while standard error goes to a file. */
static size_t capture(enum ph_log_level level, const char *text, char *buffer, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int saved = dup(STDERR_FILENO);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    ph__log(level, "base", "%s", text);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    rewind(file);
    size_t length = fread(buffer, 1, size - 1, file);
    buffer[length] = '\0';
    fclose(file);
    return length;
}

static void the_logger_is_silent_until_told(void **state)
{
    (void)state;
    char text[256];
    assert_int_equal(capture(PH_LOG_ERROR, "lost", text, sizeof text), 0);
}

static void lines_up_to_the_level_are_written(void **state)
{
    (void)state;
    char text[256];
    ph__log_set_level(PH_LOG_INFO);
    capture(PH_LOG_INFO, "ready", text, sizeof text);
    assert_string_equal(text, "info base: ready\n");
    assert_int_equal(capture(PH_LOG_DEBUG, "detail", text, sizeof text), 0);
    ph__log_set_level(PH_LOG_OFF);
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
    (void)state;
    char longer[5000], text[8000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ph__log_set_level(PH_LOG_ERROR);
    size_t length = capture(PH_LOG_ERROR, longer, text, sizeof text);
    assert_true(length > 1000 && length < sizeof longer);
    assert_int_equal(text[length - 1], '\n');
    ph__log_set_level(PH_LOG_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logger_is_silent_until_told),
        cmocka_unit_test(lines_up_to_the_level_are_written),
        cmocka_unit_test(a_long_line_is_cut_and_still_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
