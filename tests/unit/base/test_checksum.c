#include <string.h>

#include "base/checksum.h"
#include "support/test_support.h"

/* The published test values of XXH3 (64 bits, seed 0). */
static void checksum_is_xxh3(void **state)
{
    (void)state;
    assert_int_equal(ph__checksum("", 0), 0x2d06800538d394c2u);
    assert_int_equal(ph__checksum("a", 1), 0xe6c632b61e964e1fu);
    assert_int_equal(ph__checksum("abc", 3), 0x78af5f94892f3950u);
}

static void every_flipped_bit_changes_the_checksum(void **state)
{
    (void)state;
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    uint64_t whole = ph__checksum(bytes, sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(ph__checksum(bytes, sizeof bytes), whole);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_not_equal(ph__checksum(bytes, sizeof bytes - 1), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum_is_xxh3),
        cmocka_unit_test(every_flipped_bit_changes_the_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
