/* Rows left out, and predictions corrected, wherever a training measures; and who of several ranks has the
 * scores. */
#include "train/measure/evaluate.h"

#include <math.h>

#include "unit/train/rank_training.h"

/* A copy of a file with a line that is none behind its first `line` lines. */
static const char *spoiled(const char *path, const char *name, int line)
{
    char command[2000];
    const char *copy = ph__path_join(&fixture.arena, test_folder(), name);
    snprintf(command, sizeof command, "sed '%da nonsense' '%s' >'%s'", line, path, copy);
    assert_int_equal(system(command), 0);
    return copy;
}

static void bad_rows_are_left_out_of_all_files_and_counted(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "clean");
    struct ph_train_summary clean = train(setup);
    assert_int_equal(clean.train_bad_rows + clean.valid_bad_rows + clean.test_bad_rows, 0);
    assert_string_equal(setup->first_bad_rows[0], "");
    setup->job.reading.max_bad_rows = 1;
    setup->job.paths.train = spoiled(setup->job.paths.train, "bad_train.tsv", 100);
    setup->job.paths.valid = spoiled(setup->job.paths.valid, "bad_valid.tsv", 20);
    setup->job.paths.test = spoiled(setup->job.paths.test, "bad_test.tsv", 30);
    struct ph_train_summary summary = train(setup);
    assert_string_equal(summary.checkpoint_sha256, clean.checkpoint_sha256);
    assert_true(summary.valid.logloss == clean.valid.logloss && summary.test.logloss == clean.test.logloss);
    assert_int_equal(summary.train_bad_rows, 1);
    assert_int_equal(summary.valid_bad_rows, 1);
    assert_int_equal(summary.test_bad_rows, 1);
    assert_non_null(strstr(setup->first_bad_rows[0], "bad_train.tsv:101"));
    assert_non_null(strstr(setup->first_bad_rows[1], "bad_valid.tsv:21"));
    assert_non_null(strstr(setup->first_bad_rows[2], "bad_test.tsv:31"));
    setup->job.reading.max_bad_rows = 0;
    remove_folder(setup);
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DATA, "bad_valid.tsv:21");
    setup->job.paths.valid = setup->job.paths.test = NULL;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DATA, "bad_train.tsv:101");
    free(setup);
}

/* Without the correction the predictions would be those for the sampled rows, more than twice as many clicks.
 */
static void sampling_negatives_leaves_predictions_calibrated(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "sampled");
    setup->optimizer.embedding_l2 = 0;
    setup->optimizer.learning_rate = 0.1;
    setup->train.epochs = 20;
    setup->train.schedule = PH_SCHEDULE_CONSTANT;
    setup->job.reading.negative_rate = 0.2;
    setup->job.paths.valid = NULL;
    setup->job.paths.test = setup->job.paths.train; /* 500 rows hold too few clicks to tell */
    struct ph_train_summary summary = train(setup);
    assert_true(summary.samples < 20 * 3000 / 2);
    test_learned_at_most("evaluate.sampled.calibration_distance", fabs(summary.test.calibration - 1), 0.2);
    free(setup);
}

static void a_rate_that_is_no_share_is_refused(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "no_share");
    struct ph_train_summary summary;
    static const double rates[] = {-0.5, 1.5, NAN};
    for (size_t i = 0; i < COUNT(rates); i++) {
        setup->job.reading.negative_rate = rates[i];
        assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG, "data.negative_rate");
    }
    free(setup);
}

/* ---- many ranks ---- */

enum { TWO = 2 };

struct counted_training {
    struct rank_training training;
    uint64_t sent_bytes[TWO]; /* by each to the other */
};

static ph_status train_and_count(struct ph_comm *comm, void *context)
{
    struct counted_training *counted = context;
    const size_t rank = ph_comm_rank(comm);
    PH_TRY(train_as_rank(comm, &counted->training));
    counted->sent_bytes[rank] = ph__comm_counters(comm).sent_bytes[1 - rank];
    return PH_OK;
}

/* With all tables on both ranks, so that nothing else travels while rows are scored. */
static struct counted_training train_two(const struct setup *setup)
{
    struct counted_training counted = {.training = {.setup = setup}};
    const struct ph__section section = {&ph__parallel_options, &counted.training.parallel};
    assert_ok(ph__config_read(NULL, NULL, 0, &section, 1, &fixture.arena));
    counted.training.parallel.plan = "none";
    remove_folder(setup);
    thread_ranks_run(&(struct thread_ranks){.world_size = TWO}, train_and_count, &counted, NULL);
    return counted;
}

/* Of each sample that is not its own the first rank gets three numbers, and gives none. */
static void the_first_rank_has_all_scores_and_shares_what_they_come_to(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "two");
    const struct counted_training tested = train_two(setup);
    const struct ph_metrics *test = &tested.training.summaries[0].test;
    assert_memory_equal(test, &tested.training.summaries[1].test, sizeof *test);
    assert_memory_equal(
        &tested.training.summaries[0].valid, &tested.training.summaries[1].valid, sizeof *test);
    setup->job.paths.test = NULL;
    const struct counted_training untested = train_two(setup);
    const uint64_t by_first = tested.sent_bytes[0] - untested.sent_bytes[0];
    const uint64_t by_other = tested.sent_bytes[1] - untested.sent_bytes[1];
    assert_true(by_first < test->num_samples / TWO * sizeof(ph_real));
    assert_true(by_other > test->num_samples / TWO * 2 * sizeof(ph_real));
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rows_are_left_out_of_all_files_and_counted),
        cmocka_unit_test(sampling_negatives_leaves_predictions_calibrated),
        cmocka_unit_test(a_rate_that_is_no_share_is_refused),
        cmocka_unit_test(the_first_rank_has_all_scores_and_shares_what_they_come_to),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
