/* What a hook between backward and update sees, and what it can do. */
#include "train/step.h"

#include <math.h>

#include "train_fixture.h"

struct seen {
    uint64_t calls, last_step, failing_step; /* failing_step 0: it never fails */
    double last_loss;
};

static ph_status reduce(void *context, struct ph_workspace *workspace, uint64_t step)
{
    struct seen *seen = context;
    const ph_real *logits;
    struct ph_shape shape;
    assert_int_equal(step, ++seen->calls);
    assert_ok(ph_workspace_scalar(workspace, "loss", &seen->last_loss));
    assert_ok(ph_workspace_output(workspace, "logits", &logits, &shape));
    assert_true(isfinite(seen->last_loss) && isfinite(logits[0]));
    assert_int_equal(shape.dims[1], 1);
    seen->last_step = step;
    return step == seen->failing_step ? ph_fail(PH_ERROR_PEER, "rank 1 is gone") : PH_OK;
}

static void reducer_is_called_once_a_step_and_changes_nothing_by_itself(void **state)
{
    (void)state;
    struct setup *setup = set_up("fm", "reducer");
    struct seen seen = {0};
    const struct ph_reducer reducer = {&seen, reduce};
    struct ph_train_summary alone = train(setup);
    setup->job.reducer = &reducer;
    struct ph_train_summary summary = train(setup);
    assert_int_equal(summary.steps, 3 * 12);
    assert_int_equal(seen.calls, summary.steps);
    assert_string_equal(summary.checkpoint_sha256, alone.checkpoint_sha256);
    free(setup);
}

/* Before the update: the training that is resumed takes the whole step, and ends as if nothing had been. */
static void reducer_that_fails_ends_the_training_with_its_status(void **state)
{
    (void)state;
    struct setup *setup = set_up("fm", "reducer");
    struct seen seen = {.failing_step = 15};
    const struct ph_reducer reducer = {&seen, reduce};
    struct ph_train_summary undisturbed = train(setup), summary;
    setup->train.checkpoint_steps = 14;
    setup->job.reducer = &reducer;
    remove_folder(setup);
    assert_fails(ph_train(&setup->job, &summary), PH_ERROR_PEER, "rank 1 is gone");
    assert_int_equal(seen.last_step, 15);
    setup->job.reducer = NULL;
    setup->job.is_resumed = true;
    assert_ok(ph_train(&setup->job, &summary));
    assert_int_equal(summary.resumed_step, 14);
    assert_string_equal(summary.checkpoint_sha256, undisturbed.checkpoint_sha256);
    free(setup);
}

/* All steps but the first have weights that are no numbers. */
static void reducer_is_not_called_for_a_step_without_a_finite_loss(void **state)
{
    (void)state;
    struct setup *setup = set_up("dnn", "reducer_skip");
    struct seen seen = {0};
    const struct ph_reducer reducer = {&seen, reduce};
    make_divergent(setup);
    setup->train.non_finite = PH_NON_FINITE_SKIP;
    setup->train.epochs = 1;
    setup->job.valid_path = NULL;
    setup->job.reducer = &reducer;
    struct ph_train_summary summary = train(setup);
    assert_true(summary.skipped_steps > 0);
    assert_true(seen.calls >= 1 && seen.calls < summary.steps);
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reducer_is_called_once_a_step_and_changes_nothing_by_itself),
        cmocka_unit_test(reducer_that_fails_ends_the_training_with_its_status),
        cmocka_unit_test(reducer_is_not_called_for_a_step_without_a_finite_loss),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
