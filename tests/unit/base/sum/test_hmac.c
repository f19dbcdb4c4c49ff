#include "base/sum/hmac.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

static void expect(const void *key, size_t key_size, const void *bytes, size_t size, const char *hex)
{
    unsigned char sum[PH_HMAC_BYTES];
    char made[2 * PH_HMAC_BYTES + 1];
    assert_ok(ph__hmac_sha256(key, key_size, bytes, size, sum));
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf(made + 2 * i, 3, "%02x", sum[i]);
    assert_memory_equal(made, hex, strlen(hex)); /* test case 5 gives its first half */
}

/* RFC 4231, sections 4.2 to 4.8. */
static void sums_are_those_of_the_standard(void **state)
{
    (void)state;
    static const char large_key[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char large_both[] = "This is a test using a larger than block-size key and a larger than "
                                     "block-size data. The key needs to be hashed before being used by the "
                                     "HMAC algorithm.";
    unsigned char key[131], data[50];
    memset(key, 0x0b, sizeof key);
    expect(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect("Jefe", 4, "what do ya want for nothing?", 28,
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    expect(key, 20, data, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    expect(key, 131, large_key, strlen(large_key),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    expect(key, 131, large_both, strlen(large_both),
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    memset(key, 0x0c, sizeof key);
    expect(key, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b");
    for (size_t i = 0; i < 25; i++)
        key[i] = (unsigned char)(i + 1);
    memset(data, 0xcd, sizeof data);
    expect(key, 25, data, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

static void bytes_are_equal_when_all_of_them_are(void **state)
{
    (void)state;
    unsigned char a[32] = {0}, b[32] = {0};
    assert_true(ph__secrets_are_equal(a, b, sizeof a));
    for (size_t i = 0; i < sizeof a; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            b[i] = (unsigned char)(1u << bit);
            assert_false(ph__secrets_are_equal(a, b, sizeof a));
            assert_true(ph__secrets_are_equal(a, b, i));
            b[i] = 0;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_standard),
        cmocka_unit_test(bytes_are_equal_when_all_of_them_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
