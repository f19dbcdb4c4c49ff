/* Jobs of ranks that differ in one thing, each of which is named with the ranks that differ in it. */
#include "train/ranks/job_agreement.h"

#include "unit/train/rank_trainings.h"

static struct rank_training trainings[TRAINING_RANKS];

static void expect_difference(const struct setup *setup, const char *text)
{
    struct thread_rank_end ends[TRAINING_RANKS];
    remove_folder(setup);
    run_rank_trainings(trainings, ends);
    assert_one_failure(ends, PH_ERROR_CONFIG, text);
    make_rank_trainings(setup, trainings);
}

static struct setup *set_up_ranks(const char *folder)
{
    struct setup *setup = set_up("dlrm", folder);
    setup->job.run.seed = 3;
    make_rank_trainings(setup, trainings);
    return setup;
}

static void settings_that_differ_are_named(void **state)
{
    (void)state;
    struct setup *setup = set_up_ranks("settings");
    trainings[1].job.run.seed = 4;
    expect_difference(setup, "seed differs between ranks 0 ('3') and 1 ('4')");
    trainings[2].train.batch_size = 128;
    expect_difference(setup, "train.batch_size differs between ranks 0 ('256') and 2 ('128')");
    trainings[0].parallel.overlap = false;
    expect_difference(setup, "parallel.overlap differs between ranks 0 ('false') and 1 ('true')");
    trainings[2].job.options.is_resumed = true;
    expect_difference(setup, "--resume differs between ranks 0 ('no') and 2 ('yes')");
    trainings[1].job.options.trace_path = "trace.json";
    expect_difference(setup, "--trace differs between ranks 0 ('not given') and 1 ('given')");
    trainings[1].job.reading.max_bad_rows = 3;
    expect_difference(setup, "data.max_bad_rows differs between ranks 0 ('0') and 1 ('3')");
    trainings[1].job.reading.negative_rate = .5;
    expect_difference(setup, "data.negative_rate differs between ranks 0 ('1') and 1 ('0.5')");
    struct ph_optimizer_settings other = setup->optimizer;
    other.rule.beta2 = .99;
    trainings[1].job.optimizer = &other;
    expect_difference(setup, "optimizer.beta2 differs between ranks 0 ('0.999') and 1 ('0.99')");
    struct ph_model_settings wider = setup->model;
    wider.embedding_dim = 8;
    trainings[2].job.model = &wider;
    expect_difference(setup, "model.embedding_dim differs between ranks 0 ('6') and 2 ('8')");
    free(setup);
}

static const char *change_file(const char *path, const char *name, const char *script)
{
    char command[2000];
    const char *copy = ph__path_join(&fixture.arena, test_folder(), name);
    snprintf(command, sizeof command, "sed '%s' '%s' >'%s'", script, path, copy);
    assert_int_equal(system(command), 0);
    return copy;
}

static void files_count_by_what_is_in_them(void **state)
{
    (void)state;
    struct setup *setup = set_up_ranks("files");
    trainings[1].job.paths.train = change_file(setup->job.paths.train, "short.tsv", "$d");
    expect_difference(setup, "data.train differs between ranks 0 ('files: 1, bytes: ");
    trainings[2].job.paths.valid = change_file(setup->job.paths.valid, "odd_valid.tsv", "$s/^[01]/0.25/");
    expect_difference(setup, "data.valid differs between ranks 0 ('files: 1, bytes: ");
    trainings[1].job.paths.test = NULL;
    expect_difference(setup, "data.test differs between ranks 0 ('files: 1, bytes: ");
    trainings[1].parallel.plan = change_file(plan_by_rows(), "columns.yaml", "s/row_wise/table_wise/");
    expect_difference(
        setup, "the plan of embedding.C1 differs between ranks 0 ('row_wise 0 1 2') and 1 ('table_wise ");
    trainings[2].parallel.plan = "none";
    expect_difference(setup, "and 2 ('data_parallel')");
    free(setup);
}

static void encoders_that_differ_are_found(void **state)
{
    (void)state;
    struct setup *setup = set_up_ranks("encoders");
    struct ph_encoder *other = make_plain_encoder();
    trainings[2].job.encoder = other;
    expect_difference(setup, "the encoder differs between ranks 0 ('");
    ph_encoder_destroy(other);
    free(setup);
}

static void what_is_a_ranks_own_may_differ(void **state)
{
    (void)state;
    struct setup *setup = set_up_ranks("own");
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++)
        trainings[rank].train.max_steps = 2;
    trainings[0].job.reading.num_prefetched = 2;
    trainings[1].job.paths.train = change_file(setup->job.paths.train, "elsewhere.tsv", "");
    trainings[2].parallel.plan = change_file(plan_by_rows(), "copy.yaml", "");
    remove_folder(setup);
    run_rank_trainings(trainings, NULL);
    assert_int_equal(trainings[2].summary.steps, 2);
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_differ_are_named),
        cmocka_unit_test(files_count_by_what_is_in_them),
        cmocka_unit_test(encoders_that_differ_are_found),
        cmocka_unit_test(what_is_a_ranks_own_may_differ),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
