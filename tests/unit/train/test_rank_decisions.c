/* What ranks decide together: when to stop, whether a step counts, what is resumed from, and that all fail
 * alike. */
#include "train/measure/evaluate.h"

#include <math.h>
#include <signal.h>

#include "unit/train/rank_trainings.h"

static struct rank_training trainings[TRAINING_RANKS];

static struct setup *set_up_ranks(const char *folder)
{
    struct setup *setup = set_up("dlrm", folder);
    setup->job.reading.is_shuffled = false;
    make_rank_trainings(setup, trainings);
    remove_folder(setup);
    return setup;
}

/* ---- signals ---- */

/* Comes in the moment before an evaluation, when the steps behind it are reported. */
static ph_status signal_oneself(void *context, const struct ph_train_progress *progress)
{
    struct rank_training *training = context;
    if (progress->valid == NULL && progress->epoch == 2)
        training->signal = SIGTERM;
    return PH_OK;
}

static void a_signal_of_one_rank_in_an_evaluation_stops_all(void **state)
{
    (void)state;
    struct thread_rank_end ends[TRAINING_RANKS];
    struct setup *setup = set_up_ranks("undisturbed");
    run_rank_trainings(trainings, NULL);
    const struct ph_train_summary undisturbed = trainings[0].summary;
    free(setup);
    setup = set_up_ranks("stopped");
    const struct ph_train_observer observer = {.context = &trainings[1], .on_progress = signal_oneself};
    trainings[1].job.options.observer = &observer;
    run_rank_trainings(trainings, ends);
    assert_one_failure(ends, PH_ERROR_TERMINATED, "stopped by a signal at step 24; ");
    make_rank_trainings(setup, trainings);
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++)
        trainings[rank].job.options.is_resumed = true;
    run_rank_trainings(trainings, NULL);
    assert_int_equal(trainings[0].summary.resumed_step, 24);
    assert_string_equal(trainings[0].summary.checkpoint_sha256, undisturbed.checkpoint_sha256);
    assert_true(trainings[2].summary.test.logloss == undisturbed.test.logloss);
    free(setup);
}

static void a_signal_of_one_rank_before_the_first_step_stops_all(void **state)
{
    (void)state;
    struct thread_rank_end ends[TRAINING_RANKS];
    struct setup *setup = set_up_ranks("at_once");
    trainings[2].signal = SIGINT;
    run_rank_trainings(trainings, ends);
    assert_one_failure(ends, PH_ERROR_INTERRUPTED, "stopped by a signal before the first step: ");
    free(setup);
}

static ph_status interrupt_oneself(void *context, const struct ph_train_progress *progress)
{
    struct rank_training *training = context;
    (void)progress;
    training->signal = SIGINT;
    return PH_OK;
}

static void a_signal_of_one_rank_behind_a_step_stops_all(void **state)
{
    (void)state;
    struct thread_rank_end ends[TRAINING_RANKS];
    struct setup *setup = set_up_ranks("behind_a_step");
    const struct ph_train_observer observer = {.context = &trainings[2], .on_progress = interrupt_oneself};
    trainings[2].job.options.observer = &observer;
    run_rank_trainings(trainings, ends);
    assert_one_failure(ends, PH_ERROR_INTERRUPTED, "stopped by a signal at step ");
    free(setup);
}

/* ---- failures ---- */

static ph_status break_off(void *context, const struct ph_train_progress *progress)
{
    (void)context;
    (void)progress;
    return ph_fail(PH_ERROR_DISK, "there is no room here");
}

/* Whoever calls ph__train need not tell the others. */
static ph_status train_and_look(struct ph_comm *comm, void *context)
{
    const ph_status status = train_as_rank(comm, context);
    RANK_CHECK(ph__comm_progress(comm) == status);
    return status;
}

static void what_one_rank_fails_with_is_told_to_all(void **state)
{
    (void)state;
    struct thread_rank_end ends[TRAINING_RANKS];
    const struct ph_train_observer observer = {.on_progress = break_off};
    struct setup *setup = set_up_ranks("told");
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++)
        trainings[rank].train.report_seconds = 0;
    trainings[1].job.options.observer = &observer;
    thread_ranks_run(&(struct thread_ranks){.world_size = TRAINING_RANKS}, train_and_look, trainings, ends);
    assert_one_failure(ends, PH_ERROR_DISK, "there is no room here");
    free(setup);
}

/* ---- checkpoints ---- */

/* The last byte of what one rank has written, whose seal one rank looks at. */
static void damage(const struct setup *setup, const char *kind, int step, size_t rank)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/checkpoints/%s-%012d.safetensors/part-%05zu-of-%05d.safetensors",
        setup->folder, kind, step, rank + 1, TRAINING_RANKS);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void count_note(void *context, const char *text)
{
    int *count = context;
    if (strstr(text, "resuming from step 6 instead") != NULL)
        ++*count;
}

static void resume_rank_trainings(const struct setup *setup, const struct ph_train_observer *observer)
{
    make_rank_trainings(setup, trainings);
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++)
        trainings[rank].job.options.is_resumed = true;
    trainings[0].job.options.observer = observer;
}

