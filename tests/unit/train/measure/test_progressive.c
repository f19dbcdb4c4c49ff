/* Windows of consecutive rows, against metrics computed over the same rows at once. */
#include "train/measure/progressive.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "support/test_support.h"

enum { ROWS = 1000, TASKS = 2 };

static struct stream {
    ph_real logits[ROWS * TASKS], labels[ROWS * TASKS], mask[ROWS * TASKS];
} stream;

static void make_stream(bool has_blanks)
{
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (size_t i = 0; i < ROWS * TASKS; i++) {
        stream.logits[i] = (ph_real)ph__rng_next_normal(&random);
        stream.labels[i] = (ph_real)ph__rng_below(&random, 2);
        stream.mask[i] = has_blanks && ph__rng_below(&random, 5) == 0 ? 0 : 1;
    }
}

/* What the metrics of rows [first, last) are, of the first task. */
static struct ph_metrics expected_metrics(size_t first, size_t last)
{
    static ph_real scores[ROWS], labels[ROWS];
    struct ph_metrics metrics;
    size_t count = 0;
    for (size_t i = first; i < last; i++) {
        if (stream.mask[i * TASKS] == 0)
            continue;
        scores[count] = stream.logits[i * TASKS];
        labels[count++] = stream.labels[i * TASKS];
    }
    assert_ok(ph_metrics_compute(count, scores, labels, NULL, &metrics));
    return metrics;
}

static void assert_same(double a, double b)
{
    assert_true(a == b || (isnan(a) && isnan(b)));
}

static void assert_metrics_equal(const struct ph_metrics *a, const struct ph_metrics *b)
{
    assert_int_equal(a->num_samples, b->num_samples);
    assert_same(a->auc, b->auc);
    assert_same(a->logloss, b->logloss);
    assert_same(a->ne, b->ne);
    assert_same(a->calibration, b->calibration);
    assert_same(a->base_rate, b->base_rate);
}

/* Ends a window and compares it with rows first and later. */
static void end_window(struct ph__progressive *progressive, size_t first, size_t num_rows)
{
    struct ph__progressive_window window;
    assert_ok(ph__progressive_end_window(progressive, &window));
    assert_int_equal(window.first_row, first);
    assert_int_equal(window.num_rows, num_rows);
    struct ph_metrics expected = expected_metrics(first, first + num_rows);
    assert_metrics_equal(&window.metrics, &expected);
}

/* The stream in batches of these sizes, in turn; returns the rows in ended windows. */
static size_t feed(struct ph__progressive *progressive, const size_t *batch_sizes, size_t num_sizes)
{
    size_t num_ended = 0;
    for (size_t first = 0, turn = 0, size; first < ROWS; first += size, turn++) {
        size = batch_sizes[turn % num_sizes];
        size = size < ROWS - first ? size : ROWS - first;
        const struct ph_batch batch = {.num_samples = size,
            .num_tasks = TASKS,
            .labels = stream.labels + first * TASKS,
            .label_mask = stream.mask + first * TASKS};
        for (size_t next = 0; next < size;) {
            next = ph__progressive_add(progressive, &batch, stream.logits + first * TASKS, next);
            if (!ph__progressive_is_full(progressive))
                continue;
            end_window(progressive, num_ended, progressive->window_rows);
            num_ended += progressive->window_rows;
        }
    }
    return num_ended;
}

static void windows_end_at_their_rows_whatever_the_batches(void **state)
{
    (void)state;
    static const size_t windows[] = {1, 7, 64, 100, 333, 999, 1000, 5000};
    static const size_t batches[][3] = {{1, 1, 1}, {64, 64, 64}, {7, 300, 1}, {1000, 1000, 1000}};
    for (int has_blanks = 0; has_blanks < 2; has_blanks++) {
        make_stream(has_blanks);
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
                struct ph__progressive progressive;
                assert_ok(ph__progressive_init(&progressive, windows[w]));
                size_t num_ended = feed(&progressive, batches[b], 3);
                assert_int_equal(num_ended, ROWS / windows[w] * windows[w]);
                if (num_ended < ROWS)
                    end_window(&progressive, num_ended, ROWS - num_ended);
                ph__progressive_fini(&progressive);
            }
        }
    }
}

