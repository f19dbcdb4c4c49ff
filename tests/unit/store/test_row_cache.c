#include "store/row_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/rng.h"
#include "base/text/number.h"
#include "support/test_support.h"

enum { ROW_BYTES = 44, NUM_KEYS = 1000 };

/* A row that says whose it is, in each of its bytes. */
static void make_row(uint64_t key, uint32_t birth, unsigned char row_out[ROW_BYTES])
{
    memset(row_out, (int)((key ^ birth) & 0xff), ROW_BYTES);
}

static uint64_t key_of(size_t i)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed(), .step = i}};
    return ph__rng_next(&random);
}

static void put(struct ph__row_cache *cache, uint64_t key, uint32_t birth)
{
    unsigned char row[ROW_BYTES];
    make_row(key, birth, row);
    ph__row_cache_put(cache, key, birth, row);
}

static uint32_t get(struct ph__row_cache *cache, uint64_t key, uint32_t oldest)
{
    unsigned char row[ROW_BYTES], expected[ROW_BYTES];
    uint32_t birth;
    ph__row_cache_get(cache, 1, &key, oldest, row, &birth);
    make_row(key, birth, expected);
    if (birth > 0)
        assert_memory_equal(row, expected, ROW_BYTES);
    return birth;
}

static void rows_are_found_while_they_are_young(void **state)
{
    (void)state;
    struct ph__row_cache *cache;
    assert_ok(ph__row_cache_create(1 << 20, ROW_BYTES, &cache));
    for (size_t i = 0; i < NUM_KEYS; i++)
        put(cache, key_of(i), 10 + (uint32_t)(i % 5));
    for (size_t i = 0; i < NUM_KEYS; i++) {
        const uint32_t birth = 10 + (uint32_t)(i % 5);
        assert_int_equal(get(cache, key_of(i), 1), birth);
        assert_int_equal(get(cache, key_of(i), 12), birth >= 12 ? birth : 0);
    }
    assert_int_equal(get(cache, key_of(NUM_KEYS), 1), 0);
    put(cache, key_of(7), 20);
    assert_int_equal(get(cache, key_of(7), 15), 20);
    assert_int_equal(ph__row_cache_counts(cache).num_rows, NUM_KEYS);
    ph__row_cache_destroy(cache);
}

static void many_rows_are_found_at_once(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    struct ph__row_cache *cache;
    unsigned char rows[COUNT][ROW_BYTES], expected[ROW_BYTES];
    uint64_t keys[COUNT];
    uint32_t births[COUNT];
    assert_ok(ph__row_cache_create(1 << 20, ROW_BYTES, &cache));
    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = key_of(i);
        if (i % 3 != 0)
            put(cache, keys[i], 5);
    }
    assert_int_equal(ph__row_cache_get(cache, COUNT, keys, 1, rows, births), COUNT - (COUNT + 2) / 3);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(births[i], i % 3 != 0 ? 5 : 0);
        make_row(keys[i], births[i], expected);
        if (births[i] > 0)
            assert_memory_equal(rows[i], expected, ROW_BYTES);
    }
    ph__row_cache_destroy(cache);
}

/* Of more rows than there is room for the youngest stay. */
static void the_oldest_give_way(void **state)
{
    (void)state;
    struct ph__row_cache *cache;
    assert_ok(ph__row_cache_create(64 << 10, ROW_BYTES, &cache));
    const uint64_t capacity = ph__row_cache_counts(cache).capacity;
    assert_true(capacity > 500 && capacity * ROW_BYTES < 64 << 10);
    for (size_t i = 0; i < 4 * capacity; i++)
        put(cache, key_of(i), 1 + (uint32_t)i);
    size_t young = 0, old = 0;
    for (size_t i = 0; i < capacity / 2; i++) {
        old += get(cache, key_of(i), 1) > 0;
        young += get(cache, key_of(4 * capacity - 1 - i), 1) > 0;
    }
    assert_int_equal(old, 0);
    assert_true(10 * young > 9 * (capacity / 2));
    const struct ph__row_cache_counts counts = ph__row_cache_counts(cache);
    assert_true(counts.num_rows <= capacity);
    assert_int_equal(counts.num_written, 4 * capacity);
    assert_int_equal(counts.num_written - counts.num_replaced, counts.num_rows);
    assert_int_equal(counts.num_never_read, counts.num_replaced);
    ph__row_cache_destroy(cache);
}

