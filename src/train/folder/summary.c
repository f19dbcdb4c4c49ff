#include "train/folder/summary.h"

#include <string.h>

#include "base/format/json_fields.h"
#include "graph/op.h"
#include "train/ranks/memory_check.h"

#define MAX_BYTES ((uint64_t)1 << 24)

#define METRIC(member) offsetof(struct ph_metrics, member)
#define PROGRESS(member) offsetof(struct ph_train_progress, member)
#define MEMORY(member) offsetof(struct ph_train_memory, member)
#define BAD_ROWS(member) offsetof(struct ph__bad_rows, member)
#define SUMMARY(member) offsetof(struct ph_train_summary, member)

static const struct ph__json_field metric_fields[] = {
    {"auc", PH_JSON_NUMBER, METRIC(auc), 0},
    {"auc_error", PH_JSON_NUMBER, METRIC(auc_error), 0},
    {"logloss", PH_JSON_NUMBER, METRIC(logloss), 0},
    {"ne", PH_JSON_NUMBER, METRIC(ne), 0},
    {"calibration", PH_JSON_NUMBER, METRIC(calibration), 0},
    {"grouped_auc", PH_JSON_NUMBER, METRIC(grouped_auc), 0},
    {"base_rate", PH_JSON_NUMBER, METRIC(base_rate), 0},
    {"accuracy", PH_JSON_LATER, METRIC(accuracy), 0},
    {"samples", PH_JSON_COUNT, METRIC(num_samples), 0},
};

static const struct ph__json_field progress_fields[] = {
    {"epoch", PH_JSON_COUNT, PROGRESS(epoch), 0},
    {"epochs", PH_JSON_COUNT, PROGRESS(epochs), 0},
    {"step", PH_JSON_COUNT, PROGRESS(step), 0},
    {"total_steps", PH_JSON_COUNT, PROGRESS(total_steps), 0},
    {"samples_per_s", PH_JSON_NUMBER, PROGRESS(samples_per_s), 0},
    {"loss", PH_JSON_NUMBER, PROGRESS(loss), 0},
    {"auc", PH_JSON_NUMBER, PROGRESS(auc), 0},
    {"learning_rate", PH_JSON_NUMBER, PROGRESS(learning_rate), 0},
    {"seconds_left", PH_JSON_NUMBER, PROGRESS(seconds_left), 0},
};

static const struct ph__json_field memory_fields[] = {
    {"baseline_bytes", PH_JSON_COUNT, MEMORY(baseline_bytes), 0},
    {"parameter_bytes", PH_JSON_COUNT, MEMORY(parameter_bytes), 0},
    {"slot_bytes", PH_JSON_COUNT, MEMORY(slot_bytes), 0},
    {"plan_bytes", PH_JSON_COUNT, MEMORY(plan_bytes), 0},
    {"no_reuse_bytes", PH_JSON_COUNT, MEMORY(no_reuse_bytes), 0},
    {"probe_bytes", PH_JSON_COUNT, MEMORY(probe_bytes), 0},
    {"peak_anonymous_bytes", PH_JSON_COUNT, MEMORY(peak_anonymous_bytes), 0},
    {"growths", PH_JSON_COUNT, MEMORY(num_growths), 0},
};

static const struct ph__json_field bad_rows_fields[] = {
    {"count", PH_JSON_COUNT, BAD_ROWS(count), 0},
    {"first", PH_JSON_TEXT, BAD_ROWS(first), sizeof((struct ph__bad_rows *)0)->first},
};

static const struct ph__json_field summary_fields[] = {
    {"threads", PH_JSON_SIZE, SUMMARY(num_threads), 0},
    {"epochs", PH_JSON_COUNT, SUMMARY(epochs), 0},
    {"best_epoch", PH_JSON_COUNT, SUMMARY(best_epoch), 0},
    {"steps", PH_JSON_COUNT, SUMMARY(steps), 0},
    {"skipped_steps", PH_JSON_COUNT, SUMMARY(skipped_steps), 0},
    {"samples", PH_JSON_COUNT, SUMMARY(samples), 0},
    {"train_seconds", PH_JSON_NUMBER, SUMMARY(train_seconds), 0},
    {"samples_per_s", PH_JSON_NUMBER, SUMMARY(samples_per_s), 0},
    {"reader_wait_share", PH_JSON_NUMBER, SUMMARY(reader_wait_share), 0},
    {"probe_share", PH_JSON_NUMBER, SUMMARY(probe_share), 0},
    {"peak_rss_bytes", PH_JSON_COUNT, SUMMARY(peak_rss_bytes), 0},
    {"parameters", PH_JSON_COUNT, SUMMARY(parameters), 0},
    {"flops_per_sample", PH_JSON_NUMBER, SUMMARY(flops_per_sample), 0},
    {"checkpoint_sha256", PH_JSON_TEXT, SUMMARY(checkpoint_sha256),
        sizeof((struct ph_train_summary *)0)->checkpoint_sha256},
};
#define NUM_OUTCOME_FIELDS 1 /* the last field of summary_fields is written behind the metrics */

