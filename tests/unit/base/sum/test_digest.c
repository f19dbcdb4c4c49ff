#include <stdio.h>
#include <string.h>

#include "base/sum/digest.h"
#include "support/test_support.h"

static void expect(const char *text, size_t piece, const char *hex)
{
    struct ph__digest *digest = NULL;
    char made[65];
    assert_ok(ph__digest_create(&digest));
    size_t size = strlen(text);
    for (size_t done = 0; done < size; done += piece)
        assert_ok(ph__digest_update(digest, text + done, piece < size - done ? piece : size - done));
    assert_ok(ph__digest_finish(digest, made));
    assert_string_equal(made, hex);
    ph__digest_destroy(digest);
}

/* FIPS 180-2, appendix B, and the empty message. */
static void sums_are_those_of_the_standard(void **state)
{
    (void)state;
    expect("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 5,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    ph__digest_destroy(NULL);
}

static void sum_of_a_file_is_that_of_its_bytes(void **state)
{
    (void)state;
    char hex[65];
    assert_ok(ph__digest_file(test_write_file("abc", "abc"), hex));
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_fails(ph__digest_file("/nowhere/x", hex), PH_ERROR_DATA, "/nowhere/x: cannot open");
    assert_fails(ph__digest_file(test_folder(), hex), PH_ERROR_DATA, "cannot read");
}

static void a_sum_is_had_as_bytes_too(void **state)
{
    (void)state;
    struct ph__digest *digest = NULL;
    unsigned char sum[PH_DIGEST_BYTES + 1] = {0};
    assert_ok(ph__digest_create(&digest));
    assert_ok(ph__digest_update(digest, "abc", 3));
    assert_ok(ph__digest_finish_bytes(digest, sum));
    assert_int_equal(sum[0], 0xba);
    assert_int_equal(sum[1], 0x78);
    assert_int_equal(sum[PH_DIGEST_BYTES - 1], 0xad);
    assert_int_equal(sum[PH_DIGEST_BYTES], 0);
    ph__digest_destroy(digest);
}

static void expect_hmac(const void *key, size_t key_size, const void *bytes, size_t size, const char *hex)
{
    unsigned char sum[PH_HMAC_BYTES];
    char made[2 * PH_HMAC_BYTES + 1];
    assert_ok(ph__hmac_sha256(key, key_size, bytes, size, sum));
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf(made + 2 * i, 3, "%02x", sum[i]);
    assert_memory_equal(made, hex, strlen(hex)); /* test case 5 gives its first half */
}

/* RFC 4231, sections 4.2 to 4.8. */
static void hmacs_are_those_of_the_standard(void **state)
{
    (void)state;
    static const char large_key[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char large_both[] = "This is a test using a larger than block-size key and a larger than "
                                     "block-size data. The key needs to be hashed before being used by the "
                                     "HMAC algorithm.";
    unsigned char key[131], data[50];
    memset(key, 0x0b, sizeof key);
    expect_hmac(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_hmac("Jefe", 4, "what do ya want for nothing?", 28,
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    expect_hmac(key, 20, data, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    expect_hmac(key, 131, large_key, strlen(large_key),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    expect_hmac(key, 131, large_both, strlen(large_both),
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    memset(key, 0x0c, sizeof key);
    expect_hmac(key, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b");
    for (size_t i = 0; i < 25; i++)
        key[i] = (unsigned char)(i + 1);
    memset(data, 0xcd, sizeof data);
    expect_hmac(key, 25, data, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
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
        cmocka_unit_test(a_sum_is_had_as_bytes_too),
        cmocka_unit_test(sum_of_a_file_is_that_of_its_bytes),
        cmocka_unit_test(hmacs_are_those_of_the_standard),
        cmocka_unit_test(bytes_are_equal_when_all_of_them_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
