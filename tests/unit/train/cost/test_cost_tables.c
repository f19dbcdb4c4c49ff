/* Synthetic tables against the statistics that they are made from, and ids against their bins. */
#include "train/cost/cost_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

enum { BATCH = 2048, MOST = 900 };

static struct ph__cost_table tables[MOST], others[MOST];

static void expect_mixture(const struct ph__locality *locality, size_t count)
{
    double rows[PH_ACCESS_BINS] = {0}, ids[PH_ACCESS_BINS] = {0}, num_rows = 0, num_ids = 0;
    for (size_t t = 0; t < count; t++)
        for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
            rows[bin] += (double)tables[t].rows[bin];
            ids[bin] += (double)tables[t].ids[bin];
            num_rows += (double)tables[t].rows[bin];
            num_ids += (double)tables[t].ids[bin];
        }
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        assert_near(rows[bin] / num_rows, locality->rows[bin], .01, 0);
        assert_near(ids[bin] / num_ids, locality->accesses[bin], .01, 0);
    }
    assert_near(num_ids / num_rows, locality->reuse, 0, .05);
    assert_near(num_ids / (double)count / BATCH, locality->pooling, 0, .05);
}

static void expect_production(const char *file, size_t count, double pooling, double reuse)
{
    struct ph__locality locality;
    const char *path = test_data(file);
    if (path == NULL)
        test_skip("no locality statistics under $PHLOEM_DATA");
    assert_ok(ph__locality_read(path, &locality));
    free((void *)(uintptr_t)path);
    assert_near(locality.pooling, pooling, 0, .001);
    assert_near(locality.reuse, reuse, 0, .01);
    assert_ok(ph__cost_tables_make(&locality, BATCH, count, 7, tables));
    expect_mixture(&locality, count);
}

static void a_mixture_has_the_statistics_of_2021(void **state)
{
    (void)state;
    expect_production("locality/locality_stats_2021.txt", 856, 15.81, 6.9);
}

static void a_mixture_has_the_statistics_of_2022(void **state)
{
    (void)state;
    expect_production("locality/locality_stats_2022.txt", 788, 13.60, 12.7);
}

static void a_mixture_has_the_statistics_of_power_laws(void **state)
{
    (void)state;
    struct ph__locality locality;
    ph__locality_default(&locality);
    assert_ok(ph__cost_tables_make(&locality, BATCH, 800, 7, tables));
    expect_mixture(&locality, 800);
}

/* Tables of jobs are not all like the mean: rows of some are read once, those of others a dozen times. */
static void tables_are_unlike(void **state)
{
    (void)state;
    enum { COUNT = 800, OFTEN = 4 }; /* bin 4: 9 to 16 reads */
    struct ph__locality locality;
    size_t num_once = 0, num_often = 0;
    ph__locality_default(&locality);
    assert_ok(ph__cost_tables_make(&locality, BATCH, COUNT, 7, tables));
    for (size_t t = 0; t < COUNT; t++) {
        uint64_t often = 0;
        for (size_t bin = OFTEN; bin < PH_ACCESS_BINS; bin++)
            often += tables[t].rows[bin];
        num_once += 2 * tables[t].rows[0] > tables[t].num_read;
        num_often += 2 * often > tables[t].num_read;
    }
    print_message("%zu of %d tables have mostly rows read once, %zu mostly rows read often\n", num_once,
        COUNT, num_often);
    assert_in_range(num_once, COUNT / 20, COUNT / 2);
    assert_in_range(num_often, COUNT / 20, COUNT / 2);
}

static void one_seed_gives_the_same_tables_and_ids(void **state)
{
    (void)state;
    struct ph__locality locality;
    ph__locality_default(&locality);
    assert_ok(ph__cost_tables_make(&locality, BATCH, 50, 7, tables));
    assert_ok(ph__cost_tables_make(&locality, BATCH, 50, 7, others));
    assert_memory_equal(tables, others, 50 * sizeof *tables);
    assert_ok(ph__cost_tables_make(&locality, BATCH, 50, 8, others));
    assert_memory_not_equal(tables, others, 50 * sizeof *tables);
    uint32_t *numbers = malloc((tables->num_read + 2 * tables->num_ids) * sizeof *numbers);
    uint32_t *first = numbers + tables->num_read, *second = first + tables->num_ids;
    struct ph__rng_sequence rng = {.key.seed = 3}, again = rng;
    ph__cost_ids_draw(tables, tables->num_rows, &rng, numbers, first);
    ph__cost_ids_draw(tables, tables->num_rows, &again, numbers, second);
    assert_memory_equal(first, second, tables->num_ids * sizeof *first);
    free(numbers);
}

static void ids_hit_the_bins_of_their_table(void **state)
{
    (void)state;
    struct ph__locality locality;
    struct ph__rng_sequence rng = {.key.seed = 3};
    ph__locality_default(&locality);
    assert_ok(ph__cost_tables_make(&locality, BATCH, 50, 7, tables));
    for (size_t t = 0; t < 50; t++) {
        const size_t count = (size_t)tables[t].num_ids;
        double shares[PH_ACCESS_BINS];
        uint32_t *numbers = malloc((size_t)(tables[t].num_read + count) * sizeof *numbers);
        uint32_t *drawn = numbers + tables[t].num_read;
        int64_t *ids = malloc(count * sizeof *ids);
        ph__cost_ids_draw(&tables[t], tables[t].num_rows, &rng, numbers, drawn);
        for (size_t i = 0; i < count; i++) {
            assert_true(drawn[i] < tables[t].num_rows);
            ids[i] = drawn[i];
        }
        ph__accesses_count(ids, count, shares);
        for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
            assert_near(shares[bin], tables[t].accesses[bin], 1e-12, 0);
        free(ids);
        free(numbers);
    }
}

static void a_split_keeps_every_table_once(void **state)
{
    (void)state;
    struct ph__locality locality;
    ph__locality_default(&locality);
    assert_ok(ph__cost_tables_make(&locality, BATCH, 56, 7, tables));
    memcpy(others, tables, sizeof others);
    const struct ph__cost_split split = ph__cost_tables_split(tables, 56, 5);
    assert_int_equal(split.num_train, 46);
    assert_int_equal(split.num_valid, 5);
    assert_int_equal(split.num_test, 5);
    for (size_t i = 0; i < 56; i++) {
        size_t found = 0;
        for (size_t k = 0; k < 56; k++)
            found += memcmp(&others[i], &tables[k], sizeof *tables) == 0;
        assert_int_equal(found, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mixture_has_the_statistics_of_2021),
        cmocka_unit_test(a_mixture_has_the_statistics_of_2022),
        cmocka_unit_test(a_mixture_has_the_statistics_of_power_laws),
        cmocka_unit_test(tables_are_unlike),
        cmocka_unit_test(one_seed_gives_the_same_tables_and_ids),
        cmocka_unit_test(ids_hit_the_bins_of_their_table),
        cmocka_unit_test(a_split_keeps_every_table_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
