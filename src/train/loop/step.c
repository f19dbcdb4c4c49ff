/* One step of a training: scores a batch ahead, if the training is online, then learns from it. */
#include "train/loop/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "graph/executor.h"

/* ---- the state before a step ---- */

static size_t tensor_bytes(const struct ph_tensor *tensor)
{
    return ph_shape_elements(&tensor->shape) * ph_dtype_size(tensor->dtype);
}

static size_t state_bytes(const struct ph_state *state)
{
    size_t size = 0;
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        struct ph_tensor tensor = ph_state_tensor(state, i);
        size += tensor_bytes(&tensor);
    }
    return size;
}

ph_status ph__state_snapshot_take(struct ph__state_snapshot *snapshot, const struct ph_state *state)
{
    size_t size = state_bytes(state);
    if (snapshot->size != size || snapshot->bytes == NULL) {
        unsigned char *bytes = realloc(snapshot->bytes, size + 1);
        if (bytes == NULL)
            return ph__out_of_memory("cannot keep %zu bytes of state", size);
        *snapshot = (struct ph__state_snapshot){size, bytes};
    }
    unsigned char *to = snapshot->bytes;
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        struct ph_tensor tensor = ph_state_tensor(state, i);
        memcpy(to, tensor.data, tensor_bytes(&tensor));
        to += tensor_bytes(&tensor);
    }
    return PH_OK;
}

void ph__state_snapshot_restore(const struct ph__state_snapshot *snapshot, struct ph_state *state)
{
    const unsigned char *from = snapshot->bytes;
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        struct ph_tensor tensor = ph_state_tensor(state, i);
        memcpy(tensor.data, from, tensor_bytes(&tensor));
        from += tensor_bytes(&tensor);
    }
    ph_state_touch(state);
}

void ph__state_snapshot_fini(struct ph__state_snapshot *snapshot)
{
    free(snapshot->bytes);
    *snapshot = (struct ph__state_snapshot){0};
}

/* ---- scoring ahead ---- */

static ph_status log_window(struct ph__trainer *trainer)
{
    struct ph__progressive_window window;
    PH_TRY(ph__progressive_end_window(&trainer->progressive, &window));
    return ph__metrics_log_window(&trainer->metrics_log, trainer->epoch, trainer->summary.steps, &window);
}

/* Scores this rank's samples by the micro-batches that they are learnt in. logits_out: (B,T), borrowed from
 * the trainer. */
static ph_status score_parts(
    struct ph__trainer *trainer, const struct ph_batch *batch, size_t num_parts, const ph_real **logits_out)
{
    const struct ph_batch *part = &trainer->micro_batch.batch;
    const ph_real *logits;
    size_t at = 0;
    PH_TRY(ph__array_reserve((void **)&trainer->own_scores, &trainer->own_scores_capacity,
        batch->num_samples * batch->num_tasks + 1, sizeof *trainer->own_scores));
    for (size_t i = 0; i < num_parts; i++) {
        PH_TRY(ph__micro_batch_cut(&trainer->micro_batch, batch, trainer->ranks.world_size, i, num_parts));
        PH_TRY(ph_scorer_score(trainer->scorer, part, &logits));
        const size_t count = part->num_samples * part->num_tasks;
        memcpy(trainer->own_scores + at, logits, count * sizeof *logits);
        at += count;
    }
    *logits_out = trainer->own_scores;
    return PH_OK;
}

/* Adds the rows of all ranks in their order, and reports each window that they fill. */
static ph_status add_rows(struct ph__trainer *trainer, const struct ph_batch *batch, const ph_real *logits)
{
    PH_TRY(ph__gathered_scores_replace(&trainer->scored_ahead, trainer->ranks.comm, &batch, &logits));
    for (size_t next = 0; next < batch->num_samples;) {
        next = ph__progressive_add(&trainer->progressive, batch, logits, next);
        if (ph__progressive_is_full(&trainer->progressive))
            PH_TRY(log_window(trainer));
    }
    return PH_OK;
}

