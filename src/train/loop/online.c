#include "train/loop/online.h"

#include <string.h>

#include "base/memory/memory.h"

ph_status ph__online_check(const struct ph_train_job *job)
{
    const struct ph_train_settings *train = job->train;
    if (!train->progressive)
        return PH_OK;
    if (train->progressive_rows < 1 || train->progressive_rows > PH_PROGRESSIVE_MAX_ROWS)
        return ph_fail(PH_ERROR_CONFIG, "train.progressive_rows is %lld, not within 1 and %d",
            (long long)train->progressive_rows, PH_PROGRESSIVE_MAX_ROWS);
    if (job->is_shuffled)
        return ph_fail(PH_ERROR_CONFIG,
            "train.progressive measures on the rows in their order: it needs data.shuffle: false");
    if (train->epochs != 1)
        return ph_fail(PH_ERROR_CONFIG,
            "train.progressive measures on rows that are seen for the first time: it needs train.epochs: 1");
    if (job->negative_rate > 0 && job->negative_rate < 1)
        return ph_fail(
            PH_ERROR_CONFIG, "train.progressive measures on every row: it needs data.negative_rate: 1");
    return PH_OK;
}

static ph_status report_window(struct ph__trainer *trainer)
{
    struct ph__progressive_window window;
    PH_TRY(ph__progressive_end_window(&trainer->progressive, &window));
    return ph__report_window(&trainer->report, trainer->epoch, trainer->summary.steps, &window);
}

/* (B,T) of this rank's samples, by the micro-batches that they are learnt from in. */
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

/* Rows of all ranks in their order, however many there are. */
static ph_status add_rows(struct ph__trainer *trainer, const struct ph_batch *batch, const ph_real *logits)
{
    PH_TRY(ph__gathered_scores_replace(&trainer->scored_ahead, trainer->ranks.comm, &batch, &logits));
    for (size_t next = 0; next < batch->num_samples;) {
        next = ph__progressive_add(&trainer->progressive, batch, logits, next);
        if (ph__progressive_is_full(&trainer->progressive))
            PH_TRY(report_window(trainer));
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
        PH_TRY(report_window(trainer));
    trainer->summary.has_progressive = true;
    trainer->summary.progressive = ph__progressive_metrics(&trainer->progressive);
    return PH_OK;
}
