#include "unit/kernel/kernel_test.h"

struct sorted {
    uint32_t *order, *unique, *starts;
    size_t num_unique;
};

static const struct ph__kernels *tested;

static struct sorted sort(
    const uint32_t *slots, size_t count, uint32_t base, uint32_t range, uint32_t first_position)
{
    struct sorted sorted = {
        .order = new_array(count, sizeof(uint32_t)),
        .unique = new_array(count, sizeof(uint32_t)),
        .starts = new_array(count, sizeof(uint32_t)),
    };
    void *scratch = (char *)new_array(ph__slot_sort_scratch_bytes(count) / 8, 8);
    sorted.num_unique = ph__slot_sort(tested, slots, count, base, range, first_position, sorted.order,
        sorted.unique, sorted.starts, scratch);
    return sorted;
}

static int compare_words(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Against qsort of (slot, position). */
static void check_sort(const uint32_t *slots, size_t count, uint32_t base, uint32_t range)
{
    const uint32_t first_position = 1000;
    const struct sorted sorted = sort(slots, count, base, range, first_position);
    uint64_t *items = malloc((count + 1) * sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i < count; i++)
        items[i] = (uint64_t)slots[i] << 32 | (first_position + i);
    qsort(items, count, sizeof *items, compare_words);

    size_t runs = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sorted.order[i], (uint32_t)items[i]);
        if (i == 0 || items[i] >> 32 != items[i - 1] >> 32) {
            assert_true(runs < sorted.num_unique);
            assert_int_equal(sorted.unique[runs], items[i] >> 32);
            assert_int_equal(sorted.starts[runs], i);
            runs++;
        }
    }
    assert_int_equal(runs, sorted.num_unique);
    free(items);
}

static void check_random(size_t count, uint32_t base, uint32_t range)
{
    reset_arrays(NULL);
    uint32_t *slots = new_array(count, sizeof *slots);
    for (size_t i = 0; i < count; i++)
        slots[i] = base + random_word() % range;
    check_sort(slots, count, base, range);
}

static void check_counts_and_ranges(const struct ph__kernels *kernels)
{
    tested = kernels;
    const size_t counts[] = {0, 1, 2, 47, 48, 49, 50, 1000, 4099, 45000};
    const uint32_t ranges[] = {1, 2, 3, 2047, 2048, 2049, 4096, 100000, 1u << 17, (1u << 17) + 1, 1u << 22,
        (1u << 22) + 1, 1u << 31, UINT32_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
            check_random(counts[c], 0, ranges[r]);
            check_random(counts[c], UINT32_MAX - ranges[r], ranges[r]);
        }
    }
}

static void check_ends(const struct ph__kernels *kernels)
{
    tested = kernels;
    const uint32_t ranges[] = {1, 2048, 2049, 1u << 22, UINT32_MAX};
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
        uint32_t *slots = new_array(200, sizeof *slots);
        for (size_t i = 0; i < 200; i++)
            slots[i] = i % 3 == 0 ? ranges[r] - 1 : 0;
        check_sort(slots, 200, 0, ranges[r]);
    }
}

static void check_equal_slots(const struct ph__kernels *kernels)
{
    tested = kernels;
    for (size_t count = 1; count <= 3000; count += 2999) {
        uint32_t *slots = new_array(count, sizeof *slots);
        for (size_t i = 0; i < count; i++)
            slots[i] = 77777;
        const struct sorted sorted = sort(slots, count, 5, 100000, 0);
        assert_int_equal(sorted.num_unique, 1);
        assert_int_equal(sorted.unique[0], 77777);
        assert_int_equal(sorted.starts[0], 0);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(sorted.order[i], i);
    }
}

/* Arrays end where the range and the runs do: whatever is written behind them, the address sanitizer sees. */
static void check_runs(const struct ph__kernels *kernels)
{
    for (uint32_t range = 1; range <= 70; range++) {
        uint32_t *lengths = new_array(range, sizeof *lengths);
        size_t count = 0, num_runs = 0, begun = 0;
        for (uint32_t slot = 0; slot < range; slot++) {
            lengths[slot] = random_word() % 3;
            count += lengths[slot];
            num_runs += lengths[slot] != 0;
        }
        uint32_t *given = new_array(range, sizeof *given);
        memcpy(given, lengths, range * sizeof *given);
        uint32_t *unique = new_array(num_runs, sizeof *unique), *starts = new_array(num_runs, sizeof *starts);
        assert_int_equal(kernels->list_runs(range, count, 900, lengths, unique, starts), num_runs);
        for (uint32_t slot = 0, run = 0; slot < range; slot++) {
            if (given[slot] == 0)
                continue;
            assert_int_equal(lengths[slot], begun);
            assert_int_equal(unique[run], 900 + slot);
            assert_int_equal(starts[run], begun);
            begun += given[slot];
            run++;
        }
    }
}

static void slots_are_sorted_stably_for_any_count_and_range(void **state)
{
    (void)state;
    on_every_isa(check_counts_and_ranges);
}

static void the_ends_of_the_range_are_sorted_too(void **state)
{
    (void)state;
    on_every_isa(check_ends);
}

static void equal_slots_are_one_run_in_order(void **state)
{
    (void)state;
    on_every_isa(check_equal_slots);
}

static void runs_are_listed_for_any_range(void **state)
{
    (void)state;
    on_every_isa(check_runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            slots_are_sorted_stably_for_any_count_and_range, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(the_ends_of_the_range_are_sorted_too, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(equal_slots_are_one_run_in_order, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(runs_are_listed_for_any_range, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
