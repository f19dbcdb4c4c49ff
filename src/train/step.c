#include "train/step.h"

#include <inttypes.h>
#include <math.h>

/* By the policy: an error, or PH_OK after undoing what the forward pass carried on. */
static ph_status not_finite(struct ph__trainer *trainer, const char *what, double value)
{
    if (trainer->job->train->non_finite == PH_NON_FINITE_STOP)
        return ph_fail(PH_ERROR_DIVERGED,
            "epoch %" PRIu64 ", step %" PRIu64
            ": the %s is not finite (%g); look at the data and the learning rate, "
            "or set train.non_finite=skip; what was saved before is as it was",
            trainer->epoch, trainer->summary.steps, what, value);
    ph__state_snapshot_restore(&trainer->snapshot, trainer->state);
    trainer->summary.skipped_steps++;
    return PH_OK;
}

static ph_status update(struct ph__trainer *trainer)
{
    struct ph_workspace *workspace = trainer->workspace;
    PH_TRY(ph_workspace_run(workspace, "backward"));
    if (trainer->learning.has_clip) {
        double factor;
        PH_TRY(ph_workspace_run(workspace, "clip"));
        PH_TRY(ph_workspace_scalar(workspace, "clip_factor", &factor));
        if (!isfinite(factor) || factor <= 0)
            return not_finite(trainer, "norm of the gradients", (double)NAN);
    }
    trainer->num_updates++;
    return ph_workspace_run(workspace, "update");
}

static ph_status bind(struct ph__trainer *trainer, const struct ph_batch *batch)
{
    const struct ph_train_job *job = trainer->job;
    uint64_t next_update = trainer->num_updates + 1;
    trainer->learning_rate = ph__schedule_learning_rate(
        job->train, job->optimizer->learning_rate, trainer->protocol.cuts, next_update);
    PH_TRY(ph__ranks_bind(&trainer->ranks, trainer->workspace, batch, job->seed, trainer->summary.steps));
    PH_TRY(ph_workspace_set_scalar(trainer->workspace, "learning_rate", trainer->learning_rate));
    return ph_workspace_set_scalar(trainer->workspace, "step", (double)next_update);
}

ph_status ph__trainer_step(struct ph__trainer *trainer, const struct ph_batch *batch)
{
    trainer->summary.steps++;
    const size_t num_samples = batch->num_global_samples > 0 ? batch->num_global_samples : batch->num_samples;
    trainer->summary.samples += num_samples;
    if (trainer->job->train->non_finite == PH_NON_FINITE_SKIP)
        PH_TRY(ph__state_snapshot_take(&trainer->snapshot, trainer->state));
    PH_TRY(bind(trainer, batch));
    PH_TRY(ph_workspace_run(trainer->workspace, "forward"));
    double loss;
    const ph_real *logits;
    struct ph_shape shape;
    PH_TRY(ph_workspace_scalar(trainer->workspace, "loss", &loss));
    if (!isfinite(loss))
        return not_finite(trainer, "loss", loss);
    PH_TRY(ph_workspace_output(trainer->workspace, "logits", &logits, &shape));
    ph__recent_add(&trainer->recent, batch, logits);
    trainer->tally.loss_sum += loss;
    trainer->tally.steps++;
    trainer->tally.samples += num_samples;
    return update(trainer);
}
