#include "train/ranks/config_run.h"

#include "base/file/file.h"
#include "base/thread/stop.h"
#include "train/observer.h"
#include "train/ranks/job_agreement.h"

/* Context of the observer's functions. */
struct watch {
    const struct ph__config_run *run;
    const char *config_path; /* path that the effective config is written to */
};

static ph_status show_progress(void *context, const struct ph_train_progress *progress)
{
    const struct watch *watch = context;
    return ph__observer_progress(watch->run->observer, progress);
}

static void show_note(void *context, const char *text)
{
    const struct watch *watch = context;
    ph__observer_note(watch->run->observer, text);
}

static bool is_alone(const struct ph__config_run *run)
{
    return run->comm == NULL || ph_comm_world_size(run->comm) == 1;
}

/* Returns true when a signal may end the process at once, while nothing is learnt: not with
 * several ranks, which would be left waiting, nor with a hub, where a service would be left. */
static bool may_end_at_once(const struct ph__config_run *run)
{
    return is_alone(run) && run->reducer == NULL;
}

static void watch_signals(const struct ph__config_run *run, bool is_on)
{
    if (run->signals.watch != NULL)
        run->signals.watch(is_on);
}

/* Starts the training once its folder exists and is locked. Checks the folder again: another training may
 * have come and gone in it while the encoder was learnt. */
static ph_status start(void *context)
{
    const struct watch *watch = context;
    bool has_checkpoint;
    PH_TRY(ph_train_check_folder(watch->run->folder, true, &has_checkpoint));
    if (has_checkpoint)
        PH_TRY(ph__kept_config_compare(watch->run->config, watch->config_path));
    watch_signals(watch->run, true);
    PH_TRY(ph__observer_start(watch->run->observer));
    return ph_config_write(watch->run->config, watch->config_path);
}

/* Makes the encoder. A resumed training loads its own, whatever has become of its source file. */
static ph_status make_encoder(const struct watch *watch, struct ph_encoder **encoder_out)
{
    const struct ph__config_run *run = watch->run;
    bool has_checkpoint;
    PH_TRY(ph_train_check_folder(run->folder, run->is_resumed, &has_checkpoint));
    if (!has_checkpoint)
        return ph_encoder_create(&run->config->data, encoder_out);
    const char *path = ph__path_join(&run->config->arena, run->folder, "encoder.json");
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__kept_config_compare(run->config, watch->config_path));
    return ph_encoder_load(path, encoder_out);
}

static ph_status train(
    struct watch *watch, const struct ph_encoder *encoder, struct ph_train_summary *summary_out)
{
    const struct ph__config_run *run = watch->run;
    const struct ph_train_observer observer = {
        .context = watch, .on_progress = show_progress, .on_start = start, .on_note = show_note};
    struct ph_train_job job = {.size = sizeof job};
    PH_TRY(ph_config_job(run->config, &job));
    job.encoder = encoder;
    job.comm = run->comm;
    job.reducer = run->reducer;
    job.folder = run->folder;
    job.is_resumed = run->is_resumed;
    job.observer = &observer;
    job.profile_path = run->profile_path;
    job.trace_path = run->trace_path;
    job.first_bad_rows = run->first_bad_rows;
    job.stop_signal = run->signals.stop_signal;
    if (!may_end_at_once(run))
        watch_signals(run, true);
    const ph_status status = ph_train(&job, summary_out);
    if (!ph__is_stop_status(status) && may_end_at_once(run))
        watch_signals(run, false);
    return status;
}

ph_status ph__config_run(const struct ph__config_run *run, struct ph_train_summary *summary_out)
{
    struct ph_encoder *encoder;
    struct watch watch = {
        .run = run, .config_path = ph__path_join(&run->config->arena, run->folder, "config.yaml")};
    if (watch.config_path == NULL)
        return PH_ERROR_MEMORY;
    if (!is_alone(run))
        PH_TRY(ph__agree_on_run(run->comm, run->config, run->folder, run->is_resumed));
    PH_TRY(make_encoder(&watch, &encoder));
    ph_status status = train(&watch, encoder, summary_out);
    ph_encoder_destroy(encoder);
    return status;
}
