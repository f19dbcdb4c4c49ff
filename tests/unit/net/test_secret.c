#include "net/secret.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test_support.h"

static const char *write_secret(const char *name, const char *text, mode_t mode)
{
    const char *path = test_write_file(name, text);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void expect(const char *text, const char *wanted)
{
    struct ph_secret secret;
    assert_ok(ph__secret_read(write_secret("good", text, 0600), &secret));
    assert_int_equal(secret.size, strlen(wanted));
    assert_memory_equal(secret.bytes, wanted, secret.size);
    ph__secret_fini(&secret);
    assert_int_equal(secret.size, 0);
    assert_int_equal(secret.bytes[0], 0);
}

static void a_line_end_does_not_belong_to_a_secret(void **state)
{
    (void)state;
    expect("0123456789abcdef", "0123456789abcdef");
    expect("0123456789abcdef\n", "0123456789abcdef");
    expect("0123456789abcdef\r\n", "0123456789abcdef");
    expect(" 0123456789abcdef\n\n", " 0123456789abcdef\n");
    char longest[PH_SECRET_MAX_BYTES + 1];
    memset(longest, 'x', PH_SECRET_MAX_BYTES);
    longest[PH_SECRET_MAX_BYTES] = '\0';
    expect(longest, longest);
    char with_end[PH_SECRET_MAX_BYTES + 3];
    snprintf(with_end, sizeof with_end, "%s\n", longest);
    expect(with_end, longest);
    snprintf(with_end, sizeof with_end, "%s\r\n", longest);
    expect(with_end, longest);
}

static void a_secret_that_others_may_use_is_refused(void **state)
{
    (void)state;
    static const mode_t refused[] = {0640, 0604, 0620, 0602, 0610, 0601, 0644, 0777};
    struct ph_secret secret = {.size = 7};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_fails(ph__secret_read(write_secret("open", "0123456789abcdef", refused[i]), &secret),
            PH_ERROR_CONFIG, "open: others than its owner may use this secret (mode ");
    assert_int_equal(secret.size, 7);
    assert_ok(ph__secret_read(write_secret("open", "0123456789abcdef", 0400), &secret));
}

static void a_file_that_holds_no_secret_is_refused(void **state)
{
    (void)state;
    struct ph_secret secret;
    char text[PH_SECRET_MAX_BYTES + 2];
    memset(text, 'x', sizeof text);
    text[PH_SECRET_MAX_BYTES + 1] = '\0';
    assert_fails(ph__secret_read(write_secret("long", text, 0600), &secret), PH_ERROR_CONFIG,
        "long: a secret of more than 1024 bytes");
    char longer[PH_SECRET_MAX_BYTES + 4];
    snprintf(longer, sizeof longer, "%.*s\r\nx", PH_SECRET_MAX_BYTES, text); /* its first line would be one */
    assert_fails(ph__secret_read(write_secret("longer", longer, 0600), &secret), PH_ERROR_CONFIG,
        "longer: a secret of more than 1024 bytes");
    assert_fails(ph__secret_read(write_secret("short", "0123456789abcde\n", 0600), &secret), PH_ERROR_CONFIG,
        "short: a secret of 15 bytes: it needs 16 or more");
    assert_fails(ph__secret_read(write_secret("empty", "", 0600), &secret), PH_ERROR_CONFIG, "of 0 bytes");
    assert_fails(ph__secret_read("/nowhere/secret", &secret), PH_ERROR_CONFIG,
        "/nowhere/secret: cannot open: No such");
    assert_fails(ph__secret_read(test_folder(), &secret), PH_ERROR_CONFIG, "not a file");
    const char *pipe = test_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_fails(ph__secret_read(pipe, &secret), PH_ERROR_CONFIG, "pipe: not a file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_end_does_not_belong_to_a_secret),
        cmocka_unit_test(a_secret_that_others_may_use_is_refused),
        cmocka_unit_test(a_file_that_holds_no_secret_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
