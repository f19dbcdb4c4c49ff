#include <string.h>

#include "base/sum/digest.h"
#include "support/test_support.h"

static void expect(const char *text, size_t piece, const char *hex)
{
    struct ph_digest *digest = NULL;
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
    struct ph_digest *digest = NULL;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_standard),
        cmocka_unit_test(a_sum_is_had_as_bytes_too),
        cmocka_unit_test(sum_of_a_file_is_that_of_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
