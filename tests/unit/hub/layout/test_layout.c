#include "support/test_support.h"

#include <stdlib.h>

#include "base/rng.h"
#include "hub/layout/layout.h"

#define KIB ((size_t)1 << 10)

static void keys_start_on_cache_lines_and_are_cut_into_chunks(void **state)
{
    (void)state;
    static const struct ph__layout_key keys[] = {{20, PH_F32}, {64, PH_F32}, {1, PH_F32}, {33, PH_F32}};
    static const struct ph__key_place places[] = {{20, 0, 0, 0, 1, PH_F32}, {64, 128, 32, 1, 2, PH_F32},
        {1, 384, 96, 3, 1, PH_F32}, {33, 448, 112, 4, 2, PH_F32}};
    static const struct ph__chunk_place chunks[] = {{0, 0, 0, 20, 80, PH_F32}, {128, 32, 1, 32, 128, PH_F32},
        {256, 64, 1, 32, 128, PH_F32}, {384, 96, 2, 1, 4, PH_F32}, {448, 112, 3, 32, 128, PH_F32},
        {576, 144, 3, 1, 4, PH_F32}};
    struct ph__layout *layout = NULL;
    assert_ok(ph__layout_create(keys, 4, 128, &layout));
    assert_int_equal(layout->sizes.num_keys, 4);
    assert_int_equal(layout->sizes.num_chunks, 6);
    assert_int_equal(layout->sizes.gradient_bytes, 640);
    assert_int_equal(layout->sizes.num_weights, 160);
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        assert_int_equal(layout->keys[k].num_elements, places[k].num_elements);
        assert_int_equal(layout->keys[k].gradient_offset, places[k].gradient_offset);
        assert_int_equal(layout->keys[k].first_weight, places[k].first_weight);
        assert_int_equal(layout->keys[k].first_chunk, places[k].first_chunk);
        assert_int_equal(layout->keys[k].num_chunks, places[k].num_chunks);
    }
    assert_memory_equal(layout->chunks, chunks, sizeof chunks);
    ph__layout_destroy(layout);
}

static void gradients_of_two_bytes_have_weights_of_four(void **state)
{
    (void)state;
    static const struct ph__layout_key keys[] = {{100, PH_BF16}, {40, PH_F16}, {16, PH_F32}};
    static const struct ph__chunk_place chunks[] = {{0, 0, 0, 64, 128, PH_BF16},
        {128, 64, 0, 36, 72, PH_BF16}, {256, 112, 1, 40, 80, PH_F16}, {384, 160, 2, 16, 64, PH_F32}};
    struct ph__layout *layout = NULL;
    assert_ok(ph__layout_create(keys, 3, 128, &layout));
    assert_int_equal(layout->sizes.gradient_bytes, 448);
    assert_int_equal(layout->sizes.num_weights, 176);
    assert_int_equal(layout->sizes.num_chunks, 4);
    assert_memory_equal(layout->chunks, chunks, sizeof chunks);
    ph__layout_destroy(layout);
}

/* Every element of every key is in one chunk, in its order, and no two keys share a cache line in either
 * space. */
static void check_cover(const struct ph__layout *layout, const struct ph__layout_key *keys)
{
    size_t chunk = 0, gradient_end = 0, weight_end = 0;
    for (size_t k = 0; k < layout->sizes.num_keys; k++) {
        const struct ph__key_place *key = &layout->keys[k];
        const size_t element_bytes = keys[k].dtype == PH_F32 ? 4 : 2;
        assert_int_equal(key->num_elements, keys[k].num_elements);
        assert_int_equal(key->first_chunk, chunk);
        assert_int_equal(key->gradient_offset, ph__size_align(gradient_end));
        assert_int_equal(key->first_weight * 4, ph__size_align(weight_end * 4));
        size_t num_elements = 0;
        for (size_t i = 0; i < key->num_chunks; i++, chunk++) {
            const struct ph__chunk_place *place = &layout->chunks[chunk];
            const bool is_last = i + 1 == key->num_chunks;
            assert_int_equal(place->key, k);
            assert_int_equal(place->dtype, keys[k].dtype);
            assert_int_equal(place->gradient_offset, key->gradient_offset + num_elements * element_bytes);
            assert_int_equal(place->first_weight, key->first_weight + num_elements);
            assert_int_equal(place->gradient_offset % PH_ALIGNMENT, 0);
            assert_int_equal(place->first_weight * 4 % PH_ALIGNMENT, 0);
            assert_int_equal(place->gradient_bytes, place->num_elements * element_bytes);
            assert_true(
                place->gradient_bytes == layout->chunk_bytes || (is_last && place->gradient_bytes > 0));
            num_elements += place->num_elements;
        }
        assert_int_equal(num_elements, keys[k].num_elements);
        gradient_end = key->gradient_offset + num_elements * element_bytes;
        weight_end = key->first_weight + num_elements;
    }
    assert_int_equal(chunk, layout->sizes.num_chunks);
    assert_int_equal(layout->sizes.gradient_bytes, ph__size_align(gradient_end));
    assert_int_equal(layout->sizes.num_weights * 4, ph__size_align(weight_end * 4));
}

