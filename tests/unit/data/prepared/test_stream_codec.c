#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/prepared/stream_codec.h"
#include "support/test_support.h"

#define MAX_VALUES 9000

struct trial {
    struct ph__stream_encoder encoder;
    struct ph__stream stream;
    uint32_t values[MAX_VALUES];
    size_t num_bytes;
    unsigned char *bytes; /* exactly as many as decoding may read, so that a sanitizer sees one more */
};

static struct trial *encode(const uint32_t *values, size_t num_values)
{
    struct trial *trial = calloc(1, sizeof *trial);
    unsigned char *bytes = malloc(ph__stream_max_bytes(num_values) + 1);
    assert_non_null(trial);
    memset(&trial->encoder, 0xa5, sizeof trial->encoder); /* of any content before */
    memcpy(trial->values, values, num_values * sizeof *values);
    trial->num_bytes = ph__stream_encode(&trial->encoder, values, num_values, &trial->stream, bytes);
    assert_true(trial->num_bytes <= ph__stream_max_bytes(num_values));
    trial->bytes = malloc(trial->num_bytes + PH_STREAM_OVERREAD_BYTES);
    assert_non_null(trial->bytes);
    memcpy(trial->bytes, bytes, trial->num_bytes);
    memset(trial->bytes + trial->num_bytes, 0xff, PH_STREAM_OVERREAD_BYTES);
    free(bytes);
    return trial;
}

static void destroy(struct trial *trial)
{
    free(trial->bytes);
    free(trial);
}

static void assert_decodes(const struct trial *trial, size_t first, size_t count)
{
    uint32_t *values = malloc((count + 1) * sizeof *values);
    assert_non_null(values);
    assert_true(ph__stream_decode(&trial->stream, trial->bytes, first, count, values));
    assert_memory_equal(values, trial->values + first, count * sizeof *values);
    free(values);
}

/* Encodes, decodes as a whole and by random runs, and returns the number of bytes. */
static size_t round_trip(const uint32_t *values, size_t num_values, enum ph__stream_coding coding)
{
    struct trial *trial = encode(values, num_values);
    uint64_t num_bytes = 0;
    assert_true(ph__stream_num_bytes(&trial->stream, &num_bytes));
    assert_int_equal(num_bytes, trial->num_bytes);
    assert_int_equal(trial->stream.num_values, num_values);
    assert_int_equal(trial->stream.coding, coding);
    assert_decodes(trial, 0, num_values);
    struct ph__rng_sequence rng = {.key.seed = test_seed() + num_values};
    for (int i = 0; i < 20; i++) {
        size_t first = (size_t)ph__rng_below(&rng, num_values + 1);
        assert_decodes(trial, first, (size_t)ph__rng_below(&rng, num_values - first + 1));
    }
    destroy(trial);
    return (size_t)num_bytes;
}

static void packed_values_of_every_width_and_tail_come_back(void **state)
{
    (void)state;
    static uint32_t values[MAX_VALUES];
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    for (unsigned bits = 0; bits <= 32; bits++) {
        for (size_t num_values = 1; num_values < 300; num_values += 1 + num_values / 7) {
            uint32_t mask = bits == 0 ? 0 : UINT32_MAX >> (32 - bits);
            uint32_t base = (uint32_t)ph__rng_below(&rng, (uint64_t)UINT32_MAX - mask + 1);
            for (size_t i = 0; i < num_values; i++)
                values[i] = base + ((uint32_t)ph__rng_next(&rng) & mask);
            struct trial *trial = encode(values, num_values);
            assert_decodes(trial, 0, num_values);
            assert_decodes(trial, num_values - 1, 1);
            assert_decodes(trial, num_values, 0);
            assert_true(trial->num_bytes <= (num_values * bits + 31) / 32 * 4);
            destroy(trial);
        }
    }
}

static void a_constant_stream_has_no_bytes(void **state)
{
    (void)state;
    static uint32_t values[8192];
    for (size_t i = 0; i < 8192; i++)
        values[i] = UINT32_MAX;
    assert_int_equal(round_trip(values, 8192, PH_STREAM_PACKED), 0);
    assert_int_equal(round_trip(values, 1, PH_STREAM_PACKED), 0);
    assert_int_equal(round_trip(values, 0, PH_STREAM_PACKED), 0);
}

static void values_that_all_differ_are_packed(void **state)
{
    (void)state;
    static uint32_t values[8192];
    for (uint32_t i = 0; i < 8192; i++)
        values[i] = i * 0x9E3779B1u;
    assert_int_equal(round_trip(values, 8192, PH_STREAM_PACKED), 8192 * 4);
    for (uint32_t i = 0; i < 8192; i++)
        values[i] = 1000 + 8191 - i;
    assert_int_equal(round_trip(values, 8192, PH_STREAM_PACKED), 8192 * 13 / 8);
}

