/* Which chunk lives where, and what room each hub has for its own. */
#include "support/test_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/sizes.h"
#include "hub/layout/spread.h"

enum { CHUNK_BYTES = 256, MAX_KEYS = 12, NUM_TRIALS = 60 };

static struct ph_layout_key keys[MAX_KEYS];

static struct ph_layout *random_layout(struct ph_rng_sequence *rng)
{
    static const enum ph_dtype dtypes[] = {PH_F32, PH_F16, PH_BF16};
    struct ph_layout *layout;
    const size_t num_keys = 1 + ph__rng_below(rng, MAX_KEYS);
    for (size_t i = 0; i < num_keys; i++)
        keys[i] = (struct ph_layout_key){1 + ph__rng_below(rng, 3000), dtypes[ph__rng_below(rng, 3)]};
    assert_ok(ph__layout_create(keys, num_keys, CHUNK_BYTES, &layout));
    return layout;
}

static uint16_t *bins_of(const struct ph_layout *layout, struct ph_hub_share share, uint16_t num_cores)
{
    uint16_t *bins = calloc(layout->sizes.num_chunks, sizeof *bins);
    assert_non_null(bins);
    assert_ok(ph__spread_share(layout, &share, num_cores, bins));
    return bins;
}

struct loads {
    size_t least, most, sum;
};

static void add_load(struct loads *loads, size_t bytes)
{
    loads->least = ph__min(loads->least, bytes);
    loads->most = ph__max(loads->most, bytes);
    loads->sum += bytes;
}

/* Of one hub's core threads, whose chunks are counted in num_homes. */
static struct loads loads_of(
    const struct ph_layout *layout, struct ph_hub_share share, uint16_t num_cores, uint32_t *num_homes)
{
    struct loads loads = {.least = SIZE_MAX};
    uint16_t *bins = bins_of(layout, share, num_cores);
    for (uint16_t core = 0; core < num_cores; core++) {
        size_t bytes = 0;
        for (size_t i = 0; i < layout->sizes.num_chunks; i++)
            bytes += bins[i] == core ? layout->chunks[i].gradient_bytes : 0;
        add_load(&loads, bytes);
    }
    for (size_t i = 0; i < layout->sizes.num_chunks; i++) {
        assert_true(bins[i] < num_cores || bins[i] == PH_ELSEWHERE);
        num_homes[i] += bins[i] != PH_ELSEWHERE;
    }
    free(bins);
    return loads;
}

/* Largest first into the emptiest: two bins never differ by more than the largest chunk. */
static void each_chunk_has_one_hub_and_loads_are_balanced(void **state)
{
    (void)state;
    struct ph_rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t trial = 0; trial < NUM_TRIALS; trial++) {
        struct ph_layout *layout = random_layout(&rng);
        const uint16_t num_hubs = (uint16_t)(1 + ph__rng_below(&rng, 4));
        const uint16_t num_cores = (uint16_t)(1 + ph__rng_below(&rng, 3));
        uint32_t *num_homes = calloc(layout->sizes.num_chunks, sizeof *num_homes);
        struct loads hubs = {.least = SIZE_MAX};
        for (uint16_t hub = 0; hub < num_hubs; hub++) {
            const struct loads cores =
                loads_of(layout, (struct ph_hub_share){hub, num_hubs}, num_cores, num_homes);
            assert_true(cores.most - cores.least <= CHUNK_BYTES);
            add_load(&hubs, cores.sum);
        }
        assert_true(hubs.most - hubs.least <= CHUNK_BYTES);
        for (size_t i = 0; i < layout->sizes.num_chunks; i++)
            assert_int_equal(num_homes[i], 1);
        free(num_homes);
        ph__layout_destroy(layout);
    }
}

static void one_hub_has_its_chunks_as_ever(void **state)
{
    (void)state;
    struct ph_rng_sequence rng = {.key = {.seed = test_seed()}};
    struct ph_layout *layout = random_layout(&rng), *kept;
    const size_t num_chunks = layout->sizes.num_chunks;
    uint16_t *bins = bins_of(layout, (struct ph_hub_share){0, 1}, 3);
    uint16_t *alone = calloc(num_chunks, sizeof *alone);
    assert_ok(ph__spread_chunks(layout, NULL, 0, 3, alone));
    assert_memory_equal(bins, alone, num_chunks * sizeof *bins);
    assert_ok(ph__layout_create(keys, layout->sizes.num_keys, CHUNK_BYTES, &kept));
    ph__layout_keep(kept, bins);
    assert_memory_equal(&kept->sizes, &layout->sizes, sizeof layout->sizes);
    assert_memory_equal(kept->keys, layout->keys, layout->sizes.num_keys * sizeof *layout->keys);
    assert_memory_equal(kept->chunks, layout->chunks, num_chunks * sizeof *layout->chunks);
    free(bins);
    free(alone);
    ph__layout_destroy(layout);
    ph__layout_destroy(kept);
}

