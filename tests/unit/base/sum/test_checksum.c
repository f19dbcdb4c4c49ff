#include <string.h>

#include "base/sum/checksum.h"
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

static void a_running_checksum_is_that_of_the_bytes_so_far(void **state)
{
    (void)state;
    unsigned char bytes[2000];
    struct ph__running_checksum running;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 13);
    assert_ok(ph__running_checksum_init(&running));
    assert_int_equal(ph__running_checksum_value(&running), ph__checksum(bytes, 0));
    for (size_t at = 0, size = 1; at + size <= sizeof bytes; at += size, size = size * 2 % 700 + 1) {
        ph__running_checksum_add(&running, at, bytes + at, size);
        assert_int_equal(running.num_bytes, at + size);
        assert_int_equal(ph__running_checksum_value(&running), ph__checksum(bytes, at + size));
    }
    ph__running_checksum_fini(&running);
}

static void bytes_that_are_in_it_or_leave_a_gap_change_nothing(void **state)
{
    (void)state;
    const char *text = "the same bytes, read once more";
    struct ph__running_checksum running;
    assert_ok(ph__running_checksum_init(&running));
    ph__running_checksum_add(&running, 0, text, 8);
    ph__running_checksum_add(&running, 0, "another1", 8); /* known */
    ph__running_checksum_add(&running, 9, text + 9, 5);   /* behind a gap */
    assert_int_equal(running.num_bytes, 8);
    ph__running_checksum_add(&running, 4, "----bytes", 9); /* known but for its end */
    assert_int_equal(running.num_bytes, 13);
    assert_int_equal(ph__running_checksum_value(&running), ph__checksum("the samebytes", 13));
    ph__running_checksum_fini(&running);
    ph__running_checksum_add(&running, 0, text, 8);
    assert_int_equal(running.num_bytes, 0);
}

/* The vectors of RFC 3720, appendix B.4, and the check value that catalogues of CRCs give. */

static void known_vectors_give_their_sums(void **state)
{
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(ph__crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(ph__crc32c("", 0), 0);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(ph__crc32c(bytes, sizeof bytes), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(ph__crc32c(bytes, sizeof bytes), 0x62a8ab43u);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(ph__crc32c(bytes, sizeof bytes), 0x46dd794eu);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(31 - i);
    assert_int_equal(ph__crc32c(bytes, sizeof bytes), 0x113fdb5cu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum_is_xxh3),
        cmocka_unit_test(every_flipped_bit_changes_the_checksum),
        cmocka_unit_test(a_running_checksum_is_that_of_the_bytes_so_far),
        cmocka_unit_test(bytes_that_are_in_it_or_leave_a_gap_change_nothing),
        cmocka_unit_test(known_vectors_give_their_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
