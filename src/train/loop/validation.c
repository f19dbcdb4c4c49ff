/* Evaluations during a training and at its end, and the best model. */
#include "train/loop/loop.h"

#include <inttypes.h>
#include <math.h>

#include "serve/model_folder.h"
#include "serve/model_identity.h"
#include "store/checkpoint_names.h"
#include "train/folder/checkpoints.h"
#include "train/measure/evaluate.h"
#include "train/ranks/rank_checkpoint.h"
#include "train/ranks/rows_learnt.h"

static ph_status write_model(struct ph__trainer *trainer, const char *path, const char *const *metadata)
{
    struct ph__tensor_list list = {0};
    ph_status status = ph__tensor_list_add_model(&list, trainer->store, trainer->state);
    if (status == PH_OK)
        status = ph__rank_checkpoint_write(&trainer->ranks, path, &list, metadata);
    ph__tensor_list_fini(&list);
    return status;
}

/* Reads the best model back into store and state. */
static ph_status load_best(struct ph__trainer *trainer)
{
    const char *path = trainer->model_path;
    struct ph__tensor_list list = {0};
    if (trainer->ranks.comm == NULL)
        return ph_checkpoint_load(path, trainer->store, trainer->state);
    ph_status status = ph__tensor_list_add_model(&list, trainer->store, trainer->state);
    if (status == PH_OK)
        status = ph__rank_checkpoint_read(&trainer->ranks, path, &list);
    ph__tensor_list_fini(&list);
    ph_store_touch(trainer->store);
    ph_state_touch(trainer->state);
    return status;
}

/* Saves the current model as DIR/model.safetensors. */
static ph_status save_best(struct ph__trainer *trainer)
{
    if (ph__trainer_is_simulated(trainer))
        return PH_OK;
    const struct ph__train_job *job = trainer->job;
    const char *path = trainer->model_path;
    char seed[24], step[24];
    snprintf(seed, sizeof seed, "%" PRIu64, job->run.seed);
    snprintf(step, sizeof step, "%" PRIu64, trainer->summary.steps);
    const char *const metadata[] = {"model", ph_model_name(job->model->kind), "seed", seed, "step", step,
        PH_ENCODER_KEY, trainer->encoder_sha256, PH_IDENTITY_KEY, trainer->identity, NULL};
    PH_TRY(ph__trainer_check_model(trainer));
    PH_TRY(write_model(trainer, path, metadata));
    PH_TRY(ph__checkpoint_read_seal(path, trainer->best_seal));
    trainer->best_step = trainer->summary.steps;
    trainer->summary.best_epoch = trainer->epoch;
    return PH_OK;
}

static bool are_numbers(const struct ph_metrics *metrics)
{
    return metrics->num_samples == 0 || !isnan(metrics->logloss);
}

/* PH_ERROR_DIVERGED when scores just measured on `what` (trainer->metrics) are not numbers, unless
 * train.non_finite is skip. */
static ph_status check_scores(const struct ph__trainer *trainer, const char *what)
{
    bool are_all_numbers = true;
    for (size_t task = 0; task < trainer->features.num_tasks; task++)
        are_all_numbers = are_all_numbers && are_numbers(&trainer->metrics[task]);
    if (are_all_numbers || trainer->job->train->non_finite == PH_NON_FINITE_SKIP)
        return PH_OK;
    return ph_fail(PH_ERROR_DIVERGED,
        "epoch %" PRIu64 ", step %" PRIu64
        ": scores of %s are not numbers; check the data and the learning rate, or set train.non_finite=skip; "
        "what was saved before is unchanged",
        trainer->epoch, trainer->summary.steps, what);
}

/* Notes, once, that evaluations cannot be compared. */
static void note_incomparable(struct ph__trainer *trainer)
{
    char note[256];
    if (trainer->has_noted_incomparable)
        return;
    trainer->has_noted_incomparable = true;
    snprintf(note, sizeof note,
        "the labels of data.valid %s, so train.selection has no %s to compare: train.patience does not "
        "count, and the last model is kept",
        trainer->summary.valid.num_samples == 0 ? "are all blank" : "are all of one class",
        trainer->job->train->selection == PH_SELECT_AUC ? "AUC" : "logloss");
    ph__trainer_note(trainer, note);
}