/* What is kept lies in the order of its chunks without gaps, and is as large as ever. */
static void check_part(const struct ph_layout *whole, const struct ph_layout *part, const uint16_t *bins)
{
    size_t bytes = 0, weights = 0, num_here = 0;
    for (size_t k = 0; k < whole->sizes.num_keys; k++) {
        const struct ph_key_place *key = &part->keys[k];
        size_t num_elements = 0, num_of_key = 0;
        assert_int_equal(key->gradient_offset, bytes);
        assert_int_equal(key->first_weight, weights);
        assert_int_equal(key->first_chunk, whole->keys[k].first_chunk);
        assert_int_equal(key->num_chunks, whole->keys[k].num_chunks);
        for (uint32_t i = key->first_chunk; i < key->first_chunk + key->num_chunks; i++) {
            const struct ph_chunk_place *chunk = &part->chunks[i];
            assert_int_equal(chunk->key, k);
            assert_int_equal(chunk->dtype, key->dtype);
            assert_int_equal(ph__chunk_is_here(chunk), bins[i] != PH_ELSEWHERE);
            if (!ph__chunk_is_here(chunk))
                continue;
            assert_int_equal(chunk->num_elements, whole->chunks[i].num_elements);
            assert_int_equal(chunk->gradient_bytes, whole->chunks[i].gradient_bytes);
            assert_int_equal(chunk->gradient_offset, bytes);
            assert_int_equal(chunk->first_weight, weights);
            assert_int_equal(chunk->first_weight, key->first_weight + num_elements);
            bytes += ph__size_align(chunk->gradient_bytes);
            weights += ph__round_up(chunk->num_elements, PH_ALIGNMENT / sizeof(float));
            num_elements += chunk->num_elements;
            num_of_key++;
        }
        assert_int_equal(key->num_elements, num_elements);
        assert_int_equal(ph__layout_count_here(part, k), num_of_key);
        num_here += num_of_key;
    }
    assert_int_equal(part->sizes.num_here, num_here);
    assert_int_equal(part->sizes.gradient_bytes, ph__max(bytes, PH_ALIGNMENT));
    assert_int_equal(part->sizes.num_weights, ph__max(weights, PH_ALIGNMENT / sizeof(float)));
}

static void a_hub_has_room_for_its_own_chunks_alone(void **state)
{
    (void)state;
    struct ph_rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t trial = 0; trial < NUM_TRIALS; trial++) {
        struct ph_layout *whole = random_layout(&rng);
        const uint16_t num_hubs = (uint16_t)(1 + ph__rng_below(&rng, 40)); /* also more than chunks */
        for (uint16_t hub = 0; hub < num_hubs; hub++) {
            struct ph_layout *part;
            uint16_t *bins = bins_of(whole, (struct ph_hub_share){hub, num_hubs}, 2);
            assert_ok(ph__layout_create(keys, whole->sizes.num_keys, CHUNK_BYTES, &part));
            ph__layout_keep(part, bins);
            check_part(whole, part, bins);
            ph__layout_destroy(part);
            free(bins);
        }
        ph__layout_destroy(whole);
    }
}

static void lists_are_the_other_way_round(void **state)
{
    (void)state;
    enum { NUM_CHUNKS = 500, NUM_BINS = 7 };
    struct ph_rng_sequence rng = {.key.seed = test_seed()};
    uint16_t bins[NUM_CHUNKS];
    struct ph_chunk_lists lists;
    for (size_t trial = 0; trial < NUM_TRIALS; trial++) {
        const size_t num_chunks = 1 + ph__rng_below(&rng, NUM_CHUNKS);
        for (size_t i = 0; i < num_chunks; i++) /* some bins may stay empty */
            bins[i] = ph__rng_below(&rng, 5) == 0 ? PH_ELSEWHERE : (uint16_t)ph__rng_below(&rng, NUM_BINS);
        assert_ok(ph__chunk_lists_init(&lists, bins, num_chunks, NUM_BINS));
        for (uint16_t bin = 0; bin < NUM_BINS; bin++) {
            size_t at = lists.first[bin];
            for (uint32_t chunk = 0; chunk < num_chunks; chunk++) {
                if (bins[chunk] == bin)
                    assert_int_equal(lists.chunks[at++], chunk);
            }
            assert_int_equal(at, lists.first[bin + 1]);
        }
        ph__chunk_lists_fini(&lists);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_has_one_hub_and_loads_are_balanced),
        cmocka_unit_test(one_hub_has_its_chunks_as_ever),
        cmocka_unit_test(a_hub_has_room_for_its_own_chunks_alone),
        cmocka_unit_test(lists_are_the_other_way_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
