#include "pinned.h"

#include "support/test_support.h"

enum { THREADS = 3, MEETINGS = 500 };

struct counts {
    void (*meet)(struct bench_gang *gang);
    size_t of[THREADS][MEETINGS];
    size_t num_seen, num_runs[THREADS];
};

/* Each member writes before a meeting and reads all others' after it. */
static void count_up(struct bench_gang *gang, size_t member, void *argument)
{
    struct counts *counts = argument;
    size_t num_seen = 0;
    counts->num_runs[member]++;
    for (size_t i = 0; i < MEETINGS; i++) {
        counts->of[member][i] = i + 1;
        counts->meet(gang);
        for (size_t other = 0; other < bench_gang_size(gang); other++)
            num_seen += counts->of[other][i] == i + 1;
    }
    if (member == 0)
        counts->num_seen = num_seen;
}

static void members_see_what_others_wrote_before_they_met(void **state)
{
    (void)state;
    void (*const meets[])(struct bench_gang * gang) = {bench_gang_meet, bench_gang_meet_asleep};
    for (size_t way = 0; way < 2; way++) {
        struct counts counts = {.meet = meets[way]};
        assert_true(bench_gang_run(THREADS, count_up, &counts) >= 0);
        assert_int_equal(counts.num_seen, THREADS * MEETINGS);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(counts.num_runs[i], 1);
    }
}

static void note_processors(struct bench_gang *gang, size_t member, void *argument)
{
    int *counts = argument, processors[2];
    (void)gang;
    counts[member] = (int)bench_processors(processors, 2);
}

static void threads_are_pinned_only_meanwhile(void **state)
{
    (void)state;
    int counts[THREADS] = {0}, processors[2];
    const size_t before = bench_processors(processors, 2);
    bench_gang_run(THREADS, note_processors, counts);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(counts[i], 1);
    assert_int_equal(bench_processors(processors, 2), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_see_what_others_wrote_before_they_met),
        cmocka_unit_test(threads_are_pinned_only_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
