/* Measured sets: their programs update the rows that their ids name, and labels describe them. */
#include "train/cost/cost_labels.h"

#include <math.h>
#include <stdlib.h>

#include "support/test_support.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { BATCH = 256 };

static const struct ph__cost_measure_options options = {
    .batch_size = BATCH, .num_threads = 1, .num_runs = 3, .arena_bytes = 40 << 20, .optimizer = PH_SGD};

static void make_tables(struct ph__cost_table *tables_out, size_t count)
{
    struct ph__locality locality;
    ph__locality_default(&locality);
    assert_ok(ph__cost_tables_make(&locality, BATCH, count, 7, tables_out));
}

/* Counts the rows of an arena's table that no longer hold their initial value. */
static size_t changed_rows(const struct ph__cost_measure *measure, const char *name)
{
    struct ph_tensor tensor;
    size_t changed = 0;
    assert_ok(ph_store_find(ph__cost_measure_store(measure), name, &tensor));
    const ph_real *reals = tensor.data;
    for (size_t i = 0; i < tensor.shape.dims[0]; i++)
        changed += reals[i * tensor.shape.dims[1]] != (ph_real).01;
    return changed;
}

static void a_set_updates_the_rows_that_it_names(void **state)
{
    (void)state;
    struct ph__cost_table tables[3];
    struct ph__cost_measure *measure;
    double ms, disturbance;
    make_tables(tables, COUNT(tables));
    for (size_t i = 0; i < COUNT(tables); i++)
        tables[i].num_rows = 2 * tables[i].num_read; /* the arena holds all: nothing wraps */
    tables[0].dim = tables[2].dim = 16;
    tables[1].dim = 4;
    assert_ok(ph__cost_measure_open(&options, &measure));
    assert_ok(ph__cost_measure_set(measure, tables, COUNT(tables), 1, &ms, &disturbance));
    assert_true(ms > 0);
    assert_int_equal(changed_rows(measure, "arena.16"), tables[0].num_read + tables[2].num_read);
    assert_int_equal(changed_rows(measure, "arena.4"), tables[1].num_read);
    ph__cost_measure_close(measure);
}

static void a_given_set_may_be_larger_than_a_drawn_one(void **state)
{
    (void)state;
    struct ph__cost_table tables[PH_COST_MOST_MEASURED];
    struct ph__cost_measure *measure;
    double ms, disturbance;
    make_tables(tables, COUNT(tables));
    for (size_t i = 0; i < COUNT(tables); i++)
        tables[i].dim = 16;
    assert_ok(ph__cost_measure_open(&options, &measure));
    assert_ok(ph__cost_measure_set(measure, tables, 2, 1, &ms, &disturbance));
    const size_t few_rows = changed_rows(measure, "arena.16");
    assert_ok(ph__cost_measure_set(measure, tables, COUNT(tables), 1, &ms, &disturbance));
    assert_true(ms > 0 && changed_rows(measure, "arena.16") > few_rows);
    ph__cost_measure_close(measure);
}

static void labels_describe_their_sets(void **state)
{
    (void)state;
    static const struct ph__cost_split split = {8, 1, 1};
    struct ph__cost_table tables[10];
    struct ph__cost_measure *measure;
    struct ph__cost_labels labels;
    make_tables(tables, COUNT(tables));
    assert_ok(ph__cost_measure_open(&options, &measure));
    assert_ok(ph__cost_labels_measure(measure, tables, &split, 22, 1, NULL, NULL, &labels));
    assert_int_equal(labels.num_labels + labels.num_dropped, 22);
    assert_int_equal(
        labels.counts.num_train + labels.counts.num_valid + labels.counts.num_test, labels.num_labels);
    assert_in_range(labels.counts.num_train, 18 - labels.num_dropped, 18);
    assert_in_range(labels.counts.num_valid + labels.num_dropped, 2, 2 + labels.num_dropped);
    assert_in_range(labels.counts.num_test + labels.num_dropped, 2, 2 + labels.num_dropped);
    assert_true(ph__cost_measure_lookup_share(measure) > 0 && ph__cost_measure_lookup_share(measure) < 1);
    for (size_t i = 0; i < labels.num_labels; i++) {
        assert_true(labels.labels[i].ms > 0);
        assert_in_range(labels.labels[i].num_parts, 1, PH_COST_MOST_TABLES);
        for (size_t k = 0; k < labels.labels[i].num_parts; k++) {
            const struct ph__cost_part *part = &labels.labels[i].parts[k];
            double sum = 0;
            for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
                sum += part->accesses[bin];
            assert_near(sum, 1, 1e-9, 0);
            assert_true(part->touched_bytes > 0 && part->columns >= 4 && part->num_rows >= 1);
        }
    }
    ph__cost_labels_fini(&labels);
    ph__cost_measure_close(measure);
}

static void unsuitable_options_are_refused(void **state)
{
    (void)state;
    struct ph__cost_measure *measure;
    struct ph__cost_measure_options other = options;
    other.arena_bytes = 100;
    assert_fails(ph__cost_measure_open(&other, &measure), PH_ERROR_CONFIG, "arena of 100 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_updates_the_rows_that_it_names),
        cmocka_unit_test(a_given_set_may_be_larger_than_a_drawn_one),
        cmocka_unit_test(labels_describe_their_sets),
        cmocka_unit_test(unsuitable_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