ph_status ph__trainer_score_ahead(struct ph__trainer *trainer, const struct ph_batch *batch)
{
    const size_t num_parts =
        ph__micro_batch_count(batch, trainer->ranks.world_size, trainer->learning.num_micro_batches);
    const ph_real *logits;
    if (!trainer->job->train->progressive)
        return PH_OK;
    PH_TRY(num_parts > 1 ? score_parts(trainer, batch, num_parts, &logits)
                         : ph_scorer_score(trainer->scorer, batch, &logits));
    return add_rows(trainer, batch, logits);
}

ph_status ph__trainer_end_stream(struct ph__trainer *trainer)
{
    if (!trainer->job->train->progressive)
        return PH_OK;
    if (trainer->progressive.num_rows > 0)
        PH_TRY(log_window(trainer));
    trainer->summary.has_progressive = true;
    trainer->summary.progressive = ph__progressive_metrics(&trainer->progressive);
    return PH_OK;
}

/* ---- micro-batches ---- */

/* Fails, or undoes the forward pass's changes to the state and counts a skipped step, by the policy. */
static ph_status not_finite(struct ph__trainer *trainer, const char *what, double value)
{
    if (trainer->job->train->non_finite == PH_NON_FINITE_STOP)
        return ph_fail(PH_ERROR_DIVERGED,
            "epoch %" PRIu64 ", step %" PRIu64
            ": the %s is not finite (%g); check the data and the learning rate, or set "
            "train.non_finite=skip; what was saved before is unchanged",
            trainer->epoch, trainer->summary.steps, what, isnan(value) ? fabs(value) : value);
    ph__state_snapshot_restore(&trainer->snapshot, trainer->state);
    trainer->summary.skipped_steps++;
    return PH_OK;
}

/* A step in progress. */
struct step {
    const struct ph_batch *batch;
    size_t num_micro_batches;
    double weight; /* of the batch's labels, on all ranks; 0 with one micro-batch */
    double loss;   /* of the micro-batches so far, each by its share of the batch */
    bool is_finite;
};

/* Sets a scalar to the weight of the batch's rows, on all ranks. */
static ph_status set_weight(struct ph__trainer *trainer, const struct ph_batch *batch, enum ph__known known,
    const char *name, double *weight_out)
{
    PH_TRY(ph__ranks_sum(&trainer->ranks, ph__batch_weight(batch, known), weight_out));
    return ph_workspace_set_scalar(trainer->workspace, name, *weight_out);
}

static ph_status set_teacher_weights(struct ph__trainer *trainer, const struct ph_batch *batch)
{
    const enum ph_distill distill = trainer->job->train->distill;
    double weight;
    if (distill != PH_DISTILL_NONE)
        PH_TRY(set_weight(trainer, batch, PH_KNOWN_TEACHER, "teacher_weight", &weight));
    if (distill == PH_DISTILL_ADAPTER)
        PH_TRY(set_weight(trainer, batch, PH_KNOWN_BOTH, "taught_weight", &weight));
    return PH_OK;
}

static ph_status begin_step(struct ph__trainer *trainer, const struct ph_batch *batch, struct step *step)
{
    const struct ph__train_job *job = trainer->job;
    const uint64_t next_update = trainer->num_updates + 1;
    const size_t world_size = trainer->ranks.world_size;
    *step = (struct step){.batch = batch, .is_finite = true};
    ph__probing_begin_step(&trainer->probing, trainer->summary.steps);
    step->num_micro_batches = ph__micro_batch_count(batch, world_size, trainer->learning.num_micro_batches);
    trainer->learning_rate = ph__schedule_learning_rate(
        job->train, job->optimizer->learning_rate, trainer->protocol.cuts, next_update);
    PH_TRY(ph_workspace_set_scalar(trainer->workspace, "learning_rate", trainer->learning_rate));
    PH_TRY(ph_workspace_set_scalar(trainer->workspace, "step", (double)next_update));
    if (trainer->learning.num_micro_batches == 1)
        return PH_OK;
    PH_TRY(set_weight(trainer, batch, PH_KNOWN_LABEL, "batch_weight", &step->weight));
    return set_teacher_weights(trainer, batch);
}

