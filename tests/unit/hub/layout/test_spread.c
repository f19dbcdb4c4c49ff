/* Which chunk lives where, and what room each hub has for its own. */
#include "support/test_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/sizes.h"
#include "chunk_balance.h"
#include "hub/layout/spread.h"

enum { CHUNK_BYTES = 256, MAX_KEYS = 12, NUM_TRIALS = 60 };

static struct ph__layout_key keys[MAX_KEYS];

static struct ph__layout *random_layout(struct ph__rng_sequence *rng)
{
    static const enum ph_dtype dtypes[] = {PH_F32, PH_F16, PH_BF16};
    struct ph__layout *layout;
    const size_t num_keys = 1 + ph__rng_below(rng, MAX_KEYS);
    for (size_t i = 0; i < num_keys; i++)
        keys[i] = (struct ph__layout_key){1 + ph__rng_below(rng, 3000), dtypes[ph__rng_below(rng, 3)]};
    assert_ok(ph__layout_create(keys, num_keys, CHUNK_BYTES, &layout));
    return layout;
}

static uint16_t *bins_of(const struct ph__layout *layout, struct ph__hub_share share, uint16_t num_cores)
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
    const struct ph__layout *layout, struct ph__hub_share share, uint16_t num_cores, uint32_t *num_homes)
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
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t trial = 0; trial < NUM_TRIALS; trial++) {
        struct ph__layout *layout = random_layout(&rng);
        const uint16_t num_hubs = (uint16_t)(1 + ph__rng_below(&rng, 4));
        const uint16_t num_cores = (uint16_t)(1 + ph__rng_below(&rng, 3));
        uint32_t *num_homes = calloc(layout->sizes.num_chunks, sizeof *num_homes);
        struct loads hubs = {.least = SIZE_MAX};
        for (uint16_t hub = 0; hub < num_hubs; hub++) {
            const struct loads cores =
                loads_of(layout, (struct ph__hub_share){hub, num_hubs}, num_cores, num_homes);
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
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    struct ph__layout *layout = random_layout(&rng), *kept;
    const size_t num_chunks = layout->sizes.num_chunks;
    uint16_t *bins = bins_of(layout, (struct ph__hub_share){0, 1}, 3);
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
static void check_part(const struct ph__layout *whole, const struct ph__layout *part, const uint16_t *bins)
{
    size_t bytes = 0, weights = 0, num_here = 0;
    for (size_t k = 0; k < whole->sizes.num_keys; k++) {
        const struct ph__key_place *key = &part->keys[k];
        size_t num_elements = 0, num_of_key = 0;
        assert_int_equal(key->gradient_offset, bytes);
        assert_int_equal(key->first_weight, weights);
        assert_int_equal(key->first_chunk, whole->keys[k].first_chunk);
        assert_int_equal(key->num_chunks, whole->keys[k].num_chunks);
        for (uint32_t i = key->first_chunk; i < key->first_chunk + key->num_chunks; i++) {
            const struct ph__chunk_place *chunk = &part->chunks[i];
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
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t trial = 0; trial < NUM_TRIALS; trial++) {
        struct ph__layout *whole = random_layout(&rng);
        const uint16_t num_hubs = (uint16_t)(1 + ph__rng_below(&rng, 40)); /* also more than chunks */
        for (uint16_t hub = 0; hub < num_hubs; hub++) {
            struct ph__layout *part;
            uint16_t *bins = bins_of(whole, (struct ph__hub_share){hub, num_hubs}, 2);
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
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    uint16_t bins[NUM_CHUNKS];
    struct ph__chunk_lists lists;
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

#define KIB ((size_t)1 << 10)

/* ---- the rule ---- */

static void largest_goes_first_into_the_least_load(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 7, 3, 5, 4};
    static const uint32_t wanted[] = {1, 0, 0, 1, 1};
    uint32_t bins[5];
    size_t loads[2];
    assert_ok(ph__partition(5, sizes, 2, bins, loads));
    assert_memory_equal(bins, wanted, sizeof wanted);
    assert_int_equal(loads[0], 10);
    assert_int_equal(loads[1], 11);
}

static void ties_go_to_the_first(void **state)
{
    (void)state;
    static const size_t sizes[] = {4, 9, 4, 4, 0, 4};
    static const uint32_t wanted[] = {1, 0, 2, 1, 1, 2};
    uint32_t bins[6];
    size_t loads[3];
    assert_ok(ph__partition(6, sizes, 3, bins, loads));
    assert_memory_equal(bins, wanted, sizeof wanted);
    assert_int_equal(loads[0], 9);
    assert_int_equal(loads[1], 8);
    assert_int_equal(loads[2], 8);
}

static void bins_without_items_are_empty(void **state)
{
    (void)state;
    static const size_t sizes[] = {3, 5};
    uint32_t bins[2];
    size_t loads[4] = {9, 9, 9, 9};
    assert_ok(ph__partition(2, sizes, 4, bins, loads));
    assert_int_equal(bins[1], 0);
    assert_int_equal(bins[0], 1);
    assert_int_equal(loads[0], 5);
    assert_int_equal(loads[1], 3);
    assert_int_equal(loads[2] + loads[3], 0);
    assert_ok(ph__partition(0, NULL, 2, NULL, loads));
    assert_int_equal(loads[0] + loads[1], 0);
}

static void sizes_whose_sum_overflows_are_refused(void **state)
{
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, 1};
    uint32_t bins[2] = {7, 7};
    size_t loads[2] = {7, 7};
    assert_fails(ph__partition(2, sizes, 2, bins, loads), PH_ERROR_USAGE, "the sizes of 2 items");
    assert_int_equal(bins[0] + bins[1], 14);
    assert_int_equal(loads[0] + loads[1], 14);
    assert_ok(ph__partition(1, sizes, 2, bins, loads));
}

/* The rule again, as slowly as it can be said: the first of the largest that are left, the first of the least
 * loads. */
static void partition_by_search(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins, size_t *loads)
{
    for (size_t b = 0; b < num_bins; b++)
        loads[b] = 0;
    for (size_t i = 0; i < num_items; i++)
        bins[i] = UINT32_MAX;
    for (size_t placed = 0; placed < num_items; placed++) {
        size_t item = num_items, bin = 0;
        for (size_t i = 0; i < num_items; i++)
            if (bins[i] == UINT32_MAX && (item == num_items || sizes[i] > sizes[item]))
                item = i;
        for (size_t b = 1; b < num_bins; b++)
            bin = loads[b] < loads[bin] ? b : bin;
        bins[item] = (uint32_t)bin;
        loads[bin] += sizes[item];
    }
}

static void bins_are_those_of_a_plain_search(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t trial = 0; trial < 200; trial++) {
        size_t sizes[300], loads[70], wanted_loads[70];
        uint32_t bins[300], wanted[300];
        const size_t num_items = ph__rng_below(&rng, 300) + 1, num_bins = ph__rng_below(&rng, 70) + 1;
        const size_t largest = trial % 2 == 0 ? 4 : 100000; /* many ties, or hardly any */
        for (size_t i = 0; i < num_items; i++)
            sizes[i] = ph__rng_below(&rng, largest);
        assert_ok(ph__partition(num_items, sizes, num_bins, bins, loads));
        partition_by_search(num_items, sizes, num_bins, wanted, wanted_loads);
        assert_memory_equal(bins, wanted, num_items * sizeof *bins);
        assert_memory_equal(loads, wanted_loads, num_bins * sizeof *loads);
    }
}

/* The least possible largest load, by trying every bin for every item from `next` on. */
static size_t least_possible(
    const size_t *sizes, size_t num_items, size_t next, size_t *loads, size_t num_bins)
{
    size_t least = SIZE_MAX, largest = 0;
    for (size_t b = 0; b < num_bins; b++)
        largest = loads[b] > largest ? loads[b] : largest;
    if (next == num_items)
        return largest;
    for (size_t b = 0; b < num_bins; b++) {
        loads[b] += sizes[next];
        const size_t found = least_possible(sizes, num_items, next + 1, loads, num_bins);
        loads[b] -= sizes[next];
        least = found < least ? found : least;
    }
    return least;
}

static void largest_load_is_near_the_least_possible(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t trial = 0; trial < 200; trial++) {
        size_t sizes[8], loads[4], empty[4] = {0}, largest = 0;
        uint32_t bins[8];
        const size_t num_items = ph__rng_below(&rng, 8) + 1, num_bins = ph__rng_below(&rng, 3) + 2;
        for (size_t i = 0; i < num_items; i++)
            sizes[i] = ph__rng_below(&rng, 20) + 1;
        assert_ok(ph__partition(num_items, sizes, num_bins, bins, loads));
        for (size_t b = 0; b < num_bins; b++)
            largest = loads[b] > largest ? loads[b] : largest;
        const size_t best = least_possible(sizes, num_items, 0, empty, num_bins);
        assert_true(largest >= best);
        assert_true(3 * num_bins * largest <= (4 * num_bins - 1) * best); /* 4/3 - 1/(3 bins) */
    }
}

/* ---- chunks of models ---- */

#define BALANCED 1.02

struct balance_found {
    size_t num_combinations; /* of servers and cores, with enough chunks a core */
    double worst_servers, worst_cores;
};

/* Over 1 to 16 servers of 1 to 32 cores. */
static struct balance_found find_worst(enum model model, size_t chunk_bytes, partition_function partition)
{
    struct balance_found found = {0};
    struct model_shapes shapes;
    size_t *sizes = NULL, num_chunks = 0;
    model_shapes_init(&shapes, model);
    assert_ok(chunk_sizes(&shapes, chunk_bytes, &sizes, &num_chunks));
    for (size_t servers = 1; servers <= 16; servers *= 2)
        for (size_t cores = 1; cores <= 32; cores *= 2) {
            struct chunk_balance balance;
            assert_ok(chunk_balance(sizes, num_chunks, servers, cores, partition, &balance));
            if (balance.chunks_per_core < BALANCE_CHUNKS_PER_CORE)
                continue;
            found.num_combinations++;
            if (balance.servers > found.worst_servers)
                found.worst_servers = balance.servers;
            if (balance.cores > found.worst_cores)
                found.worst_cores = balance.cores;
        }
    free(sizes);
    return found;
}

/* How many of the 30 combinations have 50 chunks a core: all that have up to 128 cores in AlexNet, 256 in
 * VGG-19, 32 in ResNet-50, 4 in the dense part of MLPerf's DLRM, and all 512 in the one of Criteo Kaggle. */
static void chunks_of_models_are_balanced_over_servers_and_cores(void **state)
{
    (void)state;
    static const size_t num_combinations[NUM_MODELS] = {27, 29, 20, 6, 30};
    for (int model = 0; model < NUM_MODELS; model++) {
        const struct balance_found found = find_worst((enum model)model, 32 * KIB, ph__partition);
        assert_int_equal(found.num_combinations, num_combinations[model]);
        assert_true(found.worst_servers >= 1 && found.worst_servers <= BALANCED);
        assert_true(found.worst_cores >= 1 && found.worst_cores <= BALANCED);
    }
}

/* What misleads it are the shorter chunks, of which a key has one at most. At 32 KiB they are too few to be
 * seen in VGG-19 and beside the tables of Criteo Kaggle; larger chunks show it there. */
static void the_greedy_that_forgets_to_sort_its_sizes_is_out_of_balance(void **state)
{
    (void)state;
    static const size_t chunk_kib[NUM_MODELS] = {[MODEL_ALEXNET] = 32,
        [MODEL_VGG19] = 1024,
        [MODEL_RESNET50] = 32,
        [MODEL_DLRM_MLPERF] = 32,
        [MODEL_DLRM_KAGGLE] = 2048};
    for (int model = 0; model < NUM_MODELS; model++) {
        const size_t chunk_bytes = chunk_kib[model] * KIB;
        const struct balance_found ours = find_worst((enum model)model, chunk_bytes, ph__partition);
        const struct balance_found wrong = find_worst((enum model)model, chunk_bytes, unsorted_greedy);
        assert_int_equal(wrong.num_combinations, ours.num_combinations);
        assert_true(ours.worst_cores <= BALANCED);
        assert_true(wrong.worst_cores > BALANCED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_has_one_hub_and_loads_are_balanced),
        cmocka_unit_test(one_hub_has_its_chunks_as_ever),
        cmocka_unit_test(a_hub_has_room_for_its_own_chunks_alone),
        cmocka_unit_test(lists_are_the_other_way_round),
        cmocka_unit_test(largest_goes_first_into_the_least_load),
        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(bins_without_items_are_empty),
        cmocka_unit_test(sizes_whose_sum_overflows_are_refused),
        cmocka_unit_test(bins_are_those_of_a_plain_search),
        cmocka_unit_test(largest_load_is_near_the_least_possible),
        cmocka_unit_test(chunks_of_models_are_balanced_over_servers_and_cores),
        cmocka_unit_test(the_greedy_that_forgets_to_sort_its_sizes_is_out_of_balance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