static void extremes_take_all_bits_or_a_dictionary(void **state)
{
    (void)state;
    static uint32_t values[8192];
    for (uint32_t i = 0; i < 8192; i++)
        values[i] = i % 2 == 0 ? 0 : UINT32_MAX;
    assert_int_equal(round_trip(values, 8192, PH_STREAM_DICTIONARY), 8 + 8192 / 8);
    assert_int_equal(round_trip(values, 2, PH_STREAM_PACKED), 8);
}

/* The size of the smaller coding, from its definition. */
static size_t smaller(
    size_t num_values, size_t num_distinct, unsigned bits, enum ph__stream_coding *coding_out)
{
    size_t entry_bits = 0;
    while (((size_t)1 << entry_bits) < num_distinct)
        entry_bits++;
    size_t packed = (num_values * bits + 31) / 32 * 4;
    size_t dictionary = num_distinct * 4 + (num_values * entry_bits + 31) / 32 * 4;
    bool may_have_dictionary = num_distinct >= 2 && num_distinct <= PH_STREAM_MAX_ENTRIES &&
                               32 * num_distinct + num_values * entry_bits < num_values * bits;
    *coding_out = may_have_dictionary ? PH_STREAM_DICTIONARY : PH_STREAM_PACKED;
    return may_have_dictionary ? dictionary : packed;
}

static void the_smaller_coding_is_taken(void **state)
{
    (void)state;
    static uint32_t values[MAX_VALUES];
    static const size_t distinct[] = {
        2, 3, 4, 5, 16, 17, 300, 1000, 1400, 1800, 2048, 4095, 4096, 4097, 8192};
    static const unsigned widths[] = {13, 14, 17, 20, 24, 32};
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    for (size_t d = 0; d < sizeof distinct / sizeof *distinct; d++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            size_t num_values = 8192 + (size_t)ph__rng_below(&rng, 100);
            /* distinct[d] values, spread so that their difference has exactly that many bits */
            uint32_t greatest = UINT32_MAX >> (32 - widths[w]);
            for (size_t i = 0; i < num_values; i++)
                values[i] = (uint32_t)((uint64_t)greatest * (i % distinct[d]) / (distinct[d] - 1));
            enum ph__stream_coding coding;
            size_t wanted = smaller(num_values, distinct[d], widths[w], &coding);
            assert_int_equal(round_trip(values, num_values, coding), wanted);
        }
    }
}

static void streams_that_no_encoder_wrote_are_refused(void **state)
{
    (void)state;
    const struct ph__stream wrong[] = {
        {.coding = 2, .num_values = 1},
        {.coding = PH_STREAM_PACKED, .bits = 33, .num_values = 1},
        {.coding = PH_STREAM_PACKED, .bits = 1, .num_entries = 1, .num_values = 1},
        {.coding = PH_STREAM_DICTIONARY, .bits = 0, .num_entries = 0, .num_values = 1},
        {.coding = PH_STREAM_DICTIONARY, .bits = 2, .num_entries = 2, .num_values = 1},
        {.coding = PH_STREAM_DICTIONARY, .bits = 13, .num_entries = 4097, .num_values = 1},
        {.coding = PH_STREAM_DICTIONARY, .bits = 1, .num_entries = 2, .base = 1, .num_values = 1},
    };
    uint64_t num_bytes = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(ph__stream_num_bytes(&wrong[i], &num_bytes));
    const struct ph__stream large = {.coding = PH_STREAM_PACKED, .bits = 32, .num_values = UINT32_MAX};
    assert_true(ph__stream_num_bytes(&large, &num_bytes));
    assert_int_equal(num_bytes, (uint64_t)UINT32_MAX * 4);
}

static void a_place_outside_the_dictionary_is_refused(void **state)
{
    (void)state;
    const struct ph__stream stream = {
        .coding = PH_STREAM_DICTIONARY, .bits = 2, .num_entries = 3, .num_values = 4};
    unsigned char bytes[3 * 4 + 4 + PH_STREAM_OVERREAD_BYTES] = {1, 0, 0, 0, 2, 0, 0, 0, 3};
    uint32_t values[4];
    bytes[12] = 0x24; /* 0, 1, 2, 0 */
    assert_true(ph__stream_decode(&stream, bytes, 0, 4, values));
    assert_int_equal(values[2], 3);
    bytes[12] = 0xe4; /* 0, 1, 2, 3 */
    assert_true(ph__stream_decode(&stream, bytes, 0, 3, values));
    assert_false(ph__stream_decode(&stream, bytes, 0, 4, values));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_values_of_every_width_and_tail_come_back),
        cmocka_unit_test(a_constant_stream_has_no_bytes),
        cmocka_unit_test(values_that_all_differ_are_packed),
        cmocka_unit_test(extremes_take_all_bits_or_a_dictionary),
        cmocka_unit_test(the_smaller_coding_is_taken),
        cmocka_unit_test(streams_that_no_encoder_wrote_are_refused),
        cmocka_unit_test(a_place_outside_the_dictionary_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