static void a_checkpoint_that_one_rank_finds_damaged_gives_way_on_all(void **state)
{
    (void)state;
    struct thread_rank_end ends[TRAINING_RANKS];
    struct setup *setup = set_up_ranks("damaged");
    setup->train.checkpoint_steps = 3;
    setup->train.max_steps = 10;
    make_rank_trainings(setup, trainings);
    run_rank_trainings(trainings, NULL);
    const struct ph_train_summary undisturbed = trainings[0].summary;
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++) {
        int num_notes = 0;
        const struct ph_train_observer observer = {.context = &num_notes, .on_note = count_note};
        remove_folder(setup);
        setup->train.max_steps = 7;
        make_rank_trainings(setup, trainings);
        run_rank_trainings(trainings, NULL);
        damage(setup, "step", 7, rank);
        setup->train.max_steps = 10;
        resume_rank_trainings(setup, &observer);
        run_rank_trainings(trainings, NULL);
        assert_int_equal(num_notes, 1);
        assert_int_equal(trainings[2].summary.resumed_step, 6);
        assert_string_equal(trainings[0].summary.checkpoint_sha256, undisturbed.checkpoint_sha256);
    }
    damage(setup, "step", 10, 0);
    damage(setup, "step", 9, 2);
    setup->train.max_steps = 11;
    resume_rank_trainings(setup, NULL);
    run_rank_trainings(trainings, ends);
    assert_one_failure(ends, PH_ERROR_CHECKPOINT, "no valid checkpoint: ");
    free(setup);
}

/* Of its files each rank reads some. */
static void a_best_model_that_one_rank_finds_damaged_does_as_well(void **state)
{
    (void)state;
    struct setup *setup = set_up_ranks("best");
    setup->train.selection = PH_SELECT_LOGLOSS; /* which falls from the first steps on: step 6 is the best */
    setup->train.evaluate_steps = 2;
    setup->train.checkpoint_steps = 3;
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++) {
        int num_notes = 0;
        const struct ph_train_observer observer = {.context = &num_notes, .on_note = count_note};
        remove_folder(setup);
        setup->train.max_steps = 7;
        make_rank_trainings(setup, trainings);
        run_rank_trainings(trainings, NULL);
        damage(setup, "best", 6, rank); /* which the checkpoint of step 6 knows nothing of */
        setup->train.max_steps = 8;
        resume_rank_trainings(setup, &observer);
        run_rank_trainings(trainings, NULL);
        assert_int_equal(num_notes, 1);
        assert_int_equal(trainings[2].summary.resumed_step, 6);
    }
    free(setup);
}

/* ---- numbers that are none ---- */

static void diverge(struct setup *setup, enum ph_non_finite policy)
{
    make_divergent(setup);
    setup->train.non_finite = policy;
    setup->job.paths.valid = setup->job.paths.test = NULL;
    setup->train.checkpoint_steps = 1;
    make_rank_trainings(setup, trainings);
}

static void ranks_that_diverge_stop_alike(void **state)
{
    (void)state;
    struct thread_rank_end ends[TRAINING_RANKS];
    struct setup *setup = set_up_ranks("diverged");
    diverge(setup, PH_NON_FINITE_STOP);
    run_rank_trainings(trainings, ends);
    assert_one_failure(ends, PH_ERROR_DIVERGED, "check the data and the learning rate");
    free(setup);
}

/* The fifth batch has a dense cell, in the second rank's share, whose square is no float. */
static const char *poison(const char *path)
{
    char command[2000];
    const char *copy = ph__path_join(&fixture.arena, test_folder(), "poison.tsv");
    snprintf(command, sizeof command,
        "awk 'BEGIN { FS = OFS = \"\\t\" } NR == %d { $2 = \"1e38\" } 1' '%s' >'%s'", 1 + 4 * 256 + 256 / 2,
        path, copy);
    assert_int_equal(system(command), 0);
    return copy;
}

static void ranks_skip_the_same_steps(void **state)
{
    (void)state;
    struct setup *setup = set_up_ranks("skipped");
    setup->train.non_finite = PH_NON_FINITE_SKIP;
    setup->model.kind = ph_model_find("dcn"); /* which multiplies cells */
    struct ph_encoder *plain = make_plain_encoder();
    setup->job.encoder = plain;
    setup->job.paths.train = poison(setup->job.paths.train);
    setup->train.epochs = 2;
    setup->optimizer.rule.epsilon = 0.01; /* a gradient that is rounding alone makes no step of full length */
    const struct ph_train_summary alone = train(setup);
    assert_int_equal(alone.skipped_steps, 2);
    remove_folder(setup);
    make_rank_trainings(setup, trainings);
    run_rank_trainings(trainings, NULL);
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++) {
        assert_int_equal(trainings[rank].summary.skipped_steps, alone.skipped_steps);
        assert_string_equal(
            trainings[rank].summary.checkpoint_sha256, trainings[0].summary.checkpoint_sha256);
    }
    test_learned_at_most("rank_decisions.skipped.logloss_distance",
        fabs(trainings[0].summary.valid.logloss / alone.valid.logloss - 1), 1e-4);
    ph_encoder_destroy(plain);
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_of_one_rank_in_an_evaluation_stops_all),
        cmocka_unit_test(a_signal_of_one_rank_before_the_first_step_stops_all),
        cmocka_unit_test(a_signal_of_one_rank_behind_a_step_stops_all),
        cmocka_unit_test(what_one_rank_fails_with_is_told_to_all),
        cmocka_unit_test(a_checkpoint_that_one_rank_finds_damaged_gives_way_on_all),
        cmocka_unit_test(a_best_model_that_one_rank_finds_damaged_does_as_well),
        cmocka_unit_test(ranks_that_diverge_stop_alike),
        cmocka_unit_test(ranks_skip_the_same_steps),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
