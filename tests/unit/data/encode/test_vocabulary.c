#include "data/encode/vocabulary.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

static void count(struct ph__vocabulary *vocabulary, const char *word)
{
    assert_ok(ph__vocabulary_count(
        vocabulary, word, strlen(word), 1, ph__vocabulary_hash(word, strlen(word)), NULL));
}

static uint32_t row(const struct ph__vocabulary *vocabulary, const char *word)
{
    return ph__vocabulary_row(vocabulary, word, strlen(word), ph__vocabulary_hash(word, strlen(word)));
}

static void rows_follow_first_appearance_and_start_at_one(void **state)
{
    (void)state;
    struct ph__vocabulary vocabulary = {0};
    count(&vocabulary, "z");
    count(&vocabulary, "a");
    count(&vocabulary, "z");
    count(&vocabulary, "a rather long word, beyond eight bytes");
    assert_ok(ph__vocabulary_finish(&vocabulary, 1));
    assert_int_equal(row(&vocabulary, "z"), 1);
    assert_int_equal(row(&vocabulary, "a"), 2);
    assert_int_equal(row(&vocabulary, "a rather long word, beyond eight bytes"), 3);
    assert_int_equal(vocabulary.num_words, 3);
    ph__vocabulary_fini(&vocabulary);
}

static void unknown_words_are_row_zero(void **state)
{
    (void)state;
    struct ph__vocabulary vocabulary = {0};
    assert_int_equal(row(&vocabulary, "a"), 0);
    count(&vocabulary, "a");
    assert_ok(ph__vocabulary_finish(&vocabulary, 1));
    assert_int_equal(row(&vocabulary, "b"), 0);
    assert_int_equal(row(&vocabulary, "aa"), 0);
    ph__vocabulary_fini(&vocabulary);
}

static void words_below_the_minimum_count_are_dropped(void **state)
{
    (void)state;
    struct ph__vocabulary vocabulary = {0};
    for (int i = 0; i < 3; i++) {
        count(&vocabulary, "thrice");
        count(&vocabulary, i == 0 ? "once" : "twice");
    }
    assert_ok(ph__vocabulary_finish(&vocabulary, 2));
    assert_int_equal(row(&vocabulary, "thrice"), 1);
    assert_int_equal(row(&vocabulary, "once"), 0);
    assert_int_equal(row(&vocabulary, "twice"), 2);
    ph__vocabulary_fini(&vocabulary);
}

static void many_words_are_all_found_after_growing(void **state)
{
    (void)state;
    struct ph__vocabulary vocabulary = {0};
    char word[40];
    for (int i = 0; i < 50000; i++) {
        snprintf(word, sizeof word, i % 3 == 0 ? "a long word with number %d" : "%d", i);
        bool is_new = false;
        assert_ok(ph__vocabulary_count(
            &vocabulary, word, strlen(word), 1, ph__vocabulary_hash(word, strlen(word)), &is_new));
        assert_true(is_new);
    }
    assert_ok(ph__vocabulary_finish(&vocabulary, 1));
    for (int i = 0; i < 50000; i++) {
        snprintf(word, sizeof word, i % 3 == 0 ? "a long word with number %d" : "%d", i);
        size_t length;
        assert_int_equal(row(&vocabulary, word), i + 1);
        const char *kept = ph__vocabulary_word(&vocabulary, (size_t)i, &length);
        assert_int_equal(length, strlen(word));
        assert_memory_equal(kept, word, length);
    }
    ph__vocabulary_fini(&vocabulary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_first_appearance_and_start_at_one),
        cmocka_unit_test(unknown_words_are_row_zero),
        cmocka_unit_test(words_below_the_minimum_count_are_dropped),
        cmocka_unit_test(many_words_are_all_found_after_growing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
