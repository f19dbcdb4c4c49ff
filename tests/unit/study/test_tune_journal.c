#include "study/tune_journal.h"

#include <math.h>

#include "support/test_support.h"

static void what_was_added_is_read_and_found(void **state)
{
    (void)state;
    const char *path = test_path("tune.json");
    const struct ph__tune_step steps[] = {
        {.run = "0001-abc-seed1",
            .epochs = 1,
            .valid_auc = 0.1 + 0.2,
            .valid_logloss = 0.5,
            .epochs_trained = 1},
        {.run = "0001-abc-seed1",
            .epochs = 3,
            .valid_auc = (double)NAN,
            .epochs_trained = 2,
            .train_seconds = 4.5},
        {.run = "0002-abc-seed1", .epochs = 1, .exit_code = 3, .failure = "it \"diverged\""},
    };
    struct ph__tune_journal journal, again;
    assert_ok(ph__tune_journal_read(&journal, path));
    assert_int_equal(journal.num_steps, 0);
    for (size_t i = 0; i < 3; i++)
        assert_ok(ph__tune_journal_add(&journal, &steps[i], path));
    assert_ok(ph__tune_journal_read(&again, path));
    assert_int_equal(again.num_steps, 3);
    const struct ph__tune_step *step = ph__tune_journal_find(&again, "0001-abc-seed1", 1);
    assert_non_null(step);
    assert_true(step->valid_auc == 0.1 + 0.2 && step->exit_code == 0);
    step = ph__tune_journal_find(&again, "0001-abc-seed1", 3);
    assert_non_null(step);
    assert_true(isnan(step->valid_auc) && step->epochs_trained == 2 && step->train_seconds == 4.5);
    step = ph__tune_journal_find(&again, "0002-abc-seed1", 1);
    assert_non_null(step);
    assert_int_equal(step->exit_code, 3);
    assert_string_equal(step->failure, "it \"diverged\"");
    assert_null(ph__tune_journal_find(&again, "0002-abc-seed1", 3));
    assert_null(ph__tune_journal_find(&again, "0002-abc-seed2", 1));
    ph__tune_journal_fini(&journal);
    ph__tune_journal_fini(&again);
}

static void a_damaged_journal_is_named(void **state)
{
    (void)state;
    struct ph__tune_journal journal;
    static const char *const wrong[] = {"", "no", "{}", "{\"steps\": {}}", "{\"steps\": [1]}",
        "{\"steps\": [{\"run\": \"a\", \"epochs\": \"b\"}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_fails(ph__tune_journal_read(&journal, test_write_file("wrong.json", wrong[i])),
            PH_ERROR_CHECKPOINT, "wrong.json");
        ph__tune_journal_fini(&journal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_read_and_found),
        cmocka_unit_test(a_damaged_journal_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