/* Tells whether a row's first byte is even. */
static bool is_even(void *context, const void *row)
{
    (*(size_t *)context)++;
    return *(const unsigned char *)row % 2 == 0;
}

static void rows_are_removed_by_what_they_say(void **state)
{
    (void)state;
    struct ph__row_cache *cache;
    size_t num_seen = 0, num_left = 0;
    unsigned char row[ROW_BYTES], expected[ROW_BYTES];
    assert_ok(ph__row_cache_create(1 << 20, ROW_BYTES, &cache));
    for (size_t i = 0; i < NUM_KEYS; i++)
        put(cache, key_of(i), 10);
    ph__row_cache_remove_if(cache, is_even, &num_seen);
    assert_int_equal(num_seen, NUM_KEYS);
    for (size_t i = 0; i < NUM_KEYS; i++) {
        make_row(key_of(i), 10, expected);
        const uint32_t birth = ph__row_cache_peek(cache, key_of(i), row);
        assert_int_equal(birth, expected[0] % 2 == 0 ? 0 : 10);
        assert_int_equal(ph__row_cache_peek(cache, key_of(i), NULL), birth);
        if (birth > 0)
            assert_memory_equal(row, expected, ROW_BYTES);
        num_left += birth > 0;
    }
    assert_int_equal(ph__row_cache_counts(cache).num_rows, num_left);
    ph__row_cache_destroy(cache);
}

static void looking_without_reading_is_not_counted(void **state)
{
    (void)state;
    struct ph__row_cache *cache;
    assert_ok(ph__row_cache_create(1 << 20, ROW_BYTES, &cache));
    put(cache, key_of(1), 10);
    put(cache, key_of(2), 10);
    assert_int_equal(ph__row_cache_peek(cache, key_of(1), NULL), 10);
    assert_int_equal(get(cache, key_of(2), 1), 10);
    assert_int_equal(get(cache, key_of(2), 11), 0);
    put(cache, key_of(1), 12);
    put(cache, key_of(2), 12);
    const struct ph__row_cache_counts counts = ph__row_cache_counts(cache);
    assert_int_equal(counts.num_never_read, 1);
    assert_int_equal(counts.num_stale, 1);
    ph__row_cache_destroy(cache);
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct ph__row_cache *cache;
    assert_fails(ph__row_cache_create(100, ROW_BYTES, &cache), PH_ERROR_USAGE, "no room for 8 rows");
    assert_fails(ph__row_cache_create((uint64_t)1 << 50, ROW_BYTES, &cache), PH_ERROR_MEMORY, "does not fit");
}

/* ---- readers beside a writer ---- */

struct race {
    struct ph__row_cache *cache;
    atomic_bool is_over;
    atomic_size_t num_found;
};

static void *read_on(void *context)
{
    struct race *race = context;
    while (!atomic_load(&race->is_over))
        for (size_t i = 0; i < 64; i++)
            atomic_fetch_add(&race->num_found, get(race->cache, key_of(i), 1) > 0);
    return NULL;
}

static void readers_never_see_half_a_row(void **state)
{
    (void)state;
    struct race race = {0};
    pthread_t readers[2];
    assert_ok(ph__row_cache_create(4 << 10, ROW_BYTES, &race.cache));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, &race), 0);
    for (uint32_t birth = 1; birth < 2000 || atomic_load(&race.num_found) < 1000; birth++)
        for (size_t i = 0; i < 64; i++)
            put(race.cache, key_of(i), birth);
    atomic_store(&race.is_over, true);
    for (size_t i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    ph__row_cache_destroy(race.cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_while_they_are_young),
        cmocka_unit_test(many_rows_are_found_at_once),
        cmocka_unit_test(the_oldest_give_way),
        cmocka_unit_test(rows_are_removed_by_what_they_say),
        cmocka_unit_test(looking_without_reading_is_not_counted),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(readers_never_see_half_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
