#include "base/sum/digest.h"

#include <string.h>

#include "support/test_support.h"

struct vector {
    unsigned char key[PH_GMAC_KEY_BYTES], nonce[PH_GMAC_NONCE_BYTES], tag[PH_GMAC_TAG_BYTES];
    unsigned char bytes[70];
    size_t size;
};

/* McGrew and Viega: "The Galois/Counter Mode of Operation", test case 13; IEEE 802.1AEbn, annex C.1.2:
 * 54-byte packet, authentication with GCM-AES-256. */
static const struct vector vectors[] = {
    {.tag = {0x53, 0x0f, 0x8a, 0xfb, 0xc7, 0x45, 0x36, 0xb9, 0xa9, 0x63, 0xb4, 0xf1, 0xc4, 0xcb, 0x73, 0x8b}},
    {.key = {0xE3, 0xC0, 0x8A, 0x8F, 0x06, 0xC6, 0xE3, 0xAD, 0x95, 0xA7, 0x05, 0x57, 0xB2, 0x3F, 0x75, 0x48,
         0x3C, 0xE3, 0x30, 0x21, 0xA9, 0xC7, 0x2B, 0x70, 0x25, 0x66, 0x62, 0x04, 0xC6, 0x9C, 0x0B, 0x72},
        .nonce = {0x12, 0x15, 0x35, 0x24, 0xC0, 0x89, 0x5E, 0x81, 0xB2, 0xC2, 0x84, 0x65},
        .tag = {0x2F, 0x0B, 0xC5, 0xAF, 0x40, 0x9E, 0x06, 0xD6, 0x09, 0xEA, 0x8B, 0x7D, 0x0F, 0xA5, 0xEA,
            0x50},
        .bytes = {0xD6, 0x09, 0xB1, 0xF0, 0x56, 0x63, 0x7A, 0x0D, 0x46, 0xDF, 0x99, 0x8D, 0x88, 0xE5, 0x22,
            0x2A, 0xB2, 0xC2, 0x84, 0x65, 0x12, 0x15, 0x35, 0x24, 0xC0, 0x89, 0x5E, 0x81, 0x08, 0x00, 0x0F,
            0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F,
            0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x2F,
            0x30, 0x31, 0x32, 0x33, 0x34, 0x00, 0x01},
        .size = 70},
};

/* The bytes in pieces that are cut at every place, one message after the other under one context. */
static void tags_are_those_of_the_standard_however_the_bytes_are_cut(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
        const struct vector *vector = &vectors[v];
        struct ph__gmac *gmac = NULL;
        assert_ok(ph__gmac_create(vector->key, &gmac));
        for (size_t cut = 0; cut <= vector->size; cut++) {
            unsigned char tag[PH_GMAC_TAG_BYTES] = {0};
            assert_ok(ph__gmac_begin(gmac, vector->nonce));
            assert_ok(ph__gmac_add(gmac, vector->bytes, cut));
            assert_ok(ph__gmac_add(gmac, vector->bytes + cut, vector->size - cut));
            assert_ok(ph__gmac_finish(gmac, tag));
            assert_memory_equal(tag, vector->tag, sizeof tag);
        }
        ph__gmac_destroy(gmac);
    }
    ph__gmac_destroy(NULL);
}

static void a_message_that_was_not_finished_leaves_nothing(void **state)
{
    (void)state;
    const struct vector *vector = &vectors[1];
    struct ph__gmac *gmac = NULL;
    unsigned char tag[PH_GMAC_TAG_BYTES] = {0};
    assert_ok(ph__gmac_create(vector->key, &gmac));
    assert_ok(ph__gmac_begin(gmac, (const unsigned char *)"other nonce "));
    assert_ok(ph__gmac_add(gmac, "left over", 9));
    assert_ok(ph__gmac_begin(gmac, vector->nonce));
    assert_ok(ph__gmac_add(gmac, vector->bytes, vector->size));
    assert_ok(ph__gmac_finish(gmac, tag));
    assert_memory_equal(tag, vector->tag, sizeof tag);
    ph__gmac_destroy(gmac);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_those_of_the_standard_however_the_bytes_are_cut),
        cmocka_unit_test(a_message_that_was_not_finished_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
