#include "train/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "train/memory_check.h"

ph_status ph__report_open(const char *folder, struct ph__report *report_out)
{
    struct ph__report report = {0};
    snprintf(report.path, sizeof report.path, "%s/metrics.jsonl", folder);
    report.file = fopen(report.path, "wb");
    if (report.file == NULL)
        return ph_fail(PH_ERROR_DISK, "%s: cannot be written: %s", report.path, strerror(errno));
    *report_out = report;
    return PH_OK;
}

void ph__report_close(struct ph__report *report)
{
    if (report->file != NULL)
        fclose(report->file);
    report->file = NULL;
}

/* Takes the object; one line, at once on its way to the disk. */
static ph_status write_line(struct ph__report *report, struct ph_json *object)
{
    char *text = NULL;
    ph_status status = ph__json_text(object, 0, &text);
    ph__json_destroy(object);
    if (status == PH_OK && (fprintf(report->file, "%s\n", text) < 0 || fflush(report->file) != 0))
        status = ph_fail(PH_ERROR_DISK, "%s: cannot be written: %s", report->path, strerror(errno));
    free(text);
    return status;
}

static void set_metrics(struct ph_json *object, const struct ph_metrics *metrics)
{
    ph__json_set_number(object, "auc", metrics->auc);
    ph__json_set_number(object, "logloss", metrics->logloss);
    ph__json_set_number(object, "ne", metrics->ne);
    ph__json_set_number(object, "calibration", metrics->calibration);
    ph__json_set_number(object, "grouped_auc", metrics->grouped_auc);
    ph__json_set_number(object, "base_rate", metrics->base_rate);
    ph__json_set_integer(object, "samples", (int64_t)metrics->num_samples);
}

struct ph_json *ph__metrics_json(const struct ph_metrics *metrics)
{
    struct ph_json *object = ph__json_object();
    set_metrics(object, metrics);
    return object;
}

static struct ph_json *line_object(const char *event, uint64_t epoch, uint64_t step)
{
    struct ph_json *object = ph__json_object();
    ph__json_set_text(object, "event", event);
    ph__json_set_integer(object, "epoch", (int64_t)epoch);
    ph__json_set_integer(object, "step", (int64_t)step);
    return object;
}

ph_status ph__report_progress(struct ph__report *report, const struct ph_train_progress *progress)
{
    struct ph_json *object = line_object("train", progress->epoch, progress->step);
    ph__json_set_number(object, "loss", progress->loss);
    ph__json_set_number(object, "auc", progress->auc);
    ph__json_set_number(object, "learning_rate", progress->learning_rate);
    ph__json_set_number(object, "samples_per_s", progress->samples_per_s);
    return write_line(report, object);
}

ph_status ph__report_metrics(struct ph__report *report, const char *what, uint64_t epoch, uint64_t step,
    const struct ph_metrics *metrics)
{
    struct ph_json *object = line_object(what, epoch, step);
    set_metrics(object, metrics);
    return write_line(report, object);
}

static struct ph_json *memory_json(const struct ph_train_memory *memory)
{
    struct ph_json *object = ph__json_object();
    ph__json_set_integer(object, "baseline_bytes", (int64_t)memory->baseline_bytes);
    ph__json_set_integer(object, "parameter_bytes", (int64_t)memory->parameter_bytes);
    ph__json_set_integer(object, "slot_bytes", (int64_t)memory->slot_bytes);
    ph__json_set_integer(object, "plan_bytes", (int64_t)memory->plan_bytes);
    ph__json_set_integer(object, "no_reuse_bytes", (int64_t)memory->no_reuse_bytes);
    ph__json_set_integer(object, "allowance_bytes", (int64_t)PH_TRAIN_ALLOWANCE_BYTES);
    ph__json_set_integer(object, "limit_bytes", (int64_t)ph__memory_limit(memory));
    ph__json_set_integer(object, "peak_anonymous_bytes", (int64_t)memory->peak_anonymous_bytes);
    ph__json_set_integer(object, "growths", (int64_t)memory->num_growths);
    return object;
}

static void set_outcome(struct ph_json *object, const struct ph_train_summary *summary)
{
    if (summary->has_valid)
        ph__json_set(object, "valid", ph__metrics_json(&summary->valid));
    else
        ph__json_set_null(object, "valid");
    if (summary->has_test)
        ph__json_set(object, "test", ph__metrics_json(&summary->test));
    else
        ph__json_set_null(object, "test");
    ph__json_set_text(object, "checkpoint", summary->checkpoint_path);
    ph__json_set_text(object, "checkpoint_sha256", summary->checkpoint_sha256);
}

ph_status ph__summary_write(const struct ph_train_job *job, const struct ph_train_summary *summary,
    const char *backend, const char *path)
{
    struct ph_json *object = ph__json_object();
    ph__json_set_text(object, "model", ph_model_name(job->model->kind));
    ph__json_set_integer(object, "seed", (int64_t)job->seed);
    ph__json_set_integer(object, "world_size", 1);
    ph__json_set_integer(object, "threads", (int64_t)summary->num_threads);
    ph__json_set_text(object, "backend", backend);
    ph__json_set_bool(object, "deterministic", job->train->deterministic);
    ph__json_set_integer(object, "epochs", (int64_t)summary->epochs);
    ph__json_set_integer(object, "best_epoch", (int64_t)summary->best_epoch);
    ph__json_set_integer(object, "steps", (int64_t)summary->steps);
    ph__json_set_integer(object, "skipped_steps", (int64_t)summary->skipped_steps);
    ph__json_set_integer(object, "samples", (int64_t)summary->samples);
    ph__json_set_number(object, "train_seconds", summary->train_seconds);
    ph__json_set_number(object, "samples_per_s", summary->samples_per_s);
    ph__json_set_integer(object, "peak_rss_bytes", (int64_t)summary->peak_rss_bytes);
    ph__json_set_integer(object, "parameters", (int64_t)summary->parameters);
    ph__json_set_number(object, "flops_per_sample", summary->flops_per_sample);
    ph__json_set(object, "memory", memory_json(&summary->memory));
    set_outcome(object, summary);
    ph_status status = ph__json_write(object, path);
    ph__json_destroy(object);
    return status;
}
