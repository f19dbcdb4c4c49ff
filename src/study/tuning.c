#include "study/tuning.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/statistics.h"
#include "base/thread/clock.h"
#include "train/config/run_key.h"

/* ---- order of trials ---- */

bool ph__tuning_is_by_logloss(const struct ph__tuning *tuning)
{
    const struct ph_config *config = tuning->config;
    if (config->tune.metric == PH_TUNE_SELECTION)
        return config->train.selection == PH_SELECT_LOGLOSS;
    return config->tune.metric == PH_TUNE_LOGLOSS;
}

/* Returns a figure that is larger for a better trial, and least where the metric is undefined. */
static double merit_of(const struct ph__trial *trial, bool is_by_logloss)
{
    const double merit = is_by_logloss ? -trial->valid_logloss : trial->valid_auc;
    return isnan(merit) ? -INFINITY : merit;
}

/* Orders failed trials last, and the others as ph__tuning_order describes. */
static int compare_trials(const struct ph__trial *left, const struct ph__trial *right, bool is_by_logloss)
{
    const bool left_fails = left->failure != NULL, right_fails = right->failure != NULL;
    const double left_merit = merit_of(left, is_by_logloss), right_merit = merit_of(right, is_by_logloss);
    if (left_fails != right_fails)
        return left_fails ? 1 : -1;
    if (left->num_rungs != right->num_rungs)
        return left->num_rungs > right->num_rungs ? -1 : 1;
    if (left_merit != right_merit)
        return left_merit > right_merit ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

static int compare_by_auc(const void *left, const void *right)
{
    return compare_trials(
        *(const struct ph__trial *const *)left, *(const struct ph__trial *const *)right, false);
}

static int compare_by_logloss(const void *left, const void *right)
{
    return compare_trials(
        *(const struct ph__trial *const *)left, *(const struct ph__trial *const *)right, true);
}

ph_status ph__tuning_order(
    struct ph__tuning *tuning, const struct ph__trial ***trials_out, size_t *num_finished_out)
{
    const struct ph__trial **trials =
        ph__arena_alloc_array(&tuning->arena, tuning->num_trials, sizeof *trials);
    if (trials == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < tuning->num_trials; i++)
        trials[i] = &tuning->trials[i];
    qsort(trials, tuning->num_trials, sizeof *trials,
        ph__tuning_is_by_logloss(tuning) ? compare_by_logloss : compare_by_auc);
    size_t num_finished = 0;
    while (num_finished < tuning->num_trials && trials[num_finished]->num_rungs > 0 &&
           trials[num_finished]->failure == NULL)
        num_finished++;
    *trials_out = trials;
    *num_finished_out = num_finished;
    return PH_OK;
}

/* ---- trials ---- */

/* Joins the plan's sets and those of a candidate. */
static ph_status join_sets(struct ph__arena *arena, const struct ph__tuning_plan *plan,
    const char *const *sets, size_t num_sets, const char *const **joined_out)
{
    const char **joined = ph__arena_alloc_array(arena, plan->num_sets + num_sets, sizeof *joined);
    if (joined == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < plan->num_sets + num_sets; i++)
        joined[i] = i < plan->num_sets ? plan->sets[i] : sets[i - plan->num_sets];
    *joined_out = joined;
    return PH_OK;
}

static ph_status read_candidate(struct ph__arena *arena, const struct ph__tuning_plan *plan,
    const char *const *sets, size_t num_sets, struct ph_config **config_out)
{
    const char *const *joined;
    PH_TRY(join_sets(arena, plan, sets, num_sets, &joined));
    return ph_config_read(plan->config, joined, plan->num_sets + num_sets, config_out);
}

ph_status ph__tuning_read_trial(
    struct ph__tuning *tuning, const struct ph__trial *trial, struct ph_config **config_out)
{
    return read_candidate(&tuning->arena, tuning->plan, trial->sets, trial->num_sets, config_out);
}

/* Makes the key of a candidate's config without its test data, which have no say in a search. */
static ph_status key_of(struct ph_config *config, const char *program, char key_out[PH_RUN_KEY_BYTES])
{
    config->data.paths.test = NULL;
    return ph__run_key(config, program, key_out);
}

/* Makes a key without the program: of the config as it is (set NULL), or with one "key=value". */
static ph_status key_with(struct ph__tuning *tuning, const char *set, char key_out[PH_RUN_KEY_BYTES])
{
    struct ph_config *config;
    PH_TRY(read_candidate(&tuning->arena, tuning->plan, &set, set != NULL, &config));
    ph_status status = key_of(config, "", key_out);
    ph_config_destroy(config);
    return status;
}

/* PH_ERROR_CONFIG unless the key's table takes the range's ends, and one of them changes the run's key. */
static ph_status try_range(struct ph__tuning *tuning, size_t index)
{
    const struct ph__range_settings *range =
        (const struct ph__range_settings *)tuning->config->tune.ranges.items + index;
    const char *const *values;
    char bare[PH_RUN_KEY_BYTES], key[PH_RUN_KEY_BYTES];
    size_t num_values;
    bool has_effect = false;
    PH_TRY(key_with(tuning, NULL, bare));
    PH_TRY(ph__range_extremes(range, &tuning->arena, &values, &num_values));
    for (size_t i = 0; i < num_values; i++) {
        const char *set = ph__arena_printf(&tuning->arena, "%s=%s", range->key, values[i]);
        ph_status status = set != NULL ? key_with(tuning, set, key) : PH_ERROR_MEMORY;
        if (status == PH_ERROR_CONFIG)
            return ph_fail(status, "tune.ranges[%zu]: %s", index, ph_error_text());
        PH_TRY(status);
        has_effect = has_effect || strcmp(key, bare) != 0;
    }
    if (has_effect)
        return PH_OK;
    return ph_fail(
        PH_ERROR_CONFIG, "tune.ranges[%zu]: %s has no effect on the outcome of a run", index, range->key);
}

static ph_status check_config(struct ph__tuning *tuning)
{
    const struct ph_config *config = tuning->config;
    const char *path = tuning->plan->config;
    if (config->data.paths.train == NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s: data.train is missing: name the training data", path);
    if (config->data.paths.valid == NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s: data.valid is missing: tune compares candidates on it", path);
    if (config->train.epochs < 1)
        return ph_fail(PH_ERROR_CONFIG, "%s: train.epochs is 0; it must be at least 1", path);
    PH_TRY(ph__ranges_check(&config->tune));
    for (size_t i = 0; i < config->tune.ranges.count; i++)
        PH_TRY(try_range(tuning, i));
    return PH_OK;
}

/* Names a trial. With halving, eta and min_epochs are part of the name: the content of a run's folder depends
 * on how long it was trained before it went on. */
static const char *name_trial(struct ph__tuning *tuning, uint64_t index, const char *key)
{
    const struct ph__tune_settings *tune = &tuning->config->tune;
    if (tune->search == PH_TUNE_HALVING)
        return ph__arena_printf(&tuning->arena, "%04" PRIu64 "-%s-halving%" PRId64 "from%" PRId64, index, key,
            tune->eta, tune->min_epochs);
    return ph__arena_printf(&tuning->arena, "%04" PRIu64 "-%s", index, key);
}

static ph_status add_trial(struct ph__tuning *tuning, const char *program, uint64_t index)
{
    struct ph__trial *trial = &tuning->trials[index];
    struct ph_config *config;
    char key[PH_RUN_KEY_BYTES];
    *trial = (struct ph__trial){.index = index, .is_promoted = true};
    PH_TRY(ph__candidate_sets(&tuning->config->tune, index, &tuning->arena, &trial->sets, &trial->num_sets));
    ph_status status = ph__tuning_read_trial(tuning, trial, &config);
    if (status == PH_ERROR_CONFIG)
        return ph_fail(status, "tune.ranges: candidate %" PRIu64 ": %s", index, ph_error_text());
    PH_TRY(status);
    status = key_of(config, program, key);
    ph_config_destroy(config);
    PH_TRY(status);
    trial->name = name_trial(tuning, index, key);
    return trial->name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status add_trials(struct ph__tuning *tuning)
{
    const struct ph__tune_settings *tune = &tuning->config->tune;
    const int64_t num_trials = tune->runs / tune->seeds;
    char program[65];
    tuning->num_trials = num_trials > 0 ? (size_t)num_trials : 1;
    tuning->trials = ph__arena_alloc_array(&tuning->arena, tuning->num_trials, sizeof *tuning->trials);
    if (tuning->trials == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__program_digest(program));
    for (size_t i = 0; i < tuning->num_trials; i++)
        PH_TRY(add_trial(tuning, program, i));
    return PH_OK;
}

static void set_rungs(struct ph__tuning *tuning)
{
    const struct ph__tune_settings *tune = &tuning->config->tune;
    const int64_t epochs = tuning->config->train.epochs;
    tuning->num_rungs = ph__halving_rungs(tuning->num_trials, tune->eta,
        tune->search == PH_TUNE_HALVING ? tune->min_epochs : epochs, epochs, tuning->rungs);
}

ph_status ph__tuning_init(struct ph__tuning *tuning, const struct ph__tuning_plan *plan)
{
    *tuning = (struct ph__tuning){.plan = plan, .lock = -1, .deadline = INFINITY};
    PH_TRY(read_candidate(&tuning->arena, plan, NULL, 0, &tuning->config));
    PH_TRY(check_config(tuning));
    PH_TRY(add_trials(tuning));
    set_rungs(tuning);
    if (tuning->config->tune.minutes > 0)
        tuning->deadline = ph__clock_seconds() + 60 * tuning->config->tune.minutes;
    PH_TRY(ph__directory_create(plan->folder));
    PH_TRY(ph__directory_lock(plan->folder, &tuning->lock));
    tuning->journal_path = ph__path_join(&tuning->arena, plan->folder, "tune.json");
    return tuning->journal_path != NULL ? ph__tune_journal_read(&tuning->journal, tuning->journal_path)
                                        : PH_ERROR_MEMORY;
}

void ph__tuning_fini(struct ph__tuning *tuning)
{
    ph__tune_journal_fini(&tuning->journal);
    if (tuning->plan != NULL)
        ph__directory_unlock(tuning->lock);
    ph_config_destroy(tuning->config);
    ph__arena_fini(&tuning->arena);
}

/* ---- a step ---- */

/* Returns true for a fault of the candidate: losses that are not finite, settings that contradict one
 * another. */
static bool is_of_candidate(ph_status status)
{
    return status == PH_ERROR_DIVERGED || status == PH_ERROR_CONFIG;
}

/* Explains a config error of a training that has a checkpoint. It began with the very settings, so the folder
 * does not fit them: it is ahead of the journal, which was lost. */
static ph_status explain(ph_status status, bool has_checkpoint, const char *folder)
{
    if (status != PH_ERROR_CONFIG || !has_checkpoint)
        return status;
    return ph_fail(PH_ERROR_CHECKPOINT,
        "%s: the folder does not match tune.json: %s; remove the folder to begin its training anew", folder,
        ph_error_text());
}

static ph_status train(struct ph__tuning *tuning, const struct ph__tuning_watcher *watcher,
    struct ph_config *config, const char *run, struct ph_train_summary *summary_out)
{
    const struct ph_train_options options = {
        .size = sizeof options,
        .folder = ph__arena_printf(&tuning->arena, "%s/trials/%s", tuning->plan->folder, run),
        .is_resumed = true,
        .observer = &watcher->observer,
        .stop_signal = watcher->stop_signal,
    };
    bool has_checkpoint;
    if (options.folder == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__train_check_folder(options.folder, options.is_resumed, &has_checkpoint));
    ph__memory_reset_peak_rss();
    return explain(ph_train_config(config, &options, summary_out), has_checkpoint, options.folder);
}

static ph_status train_candidate(struct ph__tuning *tuning, const struct ph__tuning_watcher *watcher,
    const struct ph__trial *trial, int64_t seed, struct ph__tune_step *step)
{
    struct ph_config *config;
    struct ph_train_summary summary;
    PH_TRY(ph__tuning_read_trial(tuning, trial, &config));
    config->data.paths.test = NULL;
    config->run.seed = (uint64_t)seed;
    config->train.epochs = step->epochs;
    ph_status status = train(tuning, watcher, config, step->run, &summary);
    ph_config_destroy(config);
    if (status == PH_OK) {
        step->valid_auc = summary.valid.auc;
        step->valid_logloss = summary.valid.logloss;
        step->epochs_trained = summary.epochs;
        step->train_seconds = summary.train_seconds;
    } else if (is_of_candidate(status) && trial->index == 0 && trial->num_rungs == 0) {
        status = ph_fail(status, "the config as it is cannot be trained: %s", ph_error_text());
    } else if (is_of_candidate(status)) {
        step->exit_code = ph_status_exit_code(status);
        snprintf(step->failure, sizeof step->failure, "%s", ph_error_text());
        status = PH_OK;
    }
    return status;
}

/* Gives a step of the journal, after training it unless it is there; NULL: there is no time for it. */
static ph_status take_step(struct ph__tuning *tuning, const struct ph__tuning_watcher *watcher,
    const struct ph__trial *trial, int64_t seed, int64_t epochs, const struct ph__tune_step **step_out)
{
    struct ph__tune_step step = {.epochs = epochs};
    snprintf(step.run, sizeof step.run, "%s-seed%" PRId64, trial->name, seed);
    *step_out = ph__tune_journal_find(&tuning->journal, step.run, epochs);
    const bool is_of_before = *step_out != NULL;
    if (!is_of_before) {
        tuning->is_out_of_time = ph__clock_seconds() >= tuning->deadline;
        if (tuning->is_out_of_time)
            return PH_OK;
        PH_TRY(train_candidate(tuning, watcher, trial, seed, &step));
        PH_TRY(ph__tune_journal_add(&tuning->journal, &step, tuning->journal_path));
        *step_out = ph__tune_journal_find(&tuning->journal, step.run, epochs);
    }
    if (watcher->on_step != NULL)
        watcher->on_step(watcher->context, trial, seed, *step_out, is_of_before);
    return PH_OK;
}

/* ---- rungs ---- */

static ph_status fail_trial(
    struct ph__tuning *tuning, struct ph__trial *trial, const struct ph__tune_step *step)
{
    trial->failure = ph__arena_strdup(&tuning->arena, step->failure);
    return trial->failure != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* Trains all runs of a trial to the end of a rung. */
static ph_status run_trial(struct ph__tuning *tuning, const struct ph__tuning_watcher *watcher,
    struct ph__trial *trial, const struct ph__rung *rung)
{
    const size_t num_seeds = (size_t)tuning->config->tune.seeds;
    double *aucs = ph__arena_alloc_array(&tuning->arena, num_seeds, sizeof *aucs);
    double *loglosses = ph__arena_alloc_array(&tuning->arena, num_seeds, sizeof *loglosses), seconds = 0;
    if (aucs == NULL || loglosses == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_seeds; i++) {
        const struct ph__tune_step *step;
        const int64_t seed = (int64_t)(tuning->config->run.seed + i);
        PH_TRY(take_step(tuning, watcher, trial, seed, rung->epochs, &step));
        if (step == NULL)
            return PH_OK;
        if (step->exit_code != 0)
            return fail_trial(tuning, trial, step);
        aucs[i] = step->valid_auc;
        loglosses[i] = step->valid_logloss;
        seconds += step->train_seconds;
    }
    trial->num_rungs++;
    trial->epochs = rung->epochs;
    trial->valid_auc = ph__mean(aucs, num_seeds);
    trial->auc_deviation = ph__sample_deviation(aucs, num_seeds);
    trial->valid_logloss = ph__mean(loglosses, num_seeds);
    trial->logloss_deviation = ph__sample_deviation(loglosses, num_seeds);
    trial->train_seconds = seconds;
    return PH_OK;
}

/* Promotes the best of the trials that have finished all rungs so far. */
static ph_status promote(struct ph__tuning *tuning, size_t num_finished_rungs, size_t num_promoted)
{
    const struct ph__trial **ordered;
    size_t num_finished;
    PH_TRY(ph__tuning_order(tuning, &ordered, &num_finished));
    for (size_t i = 0; i < tuning->num_trials; i++) {
        struct ph__trial *trial = &tuning->trials[ordered[i]->index];
        trial->is_promoted = i < num_finished && i < num_promoted && trial->num_rungs == num_finished_rungs &&
                             trial->failure == NULL;
    }
    return PH_OK;
}

static ph_status run_rung(
    struct ph__tuning *tuning, const struct ph__tuning_watcher *watcher, const struct ph__rung *rung)
{
    for (size_t i = 0; i < tuning->num_trials && !tuning->is_out_of_time; i++)
        if (tuning->trials[i].is_promoted)
            PH_TRY(run_trial(tuning, watcher, &tuning->trials[i], rung));
    return PH_OK;
}

ph_status ph__tuning_run(struct ph__tuning *tuning, const struct ph__tuning_watcher *watcher)
{
    for (size_t r = 0; r < tuning->num_rungs && !tuning->is_out_of_time; r++) {
        if (r > 0)
            PH_TRY(promote(tuning, r, tuning->rungs[r].num_candidates));
        PH_TRY(run_rung(tuning, watcher, &tuning->rungs[r]));
    }
    return PH_OK;
}
