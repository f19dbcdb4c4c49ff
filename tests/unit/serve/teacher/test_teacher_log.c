#include "serve/teacher/teacher_log.h"

#include <math.h>
#include <stdio.h>

#include "support/test_support.h"

static void open_log(struct ph__teacher_log *log, const char *path, const char *seal)
{
    assert_ok(ph__teacher_log_open(log, path, "user,item", "click,buy", seal));
}

static void probabilities_are_read_as_they_were_added(void **state)
{
    (void)state;
    const char *path = test_path("teacher.log");
    const float added[3][2] = {{.25f, .1f}, {0, 1}, {1e-7f, .9999999f}};
    struct ph__teacher_log log;
    open_log(&log, path, "one");
    for (uint64_t key = 0; key < 3; key++)
        assert_ok(ph__teacher_log_add(&log, key << 40 | 7, added[key]));
    assert_ok(ph__teacher_log_flush(&log));
    ph__teacher_log_close(&log);
    open_log(&log, path, "two");
    assert_ok(ph__teacher_log_add(&log, 5, added[0]));
    assert_ok(ph__teacher_log_flush(&log));
    ph__teacher_log_close(&log);
    assert_ok(ph__teacher_log_read(&log, path));
    assert_int_equal(log.num_rows, 4);
    assert_int_equal(log.num_snapshots, 2);
    for (uint64_t key = 0; key < 3; key++)
        for (size_t task = 0; task < 2; task++) {
            const float found = ph__teacher_log_find(&log, key << 40 | 7)[task];
            assert_true(found > 0 && found < 1); /* 0 and 1 are moved inside */
            assert_true(fabsf(found - added[key][task]) <= 6e-8f);
        }
    assert_null(ph__teacher_log_find(&log, 6));
    ph__teacher_log_close(&log);
}

static void logs_of_others_are_refused(void **state)
{
    (void)state;
    const char *path = test_path("other.log");
    const float nothing[2] = {.5f, NAN};
    struct ph__teacher_log log, second;
    open_log(&log, path, "one");
    assert_fails(ph__teacher_log_add(&log, 1, nothing), PH_ERROR_DATA, "not a number");
    assert_fails(ph__teacher_log_open(&second, path, "user,item", "click,buy", "one"), PH_ERROR_USAGE,
        "another process");
    ph__teacher_log_close(&second);
    assert_ok(ph__teacher_log_flush(&log));
    ph__teacher_log_close(&log);
    assert_fails(
        ph__teacher_log_open(&log, path, "user", "click,buy", "one"), PH_ERROR_USAGE, "the key 'user,item'");
    ph__teacher_log_close(&log);
    assert_fails(
        ph__teacher_log_open(&log, path, "user,item", "click", "one"), PH_ERROR_USAGE, "have the tasks");
    ph__teacher_log_close(&log);
    assert_fails(ph__teacher_log_read(&log, test_write_file("empty.log", "")), PH_ERROR_DATA, "is empty");
    ph__teacher_log_close(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_read_as_they_were_added),
        cmocka_unit_test(logs_of_others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
