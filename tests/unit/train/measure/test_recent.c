#include "support/test_support.h"

#include <math.h>

#include "train/measure/recent.h"

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
        cmocka_unit_test(auc_is_undefined_until_both_classes_are_seen),
        cmocka_unit_test(oldest_samples_make_room),
        cmocka_unit_test(unknown_labels_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