static void chunks_cover_random_keys(void **state)
{
    (void)state;
    static const enum ph_dtype dtypes[] = {PH_F32, PH_F16, PH_BF16};
    static const size_t chunk_sizes[] = {64, 192, 4 * KIB, 32 * KIB, 4096 * KIB};
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t trial = 0; trial < 100; trial++) {
        struct ph__layout_key keys[50];
        const size_t num_keys = 1 + ph__rng_below(&rng, 50);
        const size_t chunk_bytes = chunk_sizes[trial % (sizeof chunk_sizes / sizeof *chunk_sizes)];
        for (size_t k = 0; k < num_keys; k++)
            keys[k] = (struct ph__layout_key){
                1 + ph__rng_below(&rng, 3 * chunk_bytes), dtypes[ph__rng_below(&rng, 3)]};
        struct ph__layout *layout = NULL;
        struct ph__layout_sizes sizes;
        assert_ok(ph__layout_create(keys, num_keys, chunk_bytes, &layout));
        assert_ok(ph__layout_measure(keys, num_keys, chunk_bytes, &sizes));
        assert_memory_equal(&sizes, &layout->sizes, sizeof sizes);
        assert_int_equal(layout->sizes.num_keys, num_keys);
        check_cover(layout, keys);
        ph__layout_destroy(layout);
    }
}

static void assert_refused(
    const struct ph__layout_key *keys, size_t num_keys, size_t chunk_bytes, const char *part)
{
    struct ph__layout *layout = NULL;
    struct ph__layout_sizes sizes = {.num_keys = 77};
    assert_fails(ph__layout_create(keys, num_keys, chunk_bytes, &layout), PH_ERROR_USAGE, part);
    assert_fails(ph__layout_measure(keys, num_keys, chunk_bytes, &sizes), PH_ERROR_USAGE, part);
    assert_null(layout);
    assert_int_equal(sizes.num_keys, 77);
}

static void requests_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct ph__layout_key fine = {5, PH_F32};
    assert_refused(&fine, 0, 32 * KIB, "0 keys");
    assert_refused(&fine, 1, 0, "chunks of 0 bytes");
    assert_refused(&fine, 1, 32 * KIB + 4, "a multiple of 64");
    assert_refused(&fine, 1, PH_HUB_MAX_CHUNK_BYTES + 64, "up to 16777216");
    assert_refused((struct ph__layout_key[]){{5, PH_F32}, {5, PH_I64}}, 2, 64, "key 1 is of I64");
    assert_refused((struct ph__layout_key[]){{5, (enum ph_dtype)99}}, 1, 64, "key 0 is of unknown");
    assert_refused((struct ph__layout_key[]){{5, PH_F32}, {0, PH_F32}}, 2, 64, "key 1 has no elements");
}

/* 2^20 chunks of 16 elements are as many as there may be, in one key or in several. */
static void limits_hold_up_to_the_largest_numbers(void **state)
{
    (void)state;
    const size_t most = 16 * PH_LAYOUT_MAX_CHUNKS;
    struct ph__layout_sizes sizes;
    assert_ok(ph__layout_measure((struct ph__layout_key[]){{most, PH_F32}}, 1, 64, &sizes));
    assert_int_equal(sizes.num_chunks, PH_LAYOUT_MAX_CHUNKS);
    assert_int_equal(sizes.gradient_bytes, 4 * most);
    assert_refused((struct ph__layout_key[]){{most + 1, PH_F32}}, 1, 64, "key 0, of 16777217 elements");
    assert_refused((struct ph__layout_key[]){{most, PH_F32}, {1, PH_F32}}, 2, 64, "key 1, of 1 elements");
    static const size_t large[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 2, (size_t)1 << 62};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        assert_refused((struct ph__layout_key[]){{large[i], PH_F32}}, 1, 64, "key 0");
        assert_refused((struct ph__layout_key[]){{large[i], PH_BF16}}, 1, PH_HUB_MAX_CHUNK_BYTES, "key 0");
    }
    const struct ph__layout_key largest = {PH_LAYOUT_MAX_CHUNKS * (PH_HUB_MAX_CHUNK_BYTES / 2), PH_F16};
    assert_ok(ph__layout_measure(&largest, 1, PH_HUB_MAX_CHUNK_BYTES, &sizes));
    assert_int_equal(sizes.gradient_bytes, (size_t)1 << 44);
    assert_int_equal(sizes.num_weights, (size_t)1 << 43);
}

static void a_job_may_have_so_many_keys_and_no_more(void **state)
{
    (void)state;
    struct ph__layout_key *keys = calloc(PH_LAYOUT_MAX_KEYS + 1, sizeof *keys);
    assert_non_null(keys);
    for (size_t i = 0; i <= PH_LAYOUT_MAX_KEYS; i++)
        keys[i] = (struct ph__layout_key){1, PH_F32};
    struct ph__layout *layout = NULL;
    assert_ok(ph__layout_create(keys, PH_LAYOUT_MAX_KEYS, 32 * KIB, &layout));
    assert_int_equal(layout->sizes.num_chunks, PH_LAYOUT_MAX_KEYS);
    assert_int_equal(layout->chunks[65535].gradient_offset, 65535 * 64);
    ph__layout_destroy(layout);
    assert_refused(keys, PH_LAYOUT_MAX_KEYS + 1, 32 * KIB, "65537 keys");
    free(keys);
    ph__layout_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_start_on_cache_lines_and_are_cut_into_chunks),
        cmocka_unit_test(gradients_of_two_bytes_have_weights_of_four),
        cmocka_unit_test(chunks_cover_random_keys),
        cmocka_unit_test(requests_that_make_no_sense_are_refused),
        cmocka_unit_test(limits_hold_up_to_the_largest_numbers),
        cmocka_unit_test(a_job_may_have_so_many_keys_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