static void all_rows_together_are_what_one_pass_over_them_says(void **state)
{
    (void)state;
    static const size_t batches[] = {50};
    struct ph__progressive progressive;
    make_stream(true);
    assert_ok(ph__progressive_init(&progressive, 100));
    assert_int_equal(feed(&progressive, batches, 1), ROWS);
    struct ph_metrics metrics = ph__progressive_metrics(&progressive);
    struct ph_metrics expected = expected_metrics(0, ROWS);
    expected.auc = 0;
    for (size_t first = 0; first < ROWS; first += 100) {
        struct ph_metrics window = expected_metrics(first, first + 100);
        expected.auc += window.auc * (double)window.num_samples;
    }
    assert_near(metrics.auc, expected.auc / (double)expected.num_samples, 1e-12, 0);
    metrics.auc = expected.auc;
    assert_metrics_equal(&metrics, &expected);
    ph__progressive_fini(&progressive);
}

static void windows_of_one_class_or_no_label_have_no_part_in_the_auc(void **state)
{
    (void)state;
    static const size_t batches[] = {50};
    struct ph__progressive progressive;
    make_stream(false);
    for (size_t i = 0; i < 100; i++)
        stream.labels[i * TASKS] = 0;
    for (size_t i = 100; i < 200; i++)
        stream.mask[i * TASKS] = 0;
    assert_ok(ph__progressive_init(&progressive, 100));
    assert_true(isnan(ph__progressive_metrics(&progressive).auc));
    feed(&progressive, batches, 1);
    double sum = 0;
    for (size_t first = 200; first < ROWS; first += 100)
        sum += expected_metrics(first, first + 100).auc;
    struct ph_metrics metrics = ph__progressive_metrics(&progressive);
    assert_near(metrics.auc, sum / 8, 1e-12, 0);
    assert_int_equal(metrics.num_samples, ROWS - 100);
    ph__progressive_fini(&progressive);
}

static void add(struct ph__recent *recent, ph_real score, ph_real label)
{
    struct ph_batch batch = {.num_samples = 1, .num_tasks = 1, .labels = &label};
    ph__recent_add(recent, &batch, &score);
}

static void auc_is_undefined_until_both_classes_are_seen(void **state)
{
    (void)state;
    struct ph__recent recent;
    double auc;
    assert_ok(ph__recent_init(&recent));
    add(&recent, 1, 1);
    assert_ok(ph__recent_auc(&recent, &auc));
    assert_true(isnan(auc));
    add(&recent, 0, 0);
    assert_ok(ph__recent_auc(&recent, &auc));
    assert_near(auc, 1, 0, 0);
    ph__recent_fini(&recent);
}

static void oldest_samples_make_room(void **state)
{
    (void)state;
    struct ph__recent recent;
    double auc;
    assert_ok(ph__recent_init(&recent));
    for (size_t i = 0; i < PH_RECENT_SAMPLES; i++) /* ranked the wrong way round, then forgotten */
        add(&recent, (ph_real)(i % 2), (ph_real)(1 - i % 2));
    for (size_t i = 0; i < PH_RECENT_SAMPLES; i++)
        add(&recent, (ph_real)(i % 2), (ph_real)(i % 2));
    assert_int_equal(recent.count, PH_RECENT_SAMPLES);
    assert_ok(ph__recent_auc(&recent, &auc));
    assert_near(auc, 1, 0, 0);
    ph__recent_fini(&recent);
}

static void unknown_labels_are_left_out(void **state)
{
    (void)state;
    struct ph__recent recent;
    const ph_real logits[] = {1, 2}, labels[] = {1, 0}, mask[] = {1, 0};
    struct ph_batch batch = {.num_samples = 2, .num_tasks = 1, .labels = labels, .label_mask = mask};
    assert_ok(ph__recent_init(&recent));
    ph__recent_add(&recent, &batch, logits);
    assert_int_equal(recent.count, 1);
    ph__recent_fini(&recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_end_at_their_rows_whatever_the_batches),
        cmocka_unit_test(all_rows_together_are_what_one_pass_over_them_says),
        cmocka_unit_test(windows_of_one_class_or_no_label_have_no_part_in_the_auc),
        cmocka_unit_test(auc_is_undefined_until_both_classes_are_seen),
        cmocka_unit_test(oldest_samples_make_room),
        cmocka_unit_test(unknown_labels_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
