#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

/* The known answers that Random123 publishes for philox4x32-10 (its file kat_vectors). */
static void philox_gives_the_published_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
            {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
            {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        struct ph__rng_block counter;
        memcpy(counter.word, vectors[i].counter, sizeof counter.word);
        struct ph__rng_block made = ph__philox4x32(counter, vectors[i].key[0], vectors[i].key[1]);
        assert_memory_equal(made.word, vectors[i].answer, sizeof made.word);
    }
}

/* The layout that rng.h states; a change of it changes every seeded result. */
static void a_word_is_the_philox_word_at_its_counter(void **state)
{
    (void)state;
    struct ph__rng_key key = {.seed = 5, .step = 0x300000007, .stream = ph__hash_name("dropout.1")};
    struct ph__rng_philox philox = ph__rng_philox(&key);
    assert_int_equal(philox.step, 7);
    uint64_t index = 0x123456789abcdef;
    for (uint32_t element = 0; element < 9; element++) {
        struct ph__rng_block counter = {{0x89abcdef, 0x01234567, element / 4, 7}};
        struct ph__rng_block made = ph__philox4x32(counter, philox.key[0], philox.key[1]);
        assert_int_equal(ph__rng_word(&key, index, element), made.word[element % 4]);
        assert_int_equal(
            ph__rng_philox_block(&philox, index, element / 4).word[element % 4], made.word[element % 4]);
    }
}

static void every_part_of_the_key_matters(void **state)
{
    (void)state;
    struct ph__rng_key key = {.seed = 1, .step = 2, .stream = 3};
    uint32_t word = ph__rng_word(&key, 4, 0);
    struct ph__rng_key other = key;
    other.seed = 2;
    assert_int_not_equal(ph__rng_word(&other, 4, 0), word);
    other = key;
    other.step = 3;
    assert_int_not_equal(ph__rng_word(&other, 4, 0), word);
    other.step = 2 + (1ull << 32);
    assert_int_not_equal(ph__rng_word(&other, 4, 0), word);
    other = key;
    other.stream = 4;
    assert_int_not_equal(ph__rng_word(&other, 4, 0), word);
    assert_int_not_equal(ph__rng_word(&key, 4 + (1ull << 32), 0), word);
    assert_int_not_equal(ph__hash_name("a"), ph__hash_name("b"));
    assert_int_not_equal(ph__hash_name(""), 0);
}

static void numbers_have_the_moments_of_their_distributions(void **state)
{
    (void)state;
    struct ph__rng_key key = {.seed = test_seed(), .stream = ph__hash_name("moments")};
    struct ph__rng_sequence sequence = {.key = key};
    enum { COUNT = 100000 };
    double uniform = 0, normal = 0, normal_squares = 0, next = 0, next_normal_squares = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        double u = ph__rng_uniform(&key, i / 10, i % 10), z = ph__rng_normal(&key, i / 10, i % 10);
        double v = ph__rng_next_uniform(&sequence), y = ph__rng_next_normal(&sequence);
        assert_true(u > 0 && u < 1 && v > 0 && v < 1);
        uniform += u / COUNT;
        normal += z / COUNT;
        normal_squares += z * z / COUNT;
        next += v / COUNT;
        next_normal_squares += y * y / COUNT;
    }
    assert_near(uniform, .5, .006, 0);
    assert_near(next, .5, .006, 0);
    assert_near(normal, 0, .02, 0);
    assert_near(normal_squares, 1, .03, 0);
    assert_near(next_normal_squares, 1, .03, 0);
}

static void bounded_numbers_are_in_bounds_and_even(void **state)
{
    (void)state;
    struct ph__rng_sequence sequence = {.key = {.seed = test_seed()}};
    int counts[7] = {0};
    for (int i = 0; i < 70000; i++)
        counts[ph__rng_below(&sequence, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_near(counts[i], 10000, 500, 0);
    assert_int_equal(ph__rng_below(&sequence, 1), 0);
    for (int i = 0; i < 100; i++)
        assert_true(ph__rng_below(&sequence, UINT64_MAX / 2 + 2) < UINT64_MAX / 2 + 2);
}

static void a_shuffle_is_a_permutation_that_its_seed_decides(void **state)
{
    (void)state;
    uint32_t first[100], second[100], seen[100] = {0};
    for (uint32_t i = 0; i < 100; i++)
        first[i] = second[i] = i;
    struct ph__rng_sequence sequence = {.key = {.seed = 3}}, again = {.key = {.seed = 3}};
    ph__rng_shuffle(&sequence, first, 100);
    ph__rng_shuffle(&again, second, 100);
    assert_memory_equal(first, second, sizeof first);
    size_t num_moved = 0;
    for (uint32_t i = 0; i < 100; i++) {
        seen[first[i]]++;
        num_moved += first[i] != i;
    }
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    assert_true(num_moved > 80);
    ph__rng_shuffle(&sequence, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(a_word_is_the_philox_word_at_its_counter),
        cmocka_unit_test(every_part_of_the_key_matters),
        cmocka_unit_test(numbers_have_the_moments_of_their_distributions),
        cmocka_unit_test(bounded_numbers_are_in_bounds_and_even),
        cmocka_unit_test(a_shuffle_is_a_permutation_that_its_seed_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
