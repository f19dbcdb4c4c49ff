/* The vectors of RFC 3720, appendix B.4, and the check value that catalogues of CRCs give. */
#include <string.h>

#include "base/sum/crc32c.h"
#include "support/test_support.h"

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_vectors_give_their_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
