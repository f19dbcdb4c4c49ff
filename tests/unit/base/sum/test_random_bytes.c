#include "base/sum/random_bytes.h"

#include <stdbool.h>
#include <string.h>

#include "support/test_support.h"

/* Of 100,000 bytes each value misses with a chance of 1e-170. */
static void every_byte_is_drawn_and_none_behind_them(void **state)
{
    (void)state;
    static unsigned char bytes[100000 + 1];
    bool is_seen[256] = {false};
    bytes[100000] = 0x55;
    assert_ok(ph__random_bytes(bytes, 100000));
    assert_int_equal(bytes[100000], 0x55);
    for (size_t i = 0; i < 100000; i++)
        is_seen[bytes[i]] = true;
    for (size_t i = 0; i < 256; i++)
        assert_true(is_seen[i]);
}

static void two_draws_differ(void **state)
{
    (void)state;
    unsigned char a[32] = {0}, b[32] = {0};
    assert_ok(ph__random_bytes(a, sizeof a));
    assert_ok(ph__random_bytes(b, sizeof b));
    assert_memory_not_equal(a, b, sizeof a);
    assert_ok(ph__random_bytes(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_drawn_and_none_behind_them),
        cmocka_unit_test(two_draws_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
