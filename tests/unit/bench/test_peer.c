/* A benchmark's peer as a program behind pipes: small shell scripts stand in for it. */
#include "support/test_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

static int kept_output;

/* What is printed from here on goes into a file, until printed(). */
static void begin_print(void)
{
    fflush(stdout);
    kept_output = dup(1);
    int file = open(test_path("printed"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    dup2(file, 1);
    close(file);
}

static const char *printed(void)
{
    static char text[512];
    fflush(stdout);
    dup2(kept_output, 1);
    close(kept_output);
    FILE *file = fopen(test_path("printed"), "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int use_shell(void **state)
{
    (void)state;
    return setenv("PHLOEM_BENCH_PYTHON", "sh", 1);
}

static void answers_line_by_line_under_the_named_interpreter(void **state)
{
    (void)state;
    struct peer peer;
    test_write_file("echo.py", "echo echo 1.0\nwhile read -r line; do echo \"heard $line\"; done\n");
    begin_print();
    peer_start(&peer, test_folder(), "echo");
    assert_string_equal(printed(), "");
    assert_true(peer_is_there(&peer));
    assert_string_equal(peer.version, "echo 1.0");
    assert_string_equal(peer_ask(&peer, "one %d", 1), "heard one 1");
    assert_string_equal(peer_ask(&peer, "two"), "heard two");
    peer_stop(&peer);
    assert_false(peer_is_there(&peer));
    assert_null(peer_ask(&peer, "three"));
}

static void without_a_folder_there_is_none(void **state)
{
    (void)state;
    struct peer peer;
    begin_print();
    peer_start(&peer, NULL, "echo");
    assert_string_equal(printed(), "");
    assert_false(peer_is_there(&peer));
    assert_false(peer_accepts(&peer, "case"));
}

static void one_that_is_missing_is_skipped_with_its_reason(void **state)
{
    (void)state;
    struct peer peer;
    test_write_file("absent.py", "echo missing no module named absent\n");
    test_write_file("other.py", "echo another 1.0\n");
    test_write_file("silent.py", "exit 3\n");
    static const char *const lines[][2] = {
        {"absent", "peer absent: skipped: no module named absent\n"},
        {"other", "peer other: skipped: another 1.0\n"},
        {"silent", "peer silent: skipped: it did not start\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        begin_print();
        peer_start(&peer, test_folder(), lines[i][0]);
        assert_string_equal(printed(), lines[i][1]);
        assert_false(peer_is_there(&peer));
    }
}

static void a_refused_case_is_skipped_and_the_next_is_asked(void **state)
{
    (void)state;
    struct peer peer;
    test_write_file(
        "picky.py", "echo picky 1\nread -r line; echo skipped not that; read -r line; echo ready\n");
    peer_start(&peer, test_folder(), "picky");
    begin_print();
    assert_false(peer_accepts(&peer, "case %d", 1));
    assert_string_equal(printed(), "peer picky: skipped: not that\n");
    assert_true(peer_accepts(&peer, "case %d", 2));
    peer_stop(&peer);
}

static void one_that_ends_takes_nobody_along(void **state)
{
    (void)state;
    struct peer peer;
    test_write_file("brief.py", "echo brief 1\nexec <&-\n");
    peer_start(&peer, test_folder(), "brief");
    begin_print();
    assert_null(peer_ask(&peer, "run"));
    assert_string_equal(printed(), "peer brief: skipped: it ended unexpectedly\n");
    assert_false(peer_is_there(&peer));
}

static void each_of_two_ends_when_it_is_stopped(void **state)
{
    (void)state;
    struct peer first, second;
    test_write_file("echo.py", "echo echo 1.0\nwhile read -r line; do echo \"heard $line\"; done\n");
    peer_start(&first, test_folder(), "echo");
    peer_start(&second, test_folder(), "echo");
    peer_stop(&first); /* would wait for ever if the second held the first one's input open */
    assert_string_equal(peer_ask(&second, "still"), "heard still");
    peer_stop(&second);
}

static void the_named_allocator_is_the_peers_alone(void **state)
{
    (void)state;
    struct peer peer;
    test_write_file(
        "env.py", "echo \"env ${LD_PRELOAD-none} ${MALLOC_TRIM_THRESHOLD_-none} ${GOMP_SPINCOUNT-none}\"\n");
    setenv("GOMP_SPINCOUNT", "7", 1);
    peer_start(&peer, test_folder(), "env");
    assert_string_equal(peer.version, "env none 2147483648 none");
    peer_stop(&peer);
    setenv("PHLOEM_BENCH_PEER_ALLOCATOR", "libdl.so.2", 1); /* any library will do */
    peer_start(&peer, test_folder(), "env");
    assert_string_equal(peer.version, "env libdl.so.2 none none");
    peer_stop(&peer);
    assert_null(getenv("LD_PRELOAD"));
    unsetenv("PHLOEM_BENCH_PEER_ALLOCATOR");
}

static void a_program_of_ours_keeps_its_settings(void **state)
{
    (void)state;
    struct peer peer;
    const char *const arguments[] = {
        "sh", "-c", "echo \"own $0 ${GOMP_SPINCOUNT-none}\"; cat", "first", NULL};
    setenv("GOMP_SPINCOUNT", "7", 1);
    peer_start_own(&peer, "own", arguments);
    assert_string_equal(peer.version, "own first 7");
    assert_string_equal(peer_ask(&peer, "steps %d", 3), "steps 3");
    peer_stop(&peer);
}

static void a_program_that_does_not_exist_is_skipped(void **state)
{
    (void)state;
    struct peer peer;
    const char *const arguments[] = {"/nowhere/program", NULL};
    begin_print();
    peer_start_own(&peer, "own", arguments);
    assert_string_equal(printed(), "peer own: skipped: it did not start\n");
    assert_false(peer_is_there(&peer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_line_by_line_under_the_named_interpreter),
        cmocka_unit_test(without_a_folder_there_is_none),
        cmocka_unit_test(one_that_is_missing_is_skipped_with_its_reason),
        cmocka_unit_test(a_refused_case_is_skipped_and_the_next_is_asked),
        cmocka_unit_test(one_that_ends_takes_nobody_along),
        cmocka_unit_test(each_of_two_ends_when_it_is_stopped),
        cmocka_unit_test(the_named_allocator_is_the_peers_alone),
        cmocka_unit_test(a_program_of_ours_keeps_its_settings),
        cmocka_unit_test(a_program_that_does_not_exist_is_skipped),
    };
    return cmocka_run_group_tests(tests, use_shell, NULL);
}
