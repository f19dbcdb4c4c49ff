#include "base/text/name_index.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/test_support.h"

static void names_have_the_numbers_of_their_order(void **state)
{
    (void)state;
    struct ph__name_index index = {0};
    const char *const names[] = {"user", "item", "", "user.item", "User"};
    for (size_t i = 0; i < 5; i++) {
        assert_true(ph__name_index_find(&index, names[i]) == PH_NO_NAME);
        assert_ok(ph__name_index_add(&index, names[i]));
    }
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(ph__name_index_find(&index, names[i]), i);
        assert_true(ph__name_index_next(&index, i) == PH_NO_NAME);
        assert_ptr_equal(ph__name_index_text(&index, i), names[i]);
    }
    assert_true(ph__name_index_find(&index, "use") == PH_NO_NAME);
    ph__name_index_fini(&index);
    assert_true(ph__name_index_find(&index, "user") == PH_NO_NAME);
}

static void numbers_of_one_name_are_linked_in_their_order(void **state)
{
    (void)state;
    struct ph__name_index index = {0};
    const char *const names[] = {"hour", "user", "hour", "item", "hour", "user"};
    for (size_t i = 0; i < 6; i++)
        assert_ok(ph__name_index_add(&index, names[i]));
    assert_int_equal(index.count, 6);
    assert_int_equal(ph__name_index_find(&index, "hour"), 0);
    assert_int_equal(ph__name_index_next(&index, 0), 2);
    assert_int_equal(ph__name_index_next(&index, 2), 4);
    assert_true(ph__name_index_next(&index, 4) == PH_NO_NAME);
    assert_int_equal(ph__name_index_next(&index, ph__name_index_find(&index, "user")), 5);
    ph__name_index_fini(&index);
}

static void room_that_is_made_keeps_what_is_there(void **state)
{
    (void)state;
    struct ph__name_index index = {0};
    assert_ok(ph__name_index_add(&index, "user"));
    assert_ok(ph__name_index_reserve(&index, 1000));
    const size_t num_slots = index.num_slots;
    static char names[999][8];
    for (size_t i = 0; i < 999; i++) {
        snprintf(names[i], sizeof names[i], "c%zu", i);
        assert_ok(ph__name_index_add(&index, names[i]));
    }
    assert_int_equal(index.num_slots, num_slots);
    assert_int_equal(ph__name_index_find(&index, "user"), 0);
    assert_int_equal(ph__name_index_find(&index, "c998"), 999);
    ph__name_index_fini(&index);
}

/* A name among many, or one that is there many times, costs what one among few does: if names were compared
 * with all before them, this would take hours. */
static void a_million_names_are_found_among_a_million(void **state)
{
    (void)state;
    enum { COUNT = 1000000, BYTES = 32 };
    struct ph__name_index index = {0};
    char *names = malloc((size_t)COUNT * BYTES);
    assert_non_null(names);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names + i * BYTES, BYTES, "embedding.%zu", i % 1000 < 500 ? i : 7);
        assert_ok(ph__name_index_add(&index, names + i * BYTES));
    }
    for (size_t i = 0; i < COUNT; i++)
        if (ph__name_index_find(&index, names + i * BYTES) != (i % 1000 < 500 ? i : 7))
            fail_msg("name %zu was not found by its number", i);
    size_t num_sevens = 0;
    for (size_t i = 7; i != PH_NO_NAME; i = ph__name_index_next(&index, i))
        num_sevens++;
    assert_int_equal(num_sevens, COUNT / 2 + 1);
    ph__name_index_fini(&index);
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_the_numbers_of_their_order),
        cmocka_unit_test(numbers_of_one_name_are_linked_in_their_order),
        cmocka_unit_test(room_that_is_made_keeps_what_is_there),
        cmocka_unit_test(a_million_names_are_found_among_a_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