/* ---- end of training ---- */

static const char *const end_names[] = {
    [PH_ENDED_BY_UNKNOWN] = "",
    [PH_ENDED_BY_EPOCHS] = "epochs",
    [PH_ENDED_BY_MAX_STEPS] = "max_steps",
    [PH_ENDED_BY_PATIENCE] = "patience",
};

const char *ph__train_end_name(enum ph_train_end end)
{
    return end_names[end];
}

static enum ph_train_end end_called(const char *name)
{
    for (size_t i = 0; i < sizeof end_names / sizeof *end_names; i++)
        if (strcmp(end_names[i], name) == 0)
            return (enum ph_train_end)i;
    return PH_ENDED_BY_UNKNOWN;
}

/* ---- writing ---- */

void ph__metrics_set(struct ph__json *object, const struct ph_metrics *metrics)
{
    ph__json_set_fields(object, metric_fields, sizeof metric_fields / sizeof *metric_fields, metrics);
}

struct ph__json *ph__metrics_json(const struct ph_metrics *metrics)
{
    struct ph__json *object = ph__json_object();
    ph__metrics_set(object, metrics);
    return object;
}

ph_status ph_train_progress_json(const struct ph_train_progress *progress, char **text_out)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_fields(object, progress_fields, sizeof progress_fields / sizeof *progress_fields, progress);
    ph__json_set_bool(object, "is_best", progress->is_best);
    if (progress->valid != NULL)
        ph__json_set(object, "valid", ph__metrics_json(progress->valid));
    else
        ph__json_set_null(object, "valid");
    const ph_status status = ph__json_text(object, 0, text_out);
    ph__json_destroy(object);
    return status;
}

static struct ph__json *memory_json(const struct ph_train_memory *memory)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_fields(object, memory_fields, sizeof memory_fields / sizeof *memory_fields, memory);
    ph__json_set_integer(object, "allowance_bytes", (int64_t)PH_TRAIN_ALLOWANCE_BYTES);
    ph__json_set_integer(object, "limit_bytes", (int64_t)ph__memory_limit(memory));
    return object;
}

static void set_bad_rows(struct ph__json *object, const char *what, const struct ph__bad_rows *bad_rows)
{
    struct ph__json *json = ph__json_object();
    ph__json_set_fields(json, bad_rows_fields, sizeof bad_rows_fields / sizeof *bad_rows_fields, bad_rows);
    ph__json_set(object, what, json);
}

static struct ph__json *all_bad_rows_json(const struct ph__split_bad_rows *bad_rows)
{
    struct ph__json *object = ph__json_object();
    set_bad_rows(object, "train", &bad_rows->train);
    set_bad_rows(object, "valid", &bad_rows->valid);
    set_bad_rows(object, "test", &bad_rows->test);
    return object;
}

static void set_metrics(struct ph__json *object, const char *what, bool has, const struct ph_metrics *metrics)
{
    if (has)
        ph__json_set(object, what, ph__metrics_json(metrics));
    else
        ph__json_set_null(object, what);
}

ph_status ph__summary_write(const struct ph__train_job *job, const struct ph_train_summary *summary,
    const struct ph__split_bad_rows *bad_rows, const char *backend, struct ph__json *ranks, const char *path)
{
    const size_t num_first = sizeof summary_fields / sizeof *summary_fields - NUM_OUTCOME_FIELDS;
    char model_path[PH_MODEL_PATH_BYTES];
    struct ph__json *object = ph__json_object();
    const bool is_simulated = job->backend != NULL && job->backend->simulator != NULL;
    if (is_simulated)
        ph__json_set_text(object, "label", "simulated");
    ph__json_set_text(object, "model", ph_model_name(job->model->kind));
    ph__json_set_integer(object, "seed", (int64_t)job->run.seed);
    ph__json_set_integer(
        object, "world_size", job->options.comm != NULL ? (int64_t)ph_comm_world_size(job->options.comm) : 1);
    ph__json_set_text(object, "backend", backend);
    ph__json_set_bool(object, "deterministic", job->train->deterministic);
    ph__json_set_fields(object, summary_fields, num_first, summary);
    ph__json_set_text(object, "ended_by", ph__train_end_name(summary->ended_by));
    ph__json_set(object, "memory", memory_json(&summary->memory));
    ph__json_set(object, "bad_rows", all_bad_rows_json(bad_rows));
    set_metrics(object, "progressive", summary->has_progressive, &summary->progressive);
    set_metrics(object, "valid", summary->has_valid, &summary->valid);
    set_metrics(object, "test", summary->has_test, &summary->test);
    if (ranks != NULL)
        ph__json_set(object, "ranks", ranks);
    snprintf(model_path, sizeof model_path, "%s/model.safetensors", job->options.folder);
    ph__json_set_text(object, "checkpoint", is_simulated ? NULL : model_path);
    ph__json_set_fields(object, summary_fields + num_first, NUM_OUTCOME_FIELDS, summary);
    ph_status status = ph__json_write(object, path);
    ph__json_destroy(object);
    return status;
}

