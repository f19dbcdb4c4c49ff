/* A training by a config, in a folder that keeps the config as config.yaml. */
#include <string.h>

#include "base/file/file.h"
#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/thread/stop.h"
#include "train/config/job_config.h"
#include "train/observer.h"
#include "train/ranks/job_agreement.h"

#define MAX_SUMMARY_BYTES ((uint64_t)1 << 24)

struct training {
    const struct ph_config *config;
    struct ph_train_options options;
    struct ph_train_observer observer;
    struct ph__arena arena;
    const char *config_path; /* path that the effective config is written to */
};

static ph_status show_progress(void *context, const struct ph_train_progress *progress)
{
    const struct training *training = context;
    return ph__observer_progress(&training->observer, progress);
}

static void show_note(void *context, const char *text)
{
    const struct training *training = context;
    ph__observer_note(&training->observer, text);
}

static bool is_alone(const struct ph_train_options *options)
{
    return options->comm == NULL || ph_comm_world_size(options->comm) == 1;
}

/* Returns true when a signal may end the process at once, while nothing is learnt: not with several ranks,
 * which would be left waiting, nor with a hub, where a service would be left. */
static bool may_end_at_once(const struct ph_train_options *options)
{
    return is_alone(options) && options->reducer == NULL;
}

static void watch_signals(const struct training *training, bool is_on)
{
    if (training->observer.on_watch != NULL)
        training->observer.on_watch(training->observer.context, is_on);
}

/* Starts the training once its folder exists and is locked. Checks the folder again: another training may
 * have come and gone in it while the encoder was learnt. */
static ph_status start(void *context)
{
    const struct training *training = context;
    bool has_checkpoint;
    PH_TRY(ph__train_check_folder(training->options.folder, true, &has_checkpoint));
    if (has_checkpoint)
        PH_TRY(ph__kept_config_compare(training->config, training->config_path));
    watch_signals(training, true);
    PH_TRY(ph__observer_start(&training->observer));
    return ph_config_write(training->config, training->config_path);
}

/* Makes the encoder. A resumed training loads its own, whatever has become of its source. */
static ph_status make_encoder(struct training *training, struct ph_encoder **encoder_out)
{
    const struct ph_train_options *options = &training->options;
    bool has_checkpoint;
    PH_TRY(ph__train_check_folder(options->folder, options->is_resumed, &has_checkpoint));
    if (!has_checkpoint && options->train_dataset != NULL)
        return ph_encoder_create_from_dataset(&training->config->data, options->train_dataset, encoder_out);
    if (!has_checkpoint)
        return ph_encoder_create(&training->config->data, encoder_out);
    const char *path = ph__path_join(&training->arena, options->folder, "encoder.json");
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__kept_config_compare(training->config, training->config_path));
    return ph_encoder_load(path, encoder_out);
}

static ph_status run(
    struct training *training, const struct ph_encoder *encoder, struct ph_train_summary *summary_out)
{
    const struct ph_train_options *options = &training->options;
    const struct ph_train_observer observer = {
        .context = training, .on_progress = show_progress, .on_start = start, .on_note = show_note};
    struct ph__train_job job = ph__config_job(training->config);
    job.encoder = encoder;
    job.options = *options;
    job.options.observer = &observer;
    if (!may_end_at_once(options))
        watch_signals(training, true);
    const ph_status status = ph__train(&job, summary_out);
    if (!ph__is_stop_status(status) && may_end_at_once(options))
        watch_signals(training, false);
    return status;
}

/* Gives the summary that the first rank has written. */
static ph_status read_summary(struct training *training)
{
    const char *path = ph__path_join(&training->arena, training->options.folder, "summary.json");
    char *text;
    size_t size;
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__file_read(&training->arena, path, MAX_SUMMARY_BYTES, &text, &size));
    *training->options.summary_json = strdup(text);
    return *training->options.summary_json != NULL ? PH_OK : ph__out_of_memory("a summary");
}

static ph_status train(struct training *training, struct ph_train_summary *summary_out)
{
    const struct ph_train_options *options = &training->options;
    struct ph_encoder *encoder;
    struct ph_train_summary summary;
    if (options->folder == NULL)
        return ph_fail(PH_ERROR_USAGE, "struct ph_train_options: folder is NULL: name the run's folder");
    if (options->train_dataset == NULL && training->config->data.paths.train == NULL)
        return ph_fail(PH_ERROR_CONFIG, "data.train is missing: name the training data");
    training->config_path = ph__path_join(&training->arena, options->folder, "config.yaml");
    if (training->config_path == NULL)
        return PH_ERROR_MEMORY;
    if (!is_alone(options))
        PH_TRY(ph__agree_on_run(options->comm, training->config, options->folder, options->is_resumed));
    PH_TRY(make_encoder(training, &encoder));
    ph_status status = run(training, encoder, summary_out != NULL ? summary_out : &summary);
    ph_encoder_destroy(encoder);
    if (status == PH_OK && options->summary_json != NULL &&
        (options->comm == NULL || ph_comm_rank(options->comm) == 0))
        status = read_summary(training);
    return status;
}

ph_status ph_train_config(const struct ph_config *config, const struct ph_train_options *options,
    struct ph_train_summary *summary_out)
{
    struct training training = {.config = config};
    PH_TRY(ph__options_copy(&training.options, sizeof training.options, options, "ph_train_options"));
    PH_TRY(ph__options_copy(
        &training.observer, sizeof training.observer, training.options.observer, "ph_train_observer"));
    const ph_status status = train(&training, summary_out);
    ph__arena_fini(&training.arena);
    return status;
}