/* Saves the last model as the best where no evaluation has chosen one: data.valid is missing, or its labels
 * lack a class. PH_ERROR_DIVERGED when its scores are not numbers. */
static ph_status keep_last(struct ph__trainer *trainer)
{
    const struct ph_train_summary *summary = &trainer->summary;
    const struct ph__rows_origin valid = ph__job_valid(trainer->job);
    if (summary->best_epoch != 0)
        return PH_OK;
    if (ph__job_rows_exist(valid) && !are_numbers(&summary->valid))
        return ph_fail(PH_ERROR_DIVERGED, "the scores of every evaluation on data.valid are not numbers, so "
                                          "no model is kept; check the data and the learning rate");
    if (ph__job_rows_exist(valid))
        note_incomparable(trainer);
    return save_best(trainer);
}

/* Measures the model on data.valid and lets the protocol decide. Without validation data the latest model is
 * the best. */
static ph_status measure(struct ph__trainer *trainer, struct ph__decision *decision_out)
{
    const struct ph__train_job *job = trainer->job;
    const struct ph__evaluation_details details = ph__run_statistics_valid(&trainer->statistics);
    int signal;
    *decision_out = (struct ph__decision){.is_best = true};
    if (!ph__job_rows_exist(ph__job_valid(job)))
        return PH_OK;
    PH_TRY(ph__rows_learnt_gather(trainer->ranks.comm, &trainer->statistics.coverage));
    PH_TRY(ph__scorer_evaluate(trainer->scorer, ph__data_fingerprint_valid(&trainer->data, job),
        job->options.stop_signal, &signal, trainer->metrics, &trainer->bad_rows.valid, &details));
    if (signal != 0)
        return ph__trainer_stop(trainer, signal);
    PH_TRY(ph__rows_learnt_sum(
        trainer->ranks.comm, trainer->statistics.coverage.num_features, trainer->statistics.valid_ids));
    PH_TRY(check_scores(trainer, "data.valid"));
    *decision_out = ph__protocol_evaluated(&trainer->protocol, job->train, trainer->metrics);
    return ph__trainer_log_evaluation(trainer, decision_out->is_best);
}

ph_status ph__trainer_evaluate(struct ph__trainer *trainer, bool *is_stop)
{
    if (trainer->evaluated_step == trainer->summary.steps)
        return PH_OK;
    if (trainer->tally.steps > 0)
        PH_TRY(ph__trainer_log_progress(trainer));
    struct ph__decision decision;
    PH_TRY(measure(trainer, &decision));
    trainer->evaluated_step = trainer->summary.steps;
    if (decision.is_best || !trainer->protocol.has_best)
        trainer->summary.valid = trainer->metrics[0];
    if (decision.is_best)
        PH_TRY(save_best(trainer));
    if (decision.is_incomparable)
        note_incomparable(trainer);
    ph__trainer_observe_memory(trainer);
    *is_stop = *is_stop || decision.is_stop;
    ph__trainer_restart_tally(trainer);
    return PH_OK;
}

ph_status ph__trainer_test_best(struct ph__trainer *trainer)
{
    struct ph_train_summary *summary = &trainer->summary;
    PH_TRY(keep_last(trainer));
    summary->has_valid = ph__job_rows_exist(ph__job_valid(trainer->job));
    summary->has_test = ph__job_rows_exist(ph__job_test(trainer->job));
    if (summary->has_valid)
        PH_TRY(load_best(trainer));
    if (!summary->has_test)
        return PH_OK;
    int signal;
    const struct ph__evaluation_details details = ph__run_statistics_test(&trainer->statistics);
    PH_TRY(ph__scorer_evaluate(trainer->scorer, ph__job_test(trainer->job), trainer->job->options.stop_signal,
        &signal, trainer->metrics, &trainer->bad_rows.test, &details));
    if (signal != 0) /* the last weights were saved at the training's end */
        return ph__trainer_stop_saved(trainer, signal);
    PH_TRY(ph__rows_learnt_sum(
        trainer->ranks.comm, trainer->statistics.coverage.num_features, trainer->statistics.test_ids));
    PH_TRY(check_scores(trainer, "data.test"));
    summary->test = trainer->metrics[0];
    PH_TRY(ph__metrics_log_evaluation(
        &trainer->metrics_log, "test", summary->best_epoch, summary->steps, trainer->metrics));
    return ph__trainer_log_calibration(trainer, "test");
}
