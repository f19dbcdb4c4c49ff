#include "turns.h"

#include "support/test_support.h"

static const char here[] = "same complex", there[] = "across dies", moved[] = "moved";

static void add_round(struct contestant *contestant, const char *placement, double value)
{
    contestant->placements[contestant->rounds] = placement;
    contestant->values[0][contestant->rounds++] = value;
}

static void a_summary_is_of_the_usual_placement_and_counts_its_rounds(void **state)
{
    (void)state;
    static struct contestant contestant;
    add_round(&contestant, there, 1);
    add_round(&contestant, moved, 2);
    add_round(&contestant, here, 30);
    add_round(&contestant, moved, 4);
    add_round(&contestant, here, 50);
    add_round(&contestant, moved, 6);
    const struct turn_summary summary = turn_summary(&contestant, 0);
    assert_string_equal(summary.placement, here);
    assert_int_equal(summary.rounds, 2);
    assert_true(summary.median == 40);
}

static void who_always_moved_has_all_its_rounds(void **state)
{
    (void)state;
    static struct contestant contestant;
    for (int i = 0; i < 3; i++)
        add_round(&contestant, moved, i);
    const struct turn_summary summary = turn_summary(&contestant, 0);
    assert_string_equal(summary.placement, moved);
    assert_int_equal(summary.rounds, 3);
}

static void a_ratio_is_of_rounds_alike_and_counts_them(void **state)
{
    (void)state;
    static struct contestant ours, theirs;
    const char *const placements[][2] = {{here, here}, {here, there}, {moved, moved}, {there, there}};
    for (size_t i = 0; i < 4; i++) {
        add_round(&ours, placements[i][0], 1);
        add_round(&theirs, placements[i][1], (double)(i + 1));
    }
    const struct turn_ratio ratio = turn_ratio(&theirs, &ours, 0);
    assert_int_equal(ratio.rounds, 2);
    assert_true(ratio.median == 2.5);
}

static void a_ratio_without_rounds_alike_says_so(void **state)
{
    (void)state;
    static struct contestant ours, theirs;
    for (int i = 0; i < 3; i++) {
        add_round(&ours, here, 1);
        add_round(&theirs, i == 1 ? moved : there, i);
    }
    const struct turn_ratio ratio = turn_ratio(&theirs, &ours, 0);
    assert_int_equal(ratio.rounds, 0);
    assert_true(ratio.median == 1);
}

/* ---- figures ---- */

static int64_t recorded(const struct turn_figure *told, const char *key)
{
    struct ph__json *figures = ph__json_array();
    turn_record(figures, told);
    const int64_t number = ph__json_as_integer(ph__json_get(ph__json_at(figures, 0), key), -1);
    ph__json_destroy(figures);
    return number;
}

static void a_figure_tells_the_fewest_rounds_that_it_stands_on(void **state)
{
    (void)state;
    static struct contestant ours, theirs;
    for (int i = 0; i < 5; i++) {
        add_round(&ours, i < 4 ? here : moved, 1);
        add_round(&theirs, i < 3 ? here : moved, 2);
    }
    struct turn_figure told = {.figure = {.name = "x", .unit = "ms"}, .ours = &ours, .scale = 1};
    assert_int_equal(recorded(&told, "rounds"), 4);
    assert_int_equal(recorded(&told, "of_rounds"), 5);
    told.peer = &theirs;
    assert_int_equal(recorded(&told, "rounds"), 3);
    told.peer = NULL;
    told.figure.limit = "a limit";
    told.figure.rounds = 2;
    assert_int_equal(recorded(&told, "rounds"), 2);
}

/* ---- turns ---- */

static void count_calls(void *context, double values_out[TURN_VALUES])
{
    values_out[0] = (*(double *)context)++;
}

static size_t count_alike(const struct contestant *contestant)
{
    return turn_summary(contestant, 0).rounds;
}

/* Where the processors stand is the machine's affair: there are enough rounds alike, or as many as may be
 * taken. */
static void rounds_are_added_until_enough_are_alike(void **state)
{
    (void)state;
    enum { ROUNDS = 3 };
    static struct contestant contestants[2];
    static double calls[2];
    for (size_t i = 0; i < 2; i++)
        contestants[i] = (struct contestant){.measure = count_calls, .context = &calls[i]};
    take_turns(contestants, 2, ROUNDS);
    const size_t taken = contestants[0].rounds;
    assert_in_range(taken, ROUNDS, TURN_STRETCH * ROUNDS);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(contestants[i].rounds, taken);
        assert_true(calls[i] == (double)taken);
        assert_true(contestants[i].values[0][taken - 1] == (double)(taken - 1));
        assert_true(taken == TURN_STRETCH * ROUNDS || count_alike(&contestants[i]) >= ROUNDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_summary_is_of_the_usual_placement_and_counts_its_rounds),
        cmocka_unit_test(who_always_moved_has_all_its_rounds),
        cmocka_unit_test(a_ratio_is_of_rounds_alike_and_counts_them),
        cmocka_unit_test(a_ratio_without_rounds_alike_says_so),
        cmocka_unit_test(a_figure_tells_the_fewest_rounds_that_it_stands_on),
        cmocka_unit_test(rounds_are_added_until_enough_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
