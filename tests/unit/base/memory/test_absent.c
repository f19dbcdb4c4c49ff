#include "base/memory/absent.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/is_sanitized.h"
#include "support/test_support.h"

static void numbers_are_real_without_an_absent_memory(void **state)
{
    (void)state;
    void *numbers;
    assert_null(ph__absent_used());
    assert_ok(ph__numbers_alloc(100, "numbers", &numbers));
    assert_false(ph__memory_is_absent(numbers));
    memset(numbers, 1, 100);
    assert_int_equal(ph__absent_live_bytes(), 0);
    ph__numbers_free(numbers, 100);
}

static void absent_numbers_have_addresses_and_are_counted(void **state)
{
    (void)state;
    struct ph__absent absent;
    void *a, *b;
    unsigned char real[8] = {7};
    assert_ok(ph__absent_init(&absent));
    ph__absent_use(&absent);
    assert_ok(ph__numbers_alloc((size_t)1 << 33, "a table", &a)); /* more than the machine may have */
    assert_ok(ph__numbers_alloc(100, "a bias", &b));
    assert_true((unsigned char *)b >= (unsigned char *)a + ((size_t)1 << 33));
    assert_true(ph__memory_is_absent(a) && ph__memory_is_absent(b) && !ph__memory_is_absent(real));
    assert_int_equal(ph__absent_live_bytes(), ((uint64_t)1 << 33) + 100);
    ph__numbers_move(a, real, sizeof real); /* moves nothing, either way */
    ph__numbers_move(real, b, sizeof real);
    assert_int_equal(real[0], 7);
    ph__numbers_free(a, (size_t)1 << 33);
    assert_int_equal(ph__absent_live_bytes(), 100);
    ph__numbers_free(b, 100);
    ph__absent_use(NULL);
    ph__absent_fini(&absent);
}

/* Touches absent numbers, or other memory, in a process of its own; gives what it printed. */
static int touch(const char *what, bool is_absent, char printed[200])
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct ph__absent absent;
        void *numbers;
        dup2(ends[1], STDERR_FILENO);
        ph__absent_explain_touches();
        if (ph__absent_init(&absent) != PH_OK)
            _exit(99);
        ph__absent_use(&absent);
        if (ph__numbers_alloc(100, "numbers", &numbers) != PH_OK)
            _exit(99);
        ph__absent_run(what);
        *(volatile char *)(is_absent ? numbers : NULL) = 1;
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = 0;
    for (ssize_t got; (got = read(ends[0], printed + length, (size_t)(199 - length))) > 0;)
        length += got;
    printed[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_touch_names_what_ran(void **state)
{
    (void)state;
    char printed[200];
    if (PH_IS_SANITIZED) { /* sanitizers have handlers of their own, and one of threads stops in ours */
        print_message("skipped: a sanitizer handles SIGSEGV\n");
        skip();
    }
    assert_int_equal(touch("top.linear", true, printed), 1);
    assert_string_equal(
        printed, "phloem: error: bug: top.linear touched numbers that a simulation does not have\n");
    assert_int_equal(touch(NULL, true, printed), 1);
    assert_non_null(strstr(printed, "the program touched"));
    assert_int_not_equal(touch("top.linear", false, printed), 0);
    assert_null(strstr(printed, "a simulation"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_real_without_an_absent_memory),
        cmocka_unit_test(absent_numbers_have_addresses_and_are_counted),
        cmocka_unit_test(a_touch_names_what_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
