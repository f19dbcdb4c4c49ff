/* Ranks that do not see the same in the folder of their training: where a file there leads depends on who
 * looks. */
#include "train/folder/train_folder.h"

#include <sched.h>
#include <unistd.h>

#include "unit/train/rank_trainings.h"

static struct rank_training trainings[TRAINING_RANKS];

/* A training of three steps that has ended, by a plan that was made. */
static struct setup *train_to_its_end(const char *folder)
{
    struct setup *setup = set_up("dlrm", folder);
    setup->train.max_steps = 3;
    make_rank_trainings(setup, trainings);
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++)
        trainings[rank].parallel.plan = "auto";
    run_rank_trainings(trainings, NULL);
    return setup;
}

/* The file becomes one that the ranks of `seers` alone find: each in its own folder, seen/RANK. */
static void hide_file(const struct setup *setup, const char *name, const char *seers)
{
    char command[3000];
    snprintf(command, sizeof command,
        "cd '%s' && { [ -e %s ] || mv '%s/%s' .; } && rm -rf seen && mkdir -p seen/0 seen/1 seen/2 && "
        "for rank in %s; do cp %s seen/$rank; done && ln -sf /proc/thread-self/cwd/%s '%s'",
        test_folder(), name, setup->folder, name, seers, name, name, setup->folder);
    assert_int_equal(system(command), 0);
}

static ph_status resume_in_own_folder(struct ph_comm *comm, void *context)
{
    struct rank_training *training = (struct rank_training *)context + ph_comm_rank(comm);
    char folder[600];
    snprintf(folder, sizeof folder, "%s/seen/%zu", test_folder(), ph_comm_rank(comm));
    RANK_CHECK(unshare(CLONE_FS) == 0 && chdir(folder) == 0);
    training->job.options.is_resumed = true;
    return train_as_rank(comm, context);
}

static void resume_in_own_folders(struct thread_rank_end *ends_out)
{
    thread_ranks_run(
        &(struct thread_ranks){.world_size = TRAINING_RANKS}, resume_in_own_folder, trainings, ends_out);
}

static void whether_a_training_is_over_is_what_the_first_rank_finds(void **state)
{
    (void)state;
    struct thread_rank_end ends[TRAINING_RANKS];
    struct setup *setup = train_to_its_end("over");
    hide_file(setup, "summary.json", "0 1");
    resume_in_own_folders(ends);
    assert_one_failure(ends, PH_ERROR_CHECKPOINT, "summary.json");
    hide_file(setup, "summary.json", "1 2");
    resume_in_own_folders(NULL);
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++)
        assert_false(trainings[rank].summary.was_finished);
    run_rank_trainings(trainings, NULL);
    for (size_t rank = 0; rank < TRAINING_RANKS; rank++)
        assert_true(trainings[rank].summary.was_finished);
    free(setup);
}

static void a_kept_plan_that_some_ranks_alone_find_ends_all(void **state)
{
    (void)state;
    static const char *const seers[] = {"0 1", "2"};
    struct thread_rank_end ends[TRAINING_RANKS];
    struct setup *setup = train_to_its_end("planned");
    for (size_t i = 0; i < COUNT(seers); i++) {
        hide_file(setup, "plan.yaml", seers[i]);
        resume_in_own_folders(ends);
        assert_one_failure(ends, PH_ERROR_CONFIG,
            "the kept plan differs between ranks 0 and 2: all ranks must share the folder");
    }
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whether_a_training_is_over_is_what_the_first_rank_finds),
        cmocka_unit_test(a_kept_plan_that_some_ranks_alone_find_ends_all),
    };
    if (unshare(CLONE_FS) != 0)
        test_skip("a thread may not have a current folder of its own here");
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
