#include "base/memory/key_map.h"

#include "base/rng.h"
#include "support/test_support.h"

enum { NUM_KEYS = 20000 };

/* Random keys, and keys that differ in their high or low bits alone. */
static uint64_t key_of(struct ph__rng_sequence *random, size_t i)
{
    switch (i % 3) {
    case 0:
        return ph__rng_next(random);
    case 1:
        return (uint64_t)i << 44;
    default:
        return i;
    }
}

static void keys_have_the_numbers_of_their_first_adding(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    struct ph__key_map map = {0};
    static uint64_t keys[NUM_KEYS];
    assert_true(ph__key_map_find(&map, 7) == PH_NO_NUMBER);
    for (size_t i = 0; i < NUM_KEYS; i++) {
        keys[i] = key_of(&random, i);
        assert_ok(ph__key_map_add(&map, keys[i], (uint32_t)i));
        assert_ok(ph__key_map_add(&map, keys[i], 3));
    }
    assert_int_equal(map.count, NUM_KEYS);
    for (size_t i = 0; i < NUM_KEYS; i++)
        assert_int_equal(ph__key_map_find(&map, keys[i]), i);
    assert_true(ph__key_map_find(&map, UINT64_MAX - 5) == PH_NO_NUMBER);
    ph__key_map_fini(&map);
    assert_true(ph__key_map_find(&map, keys[0]) == PH_NO_NUMBER);
}

/* Keys of few homes, of which some leave and come again: what is left is found. */
static void removed_keys_leave_no_gap(void **state)
{
    (void)state;
    enum { FEW = 300 };
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    struct ph__key_map map = {0};
    bool is_there[FEW] = {false};
    for (size_t round = 0; round < 20000; round++) {
        const size_t i = (size_t)ph__rng_below(&random, FEW);
        const uint64_t key = (i % 10) | (uint64_t)(i / 10) << 12;
        if (is_there[i])
            ph__key_map_remove(&map, key);
        else
            assert_ok(ph__key_map_add(&map, key, (uint32_t)i));
        is_there[i] = !is_there[i];
        const size_t other = (size_t)ph__rng_below(&random, FEW);
        const uint64_t other_key = (other % 10) | (uint64_t)(other / 10) << 12;
        assert_int_equal(ph__key_map_find(&map, other_key), is_there[other] ? other : PH_NO_NUMBER);
    }
    ph__key_map_fini(&map);
    ph__key_map_remove(&map, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_numbers_of_their_first_adding),
        cmocka_unit_test(removed_keys_leave_no_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