void ph__summary_count_bad_rows(struct ph_train_summary *summary, const struct ph__split_bad_rows *bad_rows)
{
    summary->train_bad_rows = bad_rows->train.count;
    summary->valid_bad_rows = bad_rows->valid.count;
    summary->test_bad_rows = bad_rows->test.count;
}

/* ---- reading ---- */

/* Returns the missing key, or NULL. A metric that was not measured is null in the file. */
static const char *get_metrics(
    const struct ph__json *object, const char *what, bool *has_out, struct ph_metrics *metrics_out)
{
    const struct ph__json *json = ph__json_get(object, what);
    *has_out = ph__json_is_object(json);
    if (!*has_out)
        return ph__json_is_null(json) ? NULL : what;
    return ph__json_get_fields(
        json, metric_fields, sizeof metric_fields / sizeof *metric_fields, metrics_out);
}

static const char *get_bad_rows(const struct ph__json *object, struct ph__split_bad_rows *bad_rows)
{
    const struct ph__json *all = ph__json_get(object, "bad_rows");
    const struct {
        const char *key;
        struct ph__bad_rows *to;
    } files[] = {{"train", &bad_rows->train}, {"valid", &bad_rows->valid}, {"test", &bad_rows->test}};
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files && missing == NULL; i++)
        missing = ph__json_get_fields(ph__json_get(all, files[i].key), bad_rows_fields,
            sizeof bad_rows_fields / sizeof *bad_rows_fields, files[i].to);
    return missing;
}

static const char *get_summary(
    const struct ph__json *object, struct ph_train_summary *summary, struct ph__split_bad_rows *bad_rows)
{
    summary->ended_by = end_called(ph__json_as_text(ph__json_get(object, "ended_by"), ""));
    const char *missing =
        ph__json_get_fields(object, summary_fields, sizeof summary_fields / sizeof *summary_fields, summary);
    if (missing == NULL)
        missing = ph__json_get_fields(ph__json_get(object, "memory"), memory_fields,
            sizeof memory_fields / sizeof *memory_fields, &summary->memory);
    if (missing == NULL)
        missing = get_bad_rows(object, bad_rows);
    if (missing == NULL)
        missing = get_metrics(object, "progressive", &summary->has_progressive, &summary->progressive);
    if (missing == NULL)
        missing = get_metrics(object, "valid", &summary->has_valid, &summary->valid);
    if (missing == NULL)
        missing = get_metrics(object, "test", &summary->has_test, &summary->test);
    return missing;
}

ph_status ph__summary_read(const char *path, struct ph_train_summary *summary_out,
    struct ph__split_bad_rows *bad_rows_out, char *backend_out, size_t backend_size)
{
    struct ph__json *json = NULL;
    struct ph_train_summary summary = {0};
    struct ph__split_bad_rows bad_rows = {0};
    ph_status status = ph__json_read(path, PH_ERROR_CHECKPOINT, MAX_BYTES, &json);
    const char *missing = status == PH_OK ? get_summary(json, &summary, &bad_rows) : NULL;
    if (missing != NULL)
        status = ph_fail(PH_ERROR_CHECKPOINT, "%s: '%s' is missing or invalid", path, missing);
    ph__summary_count_bad_rows(&summary, &bad_rows);
    if (status == PH_OK)
        *summary_out = summary;
    if (status == PH_OK && bad_rows_out != NULL)
        *bad_rows_out = bad_rows;
    if (status == PH_OK && backend_out != NULL)
        snprintf(backend_out, backend_size, "%s", ph__json_as_text(ph__json_get(json, "backend"), ""));
    ph__json_destroy(json);
    return status;
}
