#include "data/encode/text_hash.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

static uint64_t hash(const char *text)
{
    return ph__text_hash(text, strlen(text), 0);
}

static void saved_encoders_rely_on_these_values(void **state)
{
    (void)state;
    assert_true(hash("68fd1e64") == 0x3627e395ff4aaa44u);
    assert_true(hash("a longer text than eight bytes") == 0x8dddbe17aa1dc2cbu);
}

static void texts_that_differ_little_have_different_hashes(void **state)
{
    (void)state;
    assert_true(hash("a") != hash("b"));
    assert_true(hash("a") != hash("aa"));
    assert_true(hash("abcdefgh") != hash("abcdefghi"));
    assert_true(hash("12345678abcdefgh") != hash("abcdefgh12345678"));
    assert_true(ph__text_hash("a", 1, 0) != ph__text_hash("a", 1, 1));
}

static void numbers_as_text_fill_buckets_evenly(void **state)
{
    (void)state;
    enum { BUCKETS = 100, TEXTS = 100000 };
    size_t counts[BUCKETS] = {0};
    for (int i = 0; i < TEXTS; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        counts[ph__text_hash_below(hash(text), BUCKETS)]++;
    }
    double chi_squared = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        double excess = (double)counts[i] - (double)TEXTS / BUCKETS;
        chi_squared += excess * excess / ((double)TEXTS / BUCKETS);
    }
    assert_true(chi_squared < 160); /* 99 degrees of freedom: 160 has a probability of 1e-4 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_encoders_rely_on_these_values),
        cmocka_unit_test(texts_that_differ_little_have_different_hashes),
        cmocka_unit_test(numbers_as_text_fill_buckets_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