static ph_status bind(struct ph__trainer *trainer, const struct step *step, size_t number)
{
    struct ph__micro_batch *micro = &trainer->micro_batch;
    PH_TRY(
        ph__micro_batch_cut(micro, step->batch, trainer->ranks.world_size, number, step->num_micro_batches));
    if (trainer->learning.num_micro_batches > 1)
        PH_TRY(ph_workspace_set_scalar(trainer->workspace, "num_before", (double)number));
    PH_TRY(ph__ranks_bind(
        &trainer->ranks, trainer->workspace, &micro->batch, trainer->job->run.seed, trainer->summary.steps));
    size_t num_ids;
    const int64_t *ids = ph__workspace_requested_ids(trainer->workspace, &num_ids);
    ph__rank_figures_bound(&trainer->figures, ids, num_ids);
    return PH_OK;
}

/* Gives the bound micro-batch's share of the batch's loss. */
static ph_status share_of_loss(const struct ph__trainer *trainer, const struct step *step, double *share_out)
{
    double weight;
    *share_out = 1;
    if (trainer->learning.num_micro_batches == 1)
        return PH_OK;
    PH_TRY(ph_workspace_scalar(trainer->workspace, "weight", &weight));
    *share_out = step->weight > 0 ? weight / step->weight : 0;
    return PH_OK;
}

static ph_status forward(struct ph__trainer *trainer, struct step *step)
{
    double loss, share;
    const ph_real *logits;
    struct ph_shape shape;
    PH_TRY(ph__probing_run(&trainer->probing, trainer->workspace, "forward"));
    PH_TRY(ph_workspace_scalar(trainer->workspace, "loss", &loss));
    step->is_finite = isfinite(loss);
    if (!step->is_finite)
        return not_finite(trainer, "loss", loss);
    PH_TRY(share_of_loss(trainer, step, &share));
    PH_TRY(ph_workspace_output(trainer->workspace, "logits", &logits, &shape));
    if (!ph__trainer_is_simulated(trainer) && !trainer->features.has_classes)
        ph__recent_add(&trainer->recent, &trainer->micro_batch.batch, logits);
    step->loss += loss * share;
    return PH_OK;
}

/* Makes the gradients of the batch, unless a loss is not finite. */
static ph_status differentiate(struct ph__trainer *trainer, struct step *step)
{
    for (size_t i = 0; i < step->num_micro_batches && step->is_finite; i++) {
        PH_TRY(bind(trainer, step, i));
        PH_TRY(forward(trainer, step));
        if (step->is_finite)
            PH_TRY(ph__probing_run(&trainer->probing, trainer->workspace, "backward"));
    }
    return step->is_finite && trainer->learning.num_micro_batches > 1
               ? ph_workspace_run(trainer->workspace, "combine")
               : PH_OK;
}

/* ---- steps ---- */

static ph_status update(struct ph__trainer *trainer)
{
    struct ph_workspace *workspace = trainer->workspace;
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

ph_status ph__trainer_step(struct ph__trainer *trainer, const struct ph_batch *batch)
{
    struct step step;
    trainer->summary.steps++;
    const size_t num_samples = batch->num_global_samples > 0 ? batch->num_global_samples : batch->num_samples;
    trainer->summary.samples += num_samples;
    if (trainer->job->train->non_finite == PH_NON_FINITE_SKIP)
        PH_TRY(ph__state_snapshot_take(&trainer->snapshot, trainer->state));
    PH_TRY(begin_step(trainer, batch, &step));
    PH_TRY(differentiate(trainer, &step));
    PH_TRY(ph__probing_end_step(&trainer->probing, trainer->store));
    if (!step.is_finite)
        return PH_OK;
    trainer->tally.loss_sum += step.loss;
    trainer->tally.steps++;
    trainer->tally.samples += num_samples;
    return update(trainer);
}
